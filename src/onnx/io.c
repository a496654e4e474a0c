/* Inputs and initializers of a graph; dimensions and declared types by name. */
#include "onnx/import_state.h"
#include "onnx/labels.h"
#include "onnx/packed.h"
#include "onnx/suggest.h"
#include "support/text.h"

/* --- dimensions --- */

bool onnx_dim_is_nameless(StrView dim_param) {
  return !dim_param.size || text_among(dim_param, "?|*|-1|None|unk|unknown");
}

bool onnx_dim_number(StrView dim_param, int64_t *size) {
  return text_parse_i64(dim_param, size) && *size >= 0 && *size <= INT64_MAX / 16;
}

static DimName *find_dim(ImportState *s, NameId name) {
  for (uint32_t i = 0; i < s->dim_count; i++)
    if (s->dims[i].name == name)
      return &s->dims[i];
  return NULL;
}

static SymInt *known_dim(ImportState *s, NameId name) {
  DimName *dim = find_dim(s, name);
  return dim && dim->known ? &dim->value : NULL;
}

/* The entry of a name, made on first sight. */
static DimName *note_dim(ImportState *s, NameId name) {
  DimName *dim = find_dim(s, name);
  if (dim)
    return dim;
  s->dims = pool_reserve(s->dims, &s->dim_capacity, (uint64_t)s->dim_count + 1, sizeof *s->dims);
  s->dims[s->dim_count] = (DimName){.name = name};
  return &s->dims[s->dim_count++];
}

static SymInt remember_dim(ImportState *s, NameId name, SymInt value) {
  DimName *dim = note_dim(s, name);
  dim->known = true;
  return dim->value = value;
}

const DimFlag *import_dim_flag(const Import *im, StrView name) {
  for (uint32_t i = 0; i < im->options->dim_count; i++)
    if (sv_eq(im->options->dims[i].name, name))
      return &im->options->dims[i];
  return NULL;
}

static void use_flag(Import *im, const DimFlag *flag) {
  im->state->flag_used[flag - im->options->dims] = true;
}

/* The dimension called name: as the flags say, else an expression in others, else noted as missing
 * (and 1, so that import can go on). */
static SymInt dim_by_name(Import *im, StrView name);
static StrView root_name(Import *im, StrView name);

/* What a flag says: the sum of two named dims, a number, or a range. */
static SymInt flag_value(Import *im, const DimFlag *flag) {
  SymTable *t = &im->g->syms;
  if (!flag->plus.size)
    return flag->lo == flag->hi ? flag->lo : sym_symbol(t, flag->name, flag->lo, flag->hi, false);
  SymInt a = dim_by_name(im, flag->same), b = dim_by_name(im, flag->plus);
  return sym_add(t, a, b);
}

/* The name of a dim whose size is given, as a term of another name. */
static bool term_size(void *user, StrView term, SymInt *out) {
  Import *im = user;
  term = root_name(im, term);
  if (!term.size ||
      (!known_dim(im->state, intern_add(&im->ctx->names, term)) && !import_dim_flag(im, term)))
    return false;
  *out = dim_by_name(im, term);
  return true;
}

/* "past + new", as exporters name the length of a mask, "16*h" and "h - 1", as torch names sizes
 * that follow others, or "2", a size that can be no other. */
static bool size_by_name(Import *im, StrView name, SymInt *out) {
  SymTable *t = &im->g->syms;
  if (!onnx_dim_expression(&(DimTerms){t, term_size, im}, name, out))
    return false;
  if (sym_lower(t, *out) < 0)
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_GE, *out, 0, im->b.loc});
  return true;
}

static SymInt dim_by_name(Import *im, StrView name) {
  ImportState *s = im->state;
  NameId id = intern_add(&im->ctx->names, name);
  SymInt *known = known_dim(s, id);
  if (known)
    return *known;
  const DimFlag *flag = import_dim_flag(im, name);
  if (flag) {
    use_flag(im, flag);
    return remember_dim(s, id, flag_value(im, flag));
  }
  SymInt size;
  if (size_by_name(im, name, &size))
    return remember_dim(s, id, size);
  s->dims_missing = true;
  return remember_dim(s, id, 1);
}

/* Follows --dim NAME=OTHER, whose flags are used thereby. */
static StrView root_name(Import *im, StrView name) {
  for (uint32_t step = 0; step < im->options->dim_count; step++) {
    const DimFlag *flag = import_dim_flag(im, name);
    if (!flag || !flag->same.size || flag->plus.size)
      break;
    use_flag(im, flag);
    name = flag->same;
  }
  return name;
}

/* What the size of a dynamic dim goes by: INPUT:AXIS when --dim says so or it has no name of its
 * own, else its name. */
static StrView dim_name(Import *im, const Onnx__TensorShapeProto__Dimension *d, StrView input,
                        size_t axis) {
  StrView param = onnx_dim_param(d);
  StrView own = sv_from(arena_printf(&im->state->arena, SV_FMT ":%zu", SV_ARG(input), axis));
  if (param.size && import_dim_flag(im, own))
    note_dim(im->state, intern_add(&im->ctx->names, param))->split = true;
  else if (param.size && (!onnx_dim_is_nameless(param) || import_dim_flag(im, param)))
    return param;
  return own;
}

static bool dim_value(Import *im, const Onnx__TensorShapeProto__Dimension *d, StrView input,
                      size_t axis, SymInt *out) {
  if (!onnx_dim_is_known(d)) {
    *out = dim_by_name(im, root_name(im, dim_name(im, d, input, axis)));
    return true;
  }
  if (d->dim_value > INT64_MAX / 16)
    (void)diag_report(im->ctx->sink, DIAG_TENSOR_DIMS, context_place(im->ctx),
                      "input '" SV_FMT "' has dimension %lld on axis %zu", SV_ARG(input),
                      (long long)d->dim_value, axis);
  *out = d->dim_value;
  return d->dim_value <= INT64_MAX / 16;
}

void import_bind_dims(Import *im, const Onnx__ValueInfoProto *info, const int64_t *dims,
                      uint32_t rank) {
  const Onnx__TypeProto__Tensor *t = onnx_tensor_type(info);
  if (!t || !t->shape || t->shape->n_dim != rank)
    return;
  for (uint32_t i = 0; i < rank; i++) {
    if (onnx_dim_is_known(t->shape->dim[i]))
      continue;
    StrView name = root_name(im, dim_name(im, t->shape->dim[i], onnx_text(info->name), i));
    NameId id = intern_add(&im->ctx->names, name);
    bool fits = dims[i] <= INT64_MAX / 16;
    if (fits && !known_dim(im->state, id) && !import_dim_flag(im, name))
      remember_dim(im->state, id, dims[i]);
  }
}

/* What is wrong with a graph input, and what helps: no Cast can stand before one. */
static Status input_fails(Import *im, StrView name, DiagCode code, const char *what,
                          const char *hint) {
  Diag *d = diag_begin(im->ctx->sink, code, context_place(im->ctx));
  diag_message(d, "input '" SV_FMT "' %s", SV_ARG(name), what);
  diag_hint(d, "%s", hint);
  return diag_end(d);
}

/* The sizes of an input without a shape, not even a rank, as parts that are cut out of a model
 * have: those of the array that it is given, else of --dim INPUT:0, INPUT:1 and so on, as many as
 * there are. False when neither is given. */
static bool given_shape(Import *im, StrView input, const GivenValue *given, Dims *dims) {
  if (given->text.data) {
    dims->rank = given->array.rank;
    memcpy(dims->d, given->array.dims, dims->rank * sizeof *dims->d);
    return true;
  }
  for (; dims->rank < MAX_RANK; dims->rank++) {
    StrView name =
        sv_from(arena_printf(&im->state->arena, SV_FMT ":%u", SV_ARG(input), dims->rank));
    if (!import_dim_flag(im, name))
      break;
    dims->d[dims->rank] = dim_by_name(im, root_name(im, name));
  }
  return dims->rank > 0;
}

static Status shapeless(Import *im, StrView name) {
  return input_fails(im, name, DIAG_INPUT_TYPE, "declares no shape, not even its rank",
                     arena_printf(&im->scratch,
                                  "give all its sizes, of two dimensions --dim " SV_FMT
                                  ":0=N --dim " SV_FMT
                                  ":1=N, or declare its shape in the model, with names for the "
                                  "dimensions that vary",
                                  SV_ARG(name), SV_ARG(name)));
}

static Status declared_shape(Import *im, StrView name, const Onnx__TensorShapeProto *shape,
                             Dims *dims) {
  if (shape->n_dim > MAX_RANK)
    return input_fails(
        im, name, DIAG_RANK_LIMIT,
        arena_printf(&im->scratch, "has rank %zu, the runtime allows %d", shape->n_dim, MAX_RANK),
        diag_row(DIAG_RANK_LIMIT)->hint);
  dims->rank = (uint32_t)shape->n_dim;
  for (size_t i = 0; i < shape->n_dim; i++)
    if (!dim_value(im, shape->dim[i], name, i, &dims->d[i]))
      return STATUS_INVALID;
  return STATUS_OK;
}

static Status input_type(Import *im, const Onnx__ValueInfoProto *info, const GivenValue *given,
                         TypeId *out) {
  StrView name = onnx_text(info->name);
  const Onnx__TypeProto__Tensor *t = onnx_tensor_type(info);
  if (!t)
    return input_fails(im, name, DIAG_INPUT_TYPE,
                       "is not a tensor (sequence, map or sparse tensor)",
                       "change the model so that it takes tensors, one input each");
  DType dtype = dtype_from_onnx(t->elem_type);
  if (dtype == DTYPE_NONE) {
    const char *spelled = onnx_dtype_name(t->elem_type);
    return input_fails(
        im, name, DIAG_INPUT_TYPE,
        arena_printf(&im->scratch, "has element type %s, which the runtime does not have",
                     spelled ? spelled : "undefined"),
        "compute what depends on this input outside of the model, and export the rest");
  }
  Dims dims = {0};
  if (t->shape)
    TRY(declared_shape(im, name, t->shape, &dims));
  else if (!given_shape(im, name, given, &dims))
    return shapeless(im, name);
  *out = graph_tensor_type(im->g, dtype, dims.rank, dims.d, ORDER_CONTIGUOUS);
  if (type_bytes_upper(im->g, type_get(im->g, *out)) == UINT64_MAX)
    return diag_report(im->ctx->sink, DIAG_SHAPE_OVERFLOW, context_place(im->ctx),
                       "input '" SV_FMT "' has more bytes than 2^63", SV_ARG(name));
  return STATUS_OK;
}

static Status report_missing_dims(Import *im) {
  if (!im->state->dims_missing)
    return STATUS_OK;
  if (im->options->left)
    return diag_report(im->ctx->sink, DIAG_DIM_UNBOUND, context_place(im->ctx),
                       "a dimension has no size");
  return suggest_report(im->ctx, im->model, im->options);
}

/* Outputs may have dimensions of their own, whose sizes come while running: flags bound them. */
static void note_output_flags(Import *im, const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < graph->n_output; i++) {
    const Onnx__TypeProto__Tensor *t = onnx_tensor_type(graph->output[i]);
    for (size_t k = 0; t && t->shape && k < t->shape->n_dim; k++) {
      StrView param = onnx_dim_param(t->shape->dim[k]);
      const DimFlag *flag = param.size ? import_dim_flag(im, param) : NULL;
      if (flag)
        use_flag(im, flag);
    }
  }
}

/* --dim NAME=OTHER whose OTHER is neither a dim of an input nor given by --dim. */
static Status check_equal_flags(Import *im, const Onnx__GraphProto *graph) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < im->options->dim_count; i++) {
    const DimFlag *flag = &im->options->dims[i];
    if (!flag->same.size || import_has_dim(graph, flag->same) || import_dim_flag(im, flag->same))
      continue;
    Diag *d = diag_begin(im->ctx->sink, DIAG_DIM_UNKNOWN_FLAG, context_place(im->ctx));
    diag_message(d, "--dim " SV_FMT "=" SV_FMT ": no input has a dimension called '" SV_FMT "'",
                 SV_ARG(flag->name), SV_ARG(flag->same), SV_ARG(flag->same));
    if (memchr(flag->same.data, '+', flag->same.size))
      diag_hint(d, "sums of dimensions are not taken: write a range, --dim " SV_FMT "=LO..HI",
                SV_ARG(flag->name));
    else
      diag_hint(d,
                "write a number, a range or a dimension of an input, or give '" SV_FMT
                "' a size by --dim, too",
                SV_ARG(flag->same));
    status = diag_end(d);
  }
  return status;
}

/* A flag INPUT:AXIS that is of no use: the model fixes that axis, or does not have it. */
static bool describe_fixed(const Import *im, const DimFlag *flag, Diag *d) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  for (size_t i = 0; i < graph->n_input; i++) {
    StrView input = onnx_text(graph->input[i]->name), name = flag->name;
    const Onnx__TypeProto__Tensor *t = onnx_tensor_type(graph->input[i]);
    uint64_t axis;
    if (!t || !t->shape || !sv_starts_with(name, input) || name.size <= input.size + 1 ||
        name.data[input.size] != ':' ||
        !text_parse_u64((StrView){name.data + input.size + 1, name.size - input.size - 1}, &axis))
      continue;
    StrBuf value = {0};
    onnx_append_value(&value, graph->input[i]);
    bool beyond = axis >= t->shape->n_dim;
    if (beyond)
      diag_message(d, "--dim " SV_FMT ": input %s has no axis %llu", SV_ARG(name),
                   strbuf_cstr(&value), (unsigned long long)axis);
    else
      diag_message(d, "--dim " SV_FMT ": axis %llu of input %s is fixed in the model", SV_ARG(name),
                   (unsigned long long)axis, strbuf_cstr(&value));
    if (beyond && t->shape->n_dim)
      diag_hint(d, "axes count from 0; its last one is %zu", t->shape->n_dim - 1);
    else
      diag_hint(d, "leave it out, or export the model with a dynamic axis");
    strbuf_release(&value);
    return true;
  }
  return false;
}

static Status report_unknown_flags(Import *im) {
  ImportState *s = im->state;
  Status status = STATUS_OK;
  const char **names = ARENA_ARRAY(&s->arena, const char *, s->dim_count + 1);
  for (uint32_t i = 0; i < s->dim_count; i++)
    names[i] = intern_get(&im->ctx->names, s->dims[i].name).data;
  for (uint32_t i = 0; i < im->options->dim_count; i++) {
    if (s->flag_used[i])
      continue;
    StrView name = im->options->dims[i].name;
    Diag *d = diag_begin(im->ctx->sink, DIAG_DIM_UNKNOWN_FLAG, context_place(im->ctx));
    if (describe_fixed(im, &im->options->dims[i], d)) {
      status = diag_end(d);
      continue;
    }
    diag_message(d, "no input has a dimension called '" SV_FMT "'", SV_ARG(name));
    if (memchr(name.data, '=', name.size))
      diag_hint(d, "give each dimension an option of its own: --dim NAME=N --dim NAME=N");
    else if (s->dim_count)
      diag_hint_names(d, name, names, s->dim_count);
    else
      diag_hint(d, "all inputs have fixed sizes: leave --dim out");
    status = diag_end(d);
  }
  return status;
}

static bool is_initializer(Import *im, NameId name) {
  const BindingSlot *slot = scope_find(im, im->frame, name);
  return slot != NULL && slot->binding.kind == BIND_VALUE &&
         value_is_const(im->g, slot->binding.value);
}

/* The flags as they are, for messages. */
static const char *flags_text(Import *im) {
  StrBuf text = {0};
  for (uint32_t i = 0; i < im->options->dim_count; i++) {
    const DimFlag *flag = &im->options->dims[i];
    strbuf_append(&text, SV(" --dim "));
    strbuf_append_printable(&text, flag->name);
    if (flag->same.size) {
      strbuf_append_char(&text, '=');
      strbuf_append_printable(&text, flag->same);
      strbuf_append(&text, flag->plus.size ? SV("+") : SV(""));
      strbuf_append_printable(&text, flag->plus);
      continue;
    }
    strbuf_printf(&text, flag->lo == flag->hi ? "=%lld" : "=%lld..%lld", (long long)flag->lo,
                  (long long)flag->hi);
  }
  return text.size ? strbuf_keep(&text, &im->g->arena).data : NULL;
}

/* A state whose first contents are the initializer: that constant keeps its name, nothing uses it.
 */
static void keep_state(Import *im, NameId name) {
  const ImportOptions *o = im->options;
  if (!o->is_state || !o->is_state(o->is_state_user, intern_get(&im->ctx->names, name)))
    return;
  Binding *binding = &scope_slot(im, im->frame, name)->binding;
  TypeId type = value_get(im->g, binding->value)->type;
  binding->value = graph_add_input(im->g, type, name);
}

/* A given value takes the place of an initializer. */
static Status bind_given(Import *im, const Onnx__ValueInfoProto *info, const GivenValue *given,
                         TypeId type) {
  ValueId v = 0;
  TRY(import_given_value(im, info, given, type, &v));
  scope_slot(im, im->frame, import_name(im, info->name))->binding = binding_of(v);
  return STATUS_OK;
}

Status import_inputs(Import *im, const Onnx__GraphProto *graph) {
  Status status = STATUS_OK;
  im->state->flag_used = ARENA_ARRAY(&im->state->arena, bool, im->options->dim_count + 1);
  im->g->dim_flags = flags_text(im);
  TRY(check_equal_flags(im, graph));
  TRY(import_given(im, graph));
  for (size_t i = 0; i < graph->n_input; i++) {
    NameId name = import_name(im, graph->input[i]->name);
    if (!name)
      return diag_report(im->ctx->sink, DIAG_INPUT_TYPE, context_place(im->ctx),
                         "graph input %zu has no name", i);
    const GivenValue *given = &im->state->given[i];
    if (is_initializer(im, name) && !given->text.data) {
      keep_state(im, name);
      continue;
    }
    TypeId type = 0;
    Status one = input_type(im, graph->input[i], given, &type);
    if (one == STATUS_OK && given->text.data)
      one = bind_given(im, graph->input[i], given, type);
    if (one != STATUS_OK)
      status = one;
    if (one != STATUS_OK || given->text.data)
      continue;
    BindingSlot *slot = scope_slot(im, im->frame, name);
    if (slot->binding.kind != BIND_NONE) {
      status = diag_report(im->ctx->sink, DIAG_NAME_TWICE, context_place(im->ctx),
                           "two graph inputs are called '" SV_FMT "'",
                           SV_ARG(intern_get(&im->ctx->names, name)));
      continue;
    }
    slot->binding = binding_of(graph_add_input(im->g, type, name));
    sizes_input(im, slot->binding.value);
  }
  TRY(status);
  note_output_flags(im, graph);
  TRY(report_unknown_flags(im));
  return report_missing_dims(im);
}

/* --- constants --- */

ValueId import_tensor(Import *im, const Onnx__TensorProto *t, NameId name) {
  OnnxTensorView view;
  if (im->b.status != STATUS_OK)
    return 0;
  im->b.status =
      onnx_tensor_view(im->model, t, im->ctx->sink, graph_place(im->g, im->b.loc), &view);
  if (im->b.status != STATUS_OK)
    return 0;
  DType packed = packed_storage(view.onnx_dtype),
        dtype = packed == DTYPE_NONE ? dtype_from_onnx(view.onnx_dtype) : packed;
  if (dtype == DTYPE_NONE)
    return import_fail(im, DIAG_TENSOR_DTYPE,
                       "tensor '" SV_FMT "' has element type %s, which is not supported",
                       SV_ARG(onnx_text(t->name)), onnx_dtype_name(view.onnx_dtype));
  if (view.rank > MAX_RANK)
    return import_fail(im, DIAG_RANK_LIMIT,
                       "tensor '" SV_FMT "' has rank %u, the runtime allows %d",
                       SV_ARG(onnx_text(t->name)), view.rank, MAX_RANK);
  TypeId type = graph_tensor_type(im->g, dtype, view.rank, view.dims, ORDER_CONTIGUOUS);
  Constant elements = {
      .data = view.data, .size = view.size, .file = view.file, .file_offset = view.file_offset};
  if (packed != DTYPE_NONE)
    elements = packed_elements(im, &view);
  return graph_add_constant(im->g, type, elements, name);
}

Binding import_any_tensor(Import *im, const Onnx__TensorProto *t, NameId name) {
  Binding binding = {.kind = BIND_VALUE};
  bool strings = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
  binding.value = strings ? labels_tensor(im, t, &binding.labels) : import_tensor(im, t, name);
  if (strings || packed_storage(t->data_type) != DTYPE_NONE)
    binding.packed = t->data_type;
  return binding;
}

Status import_initializers(Import *im, const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < graph->n_initializer; i++) {
    NameId name = import_name(im, graph->initializer[i]->name);
    if (!name)
      return diag_report(im->ctx->sink, DIAG_NAME_UNDEFINED, context_place(im->ctx),
                         "initializer %zu has no name", i);
    Binding binding = import_any_tensor(im, graph->initializer[i], name);
    TRY(im->b.status);
    if (!scope_bind(im, name, binding))
      return im->b.status;
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
    const Onnx__SparseTensorProto *t = graph->sparse_initializer[i];
    NameId name = import_name(im, t->values ? t->values->name : NULL);
    if (!name)
      return diag_report(im->ctx->sink, DIAG_NAME_UNDEFINED, context_place(im->ctx),
                         "sparse initializer %zu has no name", i);
    Binding binding = binding_of(import_sparse(im, t, name));
    if (!import_ok(im) || !scope_bind(im, name, binding))
      return im->b.status;
  }
  return STATUS_OK;
}

/* --- declared types --- */

void import_declare(Import *im, Onnx__ValueInfoProto *const *infos, size_t count) {
  for (size_t i = 0; i < count; i++) {
    NameId name = import_name(im, infos[i]->name);
    if (name)
      scope_slot(im, im->frame, name)->info = infos[i];
  }
}

static const Onnx__TypeProto__Tensor *declared(Import *im, NameId name) {
  const Onnx__ValueInfoProto *info = name ? scope_slot(im, im->frame, name)->info : NULL;
  return info ? onnx_tensor_type(info) : NULL;
}

static const Onnx__TypeProto__Tensor *out_declared(Import *im, uint32_t i) {
  return import_ok(im) && out_wanted(im, i) ? declared(im, import_output_name(im, i)) : NULL;
}

/* The size that a declared name stands for: names of nothing, and those of dims with different
 * sizes, do not. */
static const SymInt *declared_dim(Import *im, const Onnx__TensorShapeProto__Dimension *d) {
  if (onnx_dim_is_nameless(onnx_dim_param(d)))
    return NULL;
  StrView name = root_name(im, onnx_dim_param(d));
  const DimName *dim = find_dim(im->state, intern_find(&im->ctx->names, name));
  return dim && dim->known && !dim->split ? &dim->value : NULL;
}

bool import_declared_dims(Import *im, NameId name, Dims *dims) {
  const Onnx__TypeProto__Tensor *t = declared(im, name);
  if (!t || !t->shape || t->shape->n_dim > MAX_RANK)
    return false;
  for (size_t k = 0; k < t->shape->n_dim; k++) {
    const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[k];
    const SymInt *known = declared_dim(im, d);
    if (onnx_dim_is_known(d) && d->dim_value < INT64_MAX / 16)
      dims->d[k] = d->dim_value;
    else if (known)
      dims->d[k] = *known;
    else
      return false;
  }
  dims->rank = (uint32_t)t->shape->n_dim;
  return true;
}

bool out_declared_bound(Import *im, uint32_t i, uint32_t dim, int64_t *bound) {
  const Onnx__TypeProto__Tensor *t = out_declared(im, i);
  if (!t || !t->shape || dim >= t->shape->n_dim)
    return false;
  const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[dim];
  if (onnx_dim_is_known(d)) {
    *bound = d->dim_value;
    return d->dim_value < INT64_MAX / 16;
  }
  StrView param = onnx_dim_param(d);
  if (!param.size)
    return false;
  const DimFlag *flag = import_dim_flag(im, root_name(im, param));
  const SymInt *known = declared_dim(im, d);
  *bound = known ? sym_upper(&im->g->syms, *known) : flag ? flag->hi : INT64_MAX;
  return *bound != INT64_MAX;
}

bool out_declared_dtype(Import *im, uint32_t i, DType *dtype) {
  const Onnx__TypeProto__Tensor *t = out_declared(im, i);
  *dtype = t ? dtype_from_onnx(t->elem_type) : DTYPE_NONE;
  return *dtype != DTYPE_NONE;
}
