/* A method without inputs and instructions, whose outputs are values that the program holds: what
 * runners ask a program for before they run it (get_vocab_size, get_eos_ids, …). */
#ifndef ETC_IR_CONSTANT_METHOD_H
#define ETC_IR_CONSTANT_METHOD_H

#include "ir/graph.h"

typedef enum ConstantKind {
  CONSTANT_INT,
  CONSTANT_FLOAT,
  CONSTANT_BOOL,
  CONSTANT_TEXT,
  CONSTANT_TENSOR
} ConstantKind;

/* One output. */
typedef struct ConstantItem {
  ConstantKind kind;
  int64_t i; /* INT, BOOL */
  double f;  /* FLOAT */
  StrView text;
  DType dtype; /* of a TENSOR; its elements are contiguous */
  uint32_t rank;
  const int64_t *dims;
  Constant bytes;
} ConstantItem;

typedef struct ConstantMethod {
  StrView name;
  const ConstantItem *items;
  uint32_t count;
} ConstantMethod;

/* The outputs as people write them: "32000", "1, 2", "\"text\"", "i64[2, 3] [1, 2, 3, 4, 5, 6]";
 * of large tensors the type alone. */
void constant_item_print(const ConstantItem *item, StrBuf *out);
void constant_method_print(const ConstantMethod *m, StrBuf *out);

#endif
