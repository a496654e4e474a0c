/* int8-dynamic and int4-weight-only: products with quantized weights get their operand through
 * quantize and dequantize of each row by its range at run time, so that a backend may multiply
 * integers. */
#include "ops/quantized.h"
#include "passes/pass.h"

/* The operand of a product whose weight is dequantized; 0: it is none. */
static ValueId operand_of(const Graph *g, NodeId n) {
  if (node_cget(g, n)->op != OP_LINEAR || !dequantized_constant(g, node_value(g, n, 1)))
    return 0;
  ValueId x = node_value(g, n, 0);
  return value_dtype(g, x) == DTYPE_F32 && value_rank(g, x) >= 1 ? x : 0;
}

Status pass_quantize_rows(PassContext *p, Graph *g) {
  Builder b = builder_make(g, 0, 0);
  uint64_t made = 0;
  const QuantOptions *o = p->options->quantize;
  if (!o || (o->scheme != QUANT_INT4_WEIGHT_ONLY && o->scheme != QUANT_INT8_DYNAMIC))
    return STATUS_OK;
  ValueId last = 0, quantized = 0; /* several products of one value follow each other */
  for (NodeId n = g->first; n && b.status == STATUS_OK; n = node_cget(g, n)->next) {
    ValueId x = operand_of(g, n);
    if (op_has_trait(node_cget(g, n)->op, OP_CONTROL))
      last = 0;
    if (!x)
      continue;
    if (x != last) {
      b.before = n;
      b.loc = node_cget(g, n)->loc;
      Quantization q = build_rows(&b, x);
      ValueId codes = build_quantize(&b, x, &q);
      quantized = build_dequantize(&b, codes, &q);
      last = x;
      made++;
    }
    if (quantized)
      node_set_arg(g, n, 0, A_VAL(quantized));
  }
  pass_count(p, "values", made);
  return b.status;
}
