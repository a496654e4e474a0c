/* See bundle.h. What is in a bundle, and whether it fits the program within. */
#include "pte/bundle.h"

static const char *kind_name(const BundledValue *v) {
  static const char *const names[BUNDLED_KIND_COUNT] = {"none", "tensor", "int", "bool", "double"};
  return v->kind == BUNDLED_TENSOR ? pte_dtype_name(v->dtype) : names[v->kind];
}

/* --- showing --- */

static void append_value(StrBuf *out, const BundledValue *v) {
  strbuf_append(out, sv_from(kind_name(v)));
  if (v->kind != BUNDLED_TENSOR)
    return;
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < v->rank; i++)
    strbuf_printf(out, "%s%d", i ? ", " : "", v->sizes[i]);
  strbuf_append_char(out, ']');
}

enum { MAX_SHOWN = 16 };

static void append_values(StrBuf *out, const char *title, const BundledValue *values,
                          uint32_t count, bool all) {
  uint32_t shown = all || count < MAX_SHOWN ? count : MAX_SHOWN;
  strbuf_append(out, sv_from(title));
  for (uint32_t i = 0; i < shown; i++) {
    strbuf_append(out, i ? SV(", ") : SV(" "));
    append_value(out, &values[i]);
  }
  if (!count)
    strbuf_append(out, SV(" none"));
  if (shown < count)
    strbuf_printf(out, ", %u more (-v)", count - shown);
}

static bool same_types(const BundledValue *a, const BundledValue *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (a[i].kind != b[i].kind || a[i].dtype != b[i].dtype || a[i].rank != b[i].rank ||
        memcmp(a[i].sizes, b[i].sizes, sizeof a[i].sizes) != 0)
      return false;
  return true;
}

static bool same_shapes(const BundledSet *a, const BundledSet *b) {
  return a->input_count == b->input_count && a->output_count == b->output_count &&
         same_types(a->inputs, b->inputs, a->input_count) &&
         same_types(a->outputs, b->outputs, a->output_count);
}

/* Sets of the same shapes that follow each other are one line. */
static void text_sets(StrBuf *out, const BundledSuite *suite, bool all) {
  uint32_t lines = 0;
  for (uint32_t i = 0, last; i < suite->count; i = last + 1) {
    for (last = i; last + 1 < suite->count && same_shapes(&suite->sets[i], &suite->sets[last + 1]);)
      last++;
    if (lines++ == MAX_SHOWN && !all) {
      strbuf_printf(out, "  %u more test sets (-v)\n", suite->count - i);
      return;
    }
    strbuf_printf(out, last > i ? "  %u..%u: " : "  %u: ", i, last);
    append_values(out, "inputs", suite->sets[i].inputs, suite->sets[i].input_count, all);
    append_values(out, "; expected outputs", suite->sets[i].outputs, suite->sets[i].output_count,
                  all);
    strbuf_append_char(out, '\n');
  }
}

void bundle_inspect_text(const BundleFile *b, bool all, StrBuf *out) {
  strbuf_append(out, SV("bundle: "));
  strbuf_append_printable(out, sv_from(b->file.path));
  strbuf_printf(out, ", %llu bytes, schema version %u, program of %llu bytes\n",
                (unsigned long long)b->file.size, b->version, (unsigned long long)b->program_size);
  for (uint32_t i = 0; i < b->count; i++) {
    const BundledSuite *suite = &b->suites[i];
    strbuf_append(out, SV("test sets of method '"));
    strbuf_append_printable(out, suite->method);
    strbuf_printf(out, "': %u\n", suite->count);
    text_sets(out, suite, all);
  }
}

static void json_values(JsonWriter *w, const char *key, const BundledValue *values,
                        uint32_t count) {
  json_named_array(w, key);
  for (uint32_t i = 0; i < count; i++) {
    json_open_object(w);
    json_named_string(w, "type", sv_from(kind_name(&values[i])));
    if (values[i].kind == BUNDLED_TENSOR) {
      json_named_array(w, "sizes");
      for (uint32_t k = 0; k < values[i].rank; k++)
        json_int(w, values[i].sizes[k]);
      json_close_array(w);
    }
    json_close_object(w);
  }
  json_close_array(w);
}

void bundle_inspect_json(const BundleFile *b, JsonWriter *w) {
  json_open_array(w);
  for (uint32_t i = 0; i < b->count; i++)
    for (uint32_t k = 0; k < b->suites[i].count; k++) {
      const BundledSet *set = &b->suites[i].sets[k];
      json_open_object(w);
      json_named_string(w, "method", b->suites[i].method);
      json_named_uint(w, "set", k);
      json_values(w, "inputs", set->inputs, set->input_count);
      json_values(w, "expected_outputs", set->outputs, set->output_count);
      json_close_object(w);
    }
  json_close_array(w);
}

/* --- does it fit the program --- */

typedef struct Check {
  const BundleFile *b;
  const PteMethod *m;
  const BundledSuite *suite;
  uint32_t set, faults;
} Check;

enum { MAX_FAULTS = 16 }; /* that are told */

static void misfit(Check *c, const char *format, ...) ETC_PRINTF(2, 3);
static void misfit(Check *c, const char *format, ...) {
  if (c->faults++ >= MAX_FAULTS)
    return;
  StrBuf before = {0};
  strbuf_printf(&before, "method '" SV_FMT "', test set %u: ", SV_ARG(c->suite->method), c->set);
  va_list args;
  va_start(args, format);
  (void)!diag_vreport(c->b->sink, DIAG_BUNDLE, diag_file(c->b->file.path), strbuf_cstr(&before),
                      format, args);
  va_end(args);
  strbuf_release(&before);
}

static bool right_kind(const BundledValue *v, const PteValue *of) {
  static const PteKind kinds[BUNDLED_KIND_COUNT] = {PTE_NONE, PTE_TENSOR, PTE_INT, PTE_BOOL,
                                                    PTE_DOUBLE};
  return kinds[v->kind] == of->kind &&
         (of->kind != PTE_TENSOR || (v->dtype == of->tensor->dtype && v->rank == of->tensor->rank));
}

static bool right_sizes(const BundledValue *v, const PteTensor *t, const PteRange *ranges) {
  for (uint32_t i = 0; i < v->rank; i++) {
    if (t->dynamism == PTE_STATIC ? v->sizes[i] != t->sizes[i] : v->sizes[i] > t->sizes[i])
      return false;
    if (ranges && (v->sizes[i] < ranges[i].lo || v->sizes[i] > ranges[i].hi))
      return false;
  }
  return true;
}

/* The next dim in memory, from position *at of an order on, that has more than one element. */
static int next_dim(const BundledValue *v, const uint8_t *order, uint32_t *at) {
  while (*at < v->rank && v->sizes[order[*at]] == 1)
    ++*at;
  return *at < v->rank ? order[(*at)++] : -1;
}

/* Where dims of one element are does not matter. */
static bool same_order(const BundledValue *v, const PteTensor *t) {
  uint32_t a = 0, b = 0;
  int dim;
  do {
    dim = next_dim(v, v->dim_order, &a);
    if (dim != next_dim(v, t->dim_order, &b))
      return false;
  } while (dim >= 0);
  return true;
}

static void check_value(Check *c, const char *what, uint32_t i, const BundledValue *v,
                        const PteValue *of, const PteRange *ranges) {
  StrBuf shown = {0};
  append_value(&shown, v);
  if (!right_kind(v, of))
    misfit(c, "%s %u is %s, the method's is of another type or rank", what, i, strbuf_cstr(&shown));
  else if (of->kind == PTE_TENSOR && !right_sizes(v, of->tensor, ranges))
    misfit(c, "%s %u is %s, the method's has other sizes", what, i, strbuf_cstr(&shown));
  else if (of->kind == PTE_TENSOR && !same_order(v, of->tensor))
    misfit(c, "%s %u is %s, the method's has its dims in another order in memory", what, i,
           strbuf_cstr(&shown));
  strbuf_release(&shown);
}

static void check_set(Check *c, const BundledSet *set) {
  const PteMethod *m = c->m;
  if (set->input_count != m->input_count)
    misfit(c, "it has %u inputs, the method has %u", set->input_count, m->input_count);
  else
    for (uint32_t i = 0; i < set->input_count; i++)
      check_value(c, "input", i, &set->inputs[i], &m->values[m->inputs[i]],
                  m->ranges ? m->ranges[i] : NULL);
  if (set->output_count && set->output_count != m->output_count)
    misfit(c, "it has %u expected outputs, the method has %u", set->output_count, m->output_count);
  else
    for (uint32_t i = 0; i < set->output_count; i++)
      check_value(c, "expected output", i, &set->outputs[i], &m->values[m->outputs[i]], NULL);
}

/* The runtime looks at the first suite of a name. */
static bool named_before(const BundleFile *b, uint32_t suite) {
  for (uint32_t i = 0; i < suite; i++)
    if (sv_eq(b->suites[i].method, b->suites[suite].method))
      return true;
  return false;
}

/* Bundles have as many suites as their program has methods; more are not worth comparing. */
static Status check_names(const BundleFile *b, const PteProgram *p) {
  Status status = STATUS_OK;
  if (b->count > p->method_count)
    return diag_report(b->sink, DIAG_BUNDLE, diag_file(b->file.path),
                       "there are test sets of %u methods, and the program has %u", b->count,
                       p->method_count);
  for (uint32_t i = 0; i < b->count; i++) {
    StrView method = b->suites[i].method;
    bool missing = pte_find_method(p, method) == p->method_count;
    if (missing || named_before(b, i))
      status = diag_report(b->sink, DIAG_BUNDLE, diag_file(b->file.path),
                           "test sets are of method '" SV_FMT "', which %s", SV_ARG(method),
                           missing ? "the program does not have" : "has others already");
  }
  return status;
}

Status bundle_check(const BundleFile *b, const PteProgram *p) {
  Check c = {.b = b};
  TRY(check_names(b, p));
  for (uint32_t i = 0; i < b->count; i++) {
    c.suite = &b->suites[i];
    c.m = &p->methods[pte_find_method(p, c.suite->method)];
    for (c.set = 0; c.set < c.suite->count; c.set++)
      check_set(&c, &c.suite->sets[c.set]);
  }
  return c.faults ? STATUS_INVALID : STATUS_OK;
}
