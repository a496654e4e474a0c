/* See budget.h. What a program has of each limit, and what takes most of it. */
#include <math.h>
#include <stdlib.h>

#include "pipeline/budget.h"
#include "pte/inspect_internal.h"
#include "support/keymap.h"
#include "support/text.h"

enum { SHOWN = 3 }; /* of what takes most */

typedef struct Check {
  Session *s;
  const BudgetSubject *of;
  uint32_t first, end; /* the methods that the present limit is of */
} Check;

static void append_item(StrBuf *out, StrView name, uint64_t bytes) {
  strbuf_append(out, out->size ? SV(", ") : SV(""));
  strbuf_append_printable(out, name);
  strbuf_append_char(out, ' ');
  strbuf_append_bytes(out, bytes);
}

/* --- sizes --- */

static bool is_weight(PtePartKind kind) {
  return kind == PTE_PART_CONSTANT || kind == PTE_PART_STATE || kind == PTE_PART_DATA;
}

/* Layers of the file, or of its weights. */
static const char *largest_layers(const Check *c, const PteSize *flash, bool weights) {
  StrBuf text = {0};
  for (uint32_t i = 0, shown = 0; i < flash->layer_count && shown < SHOWN; i++) {
    const PteLayer *layer = &flash->layers[i];
    PtePartKind kind = layer->parts->kind;
    if (weights ? !is_weight(kind) : kind == PTE_PART_PADDING)
      continue;
    append_item(&text, kind == PTE_PART_PROGRAM ? SV("the program itself") : layer->parts->layer,
                layer->bytes);
    shown++;
  }
  if (weights && flash->external)
    append_item(&text, SV("in a file of their own"), flash->external);
  return strbuf_keep(&text, &c->s->arena).data;
}

/* The file, or the weights, of the program or of what one method needs of them. */
static void check_flash(const Check *c, BudgetRow *row) {
  bool weights = row->limit->key == BUDGET_CONSTANTS, one = row->limit->method.size != 0;
  PteSize own;
  if (one)
    own = pte_size_flash(c->of->program, c->of->names, c->first, &c->s->arena);
  const PteSize *flash = one ? &own : c->of->size;
  row->actual = weights ? (double)flash->external : 0;
  for (PtePartKind k = 0; k < PTE_PART_KINDS; k++)
    if (weights ? is_weight(k) : !one || k != PTE_PART_PADDING)
      row->actual += (double)flash->totals[k];
  row->why = largest_layers(c, flash, weights);
}

/* --- arenas --- */

/* name empty: every arena. */
static bool is_arena(const PteArena *a, StrView name) {
  uint64_t id;
  return !name.size || (text_parse_u64(name, &id) && id == a->id) ||
         (a->bank && sv_eq(a->bank->name, name));
}

typedef struct Item {
  StrView name;
  uint64_t bytes;
  uint32_t first; /* which of the tensors is the first of the name */
} Item;

static int largest_item(const void *a, const void *b) {
  const Item *x = a, *y = b;
  int order = ORDER(y->bytes, x->bytes);
  return order ? order : ORDER(x->first, y->first);
}

/* Tensors of one name, such as both results of a pool, are one item. */
static const char *largest_live(const Check *c, const PteArena *a) {
  if (!a || !a->live_count)
    return "";
  StrBuf text = {0};
  KeyMap known = keymap_make(&c->s->arena, c->s->ctx.names.seed);
  Item *items = ARENA_ARRAY(&c->s->arena, Item, a->live_count);
  uint32_t count = 0, *slot;
  for (uint32_t i = 0; i < a->live_count; i++) {
    StrView name = a->live[i].name;
    if (!keymap_get(&known, name.data, (uint32_t)name.size, &slot)) {
      items[count++] = (Item){name, 0, i};
      *slot = count;
    }
    items[*slot - 1].bytes += a->live[i].bytes;
  }
  qsort(items, count, sizeof *items, largest_item);
  for (uint32_t i = 0; i < count && i < SHOWN; i++)
    append_item(&text, items[i].name, items[i].bytes);
  strbuf_append(&text, SV(", in use at "));
  strbuf_append_printable(&text, a->at);
  return strbuf_keep(&text, &c->s->arena).data;
}

/* False when there is no such arena. */
static bool check_arena(const Check *c, BudgetRow *row) {
  const PteArena *largest = NULL;
  for (uint32_t i = c->first; i < c->end; i++)
    for (uint32_t k = 0; k < c->of->size->methods[i].arena_count; k++) {
      const PteArena *a = &c->of->size->methods[i].arenas[k];
      if (!is_arena(a, row->limit->arena))
        continue;
      row->actual += (double)a->bytes;
      if (!largest || a->bytes > largest->bytes)
        largest = a;
    }
  row->why = largest_live(c, largest);
  return largest || !row->limit->arena.size;
}

static EtcStatus no_arena(const Check *c, const BudgetLimit *limit) {
  StrBuf names = {0};
  for (uint32_t i = c->first; i < c->end; i++)
    for (uint32_t k = 0; k < c->of->size->methods[i].arena_count; k++) {
      const PteArena *a = &c->of->size->methods[i].arenas[k];
      strbuf_append(&names, names.size ? SV(", ") : SV(""));
      if (a->bank)
        strbuf_append_printable(&names, a->bank->name);
      else
        strbuf_printf(&names, "%u", a->id);
    }
  Diag *d = diag_begin(&c->s->sink, DIAG_BUDGET_FILE, limit->at);
  diag_message(d, "the program has no arena '" SV_FMT "'", SV_ARG(limit->arena));
  const char *hint =
      names.size ? "it has %s; banks get names by --memory sram=SIZE,..." : "it has no arena";
  diag_hint(d, hint, strbuf_cstr(&names));
  strbuf_release(&names);
  return session_status(diag_end(d));
}

/* --- kernels and delegates --- */

typedef struct KernelUse {
  StrView name;
  uint32_t calls, method, instruction; /* of the first call */
} KernelUse;

typedef struct KernelUses {
  KernelUse *items; /* most calls first */
  uint32_t count, calls;
} KernelUses;

static int most_calls(const void *a, const void *b) {
  const KernelUse *x = a, *y = b;
  int order = ORDER(y->calls, x->calls);
  order = order ? order : ORDER(x->method, y->method);
  return order ? order : ORDER(x->instruction, y->instruction);
}

static void count_method(const Check *c, uint32_t method, bool computing, KeyMap *known,
                         KernelUses *out) {
  const PteMethod *m = &c->of->program->methods[method];
  for (uint32_t i = 0; i < m->instruction_count; i++) {
    uint32_t *slot;
    if (m->instructions[i].kind != PTE_KERNEL_CALL)
      continue;
    StrView name = m->operators[m->instructions[i].index];
    if (computing && !operator_library(name)[0])
      continue;
    if (!keymap_get(known, name.data, (uint32_t)name.size, &slot)) {
      out->items[out->count++] = (KernelUse){name, 0, method, i};
      *slot = out->count;
    }
    out->items[*slot - 1].calls++;
    out->calls++;
  }
}

/* computing: without those of the runtime itself, which only handle sizes and views. */
static KernelUses count_kernels(const Check *c, bool computing) {
  size_t most = 1;
  for (uint32_t i = c->first; i < c->end; i++)
    most += c->of->program->methods[i].operator_count;
  KeyMap known = keymap_make(&c->s->arena, c->s->ctx.names.seed);
  KernelUses out = {.items = ARENA_ARRAY(&c->s->arena, KernelUse, most)};
  for (uint32_t i = c->first; i < c->end; i++)
    count_method(c, i, computing, &known, &out);
  qsort(out.items, out.count, sizeof *out.items, most_calls);
  return out;
}

/* "aten::mm.out 3 (/head/MatMul)": the most called, or, where each kernel counts, the least. */
static const char *kernel_names(const Check *c, const KernelUses *uses, bool least) {
  StrBuf text = {0};
  for (uint32_t i = 0; i < uses->count && i < 2 * SHOWN; i++) {
    const KernelUse *use = &uses->items[least ? uses->count - 1 - i : i];
    StrView node =
        c->of->names ? c->of->names->instruction(c->of->names->user, use->method, use->instruction)
                     : SV("");
    strbuf_append(&text, i ? SV(", ") : SV(""));
    strbuf_append_printable(&text, use->name);
    strbuf_printf(&text, " %u", use->calls);
    if (node.size) {
      strbuf_append_within(&text, " (", node, ")");
    }
  }
  return strbuf_keep(&text, &c->s->arena).data;
}

static void check_kernels(const Check *c, BudgetRow *row) {
  bool different = row->limit->key == BUDGET_KERNELS;
  KernelUses uses = count_kernels(c, row->limit->key == BUDGET_OUTSIDE);
  row->actual = different ? uses.count : uses.calls;
  row->why = kernel_names(c, &uses, different);
}

/* Code that several delegates share counts once. */
static void check_delegates(const Check *c, BudgetRow *row) {
  StrBuf text = {0};
  KeyMap codes = keymap_make(&c->s->arena, c->s->ctx.names.seed);
  uint32_t count = 0;
  double code = 0;
  for (uint32_t i = c->first; i < c->end; i++) {
    const PteMethod *m = &c->of->program->methods[i];
    for (uint32_t k = 0; k < m->delegate_count; k++) {
      const PteDelegate *d = &m->delegates[k];
      uint32_t *slot;
      if (++count <= SHOWN)
        append_item(&text, d->id, d->size);
      if (!d->size || keymap_get(&codes, &d->data, sizeof d->data, &slot))
        continue;
      *slot = 1;
      code += (double)d->size;
    }
  }
  row->actual = row->limit->key == BUDGET_DELEGATES ? count : code;
  row->why = strbuf_keep(&text, &c->s->arena).data;
}

static void check_delegate_memory(const Check *c, BudgetRow *row) {
  double packed = 0, workspace = 0;
  uint32_t unknown = 0;
  for (uint32_t i = c->first; i < c->end; i++) {
    packed += (double)c->of->size->methods[i].packed;
    workspace = fmax(workspace, (double)c->of->size->methods[i].workspace);
    unknown += c->of->size->methods[i].unknown;
  }
  row->known = unknown == 0;
  row->actual = packed + workspace;
  row->why = unknown ? "the backend does not tell of its memory"
                     : arena_printf(&c->s->arena, "packed weights %.0f, workspace %.0f bytes",
                                    packed, workspace);
}

/* --- all --- */

/* That of the slowest method. */
static void check_time(const Check *c, BudgetRow *row) {
  for (uint32_t i = c->first; i < c->end && i < c->of->measure_count; i++)
    if (c->of->measures[i].time > row->actual) {
      row->actual = c->of->measures[i].time;
      row->why = c->of->measures[i].slow;
    }
}

/* That of the worst method; NaN, which is within no limit, where none was measured. */
static void check_sqnr(const Check *c, BudgetRow *row) {
  row->actual = NAN;
  row->why = "no output of floats was compared";
  for (uint32_t i = c->first; i < c->end && i < c->of->measure_count; i++)
    if (!isnan(c->of->measures[i].sqnr) && !(c->of->measures[i].sqnr >= row->actual)) {
      row->actual = c->of->measures[i].sqnr;
      row->why = c->of->measures[i].worst;
    }
}

static void check_measure(const Check *c, BudgetRow *row) {
  row->known = c->of->measures != NULL;
  if (!row->known) {
    row->why = "only 'etc lower' knows it";
  } else if (row->limit->key == BUDGET_SQNR) {
    check_sqnr(c, row);
  } else {
    check_time(c, row);
  }
}

static EtcStatus check_row(const Check *c, BudgetRow *row) {
  row->known = true;
  row->why = "";
  switch (row->limit->key) {
  case BUDGET_FILE:
  case BUDGET_CONSTANTS:
    check_flash(c, row);
    break;
  case BUDGET_ARENA_TOTAL:
  case BUDGET_ARENA:
    if (!check_arena(c, row))
      return no_arena(c, row->limit);
    break;
  case BUDGET_KERNELS:
  case BUDGET_KERNEL_CALLS:
  case BUDGET_OUTSIDE:
    check_kernels(c, row);
    break;
  case BUDGET_DELEGATES:
  case BUDGET_DELEGATE_CODE:
    check_delegates(c, row);
    break;
  case BUDGET_DELEGATE_MEMORY:
    check_delegate_memory(c, row);
    break;
  default:
    check_measure(c, row);
    break;
  }
  bool least = row->limit->key == BUDGET_SQNR;
  bool within = least ? row->actual >= row->limit->limit : row->actual <= row->limit->limit;
  row->over = row->known && !within; /* also of NaN */
  return ETC_OK;
}

/* Sets which methods the limit is of. */
static EtcStatus select_methods(Check *c, const BudgetLimit *limit) {
  c->first = 0;
  c->end = c->of->program->method_count;
  if (!limit->method.size)
    return ETC_OK;
  c->first = pte_find_method(c->of->program, limit->method);
  if (c->first < c->end) {
    c->end = c->first + 1;
    return ETC_OK;
  }
  StrBuf names = {0};
  for (uint32_t i = 0; i < c->of->program->method_count; i++) {
    strbuf_append(&names, i ? SV(", ") : SV(""));
    strbuf_append_printable(&names, c->of->program->methods[i].name);
  }
  Diag *d = diag_begin(&c->s->sink, DIAG_BUDGET_FILE, limit->at);
  diag_message(d, "the program has no method '" SV_FMT "'", SV_ARG(limit->method));
  diag_hint(d, "its methods are: %s", strbuf_cstr(&names));
  strbuf_release(&names);
  return session_status(diag_end(d));
}

EtcStatus budget_check(Session *s, const Budget *b, const BudgetSubject *of, BudgetResult *out) {
  Check c = {.s = s, .of = of};
  *out = (BudgetResult){.budget = b, .rows = ARENA_ARRAY(&s->arena, BudgetRow, b->count)};
  for (uint32_t i = 0; i < b->count; i++) {
    out->rows[i].limit = &b->limits[i];
    TRY(select_methods(&c, &b->limits[i]));
    TRY(check_row(&c, &out->rows[i]));
    out->over += out->rows[i].over;
    out->unknown += !out->rows[i].known;
  }
  return ETC_OK;
}
