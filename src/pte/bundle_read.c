/* See bundle.h. */
#include <fcntl.h>
#include <unistd.h>

#include "pte/bundle.h"
#include "pte/flatread.h"

typedef struct BundleReader {
  BundleFile *b;
  FbReader fb;
  StrView method; /* that is read, and the number of its test set */
  uint32_t set;
} BundleReader;

static Status bundle_error(const BundleReader *r, const char *format, ...) ETC_PRINTF(2, 3);
static Status bundle_error(const BundleReader *r, const char *format, ...) {
  const char *before =
      !r->method.data
          ? ""
          : arena_printf(&r->b->arena, "method '" SV_FMT "', test set %u: ", SV_ARG(r->method),
                         r->set);
  va_list args;
  va_start(args, format);
  Status status =
      diag_vreport(r->b->sink, DIAG_BUNDLE, diag_file(r->b->file.path), before, format, args);
  va_end(args);
  return status;
}

bool bundle_is(const uint8_t *data, uint64_t size) {
  return size >= 8 && memcmp(data + 4, BUNDLE_IDENTIFIER, 4) == 0;
}

bool bundle_is_file(const char *path) {
  uint8_t bytes[8];
  if (sv_has_suffix(sv_from(path), SV(".bpte")))
    return true;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool is = fd >= 0 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes &&
            bundle_is(bytes, sizeof bytes);
  if (fd >= 0)
    close(fd);
  return is;
}

static Status read_tensor(BundleReader *r, FbTable t, BundledValue *v) {
  FbVector sizes = fb_vector(t, BUNDLED_SIZES, 4), order = fb_vector(t, BUNDLED_DIM_ORDER, 1),
           data = fb_vector(t, BUNDLED_DATA, 1);
  v->dtype = fb_u8(t, BUNDLED_SCALAR_TYPE, 0);
  if (r->fb.fault)
    return STATUS_OK; /* reported by the caller */
  if (sizes.count > MAX_RANK || order.count != sizes.count)
    return bundle_error(r, "a tensor has more than %d dimensions, or a dim order of another length",
                        MAX_RANK);
  v->rank = (uint8_t)sizes.count;
  v->dim_order = r->fb.data + order.at;
  v->data = r->fb.data + data.at;
  for (uint32_t i = 0; i < sizes.count; i++)
    v->sizes[i] = fb_item_i32(sizes, i);
  if (!pte_tensor_bytes(v->dtype, v->rank, v->sizes, v->dim_order, &v->bytes) ||
      v->bytes > data.count)
    return bundle_error(r, "a tensor has sizes that its %u bytes cannot be", data.count);
  return STATUS_OK;
}

static Status read_value(BundleReader *r, FbTable t, BundledValue *v) {
  uint8_t kind = fb_u8(t, BUNDLED_TYPE, 0);
  FbTable value = fb_table(t, BUNDLED_VALUE);
  if (r->fb.fault)
    return STATUS_OK;
  if (kind == BUNDLED_NONE || kind >= BUNDLED_KIND_COUNT || !fb_present(value))
    return bundle_error(r, "a value is neither a tensor nor a number");
  v->kind = (BundledKind)kind;
  switch (v->kind) {
  case BUNDLED_TENSOR:
    return read_tensor(r, value, v);
  case BUNDLED_INT:
    v->i = (int64_t)fb_u64(value, SCALAR_VALUE, 0);
    break;
  case BUNDLED_BOOL:
    v->i = fb_u8(value, SCALAR_VALUE, 0) != 0;
    break;
  default:
    v->f = fb_f64(value, SCALAR_VALUE, 0);
  }
  return STATUS_OK;
}

static Status read_values(BundleReader *r, FbVector list, BundledValue **values, uint32_t *count) {
  *count = list.count;
  *values = ARENA_ARRAY(&r->b->arena, BundledValue, (size_t)list.count + 1);
  for (uint32_t i = 0; i < list.count && !r->fb.fault; i++)
    TRY(read_value(r, fb_item_table(list, i), &(*values)[i]));
  return STATUS_OK;
}

static Status read_suite(BundleReader *r, FbTable t, BundledSuite *suite) {
  FbVector sets = fb_tables(t, SUITE_SETS);
  suite->method = fb_text(t, SUITE_METHOD);
  if (r->fb.fault)
    return STATUS_OK;
  if (!suite->method.data)
    return bundle_error(r, "test sets do not say of which method they are");
  suite->count = sets.count;
  suite->sets = ARENA_ARRAY(&r->b->arena, BundledSet, (size_t)sets.count + 1);
  r->method = suite->method;
  for (r->set = 0; r->set < sets.count && !r->fb.fault; r->set++) {
    BundledSet *set = &suite->sets[r->set];
    FbTable at = fb_item_table(sets, r->set);
    FbVector inputs = fb_tables(at, SET_INPUTS), outputs = fb_tables(at, SET_OUTPUTS);
    TRY(read_values(r, inputs, &set->inputs, &set->input_count));
    TRY(read_values(r, outputs, &set->outputs, &set->output_count));
  }
  r->method = (StrView){NULL, 0};
  return STATUS_OK;
}

static Status read_suites(BundleReader *r, FbVector suites) {
  BundleFile *b = r->b;
  uint64_t names = 0;
  b->count = suites.count;
  b->suites = ARENA_ARRAY(&b->arena, BundledSuite, (size_t)suites.count + 1);
  for (uint32_t i = 0; i < suites.count && !r->fb.fault; i++) {
    TRY(read_suite(r, fb_item_table(suites, i), &b->suites[i]));
    names += b->suites[i].method.size;
    if (names > b->file.size)
      return bundle_error(r, "names of methods are longer than the file: one is shared too often");
  }
  return STATUS_OK;
}

static Status read_file(BundleReader *r) {
  BundleFile *b = r->b;
  if (!bundle_is(b->file.data, b->file.size))
    return bundle_error(r,
                        "the file does not hold the identifier " BUNDLE_IDENTIFIER " of a bundle");
  r->fb = fb_reader(b->file.data, b->file.size);
  FbTable root = fb_root(&r->fb);
  FbVector suites = fb_tables(root, BUNDLE_SUITES), program = fb_vector(root, BUNDLE_PROGRAM, 1);
  b->version = fb_u32(root, BUNDLE_VERSION, 0);
  TRY(read_suites(r, suites));
  if (r->fb.fault)
    return bundle_error(r, "%s (at byte %u)", r->fb.fault, r->fb.fault_at);
  if (!program.count)
    return bundle_error(r, "there is no program in it");
  b->program = r->fb.data + program.at;
  b->program_size = program.count;
  return STATUS_OK;
}

/* mapped: of mapping the file, which a failure leaves without bytes. */
static Status finish_open(BundleFile *b, Status mapped) {
  BundleReader r = {.b = b};
  Status status = mapped == STATUS_OK ? read_file(&r) : mapped;
  if (status != STATUS_OK)
    bundle_close(b);
  return status;
}

Status bundle_open(BundleFile *b, DiagSink *sink, const char *path) {
  *b = (BundleFile){.sink = sink};
  return finish_open(b, file_map(&b->file, &b->arena, sink, path));
}

Status bundle_open_bytes(BundleFile *b, DiagSink *sink, const char *name, const uint8_t *data,
                         uint64_t size) {
  *b = (BundleFile){.sink = sink};
  file_of_bytes(&b->file, &b->arena, name, data, size);
  return finish_open(b, STATUS_OK);
}

void bundle_close(BundleFile *b) {
  file_unmap(&b->file);
  arena_release(&b->arena);
  *b = (BundleFile){.file = {.fd = -1}};
}
