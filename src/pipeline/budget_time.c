/* See budget_time.h.
 *
 * The rates fit the times of docs/measurements/benchmarks.md, which are of one AVX-512 machine: its
 * 17 networks on portable kernels that take 0.3 ms and more come out at 0.79 to 1.11 times what was
 * measured (tests/bench/time_estimate.py), those with a few microseconds at less than half of it.
 * Another device is slower or faster as a whole, and has other ratios between the rates. Integers
 * count as floats; what a delegate multiplies counts as far as its reader knows it.
 */
#include "pipeline/budget_time.h"

#include "ops/delegate.h"
#include "ops/work.h"

/* Nanoseconds. */
#define CALL 150.0         /* of a kernel or a delegate */
#define CONVOLUTION 3.2    /* a multiply-add of the portable convolution */
#define PRODUCT 0.06       /* one of a portable matrix product */
#define ELEMENT 1.2        /* of the result of any other kernel */
#define DELEGATE 0.022     /* a multiply-add in a delegate */
#define DELEGATE_NODE 65.0 /* of XNNPACK, see backends/xnnpack/estimate.c */

enum { SHOWN = 3 };

static double elements_of(const Graph *g, NodeId n) {
  if (!node_cget(g, n)->result_count)
    return 0;
  const Type *t = value_type(g, node_result(g, n, 0));
  return t->kind == TYPE_TENSOR ? (double)type_bytes_upper(g, t) / dtype_size((DType)t->dtype) : 1;
}

static double delegate_time(const Graph *g, NodeId n) {
  DelegateFigures figures;
  Arena arena = {0};
  double time = CALL;
  if (delegate_figures(g, n, &arena, &figures))
    time += (double)figures.work * DELEGATE + (double)figures.node_count * DELEGATE_NODE;
  arena_release(&arena);
  return time;
}

static double node_time(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  if (op_has_trait(op, OP_DELEGATE))
    return delegate_time(g, n);
  if (op_has_trait(op, OP_CONTROL) || !op_row(op)->out)
    return 0;
  double work = (double)node_work(g, n);
  if (work > 0)
    return CALL + work * (op == OP_CONVOLUTION ? CONVOLUTION : PRODUCT);
  return CALL + elements_of(g, n) * ELEMENT;
}

typedef struct Slow {
  NodeId node;
  double time;
} Slow;

/* Keeps the slowest, the slowest first. */
static void keep_slow(Slow slow[SHOWN], Slow one) {
  for (int i = 0; i < SHOWN; i++)
    if (one.time > slow[i].time) {
      Slow next = slow[i];
      slow[i] = one;
      one = next;
    }
}

static const char *slow_text(const Graph *g, const Slow slow[SHOWN], Arena *arena) {
  StrBuf text = {0};
  for (int i = 0; i < SHOWN && slow[i].node; i++) {
    NodeId n = slow[i].node;
    StrView name = op_has_trait(node_cget(g, n)->op, OP_DELEGATE)
                       ? node_str(g, n, DELEGATE_ARG_BACKEND)
                       : node_place(g, n).node;
    strbuf_append(&text, i ? SV(", ") : SV(""));
    strbuf_append_printable(&text, name.size ? name : op_schema(node_cget(g, n)->op)->full);
    strbuf_append_char(&text, ' ');
    strbuf_append_time(&text, slow[i].time);
  }
  return strbuf_keep(&text, arena).data;
}

/* The first node that is named as n, which its time is added to; delegates stand for themselves. */
static NodeId layer_of(const Graph *g, NodeId n, NodeId *first_of) {
  NameId name = g->locs[node_cget(g, n)->loc].name;
  if (!name || op_has_trait(node_cget(g, n)->op, OP_DELEGATE))
    return n;
  if (!first_of[name])
    first_of[name] = n;
  return first_of[name];
}

double method_time(const Graph *g, Arena *arena, const char **slow) {
  Slow layers[SHOWN] = {{0}};
  Arena scratch = {0};
  NodeId *first_of = ARENA_ARRAY(&scratch, NodeId, (size_t)g->ctx->names.count + 1);
  double *times = ARENA_ARRAY(&scratch, double, g->node_count), time = 0;
  for (FOR_NODES(g, n)) {
    double own = node_time(g, n);
    time += own;
    times[layer_of(g, n, first_of)] += own;
  }
  for (FOR_NODES(g, n))
    keep_slow(layers, (Slow){n, times[n]});
  *slow = slow_text(g, layers, arena);
  arena_release(&scratch);
  return time / 1e6;
}
