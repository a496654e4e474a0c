/* Names of the importer: one hash table of (frame, name) -> what the name stands for. */
#include "onnx/import_state.h"

static uint64_t slot_key(const Frame *frame, NameId name) {
  return (uint64_t)frame->id << 32 | name;
}

static uint32_t slot_index(const ImportState *s, uint64_t key) {
  uint64_t h = key * 0x9e3779b97f4a7c15u;
  uint32_t slot = (uint32_t)(h >> 32) & (s->slot_count - 1);
  while (s->slots[slot].key && s->slots[slot].key != key)
    slot = (slot + 1) & (s->slot_count - 1);
  return slot;
}

static void slots_grow(ImportState *s) {
  BindingSlot *old = s->slots;
  uint32_t old_count = s->slot_count;
  s->slot_count = old_count ? old_count * 2 : 1024;
  s->slots = ARENA_ARRAY(&s->arena, BindingSlot, s->slot_count);
  for (uint32_t i = 0; i < old_count; i++)
    if (old[i].key)
      s->slots[slot_index(s, old[i].key)] = old[i];
}

BindingSlot *scope_slot(Import *im, Frame *frame, NameId name) {
  ImportState *s = im->state;
  if (s->slot_used * 2 >= s->slot_count)
    slots_grow(s);
  uint64_t key = slot_key(frame, name);
  BindingSlot *slot = &s->slots[slot_index(s, key)];
  if (!slot->key) {
    slot->key = key;
    s->slot_used++;
  }
  return slot;
}

BindingSlot *scope_find(Import *im, Frame *frame, NameId name) {
  const ImportState *s = im->state;
  for (; frame && s->slot_count; frame = frame->parent) {
    uint32_t i = slot_index(s, slot_key(frame, name));
    if (s->slots[i].key && s->slots[i].binding.kind != BIND_NONE)
      return &s->slots[i];
  }
  return NULL;
}

bool scope_bind(Import *im, NameId name, Binding binding) {
  BindingSlot *slot = scope_slot(im, im->frame, name);
  if (slot->binding.kind != BIND_NONE) {
    import_fail(im, DIAG_NAME_TWICE, "'" SV_FMT "' is produced twice",
                SV_ARG(intern_get(&im->ctx->names, name)));
    return false;
  }
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
