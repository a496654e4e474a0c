/* The importer's driver: one walk over the nodes, each translated at the op version that the model
 * imports, folded as it is built. A node that cannot be translated poisons its outputs and the walk
 * goes on, so that one run reports everything. Operators and their versions: translators.def. */
#include "onnx/import.h"

#include <limits.h>

#include "onnx/bounds.h"
#include "onnx/import_state.h"
#include "onnx/file/order.h"
#include "onnx/packed.h"
#include "ir/trace.h"
#include "support/text.h"

typedef struct TranslatorRow {
  OnnxOpRow row;
  void (*translate)(Import *im);
  OpId op;
} TranslatorRow;

static const TranslatorRow rows[] = {
#define ONNX_OP(domain_, name_, since_, until_, min_, max_, function, op, lowering_)               \
  {{.domain = domain_,                                                                             \
    .name = name_,                                                                                 \
    .since = since_,                                                                               \
    .until = until_,                                                                               \
    .min_inputs = min_,                                                                            \
    .max_inputs = max_,                                                                            \
    .lowering = lowering_},                                                                        \
   function,                                                                                       \
   op},
#define ONNX(domain, name, since, until, min, max, function, lowering)                             \
  ONNX_OP(domain, name, since, until, min, max, function, OP_NONE, lowering)
#include "onnx/translators.def"
#undef ONNX
#undef ONNX_OP
};

const OnnxOpRow *onnx_op_row(uint32_t i) { return i < COUNT_OF(rows) ? &rows[i].row : NULL; }

static const OnnxOutOfReach out_of_reach[] = {
#define OUT_OF_REACH(domain_, name_, reason_) {.domain = domain_, .name = name_, .reason = reason_},
#include "onnx/out_of_reach.def"
#undef OUT_OF_REACH
};

const OnnxOutOfReach *onnx_out_of_reach(uint32_t i) {
  return i < COUNT_OF(out_of_reach) ? &out_of_reach[i] : NULL;
}

static StrView canonical_domain(StrView domain) {
  return sv_eq_str(domain, "ai.onnx") ? SV("") : domain;
}

static const TranslatorRow *scan_rows(StrView domain, StrView name, int64_t opset) {
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const OnnxOpRow *r = &rows[i].row;
    if (sv_eq_str(name, r->name) && sv_eq_str(domain, r->domain) && opset >= r->since &&
        (r->until == 0 || opset <= r->until))
      return &rows[i];
  }
  return NULL;
}

/* The row for the current node, an op of im->opset. Models are made of few ops: what was found for
 * one is kept. */
static const TranslatorRow *find_row(Import *im, StrView domain) {
  NameId op = import_name(im, im->node->op_type);
  KnownRow *known = &im->state->known_rows[op % KNOWN_ROWS];
  if (known->op != op || known->opset != im->opset || !sv_eq(known->domain, domain))
    *known = (KnownRow){domain, op, im->opset,
                        scan_rows(domain, onnx_text(im->node->op_type), im->opset)};
  return known->row;
}

/* --- unsupported ops: collected, reported once each --- */

static void note_unsupported(Import *im, StrView domain, StrView op) {
  ImportState *s = im->state;
  s->failed = true;
  for (uint32_t i = 0; i < s->unsupported_count; i++)
    if (sv_eq(s->unsupported[i].op, op) && sv_eq(s->unsupported[i].domain, domain)) {
      s->unsupported[i].count++;
      return;
    }
  if (s->unsupported_count < IMPORT_UNSUPPORTED_MAX)
    s->unsupported[s->unsupported_count++] =
        (Unsupported){domain, op, im->opset, 1, graph_place(im->g, im->b.loc)};
}

/* The operator of that name, or one of a runtime's own, which its optimizer may have put there. */
static void hint_nearest(Diag *d, const Unsupported *u) {
  const char *names[COUNT_OF(rows)];
  size_t count = 0;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    if (!sv_eq_str(u->domain, rows[i].row.domain))
      continue;
    if (sv_eq_str(u->op, rows[i].row.name)) /* known, at another version */
      return;
    names[count++] = rows[i].row.name;
  }
  if (!diag_hint_nearest(d, u->op, names, count) && sv_eq_str(u->domain, "com.microsoft"))
    diag_hint(d, "take the model before ONNX Runtime optimized it, or give a program that computes "
                 "the operator (--lowered)");
}

/* The versions of its domain at which an operator of that name is known. */
static void note_versions(Diag *d, const Unsupported *u) {
  int since = INT_MAX, until = -1;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    const OnnxOpRow *r = &rows[i].row;
    if (!sv_eq_str(u->op, r->name) || !sv_eq_str(u->domain, r->domain))
      continue;
    since = r->since < since ? r->since : since;
    until = r->until == 0 || until == 0 ? 0 : r->until > until ? r->until : until;
  }
  if (until == 0)
    diag_note(d, "it is supported from opset %d on", since);
  if (until == 0 && u->domain.size == 0)
    diag_hint(d, "convert the model: onnx.version_converter.convert_version(model, %d)", since);
  else if (until > 0)
    diag_note(d, "it is supported from opset %d to %d", since, until);
}

/* A program for an operator that this model does not have may be meant for u. */
static bool hint_lowered(const Import *im, Diag *d, const Unsupported *u) {
  for (uint32_t i = 0; i < im->options->lowered_count; i++) {
    const LoweredOp *lowered = &im->options->lowered[i];
    const char *dot = lowered->domain.size ? "." : "";
    if (*lowered->used || (!sv_eq(lowered->op, u->op) && im->state->unsupported_count > 1))
      continue;
    diag_note(d, "no node of this model has the operator '" SV_FMT "%s" SV_FMT "' of --lowered",
              SV_ARG(lowered->domain), dot, SV_ARG(lowered->op));
    diag_hint(d, "did you mean --lowered " SV_FMT "%s" SV_FMT "=%s?", SV_ARG(u->domain),
              u->domain.size ? "." : "", SV_ARG(u->op), lowered->path);
    return true;
  }
  return false;
}

/* Of ONNX Runtime's blocked layout, which its optimizer chooses for the CPU that it runs on: such a
 * file is for that CPU alone. */
static void note_blocked_layout(Diag *d, const Unsupported *u) {
  if (!sv_eq_str(u->domain, "com.microsoft.nchwc"))
    return;
  diag_note(d, "ONNX Runtime wrote this file for the CPU that it ran on");
  diag_hint(
      d, "take the model before it was optimized, or optimize it with ORT_ENABLE_EXTENDED at most");
}

static void note_reason(Diag *d, const Unsupported *u) {
  for (size_t i = 0; i < COUNT_OF(out_of_reach); i++)
    if (sv_eq_str(u->domain, out_of_reach[i].domain) && sv_eq_str(u->op, out_of_reach[i].name))
      diag_note(d, "%s", out_of_reach[i].reason);
}

static DiagCode unsupported_code(const Unsupported *u) {
  if (u->opset == 0)
    return DIAG_OPSET_MISSING;
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    if (sv_eq_str(u->domain, rows[i].row.domain))
      return DIAG_UNSUPPORTED_OP;
  return DIAG_UNSUPPORTED_DOMAIN;
}

static void report_unsupported(Import *im) {
  ImportState *s = im->state;
  for (uint32_t i = 0; i < s->unsupported_count; i++) {
    const Unsupported *u = &s->unsupported[i];
    Diag *d = diag_begin(im->ctx->sink, unsupported_code(u), u->first);
    const char *dot = u->domain.size ? "." : "", *plural = u->count == 1 ? "" : "s";
    const char *what = "is of a domain that is not imported";
    if (u->opset)
      what = arena_printf(&s->arena, "of opset %lld is not supported", (long long)u->opset);
    diag_message(d, "operator '" SV_FMT "%s" SV_FMT "' %s (%u node%s)", SV_ARG(u->domain), dot,
                 SV_ARG(u->op), what, u->count, plural);
    if (i == 0 && s->unsupported_count > 1)
      diag_note(d, "%u operators of this model are not supported", s->unsupported_count);
    if (u->opset)
      note_versions(d, u);
    note_reason(d, u);
    note_blocked_layout(d, u);
    if (!hint_lowered(im, d, u))
      hint_nearest(d, u);
    (void)diag_end(d);
  }
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

static void check_outputs_bound(Import *im) {
  for (uint32_t i = 0; i < out_count(im) && import_ok(im); i++)
    if (out_wanted(im, i) && import_lookup(im, import_output_name(im, i)).kind == BIND_NONE)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "output %u ('%s') of %s is not supported", i,
                  im->node->output[i], im->node->op_type);
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

static void translate_node(Import *im, Onnx__NodeProto *const *nodes, size_t count, size_t at) {
  StrView domain = canonical_domain(onnx_text(im->node->domain)), op = onnx_text(im->node->op_type);
  if (!op.size) {
    import_fail(im, DIAG_UNSUPPORTED_OP, "the node has no op type");
    return;
  }
  im->opset = version_of(im, domain);
  const LoweredOp *lowered = import_lowered(im, domain, op);
  const Onnx__FunctionProto *function = lowered ? NULL : import_function(im, im->node);
  const TranslatorRow *row = function || lowered ? NULL : find_row(im, domain);
  if (!function && !lowered && !row) {
    note_unsupported(im, domain, op);
    poison_outputs(im);
    return;
  }
  if (!inputs_defined(im, nodes, count, at) || !import_check_attributes(im))
    return;
  if (lowered) {
    import_lowered_call(im, lowered);
  } else if (function) {
    import_call(im, function);
  } else if (input_count_fits(im, &row->row) && packed_inputs_fit(im)) {
    im->op = row->op;
    row->translate(im);
    packed_outputs(im);
    check_outputs_bound(im);
  }
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
  report_unsupported(im);
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
