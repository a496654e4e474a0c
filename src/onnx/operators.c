/* The operators that there are: those of translators.def and those that were added; and what is
 * said of the others. */
#include "onnx/import_state.h"
#include "support/text.h"

#include <limits.h>

static const OnnxTranslator rows[] = {
#define ONNX_OP(domain_, name_, since_, until_, min_, max_, function, op, lowering_)               \
  {{.domain = domain_,                                                                             \
    .name = name_,                                                                                 \
    .since = since_,                                                                               \
    .until = until_,                                                                               \
    .min_inputs = min_,                                                                            \
    .max_inputs = max_,                                                                            \
    .lowering = lowering_},                                                                        \
   function,                                                                                       \
   op,                                                                                             \
   NULL},
#define ONNX(domain, name, since, until, min, max, function, lowering)                             \
  ONNX_OP(domain, name, since, until, min, max, function, OP_NONE, lowering)
#include "onnx/translators.def"
#undef ONNX
#undef ONNX_OP
};

uint32_t onnx_op_count(void) { return COUNT_OF(rows); }

const OnnxOpRow *onnx_op_row(uint32_t i) { return i < COUNT_OF(rows) ? &rows[i].row : NULL; }

static const OnnxOutOfReach out_of_reach[] = {
#define OUT_OF_REACH(domain_, name_, reason_) {.domain = domain_, .name = name_, .reason = reason_},
#include "onnx/out_of_reach.def"
#undef OUT_OF_REACH
};

const OnnxOutOfReach *onnx_out_of_reach(uint32_t i) {
  return i < COUNT_OF(out_of_reach) ? &out_of_reach[i] : NULL;
}

static bool is_for(const OnnxOpRow *r, StrView domain, StrView name, int64_t opset) {
  return sv_eq_str(name, r->name) && sv_eq_str(domain, r->domain) && opset >= r->since &&
         (r->until == 0 || opset <= r->until);
}

static const OnnxTranslator *scan_rows(StrView domain, StrView name, int64_t opset) {
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    if (is_for(&rows[i].row, domain, name, opset))
      return &rows[i];
  return NULL;
}

const OnnxTranslator *operators_find_added(const Import *im, StrView domain) {
  for (uint32_t i = 0; i < im->options->translator_count; i++) {
    const OnnxTranslator *t = im->options->translators[i];
    if (is_for(&t->row, domain, onnx_text(im->node->op_type), im->opset))
      return t;
  }
  return NULL;
}

/* The row for the current node, an op of im->opset. Models are made of few ops: what was found for
 * one is kept. */
const OnnxTranslator *operators_find(Import *im, StrView domain) {
  NameId op = import_name(im, im->node->op_type);
  KnownRow *known = &im->state->known_rows[op % KNOWN_ROWS];
  if (known->op != op || known->opset != im->opset || !sv_eq(known->domain, domain))
    *known = (KnownRow){domain, op, im->opset,
                        scan_rows(domain, onnx_text(im->node->op_type), im->opset)};
  return known->row;
}

/* --- unsupported ops: collected, reported once each --- */

void operators_note_unsupported(Import *im, StrView domain, StrView op) {
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

void operators_report_unsupported(Import *im) {
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
