/* Chooses the layout in which each node of a partition is computed, NHWC or plain (that of the
 * delegate's arguments), so that as few elements as possible are transposed.
 *
 * Convolutions, pools and resizing need NHWC; products, and other nodes that have no form in NHWC,
 * need plain operands; the rest can be computed in either. Views and permutes are computed where
 * their results are used: see moves.h. A value costs its number of elements, once, if a node uses
 * it in the other layout than the one in which it is made; the cheapest choice is a minimum cut
 * between the two layouts. */
#ifndef ETC_BACKENDS_XNNPACK_PLAN_H
#define ETC_BACKENDS_XNNPACK_PLAN_H

#include "backends/xnnpack/lower.h"

/* What a row of lower.def says of its op. */
typedef enum XnnLayouts {
  XL_PLAIN,   /* plain operands and results */
  XL_IMAGE,   /* all in NHWC */
  XL_FIRST,   /* either, the first operand and results alike */
  XL_BINARY,  /* either, all operands, which are broadcast, and the result alike */
  XL_CAT,     /* the same without broadcasting */
  XL_VIEW,    /* moves.h */
  XL_PERMUTE, /* moves.h */
  XL_MEAN,
  XL_SOFTMAX,
  XL_NORM,    /* of groups */
  XL_WHERE,   /* perhaps PReLU */
  XL_DYNAMIC, /* as XL_FIRST of what is quantized at run time */
  XL_UNREAD   /* no node of its own: those that use it compute it */
} XnnLayouts;

XnnLayouts xl_layouts(OpId op);

/* Notes in l->places what lowering these nodes needs to know. */
void xl_plan(XnnLowering *l, const NodeId *nodes, uint32_t count, const ValueId *outputs,
             uint32_t output_count);

#endif
