/* What the documentation says of each operator beyond its row in translators.def. */
#include "onnx/import.h"

static const OnnxLimit limits[] = {
#define ONNX_LIMIT(domain_, name_, code_, text_) {domain_, name_, DIAG_##code_, text_},
#include "onnx/limits.def"
#undef ONNX_LIMIT
};

static const struct {
  const char *domain, *name, *types;
} element_types[] = {
#define ONNX_ELEMENT_TYPES(domain_, name_, types_) {domain_, name_, types_},
#include "onnx/element_types.def"
#undef ONNX_ELEMENT_TYPES
};

static bool is_of(const OnnxOpRow *row, const char *domain, const char *name) {
  return sv_eq_str(sv_from(row->domain), domain) && sv_eq_str(sv_from(row->name), name);
}

const OnnxLimit *onnx_limit(const OnnxOpRow *row) {
  for (size_t i = 0; i < COUNT_OF(limits); i++)
    if (is_of(row, limits[i].domain, limits[i].name))
      return &limits[i];
  return NULL;
}

const char *onnx_element_types(const OnnxOpRow *row) {
  for (size_t i = 0; i < COUNT_OF(element_types); i++)
    if (is_of(row, element_types[i].domain, element_types[i].name))
      return element_types[i].types;
  return NULL;
}
