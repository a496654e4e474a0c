/* See constant_method.h. */
#include "ir/constant_method.h"

#include "ir/const_text.h"
#include "ir/text.h"

enum { MAX_ELEMENTS_SHOWN = 16 };

static void print_tensor(const ConstantItem *item, StrBuf *out) {
  uint64_t count = 1;
  shape_describe(dtype_name(item->dtype), item->dims, item->rank, out);
  for (uint32_t i = 0; i < item->rank; i++)
    count *= (uint64_t)item->dims[i];
  if (count > MAX_ELEMENTS_SHOWN || !item->bytes.data)
    return;
  strbuf_append(out, SV(" ["));
  for (uint64_t i = 0; i < count; i++) {
    strbuf_append(out, i ? SV(", ") : SV(""));
    if (!element_print(item->dtype, item->bytes.data + i * dtype_size(item->dtype), out))
      strbuf_append_char(out, '?');
  }
  strbuf_append_char(out, ']');
}

void constant_item_print(const ConstantItem *item, StrBuf *out) {
  switch (item->kind) {
  case CONSTANT_INT:
    strbuf_printf(out, "%lld", (long long)item->i);
    break;
  case CONSTANT_FLOAT:
    strbuf_append_double(out, item->f);
    break;
  case CONSTANT_BOOL:
    strbuf_append(out, item->i ? SV("true") : SV("false"));
    break;
  case CONSTANT_TEXT:
    strbuf_append_char(out, '"');
    strbuf_append_escaped(out, item->text);
    strbuf_append_char(out, '"');
    break;
  case CONSTANT_TENSOR:
    print_tensor(item, out);
    break;
  }
}

void constant_method_print(const ConstantMethod *m, StrBuf *out) {
  for (uint32_t i = 0; i < m->count; i++) {
    strbuf_append(out, i ? SV(", ") : SV(""));
    constant_item_print(&m->items[i], out);
  }
}
