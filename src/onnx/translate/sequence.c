/* Sequences and optionals. The runtime has neither as values of ops, so they exist only while
 * lowering: a sequence is a list of tensors, an optional is there or not. */
#include "onnx/translate/control.h"

enum { SEQUENCE_MAX = 65536 };

static bool in_sequence(Import *im, Binding *sequence) {
  *sequence = in_binding(im, 0);
  if (sequence->kind == BIND_STACK)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the sequence has a tensor for each step of a loop that is not unrolled, which "
                "ConcatFromSequence, SequenceAt and SequenceLength alone take");
  else if (sequence->kind != BIND_SEQUENCE)
    import_fail(im, DIAG_INPUT_TYPE, "input 0 is not a sequence");
  return import_ok(im);
}

/* A position in a sequence; `count` itself is allowed for insertion. */
static bool in_position(Import *im, uint32_t i, uint32_t count, bool insert, uint32_t *at) {
  int64_t given, most = (int64_t)count - (insert ? 0 : 1);
  if (!in(im, i)) {
    *at = insert ? count : count - 1;
    if (!insert && !count)
      import_fail(im, DIAG_ARG_RANGE, "the sequence is empty");
    return import_ok(im);
  }
  if (!one_const(im, in(im, i), &given))
    return import_fail(
        im, DIAG_INPUT_NOT_CONST,
        "a position in a sequence must be known when lowering, but for SequenceAt of "
        "tensors of one shape: make it a constant (of an input, --value does)");
  int64_t position = given < 0 ? given + count : given;
  if (position < 0 || position > most)
    import_fail(im, DIAG_ARG_RANGE, "position %lld is outside a sequence of %u tensors",
                (long long)given, count);
  *at = (uint32_t)position;
  return import_ok(im);
}

/* A tensor of a sequence; those of sizes that arrive at run time are not there. */
static ValueId item(Import *im, const Binding *sequence, uint32_t i) {
  if (!sequence->items[i])
    return import_fail(im, DIAG_INPUT_NOT_CONST,
                       "tensor %u of the sequence has a size that is computed at run time", i);
  return sequence->items[i];
}

void translate_sequence_construct(Import *im) {
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, in_count(im) + 1);
  for (uint32_t i = 0; i < in_count(im); i++)
    items[i] = in_required(im, i);
  out_sequence(im, 0, items, in_count(im));
}

void translate_sequence_empty(Import *im) { out_sequence(im, 0, NULL, 0); }

void translate_sequence_insert(Import *im) {
  Binding s;
  ValueId tensor = in_required(im, 1);
  uint32_t at;
  if (!in_sequence(im, &s) || !in_position(im, 2, s.count, true, &at))
    return;
  if (s.count >= SEQUENCE_MAX) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a sequence of more than %d tensors", SEQUENCE_MAX);
    return;
  }
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, s.count + 1);
  for (uint32_t i = 0; i <= s.count; i++)
    items[i] = i == at ? tensor : s.items[i < at ? i : i - 1];
  out_sequence(im, 0, items, s.count + 1);
}

void translate_sequence_erase(Import *im) {
  Binding s;
  uint32_t at;
  if (!in_sequence(im, &s) || !in_position(im, 1, s.count, false, &at))
    return;
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, s.count);
  for (uint32_t i = 0; i + 1 < s.count; i++)
    items[i] = s.items[i < at ? i : i + 1];
  out_sequence(im, 0, items, s.count - 1);
}

ValueId sequence_stack(Import *im, const Binding *s) {
  if (s->kind == BIND_STACK)
    return s->value;
  ValueId *rows = ARENA_ARRAY(&im->scratch, ValueId, s->count + 1);
  for (uint32_t i = 0; i < s->count; i++) {
    if (!s->items[i] || !import_ok(im) || !value_same_type(im->g, s->items[i], s->items[0]) ||
        ex_rank(im, s->items[i]) == MAX_RANK)
      return 0;
    rows[i] = ex_unsqueeze(im, s->items[i], 0);
  }
  return s->count ? ex_cat(im, rows, s->count, 0) : 0;
}

static ValueId row_at(Import *im, ValueId stack, ValueId position) {
  Dims row = shape_of(im, stack);
  if (!import_ok(im))
    return 0;
  ValueId index = ex_wrap_index(im, EX_VIEW(im, position, 1), row.d[0]);
  memmove(row.d, row.d + 1, --row.rank * sizeof *row.d);
  return ex_view_as(im, ex_index_select(im, stack, 0, index), row);
}

void translate_sequence_at(Import *im) {
  Binding s = in_binding(im, 0);
  ValueId position = in_required(im, 1), stack = 0;
  int64_t known;
  uint32_t at;
  if (s.kind == BIND_STACK || (s.kind == BIND_SEQUENCE && !one_const(im, position, &known)))
    stack = sequence_stack(im, &s);
  if (stack)
    out(im, 0, row_at(im, stack, position));
  else if (in_sequence(im, &s) && in_position(im, 1, s.count, false, &at))
    out(im, 0, item(im, &s, at));
}

void translate_sequence_length(Import *im) {
  Binding s = in_binding(im, 0);
  if (s.kind == BIND_STACK)
    out(im, 0, ex_size(im, ex_dim(im, s.value, 0)));
  else if (in_sequence(im, &s))
    out(im, 0, ex_int(im, s.count));
}

/* --- SplitToSequence, ConcatFromSequence --- */

/* Sizes of the pieces; NULL when they arrive at run time. *count is known in any case, or the node
 * fails. */
static const SymInt *piece_sizes(Import *im, ValueId split, SymInt whole, uint32_t *count) {
  SymTable *t = &im->g->syms;
  Ints values = {(const SymInt[]){1}, 1};
  bool chunks = !split || ex_rank(im, split) == 0;
  bool known = !split || value_ints(im, split, &values);
  if (!chunks) {
    SymInt length = ex_dim(im, split, 0);
    if (sym_is_const(length) && length >= 0 && length <= SEQUENCE_MAX)
      *count = (uint32_t)length;
    else
      import_fail(im, DIAG_INPUT_NOT_CONST, "the number of pieces is not known when lowering");
    return known ? values.at : NULL;
  }
  if (!known || sym_lower(t, values.at[0]) < 1) {
    import_fail(im, DIAG_INPUT_NOT_CONST, "the size of the pieces is not known when lowering");
    return NULL;
  }
  SymInt size = values.at[0], pieces = sym_ceildiv(t, whole, size);
  int64_t least = sym_lower(t, pieces), most = sym_upper(t, pieces);
  if (least != most || most > SEQUENCE_MAX) {
    import_fail(im, DIAG_INPUT_NOT_CONST,
                "the tensor may be split into %lld to %lld pieces, and their number must be known "
                "when lowering (a range of sizes in which it stays the same will do)",
                (long long)least, (long long)most);
    return NULL;
  }
  *count = (uint32_t)most;
  SymInt *sizes = ARENA_ARRAY(&im->scratch, SymInt, *count + 1);
  for (uint32_t i = 0; i + 1 < *count; i++)
    sizes[i] = size;
  if (*count)
    sizes[*count - 1] = sym_sub(t, whole, sym_mul(t, size, *count - 1));
  return sizes;
}

/* Pieces of one place each, by a single size or none. */
static bool splits_singly(Import *im, ValueId split) {
  int64_t size;
  return !split || (ex_rank(im, split) == 0 && one_const(im, split, &size) && size == 1);
}

void translate_split_to_sequence(Import *im) {
  ValueId x = in_required(im, 0), split = in(im, 1);
  Dims s = shape_of(im, x);
  /* ONNX ignores keepdims where there are sizes; ONNX Runtime heeds it of a single size of 1, with
   * which torch writes x.unbind(). */
  bool singly = splits_singly(im, split), keep = !singly || attr_flag(im, "keepdims", true);
  uint32_t axis = import_axis(im, attr_int(im, "axis", 0), s.rank), count = 0;
  if (import_ok(im) && singly && !sym_is_const(s.d[axis])) {
    ValueId stack = ex_move_dim(im, x, axis, 0);
    stack = keep ? ex_unsqueeze(im, stack, axis + 1) : stack;
    out_binding(im, 0, (Binding){.kind = BIND_STACK, .value = stack});
    return;
  }
  const SymInt *sizes = piece_sizes(im, split, s.d[axis], &count);
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, count + 1);
  SymInt at = 0;
  for (uint32_t i = 0; sizes && i < count && import_ok(im); i++) {
    SymInt end = sym_add(&im->g->syms, at, sizes[i]);
    items[i] = keep ? ex_slice(im, x, axis, at, end) : ex_pick(im, x, axis, i);
    at = end;
  }
  out_sequence(im, 0, items, count);
}

/* The rows of x side by side along a dim of theirs, or along a new one. */
static ValueId spread(Import *im, ValueId x, int64_t axis, bool new_axis) {
  uint32_t rank = ex_rank(im, x), at = import_axis(im, axis, rank - !new_axis);
  if (!import_ok(im))
    return 0;
  ValueId y = ex_move_dim(im, x, 0, at);
  Dims s = shape_of(im, y);
  if (new_axis)
    return y;
  s.d[at] = sym_mul(&im->g->syms, s.d[at], s.d[at + 1]);
  s.rank--;
  for (uint32_t i = at + 1; i < s.rank; i++)
    s.d[i] = s.d[i + 1];
  return ex_view_as(im, y, s);
}

void translate_concat_from_sequence(Import *im) {
  Binding s = in_binding(im, 0);
  bool stack = attr_flag(im, "new_axis", false);
  int64_t axis = attr_int_required(im, "axis");
  if (s.kind == BIND_STACK) {
    out(im, 0, spread(im, s.value, axis, stack));
    return;
  }
  if (!in_sequence(im, &s))
    return;
  if (!s.count) {
    import_fail(im, DIAG_ARG_RANGE, "the sequence is empty");
    return;
  }
  ValueId *parts = ARENA_ARRAY(&im->scratch, ValueId, s.count);
  for (uint32_t i = 0; i < s.count && import_ok(im); i++)
    parts[i] = item(im, &s, i);
  uint32_t rank = shape_of(im, parts[0]).rank, at = import_axis(im, axis, rank + stack);
  for (uint32_t i = 0; i < s.count && stack && import_ok(im); i++)
    parts[i] = ex_unsqueeze(im, parts[i], at);
  out(im, 0, s.count == 1 ? parts[0] : build(&im->b, OP_CAT, A_VALS(parts, s.count), A_INT(at)));
}

/* --- SequenceMap --- */

/* What the body takes at position i: the tensors there of the inputs that are sequences, and the
 * other inputs as they are. */
static bool map_arguments(Import *im, uint32_t i, uint32_t length, Binding *arguments) {
  for (uint32_t k = 0; k < in_count(im); k++) {
    Binding given = in_binding(im, k);
    bool is_sequence = given.kind == BIND_SEQUENCE;
    if (is_sequence && given.count != length)
      return import_fail(im, DIAG_SHAPE_MISMATCH,
                         "input %u is a sequence of %u tensors, input 0 one of %u", k, given.count,
                         length);
    arguments[k] = is_sequence ? binding_of(item(im, &given, i)) : given;
  }
  return import_ok(im);
}

/* Translates the body once for each tensor; items: a list for each output. */
static bool map_unroll(Import *im, const Onnx__GraphProto *body, uint32_t length, ValueId **items) {
  Binding *arguments = ARENA_ARRAY(&im->scratch, Binding, in_count(im)),
          *outputs = ARENA_ARRAY(&im->scratch, Binding, out_count(im));
  for (uint32_t i = 0; i < length && map_arguments(im, i, length, arguments); i++) {
    if (!import_inline(im, body, arguments, in_count(im), outputs, out_count(im)))
      return false;
    for (uint32_t k = 0; k < out_count(im); k++)
      if (outputs[k].kind == BIND_VALUE && !outputs[k].packed)
        items[k][i] = outputs[k].value;
      else
        import_fail(im, DIAG_UNSUPPORTED_FEATURE, "output %u of the body is not a tensor", k);
  }
  return true;
}

void translate_sequence_map(Import *im) {
  Binding s;
  const Onnx__GraphProto *body = control_graph(im, "body");
  if (!body || !in_sequence(im, &s))
    return;
  if (body->n_input != in_count(im) || body->n_output != out_count(im)) {
    import_fail(im, DIAG_ATTR_VALUE, "the body has %zu inputs and %zu outputs, the node %u and %u",
                body->n_input, body->n_output, in_count(im), out_count(im));
    return;
  }
  if (s.count > LOOP_STEPS_MAX) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the body would be repeated for %u tensors, %d at most", s.count, LOOP_STEPS_MAX);
    return;
  }
  ValueId **items = ARENA_ARRAY(&im->scratch, ValueId *, out_count(im));
  for (uint32_t k = 0; k < out_count(im); k++)
    items[k] = ARENA_ARRAY(&im->scratch, ValueId, s.count + 1);
  if (!map_unroll(im, body, s.count, items)) {
    control_poison(im);
    return;
  }
  for (uint32_t k = 0; k < out_count(im) && import_ok(im); k++)
    out_sequence(im, k, items[k], s.count);
}

/* --- optionals --- */

void translate_optional_get_element(Import *im) {
  if (in_binding(im, 0).kind == BIND_ABSENT)
    import_fail(im, DIAG_ARG_RANGE, "the optional is empty");
  translate_identity(im);
}

void translate_optional_has_element(Import *im) {
  Binding binding = in_binding(im, 0);
  out(im, 0, build_scalar_int(&im->b, DTYPE_BOOL, binding.kind != BIND_ABSENT));
}
