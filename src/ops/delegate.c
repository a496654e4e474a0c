/* Calls of delegates. The op itself knows the types of the results, which are arguments, and
 * nothing else; the rest is asked of the backend's reader. */
#include "ops/delegate.h"

#include <xxhash.h>

#include "ir/region.h"
#include "ir/solve.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"
#include "support/keymap.h"

enum { RESULTS_MAX = 4096, SAMPLES = 3, DIM_MAX = INT32_MAX };

Status shape_call_delegate(Graph *g, NodeId n) {
  uint32_t count = node_list_count(g, n, DELEGATE_ARG_DTYPES),
           sizes = node_list_count(g, n, DELEGATE_ARG_SIZES), have = node_cget(g, n)->result_count,
           at = 0;
  if (count != node_list_count(g, n, DELEGATE_ARG_RANKS) || count > RESULTS_MAX ||
      (have && have != count))
    return bad_shape(g, n, "%u element types for %u ranks and %u results", count,
                     node_list_count(g, n, DELEGATE_ARG_RANKS), have);
  result_list_size(g, n, count);
  for (uint32_t i = 0; i < count; i++) {
    SymInt dtype = node_ints(g, n, DELEGATE_ARG_DTYPES)[i],
           rank = node_ints(g, n, DELEGATE_ARG_RANKS)[i];
    if (dtype < 0 || dtype >= DTYPE_NONE || rank < 0 || rank > MAX_RANK || rank > sizes - at)
      return bad_shape(g, n, "result %u has no possible type", i);
    SymInt dims[MAX_RANK];
    memcpy(dims, node_ints(g, n, DELEGATE_ARG_SIZES) + at, (size_t)rank * sizeof *dims);
    at += (uint32_t)rank;
    for (uint32_t k = 0; k < rank; k++)
      if (sym_upper(&g->syms, dims[k]) < 0)
        return bad_shape(g, n, "result %u has a negative size", i);
    result_tensor(g, n, i, (DType)dtype, (uint32_t)rank, dims);
  }
  if (at != sizes)
    return bad_shape(g, n, "%u sizes are left over", sizes - at);
  return STATUS_OK;
}

const DelegateReader *delegate_reader(const DelegateReaders *known, StrView id) {
  for (uint32_t i = 0; known && i < known->count; i++)
    if (sv_eq_str(id, known->items[i]->id))
      return known->items[i];
  return NULL;
}

static void hash_text(XXH3_state_t *state, StrView text) {
  uint64_t size = text.size; /* first, so that texts do not run into each other */
  (void)XXH3_128bits_update(state, &size, sizeof size);
  (void)XXH3_128bits_update(state, text.size ? text.data : "", text.size);
}

DelegateIdentity delegate_identity(const Graph *g, NodeId n) {
  StrView backend = node_str(g, n, DELEGATE_ARG_BACKEND);
  const DelegateReader *reader = delegate_reader(g->ctx->readers, backend);
  const Constant *blob = value_constant(g, node_value(g, n, DELEGATE_ARG_BLOB));
  XXH3_state_t state;
  (void)XXH3_128bits_reset(&state);
  if (!reader || !reader->stateless)
    (void)XXH3_128bits_update(&state, &n, sizeof n);
  hash_text(&state, backend);
  hash_text(&state, node_str(g, n, DELEGATE_ARG_SPECS));
  hash_text(&state, node_str(g, n, DELEGATE_ARG_KEYS));
  if (blob)
    hash_text(&state, (StrView){(const char *)blob->data, (size_t)blob->size});
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return (DelegateIdentity){{hash.low64, hash.high64}};
}

const uint32_t *delegate_numbers(const Graph *g, Arena *arena, uint32_t *count) {
  uint32_t *numbers = ARENA_ARRAY(arena, uint32_t, (size_t)g->node_count + 1), last = 0;
  KeyMap known = keymap_make(arena, g->ctx->names.seed);
  for (FOR_NODES(g, n)) {
    if (!op_has_trait(g->nodes[n].op, OP_DELEGATE))
      continue;
    DelegateIdentity identity = delegate_identity(g, n);
    uint32_t *slot;
    if (!keymap_get(&known, &identity, sizeof identity, &slot))
      *slot = ++last;
    numbers[n] = *slot;
  }
  if (count)
    *count = last;
  return numbers;
}

bool delegate_figures(const Graph *g, NodeId n, Arena *arena, DelegateFigures *out) {
  const DelegateReader *reader =
      delegate_reader(g->ctx->readers, node_str(g, n, DELEGATE_ARG_BACKEND));
  const Constant *blob = value_constant(g, node_value(g, n, DELEGATE_ARG_BLOB));
  *out = (DelegateFigures){0};
  return reader && blob && !reader_describe(reader, blob->data, blob->size, arena, out);
}

StrView delegate_next_key(StrView *keys) {
  const char *blank = keys->size ? memchr(keys->data, ' ', keys->size) : NULL;
  size_t length = blank ? (size_t)(blank - keys->data) : keys->size;
  StrView word = {keys->data, length};
  *keys = (StrView){keys->data + length + (blank != NULL), keys->size - length - (blank != NULL)};
  return word;
}

/* --- compile specs --- */

static void append_word(StrBuf *out, const uint8_t *data, uint64_t size) {
  for (uint64_t i = 0; i < size; i++)
    if (data[i] > ' ' && data[i] < 0x7f && data[i] != '%' && data[i] != '=')
      strbuf_append_char(out, (char)data[i]);
    else
      strbuf_printf(out, "%%%02x", data[i]);
}

void delegate_append_spec(StrBuf *out, const DelegateSpec *spec) {
  strbuf_append(out, out->size ? SV(" ") : SV(""));
  append_word(out, (const uint8_t *)spec->key.data, spec->key.size);
  strbuf_append_char(out, '=');
  append_word(out, spec->data, spec->size);
}

static int hex_digit(char c) {
  static const char digits[] = "0123456789abcdef";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

/* The bytes that a part of a word stands for. */
static bool read_word(StrView text, Arena *arena, uint8_t **out, uint32_t *size) {
  uint8_t *bytes = ARENA_ARRAY(arena, uint8_t, text.size + 1);
  uint32_t count = 0;
  for (size_t i = 0; i < text.size; i++) {
    bytes[count] = (uint8_t)text.data[i];
    if (text.data[i] == '%') {
      bool whole = text.size - i > 2;
      int high = whole ? hex_digit(text.data[i + 1]) : -1,
          low = whole ? hex_digit(text.data[i + 2]) : -1;
      if (high < 0 || low < 0)
        return false;
      bytes[count] = (uint8_t)(high << 4 | low);
      i += 2;
    }
    count++;
  }
  *out = bytes;
  *size = count;
  return true;
}

bool delegate_parse_specs(StrView text, Arena *arena, DelegateSpec **out, uint32_t *count) {
  uint32_t words = text.size != 0;
  for (size_t i = 0; i < text.size; i++)
    words += text.data[i] == ' ';
  *out = ARENA_ARRAY(arena, DelegateSpec, (size_t)words + 1);
  *count = words;
  for (uint32_t i = 0; i < words; i++) {
    const char *blank = memchr(text.data, ' ', text.size);
    StrView word = {text.data, blank ? (size_t)(blank - text.data) : text.size};
    const char *equals = word.size ? memchr(word.data, '=', word.size) : NULL;
    if (!equals)
      return false;
    size_t key_size = (size_t)(equals - word.data);
    uint8_t *key, *data;
    uint32_t size;
    if (!read_word((StrView){word.data, key_size}, arena, &key, &size))
      return false;
    (*out)[i].key = (StrView){(const char *)key, size};
    if (!read_word((StrView){equals + 1, word.size - key_size - 1}, arena, &data, &size))
      return false;
    (*out)[i].data = data;
    (*out)[i].size = size;
    text =
        (StrView){text.data + word.size + (blank != NULL), text.size - word.size - (blank != NULL)};
  }
  return true;
}

/* --- running --- */

static Status no_reader(Kernel *k, StrView id) {
  Diag *d = diag_begin(k->sink, DIAG_RUN_KERNEL, k->place);
  diag_message(d, "nothing here runs delegates of '" SV_FMT "'", SV_ARG(id));
  diag_hint(
      d,
      "load a plug-in that has a reader of its code (--plugin FILE.so), or run it on the device");
  return diag_end(d);
}

Status kern_call_delegate(Kernel *k) {
  StrView id = k->args[DELEGATE_ARG_BACKEND].str;
  const DelegateReader *reader = delegate_reader(k->readers, id);
  if (!reader)
    return no_reader(k, id);
  const Tensor *blob = kernel_tensor(k, DELEGATE_ARG_BLOB);
  const KernelArg *data = &k->args[DELEGATE_ARG_DATA], *args = &k->args[DELEGATE_ARG_ARGS];
  DelegateData *named = ARENA_ARRAY(k->scratch, DelegateData, (size_t)data->count + 1);
  StrView keys = k->args[DELEGATE_ARG_KEYS].str;
  for (uint32_t i = 0; i < data->count; i++) {
    const Tensor *t = data->tensors[i];
    named[i] =
        (DelegateData){.key = delegate_next_key(&keys), .data = t->data, .size = tensor_bytes(t)};
  }
  Tensor *inputs = ARENA_ARRAY(k->scratch, Tensor, (size_t)args->count + 1),
         *outputs = ARENA_ARRAY(k->scratch, Tensor, (size_t)k->result_count + 1);
  for (uint32_t i = 0; i < args->count; i++)
    inputs[i] = *args->tensors[i];
  for (uint32_t i = 0; i < k->result_count; i++)
    outputs[i] = *k->results[i];
  DelegateCall call = {.blob = blob->data,
                       .blob_size = tensor_bytes(blob),
                       .data = named,
                       .data_count = data->count,
                       .inputs = inputs,
                       .input_count = args->count,
                       .outputs = outputs,
                       .output_count = k->result_count,
                       .memory = k->memory};
  DelegateSpec *specs;
  if (!delegate_parse_specs(k->args[DELEGATE_ARG_SPECS].str, k->scratch, &specs, &call.spec_count))
    return kernel_error(k, "the compile specs are no KEY=VALUE words");
  call.specs = specs;
  const char *fault = reader_run(reader, &call, k->scratch);
  if (fault)
    return kernel_error(k, "%s: %s", reader->id, fault);
  for (uint32_t i = 0; i < k->result_count; i++)
    TRY(kernel_resize(k, i, outputs[i].rank, outputs[i].dims));
  return STATUS_OK;
}

/* --- in place --- */

bool delegate_may_overwrite(const Graph *g, NodeId n, uint32_t result,
                            bool lies(void *user, ValueId v), void *user, Arena *arena) {
  const DelegateReader *reader =
      delegate_reader(g->ctx->readers, node_str(g, n, DELEGATE_ARG_BACKEND));
  const Constant *blob = value_constant(g, node_value(g, n, DELEGATE_ARG_BLOB));
  if (!reader || !blob)
    return false;
  for (uint32_t i = 0; i < node_list_count(g, n, DELEGATE_ARG_ARGS); i++)
    if (lies(user, node_list_value(g, n, DELEGATE_ARG_ARGS, i)) &&
        !reader_may_overwrite(reader, blob->data, blob->size, i, result, arena))
      return false;
  return true;
}

/* --- checking --- */

/* Sizes that the symbols of a graph can have together; NULL: those of a tensor that vary are not
 * known, or expressions. */
typedef struct Sizes {
  const Graph *g;
  const int64_t *symbols;
  SymTable *syms;   /* NULL: no expressions */
  const bool *open; /* by size of the results: the code is to say it. NULL: none */
  bool varies, too_large;
} Sizes;

static Tensor tensor_at(Sizes *s, ValueId v) {
  static const uint8_t memory_order[] = {0, 2, 3, 1};
  const Type *type = value_type(s->g, v);
  bool last = type->order == ORDER_CHANNELS_LAST && type->rank == COUNT_OF(memory_order);
  Tensor t = {.dtype = (DType)type->dtype, .rank = type->rank};
  for (uint32_t i = 0; i < type->rank; i++) {
    SymInt dim = type->dims[last ? memory_order[i] : i];
    s->varies |= !sym_is_const(dim);
    t.dims[i] = DELEGATE_DIM_UNKNOWN;
    if (sym_is_const(dim) || s->syms)
      t.dims[i] = dim;
    else if (s->symbols &&
             (!sym_eval(&s->g->syms, dim, s->symbols, &t.dims[i]) || t.dims[i] > DIM_MAX))
      s->too_large = true;
  }
  return t;
}

static Tensor *results_at(Sizes *s, NodeId n, Arena *arena) {
  uint32_t count = node_cget(s->g, n)->result_count, at = 0;
  Tensor *out = ARENA_ARRAY(arena, Tensor, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    out[i] = tensor_at(s, node_result(s->g, n, i));
    for (uint32_t k = 0; s->open && k < out[i].rank; k++, at++)
      if (s->open[at]) {
        out[i].dims[k] = DELEGATE_DIM_UNKNOWN;
        s->varies = true;
      }
  }
  return out;
}

/* results: with the sizes that the code says. */
static const char *check_at(Sizes *s, NodeId n, const DelegateReader *reader, Arena *arena,
                            Tensor **results) {
  const Graph *g = s->g;
  uint32_t data = node_list_count(g, n, DELEGATE_ARG_DATA),
           inputs = node_list_count(g, n, DELEGATE_ARG_ARGS),
           outputs = node_cget(g, n)->result_count;
  const Constant *blob = value_constant(g, node_value(g, n, DELEGATE_ARG_BLOB));
  DelegateData *named = ARENA_ARRAY(arena, DelegateData, (size_t)data + 1);
  StrView keys = node_str(g, n, DELEGATE_ARG_KEYS);
  Tensor *in = ARENA_ARRAY(arena, Tensor, (size_t)inputs + 1);
  if (!blob)
    return "the code is not a constant";
  for (uint32_t i = 0; i < data; i++) {
    const Constant *c = value_lazy_constant(g, node_list_value(g, n, DELEGATE_ARG_DATA, i));
    if (!c)
      return "data that the code finds by name is not a constant";
    named[i] = (DelegateData){.key = delegate_next_key(&keys), .size = c->size};
  }
  for (uint32_t i = 0; i < inputs; i++)
    in[i] = tensor_at(s, node_list_value(g, n, DELEGATE_ARG_ARGS, i));
  *results = results_at(s, n, arena);
  if (s->too_large)
    return NULL;
  DelegateCall call = {.blob = blob->data,
                       .blob_size = blob->size,
                       .data = named,
                       .data_count = data,
                       .inputs = in,
                       .input_count = inputs,
                       .outputs = *results,
                       .output_count = outputs,
                       .fixed = !s->varies,
                       .syms = s->syms};
  DelegateSpec *specs;
  if (!delegate_parse_specs(node_str(g, n, DELEGATE_ARG_SPECS), arena, &specs, &call.spec_count))
    return "the compile specs are no KEY=VALUE words";
  call.specs = specs;
  return reader_check(reader, &call, arena);
}

static bool constraints_hold(const Graph *g, const int64_t *symbols) {
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    const Constraint *c = &g->constraints[i];
    int64_t lhs, rhs;
    if (!sym_eval(&g->syms, c->lhs, symbols, &lhs) || !sym_eval(&g->syms, c->rhs, symbols, &rhs))
      return false;
    if (!constraint_holds(c->kind, lhs, rhs))
      return false;
  }
  return true;
}

/* The smallest sizes, the largest, and some between. */
static int64_t *sample(const Graph *g, int64_t i, Arena *arena) {
  int64_t *symbols = ARENA_ARRAY(arena, int64_t, (size_t)g->syms.symbol_count + 1);
  for (uint32_t k = 0; k < g->syms.symbol_count; k++) {
    SymInt symbol = sym_symbol_by_index(&g->syms, k);
    int64_t lo = sym_lower(&g->syms, symbol), hi = sym_upper(&g->syms, symbol);
    symbols[k] = i == SAMPLES - 1 ? hi : lo + (hi - lo) / (SAMPLES - 1) * i;
  }
  return symbols;
}

/* Whether a call in a branch is left out at these sizes: a result has no elements. */
static bool is_left_out(Sizes *s, NodeId n) {
  if (!region_opening(s->g, n))
    return false;
  bool empty = false;
  for (uint32_t i = 0; i < node_cget(s->g, n)->result_count; i++) {
    Tensor t = tensor_at(s, node_result(s->g, n, i));
    for (uint32_t k = 0; k < t.rank; k++)
      empty |= t.dims[k] == 0;
  }
  return empty;
}

static bool has_key(const Graph *g, NodeId n, StrView key) {
  StrView keys = node_str(g, n, DELEGATE_ARG_KEYS);
  while (keys.size)
    if (sv_eq(delegate_next_key(&keys), key))
      return true;
  return false;
}

/* Whoever reads the program asks the reader first how many inputs the code takes, and which data.
 */
static const char *needs_fault(const Graph *g, NodeId n, const DelegateReader *reader,
                               Arena *arena) {
  const Constant *blob = value_constant(g, node_value(g, n, DELEGATE_ARG_BLOB));
  uint32_t inputs = node_list_count(g, n, DELEGATE_ARG_ARGS);
  DelegateNeeds needs;
  if (!blob)
    return NULL; /* check_at says it */
  const char *fault = reader_needs(reader, blob->data, blob->size, arena, &needs);
  if (fault)
    return fault;
  if (needs.input_count != inputs)
    return arena_printf(arena, "its reader says that it takes %u inputs, and the call has %u",
                        needs.input_count, inputs);
  for (uint32_t i = 0; i < needs.key_count; i++)
    if (!has_key(g, n, needs.keys[i]))
      return arena_printf(arena,
                          "its reader says that it finds the data '" SV_FMT
                          "' in the program, which the call does not name",
                          SV_ARG(needs.keys[i]));
  return NULL;
}

/* Checks the call n with what the graph knows of sizes and, where related, at some sizes that its
 * symbols can have. */
const char *delegate_fault(const Graph *g, NodeId n, bool related, Arena *arena) {
  const DelegateReader *reader =
      delegate_reader(g->ctx->readers, node_str(g, n, DELEGATE_ARG_BACKEND));
  if (!reader)
    return NULL;
  Sizes sizes = {.g = g};
  Tensor *results;
  const char *fault = reader->plugin ? needs_fault(g, n, reader, arena) : NULL;
  if (!fault)
    fault = check_at(&sizes, n, reader, arena, &results);
  related = related && sizes.varies;
  for (int64_t i = 0; i < SAMPLES && related && !fault; i++) {
    sizes = (Sizes){.g = g, .symbols = sample(g, i, arena)};
    if (constraints_hold(g, sizes.symbols) && !is_left_out(&sizes, n))
      fault = check_at(&sizes, n, reader, arena, &results);
  }
  return fault;
}

/* Checks the call n with expressions, which hostile code makes too large. */
static bool find_sizes(Graph *g, NodeId n, const bool *open, Arena *arena, Tensor **results) {
  const DelegateReader *reader =
      delegate_reader(g->ctx->readers, node_str(g, n, DELEGATE_ARG_BACKEND));
  Sizes sizes = {.g = g, .open = open};
  if (reader && reader->expressions)
    sizes.syms = &g->syms;
  bool large = g->syms.too_large, saturated = g->syms.saturated;
  g->syms.too_large = g->syms.saturated = false;
  bool found = reader && !check_at(&sizes, n, reader, arena, results) && !g->syms.too_large &&
               !g->syms.saturated;
  g->syms.too_large = large;
  g->syms.saturated = saturated;
  return found;
}

void delegate_narrow(Graph *g, NodeId n, SymInt *sizes, bool *open, Arena *arena) {
  uint32_t at = 0;
  Tensor *results;
  if (!find_sizes(g, n, open, arena, &results))
    return;
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    for (uint32_t k = 0; k < results[i].rank; k++, at++) {
      SymInt size = results[i].dims[k];
      if (!open[at] || sym_lower(&g->syms, size) < 0 ||
          sym_upper(&g->syms, size) > sym_upper(&g->syms, sizes[at]))
        continue;
      sizes[at] = size;
      open[at] = false;
    }
}

/* Code that etc wrote and a reader of its own refuses is a fault of etc; of a plug-in's code it is
 * one of the plug-in. */
static Status report_fault(const Graph *g, NodeId n, DiagCode code, const char *fault) {
  StrView id = node_str(g, n, DELEGATE_ARG_BACKEND);
  const DelegateReader *reader = delegate_reader(g->ctx->readers, id);
  if (code == DIAG_INTERNAL && reader->plugin)
    return diag_report(g->ctx->sink, DIAG_PLUGIN_FAULT, node_place(g, n),
                       "the code for '" SV_FMT "', which plug-in '%s' reads, is wrong: %s",
                       SV_ARG(id), reader->plugin, fault);
  return diag_report(g->ctx->sink, code, node_place(g, n), "the code for '" SV_FMT "' is wrong: %s",
                     SV_ARG(id), fault);
}

Status delegate_check(const Graph *g, bool related, DiagCode code) {
  Status status = STATUS_OK;
  Arena arena = {0};
  for (FOR_NODES(g, n)) {
    if (!op_has_trait(node_cget(g, n)->op, OP_DELEGATE))
      continue;
    arena_reset(&arena);
    const char *fault = delegate_fault(g, n, related, &arena);
    if (fault)
      status = report_fault(g, n, code, fault);
  }
  arena_release(&arena);
  return status;
}
