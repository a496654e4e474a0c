/* What each node can be in a quantized graph. */
#ifndef ETC_PASSES_QUANTIZE_ROLES_H
#define ETC_PASSES_QUANTIZE_ROLES_H

#include "ir/op.h"

typedef enum QuantRole {
  ROLE_FLOAT,
  ROLE_PRODUCT,
  ROLE_BATCH,
  ROLE_ARITHMETIC,
  ROLE_JOIN,
  ROLE_FUNCTION,
  ROLE_CLAMP,
  ROLE_MOVE,
  ROLE_TABLE
} QuantRole;

/* The role of n by its op, operands and arguments; ROLE_FLOAT where it cannot be quantized. */
QuantRole quant_role(const Graph *g, NodeId n);
/* What n is to a spectrum that is made of samples or of another one. */
typedef enum QuantSpectrum {
  SPECTRUM_NEVER, /* it computes something else */
  SPECTRUM_STEP,
  SPECTRUM_LOGARITHM /* of which it takes the logarithm */
} QuantSpectrum;
QuantSpectrum quant_spectrum(const Graph *g, NodeId n);
/* The operands of n that are quantized as activations (ROLE_TABLE has none): their number, and
 * operand k. */
uint32_t quant_operand_count(const Graph *g, NodeId n, QuantRole role);
ValueId quant_operand(const Graph *g, NodeId n, QuantRole role, uint32_t k);

/* The constant weight of a product or the rows of a table, the dim of its channels, and the operand
 * that it is. permute: the node between the two; 0: there is none. */
typedef struct QuantWeight {
  ValueId constant;
  uint32_t axis, operand;
  NodeId permute;
} QuantWeight;
bool quant_weight(const Graph *g, NodeId n, QuantRole role, QuantWeight *w);

/* The product of which the weight is observed at n; 0: of none. */
NodeId quant_product_of(const Graph *g, NodeId n);

#endif
