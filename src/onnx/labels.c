/* See labels.h. */
#include "onnx/labels.h"

#include <stdlib.h>

#include "onnx/import_state.h"
#include "onnx/file/tensor.h"
#include "support/text.h"

typedef struct Place {
  StrView name;
  uint32_t index;
} Place;

static int by_name(const void *a, const void *b) {
  const Place *x = a, *y = b;
  int order = text_compare(x->name, y->name);
  return order ? order : ORDER(x->index, y->index);
}

/* Equal names lie beside each other after sorting, the first occurrence ahead. */
const Labels *labels_make(Import *im, const StrView *values, uint32_t count, int64_t *codes) {
  Arena *arena = &im->state->arena;
  Place *places = ARENA_ARRAY(&im->scratch, Place, count + 1);
  uint32_t *first = ARENA_ARRAY(&im->scratch, uint32_t, count + 1);
  StrView *names = ARENA_ARRAY(arena, StrView, count + 1);
  Labels *labels = ARENA_ARRAY(arena, Labels, 1);
  for (uint32_t i = 0; i < count; i++)
    places[i] = (Place){values[i], i};
  qsort(places, count, sizeof *places, by_name);
  for (uint32_t i = 0; i < count; i++) {
    bool again = i > 0 && sv_eq(places[i].name, places[i - 1].name);
    first[places[i].index] = again ? first[places[i - 1].index] : places[i].index;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (first[i] == i)
      names[labels->count] = values[i];
    codes[i] = first[i] == i ? (int64_t)labels->count++ : codes[first[i]];
  }
  labels->names = names;
  return labels;
}

bool tensor_texts(Import *im, const Onnx__TensorProto *t, Texts *texts) {
  StrView *values = NULL;
  *texts = (Texts){0};
  if (import_ok(im))
    im->b.status = onnx_tensor_strings(im->model, t, im->ctx->sink, graph_place(im->g, im->b.loc),
                                       &im->scratch, &values, &texts->count);
  texts->at = values;
  return import_ok(im);
}

ValueId labels_tensor(Import *im, const Onnx__TensorProto *t, const Labels **labels) {
  Texts texts;
  *labels = NULL;
  if (tensor_texts(im, t, &texts) && t->n_dims > MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "tensor '" SV_FMT "' has rank %zu, the runtime allows %d",
                SV_ARG(onnx_text(t->name)), t->n_dims, MAX_RANK);
  if (!import_ok(im))
    return 0;
  int64_t *codes = ARENA_ARRAY(&im->scratch, int64_t, (uint64_t)texts.count + 1);
  *labels = labels_make(im, texts.at, texts.count, codes);
  return build_const(&im->b, DTYPE_I64, (uint32_t)t->n_dims, t->dims, codes);
}

const Labels *in_labels(Import *im, uint32_t i) { return in_binding(im, i).labels; }

void out_labels(Import *im, ValueId index, const Labels *labels) {
  int32_t packed = labels ? ONNX__TENSOR_PROTO__DATA_TYPE__STRING : 0;
  out_tensor(im, 0, (Binding){BIND_VALUE, .value = index, .packed = packed, .labels = labels});
}

void labels_list(StrBuf *text, const Labels *labels, bool numbered) {
  for (uint32_t i = 0; i < labels->count && i < LABELS_SHOWN; i++) {
    strbuf_append(text, i ? SV(", ") : SV(""));
    if (numbered)
      strbuf_printf(text, "%u = ", i);
    strbuf_append_within(text, "'", labels->names[i], "'");
  }
  if (labels->count > LABELS_SHOWN)
    strbuf_printf(text, ", and %u more", labels->count - LABELS_SHOWN);
}

void labels_warn(Import *im, StrView name, const Labels *labels) {
  StrBuf text = {0};
  labels_list(&text, labels, true);
  Diag *d = diag_begin(im->ctx->sink, DIAG_LABELS_INDEX, context_place(im->ctx));
  diag_message(d, "output '" SV_FMT "' gives the index of a label (int64), not the string",
               SV_ARG(name));
  diag_note(d, "the labels are %s", strbuf_cstr(&text));
  (void)diag_end(d);
  strbuf_release(&text);
}
