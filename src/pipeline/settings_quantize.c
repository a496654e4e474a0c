/* --quantize, --calibrate, --calibrate-method, --ranges, --quantize-config: how a model is
 * quantized. */
#include "pipeline/quantize_config.h"
#include "pipeline/budget.h"
#include "pipeline/settings.h"

#include <stdlib.h>

#include "quant/stats_file.h"
#include "support/text.h"

enum { BLOCK_MAX = 1 << 20 };

static const char *const schemes[] = {"int8", "int8-dynamic", "int8-weight-only",
                                      "int4-weight-only"};
static const QuantScheme scheme_values[] = {QUANT_INT8, QUANT_INT8_DYNAMIC, QUANT_INT8_WEIGHT_ONLY,
                                            QUANT_INT4_WEIGHT_ONLY};

/* The size of blocks behind a scheme of 4 bits. */
static EtcStatus set_block(Session *s, StrView number, bool given) {
  uint64_t block = QUANT_BLOCK_LEAST;
  if (given && (!text_parse_u64(number, &block) || block < QUANT_BLOCK_LEAST || block > BLOCK_MAX ||
                block % QUANT_BLOCK_LEAST))
    return session_usage(s, "--quantize", "blocks have 32, 64, 96, ... weights",
                         "blocks cannot have '" SV_FMT "' weights", SV_ARG(number));
  settings_options(s)->quantize.block = (uint32_t)block;
  return ETC_OK;
}

EtcStatus session_set_quantize(Session *s, StrView value) {
  StrView name = value, number = {0};
  bool given = session_split(value, ':', &name, &number) && sv_eq(name, SV("int4-weight-only"));
  size_t i = 0;
  while (i < COUNT_OF(schemes) && !sv_eq_str(given ? name : value, schemes[i]))
    i++;
  if (i == COUNT_OF(schemes)) {
    const char *hint = session_did_you_mean(s, text_nearest(value, schemes, COUNT_OF(schemes)));
    return session_usage(
        s, "--quantize",
        hint ? hint : "there are int8, int8-dynamic, int8-weight-only and int4-weight-only",
        "there is no scheme '" SV_FMT "'", SV_ARG(value));
  }
  settings_options(s)->quantize.scheme = scheme_values[i];
  return set_block(s, number, given);
}

EtcStatus session_set_calibrate(Session *s, StrView value) {
  QuantOptions *q = &settings_options(s)->quantize;
  q->made_up = sv_eq(value, SV("random"));
  q->data = q->made_up ? NULL : arena_strdup(&s->arena, value);
  return ETC_OK;
}

EtcStatus session_set_compare(Session *s, StrView value) {
  settings_options(s)->compare = arena_strdup(&s->arena, value);
  return ETC_OK;
}

EtcStatus session_set_ranges(Session *s, StrView value) {
  settings_options(s)->quantize.ranges = arena_strdup(&s->arena, value);
  return ETC_OK;
}

/* A number above 0, at most 100. */
static bool read_percentile(StrView text, double *out) {
  return text_parse_double(text, out) && *out > 0 && *out <= 100;
}

/* NAME or percentile:P */
EtcStatus session_set_calibrate_method(Session *s, StrView value) {
  RangeOptions *range = &settings_options(s)->quantize.range;
  StrView name = value, number = {0};
  bool given = session_split(value, ':', &name, &number);
  bool known = range_method_find(name, &range->method);
  range->percentile = RANGE_PERCENTILE_DEFAULT;
  if (known && (!given ||
                (range->method == RANGE_PERCENTILE && read_percentile(number, &range->percentile))))
    return ETC_OK;
  return session_usage(s, "--calibrate-method",
                       "there are auto, min-max, percentile, percentile:99.9, mse and entropy",
                       "ranges cannot be chosen by '" SV_FMT "'", SV_ARG(value));
}

EtcStatus session_set_quantize_config(Session *s, StrView value) {
  return quantize_config_read(s, arena_strdup(&s->arena, value), &settings_options(s)->quantize);
}

/* Samples to compare on, and what wants them. */
static EtcStatus check_samples(Session *s, const MethodOptions *o) {
  bool chosen = (o->given & GIVEN_SCHEME) != 0;
  if (!chosen && o->compare)
    return session_usage(s, "--compare", "add --quantize SCHEME",
                         "there is nothing to compare without --quantize");
  if (o->max_drop == 0 || (chosen && options_samples(o)))
    return ETC_OK;
  return session_usage(
      s, "--max-drop",
      chosen ? "add --compare DATA.npz" : "add --quantize int8 and --calibrate DATA.npz",
      "the outputs cannot be compared without %s", chosen ? "samples" : "--quantize");
}

/* Samples, or statistics of them, for a scheme that makes use of what is given. */
static EtcStatus check_calibration(Session *s, const QuantOptions *q, const char *from) {
  if (q->scheme == QUANT_INT8 && !q->data && !q->ranges)
    return session_usage(s, "--quantize", "add --calibrate DATA.npz or --ranges FILE",
                         "int8 needs the ranges of values%s",
                         q->made_up ? ", which random samples do not have" : "");
  if (!quantize_calibrates(q) && from)
    return session_usage(s, from,
                         "leave it out; samples to compare the quantized model on: --compare PATH",
                         "only int8 and int4-weight-only are calibrated");
  if (q->scheme != QUANT_INT8 && q->ranges)
    return session_usage(s, "--ranges", "give the samples themselves: --calibrate DATA.npz",
                         "int4-weight-only needs more of the values than their ranges");
  return ETC_OK;
}

/* What was given for one method, or a usage error. */
static EtcStatus check_options(Session *s, const MethodOptions *o) {
  const QuantOptions *q = &o->quantize;
  bool chosen = (o->given & GIVEN_SCHEME) != 0;
  const char *from = q->data || q->made_up ? "--calibrate" : q->ranges ? "--ranges" : NULL;
  const char *idle = o->given & GIVEN_QUANTIZE_CONFIG ? "--quantize-config"
                     : o->given & GIVEN_RANGE_METHOD  ? "--calibrate-method"
                                                      : NULL;
  if (!chosen && !from && idle)
    return session_usage(s, idle, "add --quantize SCHEME, or leave it out",
                         "%s says how --quantize is done, which is not given", idle);
  if (!chosen && from)
    return session_usage(s, from, "add --quantize int8",
                         "there is nothing to calibrate without --quantize");
  TRY(chosen ? check_calibration(s, q, from) : ETC_OK);
  if ((q->data || q->made_up) && q->ranges)
    return session_usage(s, "--ranges", "leave one of them out",
                         "--calibrate and --ranges are both given");
  return check_samples(s, o);
}

/* Whether a method that the limit is of has samples. */
static bool can_measure(const Session *s, const BudgetLimit *limit) {
  bool can = false, any = limit->method.size == 0;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    if (limit->method.size && !sv_eq(limit->method, method_name(m)))
      continue;
    any = true;
    can |= options_samples(m->options) != NULL;
  }
  return can || !any; /* a method that is not there is reported with the other limits */
}

/* A limit of SQNR needs something to compare. */
static Status check_sqnr(Session *s) {
  const BudgetLimit *limit = NULL;
  for (uint32_t i = 0; s->budget && !limit && i < s->budget->count; i++)
    if (s->budget->limits[i].key == BUDGET_SQNR && !can_measure(s, &s->budget->limits[i]))
      limit = &s->budget->limits[i];
  if (!limit)
    return STATUS_OK;
  Diag *d = diag_begin(&s->sink, DIAG_BUDGET_FILE, limit->at);
  diag_message(d, SV_FMT " cannot be measured without samples", SV_ARG(limit->name));
  diag_hint(d,
            "add --quantize int8 --calibrate DATA.npz, or with another scheme --compare DATA.npz");
  return diag_end(d);
}

Status session_check_quantize(Session *s) {
  const Method *calibrated = NULL;
  TRY(check_sqnr(s));
  if (s->program.method_count == 0 && check_options(s, session_own(s)) != ETC_OK)
    return STATUS_USAGE;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    if (check_options(s, m->options) != ETC_OK)
      return STATUS_USAGE;
    if (calibrated && m->options->quantize.data &&
        strcmp(calibrated->options->quantize.data, m->options->quantize.data) == 0) {
      (void)session_usage(s, "--calibrate",
                          "lower the models one by one, or give each method data in a recipe",
                          "one data set cannot be that of %u models", s->program.source_count);
      return STATUS_USAGE;
    }
    if (m->options->quantize.data)
      calibrated = m;
  }
  return STATUS_OK;
}

Status session_begin_quantize(Session *s, const Method *m) {
  QuantOptions *q = &m->options->quantize;
  q->model_hash = "";
  if (!m->options->pass.quantize || !q->ranges || m->source->kind != SOURCE_ONNX)
    return STATUS_OK;
  char *hash = ARENA_ARRAY(&s->arena, char, sizeof((StatsHead){0}.model));
  q->model_hash = hash;
  return stats_model_hash(&m->source->onnx, hash);
}

Status session_prepare_ranges(Session *s) {
  static const QuantOptions options = {.scheme = QUANT_INT8};
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < s->program.method_count && status == STATUS_OK; i++) {
    session_enter(s, &s->program.methods[i]);
    s->manager.options.pass.quantize = &options;
    status = manager_prepare_quantize(&s->manager, s->program.methods[i].graph);
  }
  return status;
}
