/* From nodes of the edge dialect to an XNNPACK graph.
 *
 * One function an op (lower.def) adds the XNNPACK nodes that compute the results of one IR node, or
 * refuses and says why. The same function answers whether XNNPACK supports a node: in a trial run
 * all its operands come from outside, and constants are not looked at. After a refusal all helpers
 * do nothing and return XNN_NONE, so that a function is straight code.
 *
 * A value of rank 4 may exist in two layouts: plain, with the dims of the IR, and NHWC, dims
 * (0, 2, 3, 1) of it, which convolutions and pools want; one of rank 3 likewise, with (0, 2, 1). In
 * which one a node is computed is decided for the whole partition before (plan.h). A layout that is
 * asked for and not there is made by a transpose, once. Views and permutes are made where someone
 * wants them (moves.h).
 *
 * All is computed in f32. f16 values are converted where they come in and go out, and weights stay
 * f16 in the file: XNNPACK wants weights of f16 convolutions as f32, which would double the file,
 * loads f16 kernels on some CPUs only, and those of x86 are the slower ones. */
#ifndef ETC_BACKENDS_XNNPACK_LOWER_H
#define ETC_BACKENDS_XNNPACK_LOWER_H

#include "backends/backend.h"
#include "backends/xnnpack/estimate.h"
#include "backends/xnnpack/places.h"
#include "backends/xnnpack/subgraph.h"
#include "ir/builder.h"
#include "ops/quantized.h"

typedef enum XnnRule {
#define XNN_RULE(id, name, message, advice) XNN_RULE_##id,
#include "backends/xnnpack/rules.def"
#undef XNN_RULE
  XNN_RULES
} XnnRule;

/* What the program is to be fast on; see product.c. */
typedef enum XnnCpu {
  XNN_CPU_ANY, /* not said */
  XNN_CPU_AVX2,
  XNN_CPU_AVX512
} XnnCpu;

/* Numbers chosen by a condition; see lower_mask.c. */
typedef struct XnnMask {
  ValueId condition;
  float yes, no;
  XnnId id;
} XnnMask;

/* A size that varies, as a number [1, 1]. */
typedef struct XnnCount {
  SymInt size;
  XnnId id;
} XnnCount;

/* A transpose, and what it is for. */
typedef struct XnnTranspose {
  NodeId node; /* whose value, or which needs it */
  XnnId out;
  TransposeReason what;
} XnnTranspose;

/* A size that a view splits; several: into two dynamic sizes or more, which no reshape can do. */
typedef struct XnnSplit {
  SymInt size;
  bool several;
} XnnSplit;

/* A view whose dims have to be merged in memory. */
typedef struct XnnJoin {
  NodeId view;
  bool late; /* not at the view, but at the first node that needs the dim as one axis */
} XnnJoin;

typedef struct XnnLowering {
  Graph *g;
  Arena *arena; /* scratch */
  XnnCpu cpu;
  XnnGraph x;
  Places places;
  ValueId *inputs; /* values from outside, in the order of the call's arguments */
  uint32_t input_count, input_capacity;
  XnnMask masks[16]; /* those that there are already */
  uint32_t mask_count;
  XnnCount counts[16]; /* likewise */
  uint32_t count_count;
  XnnTranspose *transposes;
  uint32_t transpose_count, transpose_capacity;
  TransposeReason transposes_for; /* the next ones */
  NodeId node;                    /* that is lowered */
  bool takes_codes;               /* the node dequantizes: codes from outside, too */
  bool trial;
  bool alone;   /* a trial of one node, whose operands may come in any form */
  NodeId blame; /* a view whose result the node that was refused wants in one piece; 0: none */
  XnnJoin *joins;
  uint32_t join_count, join_capacity;
  XnnSplit *splits; /* sizes that views of the partition split into dynamic ones */
  uint32_t split_count, split_capacity;
  Refusal refusal; /* why the node is not supported; no rule: it is */
} XnnLowering;

void xl_init(XnnLowering *l, Graph *g, XnnCpu cpu, Arena *arena);
void xl_release(XnnLowering *l);
void xl_reset(XnnLowering *l, bool trial); /* an empty graph; costs what was used */

/* Adds the nodes for n; false when it refuses, l->refusal says why. */
bool xl_node(XnnLowering *l, NodeId n);
/* What kernels spend on the op, one of lower.def. */
XnnWork xl_work(OpId op);
/* A size that is 0 where an operand or a result of n has no elements, constant where there are
 * always some. False when a result of n may have elements then. */
bool xl_guard(Graph *g, NodeId n, SymInt *guard);
bool xl_knows(OpId op); /* whether lower.def has it */
/* Makes v, a result of a lowered node, the next output of the delegate. */
void xl_output(XnnLowering *l, ValueId v);

/* --- for the functions of lower.def --- */

typedef void XnnLowerFn(XnnLowering *l, NodeId n);
#define XNN_LOWER(op, function, layouts, work) XnnLowerFn function;
#include "backends/xnnpack/lower.def"
#undef XNN_LOWER

/* Keeps the first refusal: a rule, and the values that failed (R_INT and the like). Returns false.
 */
#define xl_refuse(l, rule, ...)                                                                    \
  xl_refuse_for((l), (rule), (const RefusalValue[]){__VA_ARGS__},                                  \
                (uint32_t)(sizeof((const RefusalValue[]){__VA_ARGS__}) / sizeof(RefusalValue)))
bool xl_refuse_for(XnnLowering *l, XnnRule rule, const RefusalValue *values, uint32_t count);
static inline bool xl_ok(const XnnLowering *l) { return l->refusal.rule == NULL; }
/* The refusal by a rule, without values. */
Refusal xl_refusal(XnnRule rule);

/* The dims of v as XNNPACK has them, and their number; refuses what it does not support, and
 * element types that are not in the set. */
uint32_t xl_dims(XnnLowering *l, ValueId v, DTypeSet types, uint32_t dims[XNN_MAX_RANK]);
/* v comes from outside as id. */
void xl_input(XnnLowering *l, ValueId v, XnnId id);
/* The value in one layout, as f32. xl_nhwc: ranks 3 and 4 only. */
XnnId xl_plain(XnnLowering *l, ValueId v);
XnnId xl_nhwc(XnnLowering *l, ValueId v);
/* Lowers where(x >= 0, x, slope * x); false for any other node. The slope is a constant; 0: another
 * node. */
bool xl_prelu(XnnLowering *l, NodeId where);
/* Integers of 8 or 32 bits as f32; booleans become 0 and 1. */
XnnId xl_integers(XnnLowering *l, ValueId v);
ValueId xl_prelu_slope(const Graph *g, NodeId where);
/* Whether a view of x as y keeps [N, C] and so is one in NHWC too, with at most one dim that
 * varies.
 */
bool xl_keeps_channels(const Graph *g, ValueId x, ValueId y);
/* Whether a permute is one between the layouts. */
void xl_turns_layout(const Graph *g, NodeId permute, bool *to_nhwc, bool *to_plain);
/* How a mean or sum is computed: in which layouts, and whether the result has its operand's. */
typedef enum XnnMeanForm {
  MEAN_OF_ROWS,     /* plain */
  MEAN_OF_IMAGE,    /* the operand in NHWC, the result plain */
  MEAN_OF_PLANES,   /* the operand in either, the result plain */
  MEAN_OF_CHANNELS, /* either */
} XnnMeanForm;
XnnMeanForm xl_mean_form(XnnLowering *l, NodeId n);
bool xl_has_nhwc(const XnnLowering *l, ValueId v);
bool xl_has_plain(const XnnLowering *l, ValueId v);
bool xl_is_moved(const XnnLowering *l, ValueId v); /* made where it is wanted, from another value */
static inline bool xl_has_layouts(const Graph *g, ValueId v) {
  return value_rank(g, v) == 3 || value_rank(g, v) == 4;
}
/* Where dim i of a value of rank 3 or 4 is in NHWC. */
static inline uint32_t xl_nhwc_axis(uint32_t i, uint32_t rank) {
  return i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
}
/* Whether the node that makes y is to be computed in NHWC; xl_nhwc_operand then gives operands for
 * a result of that rank. */
bool xl_in_nhwc(const XnnLowering *l, ValueId y);
bool xl_is_output(const XnnLowering *l, ValueId y); /* of the delegate, which are plain */
XnnId xl_nhwc_operand(XnnLowering *l, ValueId v, uint32_t rank);
/* A constant as an operand, which XNNPACK reads where it is. A large one stays as small as the
 * graph has it. */
XnnId xl_constant_operand(XnnLowering *l, ValueId v, uint32_t rank, const uint32_t *dims,
                          const uint32_t *perm);
XnnId xl_from_outside(XnnLowering *l, ValueId v);
/* New values for a result. */
XnnId xl_result(XnnLowering *l, ValueId v);
XnnId xl_result_nhwc(XnnLowering *l, ValueId v);
/* x, and a new value for the result y of the same rank, in the layout of the node that makes y, or
 * permuted as x is. */
typedef struct XnnInOut {
  XnnId in, out;
  bool nhwc;
  Permuted at; /* which dim of them each dim of x and y is */
} XnnInOut;
XnnInOut xl_in_out(XnnLowering *l, ValueId x, ValueId y);
/* The axis of dim i, for a node that needs it as one axis; refuses a dim that is stored unmerged.
 */
uint32_t xl_whole_axis(XnnLowering *l, const Permuted *t, uint32_t i);
/* Whether some dim is stored unmerged (places.h). */
bool xl_is_unmerged(const Permuted *t, uint32_t rank);
/* Refuses what is not of rank 4. */
bool xl_is_image(XnnLowering *l, ValueId v);
/* The number of dynamic dims. */
uint32_t xl_dynamic_dim_count(const Graph *g, ValueId v);
/* A value whose dims are in another order in memory; see lower_permuted.c. xl_permuted: v in
 * whatever order it has; xl_straight: v in its own order, by a transpose if needed. */
bool xl_has_permuted(const XnnLowering *l, ValueId v);
bool xl_was_permuted(const XnnLowering *l, ValueId v, Permuted *t); /* also if it is in a layout */
Permuted xl_permuted(XnnLowering *l, ValueId v);
/* A new value for the result y, as t is. */
XnnId xl_result_permuted(XnnLowering *l, ValueId y, Permuted t);
/* An image in whatever order it has, each dim one axis. */
Permuted xl_any_order(XnnLowering *l, ValueId x);
/* x with its last dim last in memory, and as it was left otherwise. */
Permuted xl_rows(XnnLowering *l, ValueId x);
/* The order in which a node on these operands, whose result has that rank, is better computed than
 * in a layout, and an operand in it or so that it broadcasts. */
bool xl_common_order(XnnLowering *l, const ValueId *operands, uint32_t count, uint32_t rank,
                     Permuted *t);
XnnId xl_in_order(XnnLowering *l, ValueId v, Permuted like, uint32_t rank);
/* Whether axis `axis` of id belongs to no dim of the value. */
bool xl_is_extra_axis(const Permuted *t, uint32_t rank, uint32_t axis);
/* Entries from `from` on are moved to `to`. */
void xl_move_entries(Permuted *t, uint32_t from, uint32_t to);
/* Adds the dims of id that are dim i to a permutation. */
void xl_push_axes(const Permuted *t, uint32_t i, uint32_t *perm, uint32_t *count);
/* The dims of id in another order; which of them those of the value are stays to be said. */
void xl_permute_axes(XnnLowering *l, Permuted *t, const uint32_t *perm, uint32_t rank);
/* One more dim of 1 in front. */
void xl_add_axis(XnnLowering *l, Permuted *t, uint32_t rank);
void xl_set_permuted(XnnLowering *l, ValueId v, Permuted t);
XnnId xl_straight(XnnLowering *l, Permuted t, uint32_t rank);
/* y = x with other dims, two or more of which are dynamic. */
void xl_dynamic_view(XnnLowering *l, ValueId x, ValueId y);
/* Whether a view merges, or splits, dims two or more of which are dynamic. */
typedef struct DynamicDims {
  bool joins, splits, several; /* several: two or more of the sizes of a split are dynamic */
  SymInt joined, split;        /* the size of such a dim */
} DynamicDims;
DynamicDims xl_dynamic_dims(Graph *g, ValueId x, ValueId y);
/* Whether y, the result of a view, has dynamic dims that no reshape of XNNPACK can infer. */
bool xl_is_dynamic_view(XnnLowering *l, ValueId x, ValueId y);
/* How views of the partition split that size; NULL: not at all. */
XnnSplit *xl_split_of(const XnnLowering *l, SymInt size);
/* Whether x is stored unmerged, and a view with the dims of y can leave it so. */
bool xl_keeps_unmerged(XnnLowering *l, ValueId x, ValueId y);
/* After a refusal for the sake of a view: has it join its dims next time; false: it cannot. */
bool xl_join_at_blamed(XnnLowering *l);
/* After a view was refused that splits what another one has joined: has that be done late. */
bool xl_join_late(XnnLowering *l, NodeId view);
const XnnJoin *xl_join_of(const XnnLowering *l, NodeId view); /* NULL: none */
/* t, of the result v of a view, with its dims joined. */
XnnId xl_joined(XnnLowering *l, Permuted t, ValueId v);
/* v is the same bytes as an XNNPACK value that exists. */
void xl_set_plain(XnnLowering *l, ValueId v, XnnId id);
void xl_set_nhwc(XnnLowering *l, ValueId v, XnnId id);

/* Upper bound of dim i of v. */
uint32_t xl_dim(XnnLowering *l, ValueId v, uint32_t i);
/* The dim as a non-negative number. */
static inline uint32_t xl_axis(int64_t dim, uint32_t rank) { return (uint32_t)wrap_dim(dim, rank); }
/* A temporary. */
XnnId xl_temp(XnnLowering *l, uint32_t rank, const uint32_t *dims);
#define XL_TEMP(l, ...)                                                                            \
  xl_temp((l), (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)),                   \
          (const uint32_t[]){__VA_ARGS__})
XnnId xl_temp_like(XnnLowering *l, XnnId id); /* the same dims, type, scale and zero point */
/* Floats with the dims of a value that need not be in the graph; the same dims vary. */
XnnId xl_temp_of(XnnLowering *l, const XnnValue *like);
/* The upper bound of a size; a temporary with those of dims. */
uint32_t xl_upper(XnnLowering *l, SymInt size);
XnnId xl_sym_temp(XnnLowering *l, uint32_t rank, const SymInt *dims);
uint32_t xl_rank(const XnnLowering *l, XnnId id);
/* Constants made here, of f32. xl_number has rank 1 and one element, or rank 0. */
XnnId xl_floats(XnnLowering *l, uint32_t rank, const uint32_t *dims, const float *values);
XnnId xl_ones(XnnLowering *l, uint32_t rank, const uint32_t *dims); /* products with it broadcast */
XnnId xl_number(XnnLowering *l, double number, uint32_t rank);
/* A constant of these bytes, f32 or f16, which are in the arena of the graph; NULL in a trial.
 */
XnnId xl_made_constant(XnnLowering *l, bool half, uint32_t rank, const uint32_t *dims,
                       const void *values);
/* The f32 elements of a constant; NULL in a trial. count of them. */
const float *xl_constant_floats(XnnLowering *l, ValueId v);
uint64_t xl_elements(XnnLowering *l, ValueId v); /* upper bound */
/* Elements of that many bytes with dims permuted to dims; NULL when their order stays, or in a
 * trial.
 */
const XnnOrder *xl_order(XnnLowering *l, size_t element, uint32_t rank, const uint32_t *dims,
                         const uint32_t *perm);
extern const uint32_t xl_straight_axes[XNN_MAX_RANK]; /* a permutation that changes nothing */
/* A constant with its dims permuted to dims, as f16 (of f16 only) or f32. */
XnnId xl_permuted_constant(XnnLowering *l, ValueId v, uint32_t rank, const uint32_t *dims,
                           const uint32_t *perm, bool half);
/* Weights or a bias as the graph has them, for a node that packs them; each use is a value of its
 * own. f16 weights need an f16 bias. */
XnnId xl_filter(XnnLowering *l, ValueId v);
/* x with the precision of f16. */
XnnId xl_rounded(XnnLowering *l, XnnId x);

/* --- quantized values (lower_quantize.c) --- */

/* Codes of 8 bits with one scale and zero point, which a node of the graph quantizes or
 * dequantizes: they exist in the layouts that floats have. */
bool xl_codes(const Graph *g, ValueId v, Quantization *q);
/* Makes a value that was made for floats one of such codes. */
void xl_set_codes(XnnLowering *l, XnnId id, const Quantization *q);
/* A constant of int8 with zero point 0, whose elements are all one code. */
XnnId xl_equal_codes(XnnLowering *l, uint32_t rank, const uint32_t *dims, int8_t code, float scale);
/* id, which holds the codes v, is fed from outside; what the delegate hands out for it. */
XnnId xl_codes_in(XnnLowering *l, ValueId v, XnnId id);
XnnId xl_codes_out(XnnLowering *l, ValueId v, XnnId id);
/* Whether a node dequantizes x of codes with parameters that the program computes. */
bool xl_is_quantized_at_run(const Graph *g, ValueId x);
/* A dequantized constant as floats, with its codes as a twin. */
XnnId xl_dequantized_constant(XnnLowering *l, ValueId v, uint32_t rank, const uint32_t *dims,
                              const uint32_t *perm);
/* Scale `at` of codes with several. */
float xl_scale_at(const Graph *g, const Quantization *q, uint64_t at);
/* The twin of a matrix [outputs, inputs] with a scale for each block of the inputs
 * (lower_block_weights.c): one filter of 4 bits, or one of 8 for each block, whose ids follow each
 * other. *shift: what zero points add to each block. XNN_NONE when XNNPACK has no such weights. */
XnnId xl_block_twin(XnnLowering *l, const Quantization *q, ValueId codes, const uint32_t dims[2],
                    const uint32_t perm[2], XnnId *shift);
/* Likewise of 8 bits with a scale and a zero point for each output: one filter. */
XnnId xl_row_twin(XnnLowering *l, const Quantization *q, ValueId codes, const uint32_t dims[2],
                  const uint32_t perm[2], XnnId *shift);
/* Weights or a bias whose element i is element from[i] of the constant v, or 0 where that is
 * XL_NO_ELEMENT. Dim 0 are the output channels. wide: of f16 as f32. */
enum { XL_NO_ELEMENT = -1 };
XnnId xl_picked_constant(XnnLowering *l, ValueId v, bool wide, uint32_t rank, const uint32_t *dims,
                         const int32_t *from);
/* The bias as often as makes `count` numbers. */
XnnId xl_repeated_bias(XnnLowering *l, ValueId bias, uint32_t count);
/* When all nodes are there: constants that nothing uses are dropped, floats of dequantized ones
 * that something uses are computed. */
void xl_finish_constants(XnnLowering *l);
/* Makes nodes on integers of those whose operands were dequantized and whose results are quantized
 * (fuse.c). */
void xl_fuse(XnnLowering *l);
/* Keeps results from the places of operands that are broadcast in some calls only (pin.c). */
void xl_pin_broadcast(XnnLowering *l, Arena *scratch);
/* Keeps what XNNPACK makes tables of within what it does right (tables.c). */
void xl_fit_tables(XnnLowering *l, Arena *scratch);

/* Nodes. */
void xl_unary(XnnLowering *l, XnnNodeKind kind, XnnId in, XnnId out);
void xl_binary(XnnLowering *l, XnnNodeKind kind, XnnId a, XnnId b, XnnId out);
XnnId xl_scaled(XnnLowering *l, XnnId in, double factor);
void xl_transpose(XnnLowering *l, XnnId in, const uint32_t *perm, uint32_t rank, XnnId out);
void xl_clamp(XnnLowering *l, XnnId in, float low, float high, XnnId out);
/* Elements [begin, begin + size) of one dim. */
void xl_slice(XnnLowering *l, XnnId in, uint32_t axis, uint32_t begin, uint32_t size, XnnId out);
/* A temporary that is in, cut on one dim. */
XnnId xl_sliced(XnnLowering *l, XnnId in, uint32_t axis, uint32_t begin, uint32_t size);
/* Cuts on several dims; sizes of 0 stand for all of a dim. */
void xl_slice_dims(XnnLowering *l, XnnId in, uint32_t rank, const uint32_t *offsets,
                   const uint32_t *sizes, XnnId out);
enum { XL_JOINED_AT_ONCE = 5 }; /* by one node of XNNPACK */
void xl_concatenate(XnnLowering *l, const XnnId *items, uint32_t count, uint32_t axis, XnnId out);
/* Elements of value before and after each dim. */
typedef struct XnnPad {
  const SymInt *dims; /* of the operand; NULL: not known */
  uint32_t rank;
  uint32_t before[XNN_MAX_RANK], after[XNN_MAX_RANK];
  float value;
} XnnPad;
void xl_pad(XnnLowering *l, XnnId in, const XnnPad *pad, XnnId out);
/* y = positions begin, begin + step, ... of one dim of x. */
void xl_strided_slice(XnnLowering *l, ValueId x, uint32_t axis, int64_t begin, int64_t step,
                      ValueId y);
/* in, whose elements keep their order, with the dims of out; at most one dim may vary. */
void xl_reshape(XnnLowering *l, XnnId in, const SymInt *dims, uint32_t rank, XnnId out);
XnnId xl_reshaped(XnnLowering *l, XnnId in, const SymInt *dims, uint32_t rank); /* a temporary */
void xl_reshape_to(XnnLowering *l, XnnId in, ValueId like, XnnId out); /* the dims of like */
/* xl_reshape with dims as XNNPACK takes them: 0 is the one that it finds out. */
void xl_reshape_inferred(XnnLowering *l, XnnId in, const uint32_t *shape, uint32_t rank, XnnId out);
/* Ones with the dims of in that are in the set, and 1 in the others. */
XnnId xl_ones_along(XnnLowering *l, XnnId in, uint32_t set);
/* The value of which id is a reshape, all dims known; id itself when it is none. */
XnnId xl_origin(const XnnLowering *l, XnnId id);
/* Means over height and width of an image in NHWC, as [n, 1, 1, c]. */
XnnId xl_image_means(XnnLowering *l, XnnId in);
/* Sums over the last dim of in times factor, plus offset; the dim stays as 1. dims: those of in, or
 * NULL where they are not known: long rows take much memory then. */
XnnId xl_row_sums(XnnLowering *l, XnnId in, const SymInt *dims, double factor, double offset);
/* x times a static matrix [out, in] (flags: [in, out]) plus a bias or XNN_NONE. */
void xl_fully_connected(XnnLowering *l, XnnId x, XnnId filter, XnnId bias, uint32_t flags,
                        XnnId out);
/* (in - mean) / sqrt(variance + eps) over the last dim; dims as above. */
XnnId xl_normalized(XnnLowering *l, XnnId in, const SymInt *dims, double eps);
/* in * weight + bias into out; either may be absent. */
void xl_scale_and_shift(XnnLowering *l, XnnId in, XnnId weight, XnnId bias, XnnId out);
/* Refuses when a result of n from `first` on is used. */
bool xl_results_unused(XnnLowering *l, NodeId n, uint32_t first);

#endif
