/* Names of the importer: what a name stands for in a frame. Names of the main graph, nearly all,
 * are found by their ids; those of functions and subgraphs in a hash table of (frame, name). */
#include "onnx/import_state.h"

static uint64_t slot_key(const Frame *frame, NameId name) {
  return (uint64_t)frame->id << 32 | name;
}

/* Where the number of the slot of this key is, or would be. */
static uint32_t *inner_place(const ImportState *s, uint64_t key) {
  uint32_t mask = s->inner_capacity - 1, i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
  while (s->inner_slots[i] && s->slots[s->inner_slots[i]].key != key)
    i = (i + 1) & mask;
  return &s->inner_slots[i];
}

static void grow_inner(ImportState *s) {
  uint32_t count = s->inner_capacity;
  uint32_t *old = s->inner_slots;
  s->inner_capacity = count ? count * 2 : 1024;
  s->inner_slots = ARENA_ARRAY(&s->arena, uint32_t, s->inner_capacity);
  for (uint32_t i = 0; i < count; i++)
    if (old[i])
      *inner_place(s, s->slots[old[i]].key) = old[i];
}

static void grow_main(ImportState *s, NameId name) {
  uint32_t old = s->main_capacity;
  s->main_slots =
      pool_reserve(s->main_slots, &s->main_capacity, (uint64_t)name + 1, sizeof *s->main_slots);
  memset(s->main_slots + old, 0, (s->main_capacity - old) * sizeof *s->main_slots);
}

/* Where the number of the slot of a name of this frame goes. */
static uint32_t *make_place(ImportState *s, const Frame *frame, NameId name) {
  if (frame->id == FRAME_MAIN) {
    if (name >= s->main_capacity)
      grow_main(s, name);
    return &s->main_slots[name];
  }
  if (s->inner_count * 2 >= s->inner_capacity)
    grow_inner(s);
  uint32_t *place = inner_place(s, slot_key(frame, name));
  s->inner_count += !*place;
  return place;
}

BindingSlot *scope_slot(Import *im, Frame *frame, NameId name) {
  ImportState *s = im->state;
  uint32_t *place = make_place(s, frame, name);
  if (!*place) {
    s->slots =
        pool_reserve(s->slots, &s->slot_capacity, (uint64_t)s->slot_count + 2, sizeof *s->slots);
    *place = ++s->slot_count;
    s->slots[*place] = (BindingSlot){.key = slot_key(frame, name)};
  }
  return &s->slots[*place];
}

/* The slot of a name of this very frame; 0: there is none. */
static uint32_t find_slot(const ImportState *s, const Frame *frame, NameId name) {
  if (frame->id == FRAME_MAIN)
    return name < s->main_capacity ? s->main_slots[name] : 0;
  return s->inner_capacity ? *inner_place(s, slot_key(frame, name)) : 0;
}

BindingSlot *scope_find(Import *im, Frame *frame, NameId name) {
  const ImportState *s = im->state;
  for (; frame; frame = frame->parent) {
    uint32_t slot = find_slot(s, frame, name);
    if (slot && s->slots[slot].binding.kind != BIND_NONE)
      return &s->slots[slot];
  }
  return NULL;
}

void scope_release(ImportState *s) {
  xfree(s->slots);
  xfree(s->main_slots);
  xfree(s->node_names.ids);
}

bool scope_bind(Import *im, NameId name, Binding binding) {
  BindingSlot *slot = scope_slot(im, im->frame, name);
  if (slot->binding.kind != BIND_NONE)
    return import_fail(im, DIAG_NAME_TWICE, "'" SV_FMT "' is produced twice",
                       SV_ARG(intern_get(&im->ctx->names, name)));
  slot->binding = binding;
  return true;
}

Binding import_lookup(Import *im, NameId name) {
  BindingSlot *slot = scope_find(im, im->frame, name);
  if (!slot && im->state->stopped)
    return (Binding){.kind = BIND_POISON};
  return slot ? slot->binding : (Binding){.kind = BIND_NONE};
}

NameId import_name(Import *im, const char *text) {
  return text && *text ? intern_add(&im->ctx->names, sv_from(text)) : 0;
}

static const NameId *node_names(Import *im) {
  NodeNames *names = &im->state->node_names;
  const Onnx__NodeProto *node = im->node;
  if (names->node == node)
    return names->ids;
  names->ids = pool_reserve(names->ids, &names->capacity, (uint64_t)node->n_input + node->n_output,
                            sizeof *names->ids);
  for (size_t i = 0; i < node->n_input; i++)
    names->ids[i] = import_name(im, node->input[i]);
  for (size_t i = 0; i < node->n_output; i++)
    names->ids[node->n_input + i] = import_name(im, node->output[i]);
  names->node = node;
  return names->ids;
}

NameId import_input_name(Import *im, uint32_t i) { return node_names(im)[i]; }

NameId import_output_name(Import *im, uint32_t i) { return node_names(im)[im->node->n_input + i]; }
