/* The sizes of the dims of a decoder, which --derive llm gives where --dim does not, see derive.h.
 */
#include "pipeline/derive_parts.h"
#include "support/text.h"

enum { MAX_HEADS = 1 << 16 };

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *value) {
  const Onnx__TypeProto__Tensor *type = onnx_tensor_type(value);
  return type ? type->shape : NULL;
}

/* The dims of a decoder, by what --dim calls them. */
typedef struct Sizes {
  Session *s;
  const Onnx__GraphProto *graph;
  MethodOptions *options; /* of the method, which get what is missing */
  StrView past, new;      /* names of the lengths; empty where they are fixed, or not seen yet */
} Sizes;

/* Its dim_param, or INPUT:AXIS. */
static StrView name_of_dim(Session *s, const Onnx__ValueInfoProto *input, size_t axis) {
  StrView param = onnx_dim_param(shape_of(input)->dim[axis]);
  if (!onnx_dim_is_nameless(param))
    return param;
  return sv_from(arena_printf(&s->arena, SV_FMT ":%zu", SV_ARG(onnx_text(input->name)), axis));
}

static void add_flag(Sizes *z, DimFlag flag) {
  if (!options_dim(z->options, flag.name))
    options_add_dim(z->options, flag, ARENA_NEW(&z->s->arena, bool));
}

/* A range for the first dim of its kind, and its name for the others. */
static void add_length(Sizes *z, StrView *first, StrView name, int64_t lo, int64_t hi) {
  if (!first->size) {
    *first = name;
    add_flag(z, (DimFlag){.name = name, .lo = lo, .hi = hi});
  } else if (!sv_eq(*first, name)) {
    add_flag(z, (DimFlag){.name = name, .same = *first});
  }
}

/* The name of the number of tokens; of a model for one token it stands for 1. */
static StrView new_length(Sizes *z) {
  if (!z->new.size)
    add_length(z, &z->new, SV("(one token)"), 1, 1);
  return z->new;
}

/* A dim of a past input that its present output has, too: the size of a head, or the number of
 * heads. */
static bool stays(const Sizes *z, const Onnx__ValueInfoProto *past, size_t axis) {
  const struct Derive *d = z->options->derive;
  StrView stars, name = onnx_dim_param(shape_of(past)->dim[axis]);
  (void)text_match(d->values[KEY_PAST], onnx_text(past->name), &stars);
  StrView present = text_fill(&z->s->arena, d->values[KEY_PRESENT], stars);
  for (size_t i = 0; i < z->graph->n_output && !onnx_dim_is_nameless(name); i++) {
    const Onnx__TensorShapeProto *shape = shape_of(z->graph->output[i]);
    if (sv_eq(onnx_text(z->graph->output[i]->name), present))
      return shape && axis < shape->n_dim && sv_eq(onnx_dim_param(shape->dim[axis]), name);
  }
  return false;
}

/* A cache of three dims, the first of which is the batch times the heads. */
static bool joins_heads(const Sizes *z, const Onnx__ValueInfoProto *input, Role role) {
  return role == ROLE_PAST && shape_of(input)->n_dim == 3 && stays(z, input, 0);
}

static void add_dim(Sizes *z, const Onnx__ValueInfoProto *input, Role role, size_t axis) {
  const struct Derive *d = z->options->derive;
  const Onnx__TensorShapeProto *shape = shape_of(input);
  StrView name = name_of_dim(z->s, input, axis);
  bool last = axis + 1 == shape->n_dim;
  if (axis == 0 && shape->n_dim > 1 && !joins_heads(z, input, role))
    add_flag(z, (DimFlag){.name = name, .lo = 1, .hi = 1});
  else if ((role == ROLE_TOKENS || role == ROLE_POSITIONS) && last)
    add_length(z, &z->new, name, 1, d->prefill);
  else if (role == ROLE_PAST && stays(z, input, axis))
    add_flag(z, (DimFlag){.name = name, .lo = 1, .hi = MAX_HEADS, .asked = true});
  else if (role == ROLE_PAST)
    add_length(z, &z->past, name, 0, d->context - 1);
  else if (role == ROLE_MASK && last && z->past.size)
    add_flag(z, (DimFlag){.name = name, .same = z->past, .plus = new_length(z)});
}

static void add_dims(Sizes *z, Role role) {
  const Onnx__GraphProto *graph = z->graph;
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TensorShapeProto *shape = shape_of(graph->input[i]);
    if (!shape || derive_role(z->options->derive, onnx_text(graph->input[i]->name)) != role)
      continue;
    for (size_t axis = 0; axis < shape->n_dim; axis++)
      if (!onnx_dim_is_known(shape->dim[axis]))
        add_dim(z, graph->input[i], role, axis);
  }
}

static bool has_role(const Sizes *z, Role role) {
  for (size_t i = 0; i < z->graph->n_input; i++)
    if (derive_role(z->options->derive, onnx_text(z->graph->input[i]->name)) == role)
      return true;
  return false;
}

Status derive_dims(Session *s, MethodOptions *options, const Onnx__GraphProto *graph) {
  Sizes z = {.s = s, .graph = graph, .options = options};
  if (!options->derive)
    return STATUS_OK;
  if (!has_role(&z, ROLE_TOKENS))
    return derive_missing(s, options->derive, ROLE_TOKENS);
  if (!has_role(&z, ROLE_PAST))
    return derive_missing(s, options->derive, ROLE_PAST);
  add_dims(&z, ROLE_TOKENS);
  add_dims(&z, ROLE_POSITIONS);
  add_dims(&z, ROLE_PAST);
  add_dims(&z, ROLE_MASK);
  return STATUS_OK;
}
