/* Nodes on integers: of dequantize, op, quantize one node.
 *
 * As it was lowered, the graph computes in f32 between conversions. A first walk, from the results
 * back, finds for each value the quantization that all its users want: those of a conversion, also
 * through nodes that only move elements or limit them, which commute with it. A second walk, from
 * the operands on, keeps codes as long as they last: moves are made on codes, a node that XNNPACK
 * has for integers becomes one when its operands are codes and its result is wanted as codes, and
 * for everything else the floats are made where they are first needed. */
#include <math.h>

#include "backends/xnnpack/fuse.h"
#include "ir/transform.h"

/* --- what is wanted --- */

static void demand(Fuse *f, XnnId v, XnnId as) {
  XnnId *want = &f->wanted[v];
  if (f->x->values[v].datatype != XNN_FP32)
    return;
  if (*want == WANT_NOTHING)
    *want = as;
  else if (*want != as &&
           (as == WANT_FLOATS || *want == WANT_FLOATS || !xf_same_codes(f, *want, as)))
    *want = WANT_FLOATS;
}

static void demand_of_node(Fuse *f, const XnnNode *n) {
  const char *fields = xnn_fields(n);
  XnnId out = xnn_result(n);
  XnnId as = WANT_FLOATS;
  if (n->kind == XNN_CONVERT && f->x->values[out].datatype == XNN_QINT8)
    as = out;
  else if (xf_moves(n) && f->wanted[out] != WANT_NOTHING)
    as = f->wanted[out];
  for (uint32_t i = 0; fields[i]; i++)
    if ((fields[i] == 'i' || fields[i] == 'b') && n->fields[i] != XNN_NONE) {
      demand(f, n->fields[i], as);
      f->uses[n->fields[i]]++;
    }
}

static void find_wants(Fuse *f) {
  for (XnnId v = 0; v < f->x->value_count; v++) {
    const XnnValue *value = &f->x->values[v];
    f->wanted[v] = value->external && !value->is_input ? WANT_FLOATS : WANT_NOTHING;
  }
  for (uint32_t i = f->old_count; i-- > 0;)
    demand_of_node(f, &f->old[i]);
}

/* --- what there is --- */

XnnNode *xf_emit(Fuse *f, const XnnNode *node) { return xnn_add_node(f->x, node); }

static void emit_conversion(Fuse *f, XnnId in, XnnId out) {
  xf_emit(f, &(XnnNode){.kind = XNN_CONVERT, .fields = {in, out, 0}});
}

/* A value that has no floats yet gets them. */
void xf_make_floats(Fuse *f, XnnId v) {
  v = f->alias[v];
  if (f->codes[v] == XNN_NONE || f->has_floats[v])
    return;
  f->has_floats[v] = true;
  emit_conversion(f, f->codes[v], v);
}

bool xf_same_codes(const Fuse *f, XnnId a, XnnId b) {
  const XnnValue *p = &f->x->values[a], *q = &f->x->values[b];
  return p->datatype == q->datatype && p->scale == q->scale && p->zero_point == q->zero_point;
}

XnnId xf_codes_like(Fuse *f, XnnId shape, XnnId parameters) {
  XnnValue as = f->x->values[parameters];
  XnnId codes = xnn_value_like(f->x, XNN_QINT8, shape);
  xnn_set_scale(f->x, codes, as.scale, as.zero_point);
  return codes;
}

XnnId xf_operand(const Fuse *f, XnnId v) {
  const XnnValue *value = &f->x->values[v];
  if (value->data) {
    const XnnValue *codes = value->codes ? &f->x->values[value->codes - 1] : NULL;
    return codes && codes->datatype == XNN_QINT8 ? value->codes - 1 : XNN_NONE;
  }
  return f->codes[v];
}

XnnId xf_number(Fuse *f, XnnId v) {
  XnnValue like = f->x->values[v];
  Graph *g = f->l->g;
  if (!like.data || like.codes)
    return XNN_NONE;
  const Constant *c = value_constant(g, f->x->data[like.data - 1].v);
  float number;
  if (!c || value_dtype(g, f->x->data[like.data - 1].v) != DTYPE_F32 ||
      !constant_repeats(c, sizeof number))
    return XNN_NONE;
  memcpy(&number, c->data, sizeof number);
  if (!isnormal(number))
    return XNN_NONE;
  XnnId id = xl_equal_codes(f->l, like.rank, like.dims, number > 0 ? 1 : -1, fabsf(number));
  f->x->values[v].codes = id + 1;
  return id;
}

/* --- conversions --- */

/* Codes of another quantization. XNNPACK's own conversion between codes rounds ties up, and takes
 * few ratios of scales; through floats it rounds as quantize does, and XNNPACK makes one table of
 * the two conversions. */
void xf_requantize(Fuse *f, XnnId in, XnnId out) {
  XnnId floats = xnn_value_like(f->x, XNN_FP32, in);
  emit_conversion(f, in, floats);
  emit_conversion(f, floats, out);
}

static void quantize(Fuse *f, XnnId in, XnnId out) {
  XnnId codes = f->x->values[in].data ? XNN_NONE : f->codes[in];
  bool external = f->x->values[out].external != 0;
  if (codes == XNN_NONE) {
    emit_conversion(f, in, out);
  } else if (xf_same_codes(f, codes, out)) {
    if (external)
      xf_emit(f, &(XnnNode){.kind = XNN_COPY, .fields = {codes, out, 0}});
    else
      f->alias[out] = codes;
  } else {
    xf_requantize(f, codes, out);
  }
}

/* out is in, which products that read it quantize at run time. What reads it outside of the
 * delegate gets the floats. */
static void mark_dynamic(Fuse *f, XnnId in, XnnId out, uint32_t mark) {
  f->alias[out] = in;
  f->dynamic[out] = mark == XNN_MARK_ROWS   ? XF_BY_ROWS
                    : mark == XNN_MARK_GRID ? XF_AS_GRID
                                            : XF_AS_A_WHOLE;
  if (f->x->values[out].external) {
    xf_make_floats(f, in);
    xf_emit(f, &(XnnNode){.kind = XNN_COPY, .fields = {in, out, 0}});
  }
}

static void convert(Fuse *f, const XnnNode *n) {
  XnnId in = f->alias[n->fields[0]], out = n->fields[1];
  uint8_t from = f->x->values[in].datatype, to = f->x->values[out].datatype;
  if (from == XNN_FP32 && to == XNN_FP32) {
    mark_dynamic(f, in, out, n->fields[2]);
  } else if (from == XNN_QINT8 && to == XNN_FP32) {
    f->codes[out] = in;
  } else if (from == XNN_FP32 && to == XNN_QINT8) {
    quantize(f, in, out);
  } else {
    xf_make_floats(f, n->fields[0]);
    emit_conversion(f, in, out);
  }
}

/* --- nodes --- */

static void keep(Fuse *f, const XnnNode *n) {
  XnnNode copy = xf_weight_only(f, n);
  const char *fields = xnn_fields(n);
  for (uint32_t i = 0; fields[i]; i++)
    if ((fields[i] == 'i' || fields[i] == 'b') && n->fields[i] != XNN_NONE &&
        copy.fields[i] == n->fields[i]) {
      copy.fields[i] = f->alias[n->fields[i]];
      xf_make_floats(f, n->fields[i]);
    }
  uint32_t first = (uint32_t)strcspn(fields, "i");
  if (fields[first] && xf_moves(n))
    f->dynamic[xnn_result(&copy)] = f->dynamic[n->fields[first]];
  xf_emit(f, &copy);
}

static bool has_codes(const XnnGraph *x) {
  for (XnnId v = 0; v < x->value_count; v++)
    if (x->values[v].codes || x->values[v].datatype == XNN_QINT8)
      return true;
  for (uint32_t i = 0; i < x->node_count; i++)
    if (x->nodes[i].kind == XNN_CONVERT)
      return true;
  return false;
}

/* Takes the nodes out of the graph, to be written anew. */
static Fuse fuse_begin(XnnLowering *l) {
  XnnGraph *x = &l->x;
  /* Every node may add a value, a conversion one for each operand, the filter of a block its
   * columns as floats and quantized, a product and a sum. */
  size_t most = (size_t)x->value_count * 6 + (size_t)x->node_count * 8 + 1;
  Fuse f = {.l = l,
            .x = x,
            .wanted = ARENA_ARRAY(l->arena, XnnId, most),
            .codes = ARENA_ARRAY(l->arena, XnnId, most),
            .alias = ARENA_ARRAY(l->arena, XnnId, most),
            .row_codes = ARENA_ARRAY(l->arena, XnnId, most),
            .image_row_codes = ARENA_ARRAY(l->arena, XnnId, most),
            .image_codes = ARENA_ARRAY(l->arena, XnnId, most),
            .sums = ARENA_ARRAY(l->arena, XnnId, most),
            .floats_by_block = ARENA_ARRAY(l->arena, XnnId, most),
            .row_codes_by_block = ARENA_ARRAY(l->arena, XnnId, most),
            .reshaped_from = ARENA_ARRAY(l->arena, XnnId, most),
            .unsigned_codes = ARENA_ARRAY(l->arena, XnnId, most),
            .dynamic = ARENA_ARRAY(l->arena, uint8_t, most),
            .uses = ARENA_ARRAY(l->arena, uint32_t, most),
            .transpose = ARENA_ARRAY(l->arena, uint32_t, most),
            .has_floats = ARENA_ARRAY(l->arena, bool, most)};
  f.old = xnn_take_nodes(x, &f.old_count, l->arena);
  for (size_t i = 0; i < most; i++) { /* also of values that are made below */
    f.alias[i] = (XnnId)i;
    f.codes[i] = f.row_codes[i] = f.image_row_codes[i] = f.image_codes[i] = XNN_NONE;
    f.unsigned_codes[i] = f.reshaped_from[i] = f.sums[i] = XNN_NONE;
    f.floats_by_block[i] = f.row_codes_by_block[i] = XNN_NONE;
  }
  f.has_dynamic_dims = xnn_has_dynamic_dims(x);
  for (uint32_t i = 0; i < l->transpose_count; i++)
    f.transpose[l->transposes[i].out] = i + 1;
  return f;
}

void xl_fuse(XnnLowering *l) {
  XnnGraph *x = &l->x;
  if (l->trial || !has_codes(x))
    return;
  Fuse f = fuse_begin(l);
  find_wants(&f);
  for (uint32_t i = 0; i < f.old_count; i++) {
    const XnnNode *n = &f.old[i];
    x->debug_handle = n->debug_handle;
    if (n->kind == XNN_CONVERT)
      convert(&f, n);
    else if (!xf_move(&f, n) && !xf_compute(&f, n) && !xf_compute_dynamic(&f, n))
      keep(&f, n);
  }
  for (XnnId v = 0; v < x->value_count; v++)
    if (x->values[v].external && !x->values[v].is_input)
      xf_make_floats(&f, v);
}
