/* The reference interpreter: runs a graph of any level with the reference kernels of the op table.
 *
 * A graph whose values have storages (after memory planning, or read back from a .pte) runs on the
 * planned arenas: every planned tensor lives at its offset in memory that was filled with 0xFF
 * (NaN, -1) first, so that a plan which lets two live tensors overlap shows as wrong numbers. */
#ifndef ETC_INTERP_INTERP_H
#define ETC_INTERP_INTERP_H

#include "ops/kernel.h"

/* Runs g once, from its first states.
 * inputs: one tensor for each input of the graph, in graph order; data is only read and must be
 * aligned to 16 bytes. Their dtypes and ranks must be those of the graph; dims are checked against
 * the graph's, which binds its symbols.
 * outputs: one for each output of the graph, in order, filled in; the data live in arena. A scalar
 * output becomes a 0-d tensor of i64, f64 or bool.
 * Errors, reported to the sink of g's context: an input that does not fit, a symbol out of its
 * range, a constraint that does not hold, a node that cannot be run, a kernel's own errors, lack
 * of memory. */
Status interp_run(Graph *g, const Tensor *inputs, uint32_t input_count, Arena *arena,
                  Tensor *outputs);

/* The states of g as they are before the first call, one tensor each, in arena. Too little memory
 * for them is reported. */
Status interp_states(const Graph *g, Arena *arena, Tensor **states);
/* Called when a node has run, with the times at which it began and ended, in ns of CLOCK_MONOTONIC.
 * In loops once an iteration; markers of control flow are left out. */
typedef void InterpTrace(void *user, NodeId n, uint64_t begin, uint64_t end);
/* One call of several. */
typedef struct InterpCall {
  const Tensor *inputs;
  uint32_t input_count;
  Tensor *states;     /* as the calls before have left them; this one changes them */
  Tensor *outputs;    /* written to, as those of interp_run */
  InterpTrace *trace; /* told of each node; may be NULL */
  void *trace_user;
} InterpCall;
/* Like interp_run. After an error the states hold what was written up to then. */
Status interp_call(Graph *g, const InterpCall *call, Arena *arena);

/* Called with each tensor that an input or a result of a node has, when it is known; in loops once
 * an iteration. It is gone after the call. Data of a node's result may be overwritten: what uses
 * the value reads what is there then. Nothing else of it changes, and inputs are only read. */
typedef void InterpWatch(void *user, ValueId v, Tensor *tensor);
/* Runs g once, from its first states, for the sake of the values on the way; its outputs are
 * dropped. g is only read, and messages go to sink: several threads may run one graph at a time,
 * each with a sink of its own. Errors: as of interp_run. */
Status interp_watch(const Graph *g, const Tensor *inputs, uint32_t input_count, DiagSink *sink,
                    InterpWatch *watch, void *user);

/* Runs one node whose operands are all constants: for constant folding.
 * results: as many as the node has results; data are allocated in arena, 16-byte aligned. A scalar
 * result becomes a 0-d tensor of i64, f64 or bool.
 * STATUS_UNSUPPORTED without a diagnostic: an operand is not constant, a result type or argument is
 * symbolic, the op is random or has an effect, or has no kernel. What the kernel itself refuses is
 * reported to sink, at the node. The caller limits the size of the results before it calls. */
Status interp_eval_const_node(Graph *g, NodeId n, Arena *arena, Tensor *results, DiagSink *sink);

/* The bytes of a constant value as a tensor; data is the constant's own memory where that is
 * aligned to 16 bytes, else a copy in arena. The type must be a static tensor type. */
Tensor interp_constant(const Graph *g, ValueId v, Arena *arena);

/* dtype, rank and dims of a static tensor type; no data. */
Tensor interp_static_tensor(const Type *type);
/* A run-time scalar as a 0-d tensor of i64, f64 or bool; data in arena. */
Tensor interp_scalar_tensor(const KernelArg *scalar, Arena *arena);

#endif
