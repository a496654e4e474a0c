/* See data_sizes.h. */
#include "onnx/data_sizes.h"

#include <math.h>
#include <stdio.h>

#include "ir/match.h"
#include "onnx/data_range.h"
#include "onnx/import_state.h"

#define ROUNDING 1e-6 /* of sums and products of float32 */
enum { DEPTH_MAX = 32, CHOICES_MAX = 2 };

/* --- upper bounds --- */

/* NAME, or NAME:AXIS. */
static bool names_dim(const BoundFlag *flag, StrView name, uint32_t dim) {
  char axis[16];
  snprintf(axis, sizeof axis, ":%u", dim);
  size_t length = strlen(axis);
  return sv_eq(flag->name, name) ||
         (flag->name.size == name.size + length && sv_starts_with(flag->name, name) &&
          memcmp(flag->name.data + name.size, axis, length) == 0);
}

bool out_bound(Import *im, uint32_t i, uint32_t dim, int64_t *most) {
  const ImportOptions *o = im->options;
  bool wanted = import_ok(im) && out_wanted(im, i);
  for (uint32_t k = 0; k < o->bound_count && wanted; k++)
    if (names_dim(&o->bounds[k], onnx_text(im->node->output[i]), dim)) {
      o->bounds_used[k] = true;
      *most = o->bounds[k].most;
      return true;
    }
  return out_declared_bound(im, i, dim, most);
}

int64_t out_bound_below(Import *im, uint32_t i, uint32_t dim, int64_t most) {
  int64_t bound;
  return out_bound(im, i, dim, &bound) ? min_i64(bound, most) : most;
}

ValueId fail_unbounded(Import *im, uint32_t i, uint32_t dims, const char *what) {
  StrBuf flags = {0}, flag = {0};
  bool several = (dims & (dims - 1)) != 0;
  for (uint32_t dim = 0; dim < MAX_RANK && out_wanted(im, i); dim++) {
    if (!(dims >> dim & 1))
      continue;
    strbuf_clear(&flag);
    strbuf_append(&flag, onnx_text(im->node->output[i]));
    if (several)
      strbuf_printf(&flag, ":%u", dim);
    strbuf_append(&flag, SV("=N"));
    strbuf_append(&flags, SV(" --bound "));
    strbuf_append_quoted(&flags, (StrView){flag.data, flag.size});
  }
  if (im->state->sizes && import_ok(im))
    im->state->sizes->stopped = true;
  import_fail(im, DIAG_SIZE_UNBOUND,
              "%s is known only while the program runs, and nothing bounds it: add%s", what,
              flags.size ? strbuf_cstr(&flags) : " a name for the output, which --bound takes");
  strbuf_release(&flag);
  strbuf_release(&flags);
  return 0;
}

/* --- elements --- */

/* One element of a vector, or a scalar; traced back to where it is computed. */
typedef struct Element {
  ValueId v;
  int64_t at;
  bool known;
  SymInt size; /* if known */
} Element;

/* The part of a concatenation that holds the element. */
static bool into_part(const Graph *g, NodeId n, Element *e) {
  for (uint32_t i = 0; i < node_list_count(g, n, 0); i++) {
    ValueId part = node_list_value(g, n, 0, i);
    SymInt count = value_rank(g, part) == 1 ? value_dim(g, part, 0) : -1;
    if (!sym_is_const(count) || count < 0)
      return false;
    if (e->at < count) {
      e->v = part;
      return true;
    }
    e->at -= count;
  }
  return false;
}

static bool is_list(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  return value_is_single(g, v) || (t->rank == 1 && sym_is_const(t->dims[0]));
}

/* sum(mask) is how many rows nonzero(mask) has: exporters give values that are assigned through a
 * mask that size. */
static bool is_count(Import *im, NodeId n, SymInt *size) {
  const Graph *g = im->g;
  if (node_cget(g, n)->op != OP_SUM_DIM_INTLIST || !is_list(g, node_result(g, n, 0)))
    return false;
  NodeId cast = match_op(g, node_value(g, n, 0), OP_TO_COPY);
  if (!cast || value_dtype(g, node_value(g, cast, 0)) != DTYPE_BOOL)
    return false;
  for (ValueId mask = node_value(g, cast, 0);;) {
    const FoundRows *found = &im->state->found_rows[mask % FOUND_ROWS];
    if (found->mask == mask) {
      *size = value_dim(g, found->rows, 0);
      return true;
    }
    NodeId view = match_op(g, mask, OP_VIEW_COPY);
    if (!view)
      return false;
    mask = node_value(g, view, 0);
  }
}

static void trace(Import *im, Element *e, uint32_t choices);

static Element element_of(const Graph *g, ValueId list, int64_t at) {
  return (Element){.v = list, .at = value_is_single(g, list) ? 0 : at};
}

/* where(a == b, x, y), of which the element is known to be that of x or y: exporters write so that
 * -1 in a shape stands for a dim that stays. */
static bool into_choice(Import *im, NodeId n, Element *e, uint32_t choices) {
  const Graph *g = im->g;
  NodeId equal = match_op(g, node_value(g, n, 0), OP_EQ_TENSOR);
  if (!equal || !choices || !is_list(g, node_value(g, n, 1)) || !is_list(g, node_value(g, n, 2)))
    return false;
  Element sides[2];
  for (uint32_t i = 0; i < 2; i++) {
    ValueId side = node_value(g, equal, i);
    if (!is_list(g, side) || !dtype_is_int(value_dtype(g, side)))
      return false;
    sides[i] = element_of(g, side, e->at);
    trace(im, &sides[i], choices - 1);
  }
  int same = sides[0].known && sides[1].known
                 ? sym_known_eq(&im->g->syms, sides[0].size, sides[1].size)
                 : -1;
  if (same >= 0)
    *e = element_of(g, node_value(g, n, same ? 1 : 2), e->at);
  return same >= 0;
}

static void trace(Import *im, Element *e, uint32_t choices) {
  const Graph *g = im->g;
  Ints values;
  while (!e->known) {
    NodeId n = value_def(g, e->v);
    OpId op = n ? node_cget(g, n)->op : OP_NONE;
    if (value_ints(im, e->v, &values)) {
      e->known = true;
      e->size = values.at[e->at];
    } else if (op != OP_NONE && is_count(im, n, &e->size)) {
      e->known = true;
    } else if (op == OP_CAT) {
      if (!into_part(g, n, e))
        return;
    } else if (op == OP_WHERE_SELF) {
      if (!into_choice(im, n, e, choices))
        return;
    } else if ((op == OP_TO_COPY || op_keeps_numbers(op)) && is_list(g, node_value(g, n, 0)) &&
               dtype_is_int(value_dtype(g, node_value(g, n, 0)))) {
      e->v = node_value(g, n, 0);
    } else {
      return;
    }
  }
}

/* --- ranges --- */

/* The upper bound of dim `dim` of output 0, by --bound or the model, else by how the size is
 * computed. */
static bool element_bound(Import *im, ValueId v, uint32_t dim, int64_t *most) {
  if (out_bound(im, 0, dim, most))
    return true;
  double high = data_range(im, v).hi;
  *most = int_clamped(high * (1 + ROUNDING), 0, INT32_MAX);
  return high < INT32_MAX;
}

/* --- how far apart two numbers are --- */

/* A number as another one and what is added to it. */
typedef struct Height {
  ValueId base;
  double plus;
} Height;

/* Through sums with integers, and views and casts of one element: exporters count in floats as
 * well. A float that is no integer, or one too large for a step of 1, does not matter: the size
 * that is read is checked against its bound in each call. */
static Height height_of(const Graph *g, ValueId v) {
  Height h = {.base = v};
  double number;
  for (uint32_t depth = 0; depth < DEPTH_MAX; depth++) {
    NodeId n = value_def(g, h.base);
    OpId op = n ? node_cget(g, n)->op : OP_NONE;
    if (match_with_number(g, h.base, OP_ADD_TENSOR, &v, &number) && number == rint(number)) {
      h.plus += number;
      h.base = v;
    } else if ((op == OP_TO_COPY || op == OP_SELECT_COPY_INT || op_keeps_numbers(op)) &&
               value_is_single(g, node_value(g, n, 0))) {
      h.base = node_value(g, n, 0);
    } else {
      break;
    }
  }
  return h;
}

static bool span_below(const Graph *g, ValueId from, ValueId to, uint32_t depth, double *most) {
  Height low = height_of(g, from), high = height_of(g, to);
  if (low.base == high.base) {
    *most = high.plus - low.plus;
    return true;
  }
  NodeId n = depth ? match_op(g, high.base, OP_MINIMUM) : 0;
  bool found = false;
  for (uint32_t i = 0; n && i < 2; i++) {
    double span;
    if (!span_below(g, from, node_value(g, n, i), depth - 1, &span))
      continue;
    *most = found ? fmin(*most, span + high.plus) : span + high.plus;
    found = true;
  }
  return found;
}

bool span_most(Import *im, ValueId from, ValueId to, int64_t *most) {
  enum { MINIMA_MAX = 4 };
  if (!import_ok(im))
    return false;
  double span, apart = (data_range(im, to).hi - data_range(im, from).lo) * (1 + ROUNDING);
  if (!span_below(im->g, from, to, MINIMA_MAX, &span) || apart < span)
    span = apart;
  *most = int_clamped(span, 0, INT32_MAX);
  return span < INT32_MAX;
}

/* The greatest size of the dim along which a Gather takes rows of a value that is known by now, or
 * -1. */
static int64_t rows_of_gather(Import *im, const Onnx__NodeProto *node) {
  const BindingSlot *from =
      scope_find(im, im->frame, intern_find(&im->ctx->names, onnx_text(node->input[0])));
  int64_t axis = 0;
  for (size_t i = 0; i < node->n_attribute; i++)
    if (sv_eq_str(onnx_text(node->attribute[i]->name), "axis"))
      axis = node->attribute[i]->i;
  if (!from || from->binding.kind != BIND_VALUE)
    return -1;
  int64_t rank = value_rank(im->g, from->binding.value);
  axis += axis < 0 ? rank : 0;
  return axis < 0 || axis >= rank
             ? -1
             : sym_upper(&im->g->syms, value_dim(im->g, from->binding.value, (uint32_t)axis));
}

bool out_gathered_bound(Import *im, uint32_t i, int64_t *most) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  if (!import_ok(im) || !out_wanted(im, i) || im->frame->parent || im->frame->function)
    return false;
  bool found = false;
  for (size_t k = 0; k < graph->n_node; k++) {
    const Onnx__NodeProto *node = graph->node[k];
    if (node->n_input != 2 || !sv_eq_str(onnx_text(node->op_type), "Gather") ||
        onnx_text(node->domain).size ||
        !sv_eq(onnx_text(node->input[1]), onnx_text(im->node->output[i])))
      continue;
    int64_t rows = rows_of_gather(im, node);
    if (rows < 0 || (found && rows >= *most))
      continue;
    *most = rows;
    found = true;
  }
  return found;
}

/* --- reading --- */

/* What is read in the main graph is known to everything after it: one symbol stands for one number
 * wherever it is used. In a branch or loop it is known only there. */
static SymInt read_element(Import *im, const Element *e, int64_t most) {
  if (e->known || !import_ok(im))
    return e->known ? e->size : 0;
  ValueId v = e->v;
  bool single = value_rank(im->g, v) == 0 || value_dim(im->g, v, 0) == 1;
  if (!single)
    v = ex_element(im, v, e->at);
  bool some = most > 0 && data_range(im, v).lo >= 1;
  ValueId read = some ? ex_at_least(im, v, 1) : v; /* what a NaN is made must not pass */
  ValueId number = build(&im->b, OP_LOCAL_SCALAR_DENSE, A_VAL(read));
  if (!import_ok(im))
    return 0;
  SymInt size = sym_symbol(&im->g->syms, SV(""), some ? 1 : 0, most, true);
  value_set_type(im->g, number, graph_scalar_type(im->g, TYPE_INT, size, true));
  if (im->frame->depth == 0)
    fold_set_contents(&im->state->fold, v, &size, 1);
  return size;
}

SymInt data_size(Import *im, ValueId scalar, int64_t most) {
  Element e = {.v = scalar};
  if (import_ok(im))
    trace(im, &e, CHOICES_MAX);
  return read_element(im, &e, most);
}

bool data_sizes(Import *im, ValueId list, uint32_t first, const char *what, Dims *shape) {
  Element elements[MAX_RANK];
  int64_t most[MAX_RANK] = {0};
  uint32_t unbounded = 0;
  SymInt count = import_ok(im) && value_rank(im->g, list) == 1 ? value_dim(im->g, list, 0) : -1;
  if (!sym_is_const(count) || count < 0 || first + count > MAX_RANK ||
      !dtype_is_int(value_dtype(im->g, list)))
    return false;
  shape->rank = (uint32_t)count;
  for (uint32_t i = 0; i < shape->rank; i++) {
    elements[i] = (Element){.v = list, .at = i};
    trace(im, &elements[i], CHOICES_MAX);
    if (!elements[i].known && !element_bound(im, elements[i].v, first + i, &most[i]))
      unbounded |= (uint32_t)1 << (first + i);
  }
  if (unbounded)
    fail_unbounded(im, 0, unbounded, what);
  for (uint32_t i = 0; i < shape->rank && import_ok(im); i++)
    shape->d[i] = read_element(im, &elements[i], most[i]);
  return true;
}

ValueId found_rows(Import *im, ValueId x) {
  FoundRows *found = &im->state->found_rows[x % FOUND_ROWS];
  if (import_ok(im) && found->mask == x && x)
    return found->rows;
  ValueId rows = ex_unary(im, OP_NONZERO, x);
  if (import_ok(im) && im->frame->depth == 0) /* what is found in a branch is known only there */
    *found = (FoundRows){x, rows};
  return rows;
}
