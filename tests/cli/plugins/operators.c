/* A plug-in with an op, a translator of an operator and a backend, and one fault in them, which the
 * environment variable FAULT names; without it, it is right. */
#include <etc/plugin.h>

#include <stdlib.h>

static const char *fault = "";

static bool has(const char *name) { return strcmp(fault, name) == 0; }

/* --- the op: x times a factor, and its copy --- */

static Status shape(Graph *g, NodeId n) {
  Dims dims = operand_dims(g, n, 0);
  if (has("shape fails in silence"))
    return STATUS_INVALID;
  if (has("shape refuses"))
    return bad_shape(g, n, "the shape is not liked");
  if (has("no type"))
    return STATUS_OK;
  TRY(shape_result(g, n, 0, has("another type") ? DTYPE_F64 : DTYPE_F32, &dims));
  return has("one type") ? STATUS_OK : shape_result(g, n, 1, DTYPE_F32, &dims);
}

static Status scale(Kernel *k) {
  const Tensor *x = kernel_tensor(k, 0);
  if (has("kernel refuses"))
    return kernel_error(k, "it is not liked");
  for (int64_t i = 0; i < tensor_numel(x); i++) {
    double value = tensor_load(x, i) * kernel_scalar(k, 1);
    tensor_store(k->results[0], i, value);
    tensor_store(k->results[1], i, value);
  }
  return STATUS_OK;
}

static OpRow op = {.schema = "example::scale(Tensor x, float factor=2) -> (Tensor, Tensor)",
                   .out = "example::scale.out",
                   .shape = shape,
                   .kernel = scale,
                   .dtypes = DT(F32),
                   .doc = "x times a factor, twice"};
static const OpRow *const ops[] = {&op, NULL};

static void break_op(void) {
  static const struct {
    const char *fault, *schema;
  } schemas[] = {{"schema", "example::scale(Tensor x, flout factor) -> Tensor"},
                 {"schema ends", "example::scale(Tensor x, float factor"},
                 {"schema goes on", "example::scale(Tensor x) -> Tensor and more"},
                 {"default", "example::scale(Tensor x, float factor=much) -> Tensor"},
                 {"schema name", "scale(Tensor x, float factor) -> Tensor"},
                 {"overload", "example::scale.(Tensor x, float factor) -> Tensor"},
                 {"written", "example::scale(Tensor(a!) x, float factor) -> Tensor"},
                 {"scalar result", "example::scale(Tensor x, float factor) -> int"},
                 {"list result", "example::scale(Tensor x, float factor) -> Tensor[]"},
                 {"no result", "example::scale(Tensor x, float factor) -> ()"},
                 {"op there", "aten::relu(Tensor x) -> Tensor"}};
  for (size_t i = 0; i < COUNT_OF(schemas); i++)
    if (has(schemas[i].fault))
      op.schema = schemas[i].schema;
  if (has("no schema"))
    op.schema = NULL;
  if (has("no kernel"))
    op.out = NULL;
  if (has("kernel there"))
    op.out = "aten::relu.out";
  if (has("no shape"))
    op.shape = NULL;
  if (has("no doc"))
    op.doc = NULL;
  if (has("trait"))
    op.traits = OP_CONTROL;
  if (has("no reference kernel"))
    op.kernel = NULL;
}

/* --- the translator --- */

static void translate(Import *im) {
  if (has("exits"))
    exit(0);
  if (has("unknown op"))
    out(im, 0, build(&im->b, op_find(SV("example::scala")), A_VAL(in_required(im, 0))));
  if (has("fails in silence"))
    im->b.status = STATUS_INVALID;
  if (has("refuses"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "magic is not done today");
  if (has("no output"))
    return;
  out(im, 0,
      build(&im->b, op_find(SV("example::scale")), A_VAL(in_required(im, 0)),
            A_FLOAT(attr_float(im, "factor", 3))));
}

static OnnxTranslator translator = {.row = {.domain = "com.example",
                                            .name = "Magic",
                                            .since = 1,
                                            .min_inputs = 1,
                                            .max_inputs = 1,
                                            .lowering = "example::scale"},
                                    .translate = translate};
static const OnnxTranslator *translators[] = {&translator, NULL, NULL};

static void break_translator(void) {
  if (has("domain"))
    translator.row.domain = NULL;
  if (has("operator"))
    translator.row.name = "";
  if (has("function"))
    translator.translate = NULL;
  if (has("versions"))
    translator.row.since = 0;
  if (has("operator of etc"))
    translator.row = (OnnxOpRow){.domain = "", .name = "Relu", .since = 1};
  if (has("twice"))
    translators[1] = &translator;
}

/* --- a backend that computes nothing, and linears alone in integers --- */

static bool knows(OpId id) { return id == OP_LINEAR; }

static bool quantizes(const Graph *g, NodeId n) { return g->nodes[n].op == OP_LINEAR; }

static Status partition(BackendContext *c, Graph *g) {
  for (FOR_NODES(g, n))
    c->refusals[n] = (Refusal){.rule = "none", .message = "it takes nothing"};
  return STATUS_OK;
}

static Status preprocess(BackendContext *c, Graph *g, const Partition *part, DelegateCode *code) {
  (void)c, (void)g, (void)part, (void)code;
  return STATUS_INTERNAL;
}

static const Backend linears = {.name = "linears",
                                .id = "Linears",
                                .summary = "linears in integers",
                                .quantized = true,
                                .quantizes = quantizes,
                                .knows = knows,
                                .partition = partition,
                                .preprocess = preprocess};
static const Backend *const backends_of_it[] = {&linears, NULL};

/* The variable cannot change: what it points to can. */
__attribute__((constructor)) static void choose(void) {
  fault = getenv("FAULT") ? getenv("FAULT") : "";
  break_op();
  break_translator();
}

ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI,
              .name = "operators",
              .backends = backends_of_it,
              .ops = ops,
              .translators = translators};
