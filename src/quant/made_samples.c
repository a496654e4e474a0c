/* See made_samples.h. */
#include "quant/made_samples.h"

#include "ir/match.h"
#include "support/random.h"

/* Of 8, 16, 32 and 64 samples; with 64 the networks of tests/bench/quantize.py gain 0.5 dB at most
 * more. */
enum { SAMPLES = 32, LENGTH = 64, BYTES_MAX = INT32_MAX };

/* --- integers that select rows --- */

/* Whether the elements of a result are elements of the operands. */
static bool passes_on(OpId op) {
  return op_keeps_numbers(op) || op == OP_TO_COPY || op == OP_CLONE || op == OP_EXPAND_COPY ||
         op == OP_WHERE_SELF;
}

static bool holds_integers(const Graph *g, ValueId v) {
  return value_type(g, v)->kind == TYPE_TENSOR && dtype_is_int((DType)value_type(g, v)->dtype);
}

static void note_operand(MadeSamples *s, NodeId n, ValueId v, int64_t dim) {
  const Graph *g = s->g;
  ValueId result = node_result(g, n, 0);
  int64_t rows = INT64_MAX;
  if (dim >= 0 && dim < value_rank(g, node_value(g, n, 0)))
    rows = sym_lower(&g->syms, value_dim(g, node_value(g, n, 0), (uint32_t)dim));
  else if (passes_on(node_cget(g, n)->op) && holds_integers(g, result))
    rows = s->rows[result];
  if (rows < s->rows[v])
    s->rows[v] = rows;
}

/* From the end, so that what passes integers on is known. */
static void find_rows(MadeSamples *s, Arena *arena) {
  const Graph *g = s->g;
  s->rows = ARENA_ARRAY(arena, int64_t, (size_t)g->value_count + 1);
  for (uint32_t v = 0; v <= g->value_count; v++)
    s->rows[v] = INT64_MAX;
  for (NodeId n = g->last; n; n = node_cget(g, n)->prev)
    FOR_ARG_OPERANDS(g, n, i, v, {
      if (v && holds_integers(g, v))
        note_operand(s, n, v, match_selected_dim(g, n, i, k_));
    })
}

/* --- samples --- */

void made_samples_restart(MadeSamples *s, int64_t divisor) {
  const SymTable *t = &s->g->syms;
  for (uint32_t i = 0; i < t->symbol_count; i++) {
    SymInt symbol = sym_symbol_by_index(t, i);
    int64_t low = sym_lower(t, symbol), high = sym_upper(t, symbol);
    int64_t size = LENGTH < low ? low : LENGTH > high ? high : LENGTH;
    s->sizes[i] = low + (size - low) / divisor;
  }
  s->made = 0;
}

void made_samples_init(MadeSamples *s, const Graph *g, Arena *arena) {
  *s = (MadeSamples){.g = g, .sizes = ARENA_ARRAY(arena, int64_t, g->syms.symbol_count + 1)};
  made_samples_restart(s, 1);
  find_rows(s, arena);
}

static bool shape_of(const MadeSamples *s, const Type *type, Tensor *out) {
  uint64_t bytes = dtype_size((DType)type->dtype);
  *out = (Tensor){.dtype = type->dtype, .rank = type->rank};
  if (type->kind != TYPE_TENSOR || !dtype_in(type->dtype, DTS_REAL_BOOL | DTS_UNSIGNED))
    return false;
  for (uint32_t d = 0; d < type->rank; d++)
    if (!sym_eval(&s->g->syms, type->dims[d], s->sizes, &out->dims[d]) || out->dims[d] < 0 ||
        !mul_u64(bytes, (uint64_t)out->dims[d], &bytes))
      return false;
  out->capacity = bytes;
  return bytes <= BYTES_MAX;
}

static void fill(Tensor *t, int64_t rows, uint64_t *state) {
  int64_t count = tensor_numel(t);
  for (int64_t k = 0; k < count; k++)
    if (dtype_is_float(t->dtype))
      tensor_store(t, k, random_normal(state));
    else if (rows == INT64_MAX || rows < 1)
      tensor_store_int(t, k, 1);
    else
      tensor_store_int(t, k, (int64_t)(random_bits(state) % (uint64_t)rows));
}

static Status report_input(const Graph *g, ValueId v, DiagSink *sink) {
  Diag *d = diag_begin(sink, DIAG_DATA_TYPE, DIAG_NOWHERE);
  diag_message(d,
               "input '" SV_FMT "' cannot be made up: it is not a tensor of real numbers, or takes "
               "more than 2 GiB",
               SV_ARG(value_name(g, v)));
  diag_hint(d, "give samples: --calibrate PATH");
  return diag_end(d);
}

Status made_samples_next(MadeSamples *s, Arena *arena, Tensor *tensors, bool *more,
                         DiagSink *sink) {
  const Graph *g = s->g;
  *more = s->made < SAMPLES;
  for (uint32_t i = 0; *more && i < g->input_count; i++) {
    ValueId v = g->inputs[i];
    uint64_t state = (uint64_t)s->made * g->input_count + i;
    if (!shape_of(s, value_type(g, v), &tensors[i]))
      return report_input(g, v, sink);
    tensors[i].data = arena_alloc(arena, tensors[i].capacity);
    fill(&tensors[i], s->rows[v], &state);
  }
  s->made += *more;
  return STATUS_OK;
}
