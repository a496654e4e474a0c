/* The importer's driver: one walk over the nodes, each translated at the op version that the model
 * imports, folded as it is built. A node that cannot be translated poisons its outputs and the walk
 * goes on, so that one run reports everything. Operators and their versions: operators.c. */
#include "onnx/import.h"

#include <limits.h>

#include "onnx/bounds.h"
#include "onnx/import_state.h"
#include "onnx/file/order.h"
#include "onnx/packed.h"
#include "ir/trace.h"
#include "support/text.h"

static StrView canonical_domain(StrView domain) {
  return sv_eq_str(domain, "ai.onnx") ? SV("") : domain;
}

/* --- one node --- */

static void poison_outputs(Import *im) {
  for (uint32_t i = 0; i < out_count(im); i++)
    if (out_wanted(im, i)) {
      BindingSlot *slot = scope_slot(im, im->frame, import_output_name(im, i));
      if (slot->binding.kind == BIND_NONE)
        slot->binding = (Binding){.kind = BIND_POISON};
    }
}

/* Is name produced by a node of the list at or after `from`? */
static bool produced_later(Onnx__NodeProto *const *nodes, size_t count, size_t from, StrView name) {
  for (size_t i = from; i < count; i++)
    for (size_t k = 0; k < nodes[i]->n_output; k++)
      if (sv_eq(onnx_text(nodes[i]->output[k]), name))
        return true;
  return false;
}

/* Nodes that only stand in the wrong order were sorted (onnx_import). */
static void fail_circle(Import *im, Onnx__NodeProto *const *nodes, size_t count, size_t at,
                        StrView name) {
  const char *circle = onnx_node_circle(nodes, count, at, &im->scratch);
  import_fail(im, DIAG_GRAPH_CYCLE,
              "input '" SV_FMT "' is produced by this or a later node: each of %s needs the next",
              SV_ARG(name), circle ? circle : "these nodes");
}

/* True when every input is defined and sound; reports undefined names. */
static bool inputs_defined(Import *im, Onnx__NodeProto *const *nodes, size_t count, size_t at) {
  bool poisoned = false;
  for (uint32_t i = 0; i < in_count(im); i++) {
    NameId id = import_input_name(im, i);
    if (!id)
      continue;
    Binding binding = import_lookup(im, id);
    poisoned |= binding.kind == BIND_POISON;
    if (binding.kind != BIND_NONE)
      continue;
    StrView name = intern_get(&im->ctx->names, id);
    if (produced_later(nodes, count, at, name))
      fail_circle(im, nodes, count, at, name);
    else
      import_fail(im, DIAG_NAME_UNDEFINED, "input '" SV_FMT "' is not defined", SV_ARG(name));
    return false;
  }
  if (poisoned)
    im->state->failed = true;
  return !poisoned;
}

static bool input_count_fits(Import *im, const OnnxOpRow *row) {
  int count = (int)in_count(im);
  if (count >= row->min_inputs && (row->max_inputs < 0 || count <= row->max_inputs))
    return true;
  return import_fail(im, DIAG_INPUT_COUNT, "%s takes %d%s input%s, the node has %d", row->name,
                     count < row->min_inputs ? row->min_inputs : row->max_inputs,
                     row->min_inputs == row->max_inputs ? ""
                     : count < row->min_inputs          ? " or more"
                                                        : " or fewer",
                     row->min_inputs == 1 && row->max_inputs == 1 ? "" : "s", count);
}

static void check_outputs_bound(Import *im, const char *plugin) {
  for (uint32_t i = 0; i < out_count(im) && import_ok(im); i++) {
    if (!out_wanted(im, i) || import_lookup(im, import_output_name(im, i)).kind != BIND_NONE)
      continue;
    if (plugin)
      import_fail(im, DIAG_PLUGIN_FAULT,
                  "the translator of '%s' of plug-in '%s' does not bind output %u ('%s')",
                  im->node->op_type, plugin, i, im->node->output[i]);
    else
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "output %u ('%s') of %s is not supported", i,
                  im->node->output[i], im->node->op_type);
  }
}

/* Operator sets that ONNX Runtime takes at its newest version where a model does not import them.
 */
static const struct {
  const char *domain;
  int64_t version;
} assumed[] = {{"com.microsoft", 1}, {"ai.onnx.ml", 5}};

/* The version of an operator set; 0: it is not imported, and cannot be known. */
static int64_t version_of(Import *im, StrView domain) {
  int64_t imported = onnx_opset_version(im->frame->imports, im->frame->import_count, domain);
  if (imported)
    return imported;
  for (uint32_t i = 0; i < COUNT_OF(assumed); i++) {
    if (!sv_eq_str(domain, assumed[i].domain))
      continue;
    uint32_t bit = (uint32_t)1 << i;
    if (!(im->state->assumed & bit)) {
      Diag *d = diag_begin(im->ctx->sink, DIAG_OPSET_ASSUMED, graph_place(im->g, im->b.loc));
      diag_message(d, "the model does not import operator set '%s': version %lld is taken",
                   assumed[i].domain, (long long)assumed[i].version);
      (void)diag_end(d);
    }
    im->state->assumed |= im->state->trials ? 0 : bit; /* what trials say is taken back */
    return assumed[i].version;
  }
  return 0;
}

/* Whoever reports a crash or a failure is told whose code runs: NULL, that of etc. */
static void enter(Import *im, const char *plugin) {
  im->ctx->sink->plugin = plugin;
  if (im->options->running)
    *im->options->running = plugin;
}

static void run_translator(Import *im, const OnnxTranslator *t) {
  DiagSink *sink = im->ctx->sink;
  uint32_t errors = sink->errors;
  enter(im, t->plugin);
  t->translate(im);
  enter(im, NULL);
  if (t->plugin && !import_ok(im) && sink->errors == errors)
    (void)diag_report(sink, DIAG_PLUGIN_FAULT, graph_place(im->g, im->b.loc),
                      "the translator of '%s' of plug-in '%s' failed without a message",
                      t->row.name, t->plugin);
}

static void call_translator(Import *im, const OnnxTranslator *t) {
  if (!input_count_fits(im, &t->row) || !packed_inputs_fit(im))
    return;
  im->op = t->op;
  run_translator(im, t);
  packed_outputs(im);
  check_outputs_bound(im, t->plugin);
}

/* What was given for the operator comes before what the model says of it: a program, an added
 * translator, a function of the model, a translator of etc. */
static void translate_node(Import *im, Onnx__NodeProto *const *nodes, size_t count, size_t at) {
  StrView domain = canonical_domain(onnx_text(im->node->domain)), op = onnx_text(im->node->op_type);
  if (!op.size) {
    import_fail(im, DIAG_UNSUPPORTED_OP, "the node has no op type");
    return;
  }
  im->opset = version_of(im, domain);
  const LoweredOp *lowered = import_lowered(im, domain, op);
  const OnnxTranslator *translator = lowered ? NULL : operators_find_added(im, domain);
  const Onnx__FunctionProto *function =
      lowered || translator ? NULL : import_function(im, im->node);
  if (!lowered && !translator && !function)
    translator = operators_find(im, domain);
  if (!lowered && !translator && !function) {
    operators_note_unsupported(im, domain, op);
    poison_outputs(im);
    return;
  }
  if (!inputs_defined(im, nodes, count, at) || !import_check_attributes(im))
    return;
  if (lowered)
    import_lowered_call(im, lowered);
  else if (function)
    import_call(im, function);
  else
    call_translator(im, translator);
}

/* What the names of the current node stand for, for who asks what became of it. */
static void trace_names(Import *im, TraceKind kind, char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    NameId name = import_name(im, names[i]);
    Binding b = name ? import_lookup(im, name) : (Binding){.kind = BIND_NONE};
    if (name)
      TRACE(im->g, .kind = kind, .loc = im->b.loc, .name = name,
            .value = b.kind == BIND_VALUE ? b.value : 0);
  }
}

void import_nodes(Import *im, Onnx__NodeProto *const *nodes, size_t count) {
  Frame *frame = im->frame;
  bool top = frame->depth == 0;
  if (im->state->stopped) {
    im->state->failed = true;
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const Onnx__NodeProto *node = nodes[i];
    size_t place = onnx_node_place(im->model, node, i);
    im->node = node;
    im->b.loc =
        graph_add_loc(im->g, (Loc){.name = import_name(im, node->name),
                                   .op_type = import_name(im, node->op_type),
                                   .scope = frame->path,
                                   .origin = import_origin(im, node),
                                   .index = (int32_t)(place > INT32_MAX ? INT32_MAX : place)});
    if (!top && ++im->state->inlined > IMPORT_INLINED_MAX) {
      import_fail(im, DIAG_FUNCTION_TOO_LARGE, "functions and subgraphs have more than %d nodes",
                  IMPORT_INLINED_MAX);
      im->state->stopped = true;
      return;
    }
    translate_node(im, nodes, count, i);
    im->node = node; /* calls change it */
    if (im->g->trace) {
      trace_names(im, TRACE_READ, node->input, node->n_input);
      trace_names(im, TRACE_BOUND, node->output, node->n_output);
    }
    if (im->b.status != STATUS_OK || im->state->failed)
      poison_outputs(im);
    if (im->b.status != STATUS_OK) {
      im->state->failed = true;
      im->b.status = STATUS_OK;
    }
    if (top)
      arena_reset(&im->scratch);
    if (im->state->stopped || im->ctx->sink->errors > 200)
      return;
  }
}

/* --- the whole graph --- */

static Status import_graph(Import *im) {
  const Onnx__GraphProto *graph = im->model->proto->graph;
  intern_expect(&im->ctx->names, 2 * (uint64_t)graph->n_node); /* of the node and of a result */
  TRY(import_functions(im));
  TRY(import_initializers(im, graph));
  TRY(import_inputs(im, graph));
  import_declare(im, graph->value_info, graph->n_value_info);
  import_declare(im, graph->output, graph->n_output);
  import_nodes(im, graph->node, graph->n_node);
  operators_report_unsupported(im);
  TRY(import_outputs(im, graph));
  return im->state->failed ? STATUS_UNSUPPORTED : sizes_finish(im);
}

static Status import_once(Context *ctx, OnnxModel *model, const ImportOptions *options,
                          Sizes *sizes, Graph **result) {
  *result = NULL;
  Graph *g = graph_new(ctx, options->method.size ? options->method : SV("forward"));
  ImportState *state = xrealloc(NULL, sizeof *state);
  *state = (ImportState){.sizes = sizes};
  if (sizes)
    sizes->count = 0;
  intern_init(&state->function_names);
  fold_init(&state->fold, options->fold_limit);
  state->fold.keep_transposes = state->fold.keep_widenings = true;
  Frame main_frame = {.imports = model->proto->opset_import,
                      .import_count = model->proto->n_opset_import,
                      .id = ++state->frame_count};
  Import im = {.b = {.g = g, .fold = fold_node, .fold_data = &state->fold},
               .g = g,
               .ctx = ctx,
               .model = model,
               .options = options,
               .frame = &main_frame,
               .state = state};
  Status status = import_graph(&im);
  arena_release(&im.scratch);
  fold_release(&state->fold);
  intern_release(&state->function_names);
  strbuf_release(&state->function_key);
  scope_release(state);
  arena_release(&state->arena);
  xfree(state->dims);
  xfree(state);
  if (status == STATUS_OK)
    *result = g;
  else
    graph_free(g);
  return status;
}

/* Imports again and again until the dimensions are narrowed to what the model takes. */
static Status import_narrowing(Context *ctx, OnnxModel *model, const ImportOptions *options,
                               Sizes *sizes, Graph **result) {
  Bounds bounds;
  Status status = STATUS_OK;
  bool again = true;
  bounds_init(&bounds, options);
  for (unsigned round = 0; status == STATUS_OK && again; round++) {
    DiagHold held;
    diag_hold(ctx->sink, &held);
    status = import_once(ctx, model, &bounds.options, sizes, result);
    if (status == STATUS_OK)
      status = bounds_narrow(&bounds, *result, &again);
    again &= round < IMPORT_ROUNDS;
    if (status == STATUS_OK && again)
      diag_drop(&held);
    if (*result && (status != STATUS_OK || again)) {
      graph_free(*result);
      *result = NULL;
    }
    diag_let_go(&held);
  }
  if (status == STATUS_OK)
    status = bounds_finish(&bounds, *result);
  if (status == STATUS_OK && options->left)
    memcpy(options->left, bounds.flags, options->dim_count * sizeof *bounds.flags);
  bounds_release(&bounds);
  return status;
}

/* With the sizes that the declared outputs give, if there are any from `least` on. */
static Status import_solving(Context *ctx, OnnxModel *model, const ImportOptions *options,
                             int64_t least, DiagHold *held, Graph **result) {
  Sizes sizes = {.stage = SIZES_SYMBOLIC, .least = least};
  Status status = import_once(ctx, model, options, &sizes, result);
  if (*result)
    graph_free(*result);
  *result = NULL;
  diag_drop(held);
  if (status != STATUS_OK || !sizes.solved)
    return STATUS_UNSUPPORTED;
  sizes.stage = SIZES_KNOWN;
  status = import_narrowing(ctx, model, options, &sizes, result);
  if (status != STATUS_OK)
    diag_drop(held);
  return status;
}

static Status import_any(Context *ctx, OnnxModel *model, const ImportOptions *options,
                         Graph **result) {
  Sizes sizes = {.stage = SIZES_NOTED};
  DiagHold first, later;
  if (!sizes_possible(model->proto->graph))
    return import_narrowing(ctx, model, options, NULL, result);
  diag_hold(ctx->sink, &first);
  Status status = import_narrowing(ctx, model, options, &sizes, result);
  if (status != STATUS_OK && sizes.stopped) {
    diag_hold(ctx->sink, &later);
    Status solved = import_solving(ctx, model, options, 1, &later, result);
    if (solved != STATUS_OK) /* a size of 1 has meanings of its own: it broadcasts, is squeezed */
      solved = import_solving(ctx, model, options, 2, &later, result);
    if (solved == STATUS_OK) {
      uint32_t warnings = ctx->sink->warnings - later.warnings;
      diag_drop(&first);
      ctx->sink->warnings += warnings;
      status = solved;
    }
    diag_let_go(&later);
  }
  diag_let_go(&first);
  return status;
}

static void warn_sorted(Context *ctx, OnnxModel *model, const Onnx__NodeProto *first) {
  DiagPlace place = context_place(ctx);
  place.node = onnx_text(first->name);
  place.op = onnx_text(first->op_type);
  place.index = (int32_t)onnx_node_place(model, first, 0);
  (void)diag_report(ctx->sink, DIAG_NODES_SORTED, place,
                    "the nodes are not in the order in which they can run, and were sorted");
}

/* A name that is used before it is produced fails an import; so sorted models, nearly all, pay
 * nothing for the others. */
Status onnx_import(Context *ctx, OnnxModel *model, const ImportOptions *options, Graph **result) {
  DiagHold held;
  diag_hold(ctx->sink, &held);
  Status status = import_any(ctx, model, options, result);
  SortedNodes sorted = {.first = NULL};
  if (status != STATUS_OK)
    sorted = onnx_sort_nodes(model);
  if (sorted.first) {
    diag_drop(&held);
    if (!sorted.circle)
      warn_sorted(ctx, model, sorted.first);
    status = import_any(ctx, model, options, result);
  }
  diag_let_go(&held);
  return status;
}
