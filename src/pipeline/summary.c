/* See summary.h.
 *
 * Work is counted in multiply-adds (ops/work.h) and belongs to the operator of the model that a
 * node comes from. */
#include "pipeline/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "onnx/file/weights.h"
#include "ops/delegate.h"
#include "ops/work.h"
#include "pipeline/bank_figures.h"
#include "pipeline/cache.h"
#include "support/json.h"
#include "support/keymap.h"

enum {
  WORTH_DELEGATING = 10 * 1000 * 1000, /* multiply-adds: some milliseconds on portable kernels */
  MANY_BYTES = 64 * 1024,
  MOST = 50, /* percent */
  MUCH = 20
};

/* Multiply-adds of kernels by operator of the model. */
typedef struct OpWork {
  StrView op;
  uint64_t work;
} OpWork;

enum { MAX_OPS = 16 }; /* operators that multiply are few */

typedef struct Summary {
  uint64_t work, kernel_work, float_work; /* all; that of kernels; of those what is f32 or f16 */
  uint64_t packed, workspace;             /* of delegates, estimated */
  uint64_t excess;                        /* of arenas above the least, or ARENA_UNPROVEN */
  uint64_t model_bytes;                   /* files that were read; 0: no ONNX model */
  BankFigures banks;
  OnnxWeights weights;
  OpWork ops[MAX_OPS];
  uint32_t op_count;
  const char *advice; /* or "" */
} Summary;

/* --- figures --- */

static void add_op(Summary *f, StrView op, uint64_t work) {
  uint32_t i = 0;
  while (i < f->op_count && !sv_eq(f->ops[i].op, op))
    i++;
  if (i == MAX_OPS)
    return;
  f->op_count += i == f->op_count;
  f->ops[i] = (OpWork){op, work_plus(f->ops[i].work, work)};
}

static void add_kernel(Summary *f, const Graph *g, NodeId n) {
  uint64_t work = node_work(g, n);
  if (work == 0)
    return;
  DType dtype = value_dtype(g, node_result(g, n, 0));
  StrView op = node_place(g, n).op;
  f->kernel_work = work_plus(f->kernel_work, work);
  if (dtype == DTYPE_F32 || dtype == DTYPE_F16)
    f->float_work = work_plus(f->float_work, work);
  /* What computes is a product or a convolution: one with the location of a sum took that up. */
  add_op(f, op.size && !sv_eq(op, SV("Add")) ? op : op_schema(g->nodes[n].op)->full, work);
}

typedef struct DelegateWork {
  uint64_t work, packed, workspace;
} DelegateWork;

/* The delegates of a graph that were read, by identity. */
typedef struct ReadDelegates {
  KeyMap known; /* item + 1 */
  DelegateWork *items;
  uint32_t count;
  Arena arena;
} ReadDelegates;

static DelegateWork read_delegate(const Graph *g, NodeId n) {
  Arena arena = {0};
  DelegateFigures figures;
  if (!delegate_figures(g, n, &arena, &figures)) /* nothing reads it */
    figures = (DelegateFigures){0};
  arena_release(&arena);
  return (DelegateWork){figures.work, figures.packed, figures.workspace};
}

/* Calls of one delegate share its memory. */
static void add_delegate(Summary *f, const Graph *g, NodeId n, ReadDelegates *r) {
  DelegateIdentity identity = delegate_identity(g, n);
  uint32_t *slot, known = keymap_get(&r->known, &identity, sizeof identity, &slot);
  if (!known) {
    r->items = arena_push(&r->arena, r->items, r->count, sizeof *r->items);
    r->items[r->count] = read_delegate(g, n);
    *slot = known = ++r->count;
  }
  const DelegateWork *d = &r->items[known - 1];
  f->work = work_plus(f->work, d->work);
  f->workspace = d->workspace > f->workspace ? d->workspace : f->workspace;
}

static void add_graph(Summary *f, const Graph *g) {
  ReadDelegates r = {0};
  r.known = keymap_make(&r.arena, g->ctx->names.seed);
  for (FOR_NODES(g, n))
    if (op_has_trait(g->nodes[n].op, OP_DELEGATE))
      add_delegate(f, g, n, &r);
    else
      add_kernel(f, g, n);
  for (uint32_t i = 0; i < r.count; i++)
    f->packed = work_plus(f->packed, r.items[i].packed);
  arena_release(&r.arena);
}

static void add_model(Summary *f, const OnnxModel *m) {
  OnnxWeights weights = onnx_weights(m);
  f->model_bytes += onnx_file_bytes(m);
  f->weights.bytes = work_plus(f->weights.bytes, weights.bytes);
  f->weights.small_bytes = work_plus(f->weights.small_bytes, weights.small_bytes);
}

/* --- advice --- */

static OpWork largest(const Summary *f) {
  OpWork most = {0};
  for (uint32_t i = 0; i < f->op_count; i++)
    if (f->ops[i].work > most.work)
      most = f->ops[i];
  return most;
}

/* Conv, QLinearConv, ConvTranspose, aten::convolution. */
static bool is_convolution(StrView op) {
  for (size_t i = 0; i + 4 <= op.size; i++)
    if (memcmp(op.data + i, "Conv", 4) == 0 || memcmp(op.data + i, "conv", 4) == 0)
      return true;
  return false;
}

/* The factor was measured on one thread, ExecuTorch 1.4.1 and an AVX-512 CPU: 6 (mobilevit_xxs), 8
 * (squeezenet1_1), 15 (mobilenet_v2), 38 (wav2vec2_tiny), 41 (ds_cnn_kws), 79 (yolov8n), 178
 * (resnet8_cifar). Products alone gain little, as their portable kernels are good. */
static void advise_backend(const Session *s, const Summary *f, StrBuf *out) {
  bool none = true;
  for (uint32_t i = 0; i < s->program.method_count; i++)
    none &= s->program.methods[i].options->pass.backend_count == 0;
  uint32_t percent = work_percent(f->float_work, f->work);
  OpWork most = largest(f);
  if (f->float_work < WORTH_DELEGATING || percent < (none ? MOST : MUCH))
    return;
  strbuf_printf(out, "%u %% of the computing (", percent);
  strbuf_append_printable(out, most.op);
  strbuf_append(out, most.work < f->float_work ? SV(" and others) runs on portable kernels; ")
                                               : SV(") runs on portable kernels; "));
  if (!none)
    strbuf_append(out, SV("--explain says why"));
  else if (is_convolution(most.op))
    strbuf_append(out,
                  SV("--backend xnnpack is 3 to 30 times faster where the runtime has XNNPACK"));
  else
    strbuf_append(out, SV("try --backend xnnpack"));
}

static void advise_size(const Session *s, const Summary *f, StrBuf *out) {
  uint64_t file = s->program.written.file_bytes;
  bool limited = false;
  if (f->model_bytes == 0 || f->weights.small_bytes < MANY_BYTES ||
      f->weights.small_bytes < f->weights.bytes / 2 || file / 2 < f->model_bytes)
    return;
  for (uint32_t i = 0; i < s->program.method_count; i++)
    limited |= s->program.methods[i].options->pass.fold_limit != 0;
  uint64_t tenths = work_times(file, 10) / f->model_bytes;
  strbuf_append(out, out->size ? SV("; ") : SV(""));
  strbuf_printf(out, "8-bit weights became f32: the file is %llu.%llu x the model%s",
                (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10),
                limited ? "" : " (--fold-limit 1K keeps them, for more memory or time)");
}

/* Codes of 4 bits that were chosen without samples. */
static void advise_samples(const Session *s, StrBuf *out) {
  bool nearest = false;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    const QuantOptions *q = m->options->pass.quantize;
    nearest |= q && m->quantized_blocks && !q->data && !q->made_up;
  }
  if (!nearest)
    return;
  strbuf_append(out, out->size ? SV("; ") : SV(""));
  strbuf_append(out, SV("weights of 4 bits are rounded to the nearest code; --calibrate PATH, or "
                        "--calibrate random, chooses codes with less noise"));
}

/* A symbol that is a dim with a name, or NULL. */
static const char *dim_name(const SymTable *t, SymInt size) {
  const SymExpr *e = sym_is_const(size) ? NULL : sym_expr(t, size);
  return e && e->kind == SYM_SYMBOL && !e->unbacked && e->name && e->name[0] ? e->name : NULL;
}

static void append_flag(StrBuf *out, const char *name, const char *size) {
  StrBuf flag = {0};
  strbuf_printf(&flag, "%s=%s", name, size);
  strbuf_append_word(out, sv_from(strbuf_cstr(&flag)));
  strbuf_release(&flag);
}

/* Two dims with a range each that must be equal: a call in which they are not ends. */
static void advise_equal(const Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Graph *g = s->program.methods[i].graph;
    for (uint32_t k = 0; k < g->constraint_count; k++) {
      const Constraint *c = &g->constraints[k];
      const char *a = dim_name(&g->syms, c->lhs), *b = dim_name(&g->syms, c->rhs);
      if (c->kind != CONSTRAINT_EQ || !a || !b)
        continue;
      strbuf_append(out, out->size ? SV("; ") : SV(""));
      strbuf_append_within(out, "sizes '", sv_from(a), "' and '");
      strbuf_append_within(out, "", sv_from(b), "' must be equal in each call: --dim ");
      append_flag(out, b, a);
      strbuf_append(out, SV(" says so"));
      return;
    }
  }
}

static void advise(const Session *s, const Summary *f, StrBuf *out) {
  advise_equal(s, out);
  advise_backend(s, f, out);
  advise_size(s, f, out);
  advise_samples(s, out);
}

/* --- the two forms --- */

static void print_calls(StrBuf *out, uint32_t count, const char *what) {
  if (count)
    strbuf_printf(out, ", %u %s%s", count, what, count == 1 ? "" : "s");
}

static const char *cache_says(const Session *s) {
  return s->cache.hit ? "hit" : session_cache_path(s) ? "miss" : "not kept";
}

static void append_written(const Session *s, const char *output, StrBuf *out) {
  strbuf_append_within(out, "wrote ", sv_from(output), ", ");
  strbuf_append_bytes(out, s->program.written.file_bytes);
}

static void print_excess(StrBuf *out, uint64_t arena, uint64_t excess) {
  if (arena == 0 || excess >= arena)
    return;
  uint64_t tenths = work_times(excess, 1000) / (arena - excess);
  if (excess == 0)
    strbuf_append(out, SV(" (optimal)"));
  else
    strbuf_printf(out, " (at most %llu.%llu %% above the optimum)",
                  (unsigned long long)((tenths + 1) / 10), (unsigned long long)((tenths + 1) % 10));
}

/* The files besides the program. */
static void print_besides(const Session *s, StrBuf *out) {
  const char *const paths[] = {s->bundle, s->external, s->map};
  struct stat st;
  for (size_t i = 0; i < COUNT_OF(paths); i++) {
    if (!paths[i] || stat(paths[i], &st) != 0)
      continue;
    strbuf_append_within(out, "  also wrote ", sv_from(paths[i]), ", ");
    strbuf_append_bytes(out, (uint64_t)st.st_size);
    strbuf_append_char(out, '\n');
  }
}

static void print_text(const Session *s, const char *output, const Summary *f, StrBuf *out) {
  const EmitFigures *w = &s->program.written;
  append_written(s, output, out);
  bool missed = !s->cache.hit && session_cache_path(s);
  if (s->cache.folder && !missed)
    strbuf_printf(out, ", cache: %s", cache_says(s));
  strbuf_append(out, SV("\n  arena "));
  strbuf_append_bytes(out, w->arena_bytes);
  if (s->program.method_count > 1)
    strbuf_printf(out, " in %u methods", s->program.method_count);
  print_excess(out, w->arena_bytes, f->excess);
  strbuf_append(out, SV(", weights "));
  strbuf_append_bytes(out, w->weight_bytes);
  print_calls(out, w->kernel_calls, "kernel call");
  print_calls(out, w->delegate_calls, "delegate call");
  if (f->packed || f->workspace) {
    strbuf_append(out, SV("; delegates need about "));
    strbuf_append_bytes(out, work_plus(f->packed, f->workspace));
    strbuf_append(out, SV(" more memory"));
  }
  strbuf_append_char(out, '\n');
  if (f->banks.count) {
    strbuf_append(out, SV("  banks: "));
    bank_figures_text(&f->banks, out);
    strbuf_append_char(out, '\n');
  }
  print_besides(s, out);
  if (s->program.kept_text)
    strbuf_printf(out, "  quantized: %s\n", s->program.kept_text);
  if (f->advice[0])
    strbuf_printf(out, "  hint: %s\n", f->advice);
}

static void print_json(const Session *s, const char *output, const Summary *f, StrBuf *out) {
  const EmitFigures *written = &s->program.written;
  JsonWriter w;
  json_init(&w, out, false);
  json_open_object(&w);
  json_named_string(&w, "severity", SV("info"));
  json_named_string(&w, "code", SV(""));
  json_named_string(&w, "id", SV("SUMMARY"));
  StrBuf message = {0};
  append_written(s, output, &message);
  json_named_string(&w, "message", sv_from(strbuf_cstr(&message)));
  strbuf_release(&message);
  json_named_string(&w, "file", sv_from(output));
  json_named_uint(&w, "file_bytes", written->file_bytes);
  json_named_uint(&w, "arena_bytes", written->arena_bytes);
  if (f->excess != ARENA_UNPROVEN)
    json_named_uint(&w, "arena_excess_bytes", f->excess);
  bank_figures_json(&f->banks, &w);
  json_named_uint(&w, "weight_bytes", written->weight_bytes);
  json_named_uint(&w, "kernel_calls", written->kernel_calls);
  json_named_uint(&w, "delegate_calls", written->delegate_calls);
  json_named_uint(&w, "packed_bytes_estimate", f->packed);
  json_named_uint(&w, "workspace_bytes_estimate", f->workspace);
  json_named_uint(&w, "multiply_adds", f->work);
  json_named_uint(&w, "kernel_multiply_adds", f->kernel_work);
  if (s->program.kept_text)
    json_named_string(&w, "quantized", sv_from(s->program.kept_text));
  if (s->cache.folder)
    json_named_string(&w, "cache", sv_from(cache_says(s)));
  json_named_string(&w, "hint", sv_from(f->advice));
  json_close_object(&w);
  strbuf_append_char(out, '\n');
}

/* How far arenas may be above the smallest that the order of nodes allows; ARENA_UNPROVEN: not
 * known. */
static uint64_t arena_excess(const Session *s) {
  uint64_t excess = 0;
  for (uint32_t i = 0; i < s->program.method_count; i++)
    if (!add_u64(excess, s->program.methods[i].graph->arena_excess, &excess))
      return ARENA_UNPROVEN;
  return excess;
}

static void gather(const Session *s, Summary *f) {
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    add_graph(f, s->program.methods[i].graph);
    bank_figures_add(&f->banks, s->program.methods[i].graph);
  }
  f->excess = arena_excess(s);
  f->work = work_plus(f->work, f->kernel_work);
  for (uint32_t i = 0; i < s->program.source_count; i++)
    if (s->program.sources[i]->kind == SOURCE_ONNX)
      add_model(f, &s->program.sources[i]->onnx);
}

void session_figures_json(const Session *s, JsonWriter *w) {
  Summary f = {0};
  gather(s, &f);
  json_named_object(w, "figures");
  json_named_uint(w, "model_bytes", f.model_bytes);
  json_named_uint(w, "work", f.work);
  json_named_uint(w, "kernel_work", f.kernel_work);
  json_named_uint(w, "packed_bytes_estimate", f.packed);
  json_named_uint(w, "workspace_bytes_estimate", f.workspace);
  if (s->program.kept_text)
    json_named_string(w, "quantized", sv_from(s->program.kept_text));
  json_close_object(w);
}

void session_advise_first(const Session *s, StrBuf *out) {
  Summary f = {0};
  gather(s, &f);
  advise(s, &f, out);
}

/* *f without its advice, which is appended to advice: it is made now, or was kept in the cache. */
static void find_summary(const Session *s, Summary *f, StrBuf *advice) {
  if (s->cache.summary) {
    *f = *s->cache.summary;
    strbuf_append(advice, sv_from(f->advice));
    return;
  }
  gather(s, f);
  advise(s, f, advice);
}

void session_summary(const Session *s, const char *output, StrBuf *out) {
  Summary f = {0};
  StrBuf advice = {0};
  find_summary(s, &f, &advice);
  f.advice = strbuf_cstr(&advice);
  if (s->sink.format == DIAG_JSON)
    print_json(s, output, &f, out);
  else
    print_text(s, output, &f, out);
  strbuf_release(&advice);
}

/* --- in the cache --- */

#define WRITTEN_FORMAT(u64, u32)                                                                   \
  "file %" u64 ", arena %" u64 ", weights %" u64 ", kernels %" u32 ", delegates %" u32 "\n"
#define WORK_FORMAT(u64)                                                                           \
  "work %" u64 ", of kernels %" u64 ", packed %" u64 ", workspace %" u64 ", excess %" u64 "\n"

void session_summary_write(const Session *s, StrBuf *out) {
  const EmitFigures *w = &s->program.written;
  Summary f = {0};
  StrBuf advice = {0};
  find_summary(s, &f, &advice);
  strbuf_printf(out, WRITTEN_FORMAT(PRIu64, PRIu32), w->file_bytes, w->arena_bytes, w->weight_bytes,
                w->kernel_calls, w->delegate_calls);
  strbuf_printf(out, WORK_FORMAT(PRIu64), f.work, f.kernel_work, f.packed, f.workspace, f.excess);
  strbuf_append(out, SV("banks"));
  bank_figures_write(&f.banks, out);
  strbuf_printf(out, "\nquantized %s\nnext %s\n", s->program.kept_text ? s->program.kept_text : "",
                strbuf_cstr(&advice));
  strbuf_release(&advice);
}

/* The text after name in the last line of text that begins so; NULL without one. */
static const char *line_of(Session *s, StrView text, const char *name) {
  const char *at = strstr(text.data, name), *end = at ? strchr(at + 1, '\n') : NULL;
  if (!end)
    return NULL;
  at += strlen(name);
  return arena_strdup(&s->arena, (StrView){at, (size_t)(end - at)});
}

bool session_summary_read(Session *s, StrView text) {
  EmitFigures *w = &s->program.written;
  Summary *f = ARENA_NEW(&s->arena, Summary);
  if (sscanf(text.data, WRITTEN_FORMAT(SCNu64, SCNu32) WORK_FORMAT(SCNu64), &w->file_bytes,
             &w->arena_bytes, &w->weight_bytes, &w->kernel_calls, &w->delegate_calls, &f->work,
             &f->kernel_work, &f->packed, &f->workspace, &f->excess) != 10)
    return false;
  const char *kept = line_of(s, text, "\nquantized "), *banks = line_of(s, text, "\nbanks");
  f->advice = line_of(s, text, "\nnext ");
  if (!kept || !f->advice || !banks || !bank_figures_read(&f->banks, banks))
    return false;
  s->program.kept_text = kept[0] ? kept : NULL;
  s->cache.summary = f;
  return true;
}
