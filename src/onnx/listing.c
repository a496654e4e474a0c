/* What the documentation says of each operator beyond its row in translators.def. */
#include "onnx/translate.h"
#include "support/text.h"

static const OnnxLimit limits[] = {
#define ONNX_LIMIT(domain_, name_, code_, text_) {domain_, name_, DIAG_##code_, text_},
#include "onnx/limits.def"
#undef ONNX_LIMIT
};

static const struct {
  const char *types, *operators;
} element_types[] = {
#define ONNX_ELEMENT_TYPES(types_, operators_) {types_, operators_},
#include "onnx/element_types.def"
#undef ONNX_ELEMENT_TYPES
};

const OnnxLimit *onnx_limit(const OnnxOpRow *row) {
  for (size_t i = 0; i < COUNT_OF(limits); i++)
    if (!strcmp(row->domain, limits[i].domain) && !strcmp(row->name, limits[i].name))
      return &limits[i];
  return NULL;
}

const char *onnx_element_types(const OnnxOpRow *row) {
  for (size_t i = 0; i < COUNT_OF(element_types) && !*row->domain; i++)
    if (text_among(sv_from(row->name), element_types[i].operators))
      return element_types[i].types;
  return NULL;
}
