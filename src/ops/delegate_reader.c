/* Calls of readers of delegates (delegate.h), which may be code of plug-ins.
 *
 * Whoever reports a crash is told whose code runs, and what a plug-in answers is checked before
 * anything relies on it; pointers that lead nowhere end the check, which counts as code of the
 * plug-in, too. The readers of etc have tests for that instead. */
#include "ops/delegate.h"

#include <inttypes.h>

/* From here on code of the reader runs; gives what ran before, for leave. */
static const char *enter(const DelegateReader *r) {
  const char *before = r->running ? *r->running : NULL;
  if (r->running)
    *r->running = r->plugin;
  return before;
}

static void leave(const DelegateReader *r, const char *before) {
  if (r->running)
    *r->running = before;
}

/* The fault that an answer of the reader is. */
static const char *answered(const DelegateReader *r, Arena *arena, const char *format, ...)
    ETC_PRINTF(3, 4);
static const char *answered(const DelegateReader *r, Arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = arena_vprintf(arena, format, args);
  va_end(args);
  return arena_printf(arena, "its reader in plug-in '%s' %s", r->plugin, text);
}

/* What the reader returned: a reason has words. */
static const char *reason(const DelegateReader *r, const char *fault, const char *function,
                          Arena *arena) {
  if (!fault || fault[0])
    return fault;
  return r->plugin ? answered(r, arena, "refuses it in %s and gives no reason", function)
                   : "it is refused without a reason";
}

/* --- needs --- */

static const char *check_needs(const DelegateReader *r, const DelegateNeeds *needs, Arena *arena) {
  if (needs->key_count && !needs->keys)
    return answered(r, arena, "counts %u keys in needs() and gives none", needs->key_count);
  for (uint32_t i = 0; i < needs->key_count; i++)
    if (!needs->keys[i].data || !needs->keys[i].size)
      return answered(r, arena, "gives key %u in needs() no text", i);
  return NULL;
}

const char *reader_needs(const DelegateReader *r, const uint8_t *blob, uint64_t size, Arena *arena,
                         DelegateNeeds *out) {
  *out = (DelegateNeeds){0};
  const char *before = enter(r);
  const char *fault = reason(r, r->needs(blob, size, arena, out), "needs()", arena);
  if (!fault && r->plugin)
    fault = check_needs(r, out, arena);
  leave(r, before);
  return fault;
}

/* --- check and run --- */

static Tensor *copy_outputs(const DelegateCall *call, Arena *arena) {
  Tensor *copy = ARENA_ARRAY(arena, Tensor, (size_t)call->output_count + 1);
  if (call->output_count)
    memcpy(copy, call->outputs, call->output_count * sizeof *copy);
  return copy;
}

/* A number of elements, or an expression of the table. */
static bool is_size(const DelegateCall *call, int64_t dim) {
  if (sym_is_const(dim))
    return dim >= 0 || dim == DELEGATE_DIM_UNKNOWN;
  return call->syms && dim - SYM_BAND < call->syms->count;
}

/* Whether output i has the rank and element type that it came with. */
static const char *check_kind(const DelegateReader *r, const DelegateCall *call,
                              const Tensor *given, uint32_t i, const char *function, Arena *arena) {
  const Tensor *t = &call->outputs[i];
  bool same = t->rank == given[i].rank && t->dtype == given[i].dtype;
  return same ? NULL
              : answered(r, arena, "changes the rank or element type of output %u in %s", i,
                         function);
}

/* Whether check() has left the outputs as they were but for sizes that were unknown. */
static const char *check_sizes(const DelegateReader *r, const DelegateCall *call,
                               const Tensor *given, Arena *arena) {
  for (uint32_t i = 0; i < call->output_count; i++) {
    const Tensor *t = &call->outputs[i];
    const char *fault = check_kind(r, call, given, i, "check()", arena);
    if (fault)
      return fault;
    for (uint32_t k = 0; k < t->rank; k++) {
      int64_t was = given[i].dims[k];
      if (t->dims[k] != was && was != DELEGATE_DIM_UNKNOWN)
        return answered(r, arena, "changes dim %u of output %u in check(), which is known", k, i);
      if (!is_size(call, t->dims[k]))
        return answered(r, arena, "makes dim %u of output %u no size in check()", k, i);
    }
  }
  return NULL;
}

const char *reader_check(const DelegateReader *r, const DelegateCall *call, Arena *arena) {
  const Tensor *given = r->plugin ? copy_outputs(call, arena) : NULL;
  const char *before = enter(r), *fault = reason(r, r->check(call, arena), "check()", arena);
  leave(r, before);
  return fault || !given ? fault : check_sizes(r, call, given, arena);
}

/* Whether run() has given sizes up to those that the outputs came with. */
static const char *check_results(const DelegateReader *r, const DelegateCall *call,
                                 const Tensor *given, Arena *arena) {
  for (uint32_t i = 0; i < call->output_count; i++) {
    const Tensor *t = &call->outputs[i];
    const char *fault = check_kind(r, call, given, i, "run()", arena);
    if (fault)
      return fault;
    if (t->data != given[i].data)
      return answered(r, arena, "puts output %u into other memory in run() than it was given", i);
    for (uint32_t k = 0; k < t->rank; k++)
      if (t->dims[k] < 0 || t->dims[k] > given[i].dims[k])
        return answered(r, arena, "makes dim %u of output %u %lld in run(), not 0 to %lld", k, i,
                        (long long)t->dims[k], (long long)given[i].dims[k]);
  }
  return NULL;
}

const char *reader_run(const DelegateReader *r, const DelegateCall *call, Arena *arena) {
  const Tensor *given = r->plugin ? copy_outputs(call, arena) : NULL;
  const char *before = enter(r), *fault = reason(r, r->run(call, arena), "run()", arena);
  leave(r, before);
  return fault || !given ? fault : check_results(r, call, given, arena);
}

/* --- describe --- */

/* More memory than a machine has: an estimate above it is a fault. */
#define MAX_MEMORY ((uint64_t)1 << 50)

static const char *check_figures(const DelegateReader *r, const DelegateFigures *f, Arena *arena) {
  if (f->kind_count && !f->nodes)
    return answered(r, arena, "counts %u kinds of nodes in describe() and gives none",
                    f->kind_count);
  for (uint32_t i = 0; i < f->kind_count; i++)
    if (!f->nodes[i].what || !f->nodes[i].types)
      return answered(r, arena, "gives kind %u of nodes in describe() no name or types", i);
  for (uint32_t i = 0; i < f->transpose_count && f->transposes; i++)
    if (f->transposes[i].what >= TRANSPOSE_REASONS ||
        (f->transposes[i].node.size && !f->transposes[i].node.data))
      return answered(r, arena, "gives transpose %u in describe() no reason or node", i);
  const uint64_t bytes = f->packed > f->workspace ? f->packed : f->workspace;
  if (bytes > MAX_MEMORY)
    return answered(r, arena, "says in describe() that the code needs %" PRIu64 " bytes of memory",
                    bytes);
  return NULL;
}

const char *reader_describe(const DelegateReader *r, const uint8_t *blob, uint64_t size,
                            Arena *arena, DelegateFigures *out) {
  *out = (DelegateFigures){0};
  const char *before = enter(r);
  const char *fault = reason(r, r->describe(blob, size, arena, out), "describe()", arena);
  if (!fault && r->plugin)
    fault = check_figures(r, out, arena);
  leave(r, before);
  return fault;
}

/* --- in place --- */

bool reader_may_overwrite(const DelegateReader *r, const uint8_t *blob, uint64_t size,
                          uint32_t input, uint32_t output, Arena *arena) {
  if (!r->may_overwrite)
    return false;
  const char *before = enter(r);
  bool may = r->may_overwrite(blob, size, input, output, arena);
  leave(r, before);
  return may;
}
