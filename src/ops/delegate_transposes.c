/* What reports say of the transposes in the code of a delegate. */
#include "ops/delegate.h"

static const struct {
  const char *text, *key;
} kinds[TRANSPOSE_REASONS] = {
    [TRANSPOSE_LAYOUT] = {"for layouts", "layout"},
    [TRANSPOSE_PERMUTE] = {"for permutes of the model", "permute"},
    [TRANSPOSE_INSIDE] = {"within nodes", "inside"},
};

static uint32_t number_of(const DelegateTranspose *items, uint32_t count, TransposeReason what) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < count; i++)
    number += items[i].what == what;
  return number;
}

uint32_t delegate_print_transposes(StrBuf *out, const DelegateTranspose *items, uint32_t count,
                                   TransposeReason what) {
  uint32_t number = number_of(items, count, what);
  const char *before = ": ";
  if (number)
    strbuf_printf(out, "%u %s", number, kinds[what].text);
  for (uint32_t i = 0; i < count; i++) {
    if (items[i].what != what)
      continue;
    strbuf_append(out, sv_from(before));
    strbuf_append_escaped(out, items[i].node);
    before = ", ";
  }
  return number;
}

void delegate_json_transposes(JsonWriter *w, const DelegateTranspose *items, uint32_t count) {
  json_named_object(w, "transposes_for");
  for (uint32_t kind = 0; kind < TRANSPOSE_REASONS; kind++) {
    json_named_array(w, kinds[kind].key);
    for (uint32_t i = 0; i < count; i++)
      if (items[i].what == kind)
        json_string(w, items[i].node);
    json_close_array(w);
  }
  json_close_object(w);
}
