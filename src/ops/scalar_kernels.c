/* Reference kernels of the ops on run-time scalars (kernels/prim_ops/register_prim_ops.cpp of
 * ExecuTorch 1.4.1). What ends the process there (division by zero) or is undefined is an error
 * here; integers wrap. */
#include "ops/kernel.h"
#include "ops/ops.h"
#include "ops/scalar.h"

#include <math.h>

#define U(x) ((uint64_t)(x))

static Status give_int(Kernel *k, int64_t v) {
  k->scalar_result = (KernelArg){.kind = ARG_INT, .i = v};
  return STATUS_OK;
}
static Status give_float(Kernel *k, double v) {
  k->scalar_result = (KernelArg){.kind = ARG_FLOAT, .f = v};
  return STATUS_OK;
}
static Status give_bool(Kernel *k, bool v) {
  k->scalar_result = (KernelArg){.kind = ARG_BOOL, .i = v};
  return STATUS_OK;
}
static Status wrong_kind(Kernel *k) {
  return kernel_error(k, "the operands are not of a kind that the op takes");
}

Status kern_sym_size(Kernel *k) {
  const Tensor *t = kernel_tensor(k, 0);
  int64_t dim = k->args[1].i < 0 ? k->args[1].i + t->rank : k->args[1].i;
  if (dim < 0 || dim >= t->rank)
    return kernel_error(k, "dimension %lld of a tensor of rank %u", (long long)k->args[1].i,
                        t->rank);
  return give_int(k, t->dims[dim]);
}

Status kern_sym_numel(Kernel *k) { return give_int(k, tensor_numel(kernel_tensor(k, 0))); }

Status kern_local_scalar_dense(Kernel *k) {
  const Tensor *t = kernel_tensor(k, 0);
  if (tensor_numel(t) < 1)
    return kernel_error(k, "the tensor is empty");
  if (t->dtype == DTYPE_BOOL)
    return give_bool(k, tensor_load_int(t, 0) != 0);
  return dtype_is_float(t->dtype) ? give_float(k, tensor_load(t, 0))
                                  : give_int(k, tensor_load_int(t, 0));
}

/* Appends copy_from as row `index` of copy_to, which grows to index + 1 rows. */
Status kern_et_copy_index(Kernel *k) {
  Tensor *to = k->args[0].tensor;
  const Tensor *from = kernel_tensor(k, 1);
  int64_t index = k->args[2].i;
  uint64_t row = tensor_bytes(from), end;
  bool fits = to->rank == from->rank + 1 && to->dtype == from->dtype && index >= 0;
  for (uint32_t i = 0; fits && i < from->rank; i++)
    fits = to->dims[i + 1] == from->dims[i];
  if (!fits)
    return kernel_error(k, "the row does not fit the tensor it is copied to");
  if (!mul_u64(row, (uint64_t)index + 1, &end) || end > to->capacity)
    return kernel_error(k, "row %lld is beyond the bound of the tensor", (long long)index);
  to->dims[0] = index + 1;
  if (row)
    memcpy((char *)to->data + (end - row), from->data, row);
  if (k->result_count == 0)
    return STATUS_OK;
  TRY(kernel_resize(k, 0, to->rank, to->dims));
  memcpy(k->results[0]->data, to->data, tensor_bytes(to));
  return STATUS_OK;
}

/* --- arithmetic --- */

static Status prim_ints(Kernel *k, int64_t a, int64_t b) {
  if (is_int_division(k->op) && b == 0)
    return kernel_error(k, "integer division by zero");
  switch ((int)k->op) {
  case OP_PRIM_ADD:
    return give_int(k, (int64_t)(U(a) + U(b)));
  case OP_PRIM_SUB:
    return give_int(k, (int64_t)(U(a) - U(b)));
  case OP_PRIM_MUL:
    return give_int(k, (int64_t)(U(a) * U(b)));
  case OP_PRIM_FLOORDIV:
    return give_int(k, int_floor_quotient(a, b));
  case OP_PRIM_FLOORDIV_INT:
    return give_int(k, int_quotient(a, b));
  case OP_PRIM_MOD:
  case OP_PRIM_MOD_INT:
    return give_int(k, int_rest(a, b));
  case OP_PRIM_SYM_MAX:
    return give_int(k, max_i64(a, b));
  case OP_PRIM_SYM_MIN:
    return give_int(k, min_i64(a, b));
  case OP_PRIM_TRUEDIV:
    return give_float(k, (double)a / (double)b);
  default:
    return wrong_kind(k);
  }
}

static double floor_quotient(double a, double b) {
  if (b == 0)
    return signbit(a) ? -INFINITY : INFINITY;
  double mod = fmod(a, b), div = (a - mod) / b;
  return mod != 0 && (signbit(b) != 0) != (signbit(mod) != 0) ? div - 1 : div;
}

static Status prim_floats(Kernel *k, double a, double b) {
  switch ((int)k->op) {
  case OP_PRIM_ADD:
    return give_float(k, a + b);
  case OP_PRIM_SUB:
    return give_float(k, a - b);
  case OP_PRIM_MUL:
    return give_float(k, a * b);
  case OP_PRIM_TRUEDIV:
    return give_float(k, a / b);
  case OP_PRIM_FLOORDIV:
    return give_float(k, floor_quotient(a, b));
  default:
    return wrong_kind(k);
  }
}

/* -1, 0, 1, or 2 when one of both is NaN. Whole numbers compare exactly. */
static int compare(const KernelArg *a, const KernelArg *b) {
  if (a->kind != ARG_FLOAT && b->kind != ARG_FLOAT)
    return (a->i > b->i) - (a->i < b->i);
  double x = a->kind == ARG_FLOAT ? a->f : (double)a->i,
         y = b->kind == ARG_FLOAT ? b->f : (double)b->i;
  return x != x || y != y ? 2 : (x > y) - (x < y);
}

static Status prim_binary(Kernel *k) {
  const KernelArg *a = &k->args[0], *b = &k->args[1];
  int order = compare(a, b);
  bool bools = a->kind == ARG_BOOL || b->kind == ARG_BOOL;
  bool both = a->kind == ARG_BOOL && b->kind == ARG_BOOL;
  if (bools && !both)
    return wrong_kind(k);
  switch ((int)k->op) {
  case OP_PRIM_EQ:
    return give_bool(k, order == 0);
  case OP_PRIM_GE:
    return give_bool(k, order == 0 || order == 1);
  case OP_PRIM_GT:
    return give_bool(k, order == 1);
  case OP_PRIM_LE:
    return give_bool(k, order == 0 || order == -1);
  case OP_PRIM_LT:
    return give_bool(k, order == -1);
  default:
    break;
  }
  if (both)
    return wrong_kind(k);
  if (a->kind == ARG_INT && b->kind == ARG_INT)
    return prim_ints(k, a->i, b->i);
  return prim_floats(k, kernel_scalar(k, 0), kernel_scalar(k, 1));
}

/* --- one operand --- */

/* To an integer, saturating. */
static int64_t to_int(double v) {
  Tensor number = {.dtype = DTYPE_F64, .data = &v};
  return tensor_load_int(&number, 0);
}

static Status prim_unary(Kernel *k) {
  const KernelArg *a = &k->args[0];
  bool is_float = a->kind == ARG_FLOAT;
  switch ((int)k->op) {
  case OP_PRIM_SYM_FLOAT:
    return give_float(k, kernel_scalar(k, 0));
  case OP_PRIM_SYM_INT:
    return give_int(k, is_float ? to_int(a->f) : a->i);
  case OP_PRIM_SYM_NOT:
    return a->kind == ARG_BOOL ? give_bool(k, !a->i) : wrong_kind(k);
  case OP_PRIM_NEG:
    if (a->kind == ARG_BOOL)
      return wrong_kind(k);
    return is_float ? give_float(k, -a->f) : give_int(k, (int64_t)(0 - U(a->i)));
  case OP_PRIM_CEIL:
    return is_float ? give_int(k, to_int(ceil(a->f))) : wrong_kind(k);
  case OP_PRIM_ROUND:
    return is_float ? give_int(k, to_int(rint(a->f))) : wrong_kind(k);
  case OP_PRIM_TRUNC:
    return is_float ? give_int(k, to_int(trunc(a->f))) : wrong_kind(k);
  default:
    return wrong_kind(k);
  }
}

Status kern_prim(Kernel *k) {
  if (k->arg_count == 1)
    return prim_unary(k);
  if (k->arg_count == 2)
    return prim_binary(k);
  if (k->args[0].kind != ARG_BOOL)
    return wrong_kind(k);
  k->scalar_result = k->args[k->args[0].i ? 1 : 2];
  return STATUS_OK;
}
