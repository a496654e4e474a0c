/* What the file of the program is made of: constants with the node that wants them, and delegates.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/transform.h"
#include "ops/delegate.h"
#include "report/internal.h"

/* --- the node that a constant belongs to --- */

static int compare_data(const void *a, const void *b) {
  const ReportUser *x = *(const ReportUser *const *)a, *y = *(const ReportUser *const *)b;
  if (x->data != y->data)
    return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
  return ORDER(x, y);
}

/* Who used a constant while the graph still had its nodes: delegates took them since. */
typedef struct Users {
  const ReportUser **by_data; /* sorted; of equal ones the first user first */
  uint32_t count;
  LocId *by_name;
} Users;

static Users sort_users(const ReportMethod *m, const Graph *g, Arena *scratch) {
  Users u = {.by_data = ARENA_ARRAY(scratch, const ReportUser *, (size_t)m->user_count + 1),
             .count = m->user_count,
             .by_name = ARENA_ARRAY(scratch, LocId, (size_t)g->ctx->names.count + 1)};
  for (uint32_t i = 0; i < m->user_count; i++) {
    const ReportUser *user = u.by_data[i] = &m->users[i];
    if (user->name && !u.by_name[user->name])
      u.by_name[user->name] = user->loc;
  }
  qsort(u.by_data, u.count, sizeof *u.by_data, compare_data);
  return u;
}

static LocId find_user(const Users *u, const Graph *g, ValueId v) {
  const uint8_t *data = constant_source(value_lazy_constant(g, v))->data;
  NameId name = value_cget(g, v)->name;
  uint32_t low = 0, high = u->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if ((uintptr_t)u->by_data[middle]->data < (uintptr_t)data)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < u->count && u->by_data[low]->data == data)
    return u->by_data[low]->loc;
  return name ? u->by_name[name] : 0;
}

/* --- constants --- */

void report_constant(JsonWriter *w, const Graph *g, ValueId v, LocId loc, uint32_t delegate) {
  json_open_object(w);
  report_name(w, "name", g, value_cget(g, v)->name);
  json_key(w, "type");
  report_type(w, g, value_type(g, v));
  json_named_uint(w, "bytes", value_lazy_constant(g, v)->size);
  if (loc)
    json_named_uint(w, "place", loc);
  if (delegate)
    json_named_uint(w, "delegate", delegate);
  json_close_object(w);
}

/* The constants that are listed already: each key of named data, and each content, is listed once.
 */
typedef struct Seen {
  Intern keys;
  bool *values; /* by ValueId */
} Seen;

/* Whether the constant was not listed before. key: of a delegate's constant, else empty. Constants
 * with a transform are not computed for this: each counts as new. */
static bool is_new(Seen *seen, const Graph *g, ValueId v, StrView key) {
  const Constant *c = value_lazy_constant(g, v);
  char text[64];
  if (seen->values[v])
    return false;
  seen->values[v] = true;
  if (!key.size && c->transform)
    return true;
  if (!key.size) {
    uint64_t hash[2];
    constant_hash128(c, 0, hash);
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64 " %" PRIu64, hash[1], hash[0], c->size);
    key = sv_from(text);
  }
  uint32_t before = seen->keys.count;
  return intern_add(&seen->keys, key) > before;
}

static void write_kernel_constants(JsonWriter *w, const Graph *g, NodeId n, Seen *seen,
                                   const Users *users) {
  FOR_OPERANDS(g, n, v, {
    if (!v || !value_is_const(g, v) || !is_new(seen, g, v, SV("")))
      continue;
    LocId loc = find_user(users, g, v);
    report_constant(w, g, v, loc ? loc : g->nodes[n].loc, 0);
  })
}

static void write_delegate_constants(JsonWriter *w, const Graph *g, NodeId n, uint32_t delegate,
                                     Seen *seen, const Users *users) {
  StrView keys = node_str(g, n, DELEGATE_ARG_KEYS);
  for (uint32_t i = 0; i < node_list_count(g, n, DELEGATE_ARG_DATA); i++) {
    ValueId v = node_list_value(g, n, DELEGATE_ARG_DATA, i);
    if (is_new(seen, g, v, delegate_next_key(&keys)))
      report_constant(w, g, v, find_user(users, g, v), delegate);
  }
}

void report_constants(JsonWriter *w, const ReportMethod *m, const Graph *g, Arena *scratch) {
  Users users = sort_users(m, g, scratch);
  Seen seen = {.values = ARENA_ARRAY(scratch, bool, (size_t)g->value_count + 1)};
  const uint32_t *delegates = delegate_numbers(g, scratch, NULL);
  intern_init(&seen.keys);
  json_named_array(w, "constants");
  for (FOR_NODES(g, n))
    if (delegates[n])
      write_delegate_constants(w, g, n, delegates[n], &seen, &users);
    else
      write_kernel_constants(w, g, n, &seen, &users);
  json_close_array(w);
  intern_release(&seen.keys);
}

/* --- delegates --- */

static void write_kinds(JsonWriter *w, const DelegateFigures *f) {
  json_named_array(w, "kinds");
  for (uint32_t i = 0; i < f->kind_count; i++) {
    json_open_object(w);
    json_named_string(w, "what", sv_from(f->nodes[i].what));
    if (f->nodes[i].types)
      json_named_string(w, "types", sv_from(f->nodes[i].types));
    json_named_uint(w, "count", f->nodes[i].count);
    json_close_object(w);
  }
  json_close_array(w);
}

/* n: the first of its calls, of the number `node` in the report. */
static void write_delegate(JsonWriter *w, const Graph *g, NodeId n, uint32_t node, uint32_t calls,
                           Arena *scratch) {
  DelegateFigures f;
  json_open_object(w);
  json_named_string(w, "backend", node_str(g, n, DELEGATE_ARG_BACKEND));
  json_named_uint(w, "node", node);
  json_named_uint(w, "calls", calls);
  json_named_uint(w, "code_bytes",
                  value_lazy_constant(g, node_value(g, n, DELEGATE_ARG_BLOB))->size);
  if (delegate_figures(g, n, scratch, &f)) {
    json_named_uint(w, "nodes", f.node_count);
    json_named_uint(w, "constant_bytes", f.constant_bytes);
    json_named_uint(w, "packed_bytes_estimate", f.packed);
    json_named_uint(w, "workspace_bytes_estimate", f.workspace);
    json_named_uint(w, "work", f.work);
    json_named_uint(w, "transposes", f.transpose_count);
    write_kinds(w, &f);
  }
  json_close_object(w);
}

void report_delegates(JsonWriter *w, const Graph *g, Arena *scratch) {
  uint32_t node = report_first_node(g), count, written = 0;
  const uint32_t *delegates = delegate_numbers(g, scratch, &count);
  uint32_t *calls = ARENA_ARRAY(scratch, uint32_t, (size_t)count + 1);
  for (FOR_NODES(g, n))
    calls[delegates[n]]++;
  json_named_array(w, "delegates");
  for (FOR_NODES(g, n)) {
    if (delegates[n] > written) {
      write_delegate(w, g, n, node, calls[delegates[n]], scratch);
      written++;
    }
    node++;
  }
  json_close_array(w);
}
