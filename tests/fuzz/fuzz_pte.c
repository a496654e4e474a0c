/* Any bytes as a program file, or as a bundle, whose program is looked at then: decoded, reported,
 * embedded, read back as graphs, verified, printed, and, when the program is small, run on its
 * planned arena; the code of its delegates too.
 *
 * Seeds: tests/fuzz/corpus/fuzz_pte, made by tests/pte/programs.c, and the programs of the official
 * cases (seeds.py). */
#include "backends/backend.h"
#include "backends/xnnpack/read.h"
#include "interp/interp.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/delegate.h"
#include "pte/bundle.h"
#include "pte/embed.h"
#include "pte/inspect.h"
#include "pte/kernels.h"
#include "pte/read.h"
#include "pte/size.h"
#include "pte/verify_plan.h"

enum { SMALL_ARENA = 1 << 14, SMALL_COUNT = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

/* Each byte of the file is one part. */
static void check_parts(const PteProgram *p, const PteSize *s) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < s->part_count; i++)
    bytes += s->parts[i].bytes;
  if (bytes != p->file.size)
    BUG("the parts have %llu bytes", (unsigned long long)bytes);
}

static void show_size(const PteProgram *p, StrBuf *out) {
  Arena arena = {0};
  PteSize s = pte_size(p, NULL, &arena);
  check_parts(p, &s);
  for (uint32_t i = 0; i < p->method_count && i < 4; i++) {
    PteSize own = pte_size_flash(p, NULL, i, &arena);
    check_parts(p, &own);
  }
  pte_size_text(p, &s, true, out);
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  pte_size_json(p, &s, &w);
  json_close_object(&w);
  Sheet a = {.arena = &arena, .path = "a"}, b = {.arena = &arena, .path = "b"};
  pte_sheet(p, &a);
  pte_sheet(p, &b);
  if (sheet_compare(&a, &b).count)
    BUG("a program differs from itself");
  SheetDiff d = sheet_compare(&a, &(Sheet){.arena = &arena, .path = "c"});
  sheet_diff_text(&d, true, out);
  sheet_diff_markdown(&d, out);
  arena_release(&arena);
}

/* What firmware is built with. */
static void embed(const PteProgram *p, DiagSink *sink) {
  Embed e = {.file = &p->file, .program = p, .symbol = "fuzz", .alignment = embed_alignment(p)};
  AtomicFile out;
  Arena arena = {0};
  if (atomic_file_open(&out, &arena, sink, "/dev/null") == STATUS_OK) {
    (void)!embed_write_header(&e, sink, &out);
    atomic_file_abandon(&out);
  }
  arena_release(&arena);
}

static void list_kernels(const PteProgram *p, StrBuf *out) {
  KernelList list;
  kernel_list_init(&list);
  kernel_list_add(&list, p);
  kernel_list_yaml(&list, out);
  kernel_list_cmake(&list, out);
  kernel_list_release(&list);
}

static void inspect(DiagSink *sink, const uint8_t *data, uint64_t size, const BundleFile *bundle) {
  PteProgram p;
  if (pte_program_open_bytes(&p, sink, "fuzz.pte", data, size) != STATUS_OK)
    return;
  p.readers = &backend_readers;
  StrBuf out = {0};
  pte_inspect_text(&p, true, &out);
  pte_inspect_json(&p, &out);
  show_size(&p, &out);
  list_kernels(&p, &out);
  if (bundle)
    (void)!bundle_check(bundle, &p);
  embed(&p, sink);
  strbuf_release(&out);
  pte_program_close(&p);
}

/* Zeros of the smallest shape that the input takes. */
static Tensor input_of(const Graph *g, ValueId v, Arena *arena) {
  const Type *type = value_type(g, v);
  Tensor t = {.dtype = (DType)type->dtype, .rank = type->rank};
  for (uint32_t i = 0; i < type->rank; i++)
    t.dims[i] = sym_is_const(type->dims[i]) ? type->dims[i] : 1;
  t.capacity = tensor_bytes(&t);
  t.data = arena_alloc(arena, t.capacity);
  memset(t.data, 0, t.capacity);
  return t;
}

/* Whether a delegate's values and windows are small: values are no larger than they say. */
static bool is_small(const uint8_t *blob, uint64_t size) {
  Arena arena = {0};
  XrGraph x;
  uint64_t total = 0;
  bool small = xr_read(blob, size, &arena, &x) == NULL && x.node_count <= SMALL_COUNT;
  for (uint32_t i = 0; small && i < x.value_count; i++) {
    uint64_t bytes = 4;
    for (uint32_t k = 0; k < x.values[i].rank; k++)
      small &= mul_u64(bytes, x.values[i].dims[k], &bytes);
    small = small && add_u64(total, bytes, &total) && total <= SMALL_ARENA;
  }
  for (uint32_t i = 0; small && i < x.node_count; i++)
    for (uint32_t k = 0; k < 2; k++)
      small &= x.nodes[i].window.before[k] + (uint64_t)x.nodes[i].window.after[k] <= SMALL_COUNT;
  arena_release(&arena);
  return small;
}

static bool has_large_delegate(const Graph *g) {
  for (FOR_NODES(g, n)) {
    if (!op_has_trait(node_cget(g, n)->op, OP_DELEGATE))
      continue;
    const Constant *blob = value_constant(g, node_value(g, n, DELEGATE_ARG_BLOB));
    if (!blob || !is_small(blob->data, blob->size))
      return true;
  }
  return false;
}

static void run(Graph *g) {
  uint64_t total = 0;
  for (uint32_t i = 1; i < g->arena_size_count; i++)
    if (!add_u64(total, g->arena_sizes[i], &total))
      return;
  if (total > SMALL_ARENA || g->live_nodes > SMALL_COUNT || g->input_count > SMALL_COUNT ||
      graph_output_count(g) > SMALL_COUNT || has_large_delegate(g))
    return;
  Arena arena = {0};
  Tensor inputs[SMALL_COUNT], outputs[SMALL_COUNT];
  bool planned = true;
  for (uint32_t i = 0; i < g->input_count; i++)
    planned &= g->values[g->inputs[i]].storage != 0;
  for (uint32_t i = 0; i < g->input_count && planned; i++)
    inputs[i] = input_of(g, g->inputs[i], &arena);
  if (planned)
    (void)!interp_run(g, inputs, g->input_count, &arena, outputs);
  arena_release(&arena);
}

static void check(Graph *g) {
  StrBuf out = {0};
  graph_print(g, (PrintOptions){0}, &out);
  strbuf_release(&out);
  Status plan = pte_verify_plan(g), code = delegate_check(g, false, DIAG_PTE_DELEGATE);
  /* What a check of the code says holds for the sizes of the file; those of a run are others. */
  (void)!code;
  if (graph_verify(g, NULL) == STATUS_OK && plan == STATUS_OK)
    run(g);
}

static void show_bundle(const BundleFile *b) {
  StrBuf out = {0};
  JsonWriter w;
  volatile uint8_t sum = 0;
  json_init(&w, &out, true);
  bundle_inspect_text(b, true, &out);
  bundle_inspect_json(b, &w);
  strbuf_release(&out);
  for (uint32_t i = 0; i < b->count; i++)
    for (uint32_t k = 0; k < b->suites[i].count; k++)
      for (uint32_t n = 0; n < b->suites[i].sets[k].input_count; n++) {
        const BundledValue *v = &b->suites[i].sets[k].inputs[n];
        sum = (uint8_t)(sum + (v->bytes ? v->data[v->bytes - 1] : 0));
      }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
  DiagSink sink;
  Context ctx;
  BundleFile bundle;
  uint64_t size = length;
  diag_sink_init(&sink);
  sink.write = drop;
  context_init(&ctx, &sink);
  ctx.readers = &backend_readers;
  bool bundled = bundle_is(data, size) &&
                 bundle_open_bytes(&bundle, &sink, "fuzz.bpte", data, size) == STATUS_OK;
  if (bundled) {
    show_bundle(&bundle);
    data = bundle.program;
    size = bundle.program_size;
  }
  inspect(&sink, data, size, bundled ? &bundle : NULL);
  PteFile file;
  if (pte_read_bytes(&ctx, "fuzz.pte", data, size, NULL, &file) == STATUS_OK) {
    for (uint32_t i = 0; i < file.method_count; i++)
      if (file.methods[i])
        check(file.methods[i]);
    pte_close(&file);
  }
  if (bundled)
    bundle_close(&bundle);
  context_release(&ctx);
  diag_sink_release(&sink);
  return 0;
}
