/* What the translators of If, Loop and Scan share. */
#ifndef ETC_ONNX_CONTROL_H
#define ETC_ONNX_CONTROL_H

#include "onnx/express.h"
#include "onnx/file/model.h"

enum {
  LOOP_STEPS_MAX = 4096, /* unrolled at most */
  LOOP_NODES_MAX = 1024, /* a loop whose steps have no more nodes in all is unrolled */
  PRODUCTS_UNROLLED = 2  /* most steps that multiply by matrices and are unrolled */
};

/* The attribute, or NULL after a failure. */
const Onnx__GraphProto *control_graph(Import *im, const char *name);
/* Is the only element known when lowering? */
bool control_known_bool(Import *im, ValueId v, bool *value);
/* The condition as a 0-d tensor. */
ValueId control_condition(Import *im, ValueId v);
/* Ends the call with an error when the condition, a 0-d boolean, holds. */
void control_fail_if(Import *im, ValueId condition, const char *message);
/* Poison for all outputs: the body has failed, which was reported. */
void control_poison(Import *im);
/* Takes back all that was built since `last` was the last node and there were so many constraints.
 */
void control_rollback(Import *im, NodeId last, uint32_t constraints);

/* A translation that is taken back, of which nothing stays: neither nodes nor messages. */
typedef struct ControlTrial {
  Import *im;
  DiagHold held;
  NodeId last;
  uint32_t constraints, unsupported_count;
  struct Unsupported *unsupported;
  bool failed, stopped_sizes;
} ControlTrial;

void control_try(Import *im, ControlTrial *trial);
/* Messages of an import that is to end (ImportState.stopped) do stay. */
void control_take_back(ControlTrial *trial);

/* A tensor of which each iteration gets one slice. */
typedef struct LoopSlice {
  ValueId tensor;
  uint32_t axis;
  bool backwards;
} LoopSlice;

typedef struct LoopCount LoopCount; /* loop_count.h */

/* A loop that runs as one: its body is translated once. */
typedef struct RunLoop {
  const Onnx__GraphProto *body;
  bool numbered; /* as in Loop: the body takes the number of the iteration and the condition before
                    the states, and gives the next condition before them */
  ArgIn trip;    /* most iterations: INT or VALUE; NONE: only the condition ends the loop */
  ValueId condition; /* 0-d, of the first iteration; 0: it runs */
  const Binding *states;
  uint32_t state_count;
  const LoopSlice *slices;
  uint32_t slice_count;
  uint32_t scan_count;  /* outputs that collect a row an iteration, along dim 0 */
  uint32_t list_count;  /* the last ones of them are lists that the model appends to */
  const Binding *given; /* of loop_lists: the states with the lists, by output of the node */
  const uint32_t
      *outputs;       /* by result, states then scans: the output of the node; NULL: the same */
  LoopCount *counted; /* what its condition tells, or NULL; corrected where it does not hold */
} RunLoop;

/* Builds the loop: results are the final states, then the collected tensors. False when the body
 * failed. The declared shape of an output of the current node bounds what nothing else does. */
bool loop_build(Import *im, const RunLoop *loop, ValueId *results);

/* One element of one element type each, perhaps of several ranks. */
static inline bool are_one_element(const Type *a, const Type *b) {
  return a->dtype == b->dtype && type_is_single(a) && type_is_single(b);
}
/* The number of the iteration, or the condition, as the body declares its input: a scalar or, as
 * ONNX Runtime has it then, too, a vector of one element. */
ValueId loop_scalar(Import *im, const Onnx__ValueInfoProto *input, ValueId scalar);
/* How often the nodes, the subgraphs of these and the outputs read a name. */
size_t loop_reads(const Onnx__GraphProto *graph, StrView name);
/* Makes scan outputs of the states that are lists to which each step appends, and a state for each
 * tensor of those that it makes anew (loop_list.c). */
void loop_lists(Import *im, RunLoop *run);
/* The tensors of a sequence one above the other; 0 where they differ in type or shape. */
ValueId sequence_stack(Import *im, const Binding *sequence);
/* The outputs of the node after loop_lists. */
void loop_bind(Import *im, const RunLoop *run, const ValueId *results);

#endif
