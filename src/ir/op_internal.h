/* What op.c has for op_add.c alone. */
#ifndef ETC_IR_OP_INTERNAL_H
#define ETC_IR_OP_INTERNAL_H

#include "ir/op.h"

/* What is missing in a schema first, and where; expected NULL: it is right. */
typedef struct SchemaFault {
  const char *expected, *at;
} SchemaFault;
/* The names in *s lie in text. */
SchemaFault op_parse_schema(const char *text, OpSchema *s);
/* Makes an op known to all threads; one thread at a time may call it. Texts of the row live as long
 * as the process. */
void op_publish(const OpRow *row, const OpSchema *schema);

#endif
