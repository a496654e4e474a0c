/* See roles.h. */
#include "passes/quantize/roles.h"

#include "ir/match.h"

enum { RANK_MAX = 6, WEIGHT_ELEMENTS_MIN = 1 };

static QuantRole role_of_op(OpId op) {
  switch (op) {
#define QUANT_RULE(op, role)                                                                       \
  case OP_##op:                                                                                    \
    return ROLE_##role;
#include "passes/quantize/rules.def"
  default:
    return ROLE_FLOAT;
  }
}

/* Floats of a rank that integers are computed in. */
static bool is_real(const Graph *g, ValueId v) {
  const Type *t = v ? value_type(g, v) : NULL;
  return t && t->kind == TYPE_TENSOR && t->dtype == DTYPE_F32 && t->rank <= RANK_MAX;
}

static bool is_plain_const(const Graph *g, ValueId v) {
  return v && value_is_const(g, v) && value_dtype(g, v) == DTYPE_F32 &&
         value_lazy_constant(g, v)->size >= WEIGHT_ELEMENTS_MIN;
}

uint32_t quant_operand_count(const Graph *g, NodeId n, QuantRole role) {
  switch (role) {
  case ROLE_FLOAT:
  case ROLE_TABLE:
    return 0;
  case ROLE_JOIN:
    return node_list_count(g, n, 0);
  case ROLE_BATCH:
  case ROLE_ARITHMETIC:
    return 2;
  case ROLE_PRODUCT:
  case ROLE_FUNCTION:
  case ROLE_CLAMP:
  case ROLE_MOVE:
    return 1;
  }
  return 0;
}

ValueId quant_operand(const Graph *g, NodeId n, QuantRole role, uint32_t k) {
  return role == ROLE_JOIN ? node_list_value(g, n, 0, k) : node_value(g, n, k);
}

static bool product_weight(const Graph *g, NodeId n, QuantWeight *w) {
  ValueId v = node_value(g, n, 1);
  bool transposed = node_cget(g, n)->op == OP_CONVOLUTION && node_bool(g, n, 6);
  *w = (QuantWeight){.constant = v, .axis = transposed, .operand = 1};
  NodeId permute = match_op(g, v, OP_PERMUTE_COPY);
  if (permute && value_rank(g, v) == 2 && node_ints(g, permute, 1)[0] % 2 != 0)
    *w = (QuantWeight){node_value(g, permute, 0), 1, 1, permute};
  return is_plain_const(g, w->constant);
}

/* Rows that one list of positions chooses. */
static bool table_weight(const Graph *g, NodeId n, QuantWeight *w) {
  ValueId v = node_value(g, n, 0);
  OpId op = node_cget(g, n)->op;
  *w = (QuantWeight){.constant = v};
  if (!is_plain_const(g, v) || value_rank(g, v) != 2)
    return false;
  if (op == OP_INDEX_SELECT)
    return node_int(g, n, 1) == 0;
  if (op == OP_INDEX_TENSOR)
    return node_list_count(g, n, 1) == 1 &&
           dtype_in(value_dtype(g, node_list_value(g, n, 1, 0)), DT(I64) | DT(I32));
  return true;
}

bool quant_weight(const Graph *g, NodeId n, QuantRole role, QuantWeight *w) {
  if (role == ROLE_PRODUCT)
    return product_weight(g, n, w);
  return role == ROLE_TABLE && table_weight(g, n, w);
}

/* What the op alone does not say. */
static bool fits(const Graph *g, NodeId n, QuantRole role) {
  QuantWeight w;
  switch (node_cget(g, n)->op) {
  case OP_ADD_TENSOR:
  case OP_SUB_TENSOR:
    return node_scalar(g, n, 2) == 1;
  case OP_MATMUL:
    return value_rank(g, node_value(g, n, 0)) > 1 && value_rank(g, node_value(g, n, 1)) > 1 &&
           !value_is_const(g, node_value(g, n, 0)) && !value_is_const(g, node_value(g, n, 1));
  case OP_MAX_POOL2D_WITH_INDICES:
    return node_unused(g, n, 1);
  default:
    break;
  }
  return (role != ROLE_PRODUCT && role != ROLE_TABLE) || quant_weight(g, n, role, &w);
}

QuantRole quant_role(const Graph *g, NodeId n) {
  QuantRole role = role_of_op(node_cget(g, n)->op);
  if (role == ROLE_FLOAT || !is_real(g, node_result(g, n, 0)))
    return ROLE_FLOAT;
  for (uint32_t k = 0; k < quant_operand_count(g, n, role); k++)
    if (!is_real(g, quant_operand(g, n, role, k)))
      return ROLE_FLOAT;
  return fits(g, n, role) ? role : ROLE_FLOAT;
}

QuantSpectrum quant_spectrum(const Graph *g, NodeId n) {
  switch (node_cget(g, n)->op) {
#define QUANT_SPECTRUM(op, part)                                                                   \
  case OP_##op:                                                                                    \
    return SPECTRUM_##part;
#include "passes/quantize/rules.def"
  default:
    break;
  }
  QuantRole role = quant_role(g, n);
  bool activation = role == ROLE_FLOAT || role == ROLE_FUNCTION || role == ROLE_TABLE;
  return activation ? SPECTRUM_NEVER : SPECTRUM_STEP;
}

NodeId quant_product_of(const Graph *g, NodeId n) {
  for (NodeId user = n; (user = value_only_user(g, node_result(g, user, 0)));) {
    if (node_cget(g, user)->op == OP_LINEAR || node_cget(g, user)->op == OP_CONVOLUTION)
      return user;
    if (node_cget(g, user)->op != OP_PERMUTE_COPY)
      return 0;
  }
  return 0;
}
