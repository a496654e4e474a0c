/* Between the files of the fusion of quantized nodes; see fuse.c. */
#ifndef ETC_BACKENDS_XNNPACK_FUSE_H
#define ETC_BACKENDS_XNNPACK_FUSE_H

#include "backends/xnnpack/lower.h"

/* In Fuse.wanted, besides values. */
#define WANT_NOTHING XNN_NONE
#define WANT_FLOATS (XNN_NONE - 1)

enum { XF_UNSIGNED_SHIFT = 128 }; /* between codes of int8 and uint8 */

typedef enum XfDynamic { XF_NOT_DYNAMIC, XF_AS_A_WHOLE, XF_BY_ROWS, XF_AS_GRID } XfDynamic;

typedef struct Fuse {
  XnnLowering *l;
  XnnGraph *x;
  XnnNode *old; /* the nodes as they were lowered */
  uint32_t old_count;
  XnnId *wanted; /* by value of floats: a value whose quantization all its users want, or WANT_… */
  XnnId *codes;  /* by value of floats: the same as codes, or XNN_NONE */
  XnnId *alias;  /* by value: the one that took its place; itself mostly */
  uint32_t *uses;      /* by value: operands that it is */
  uint32_t *transpose; /* by value: 1 + the entry of l->transposes for the transpose that made it */
  uint8_t *dynamic;    /* by value of floats: how products quantize it at run time, XfDynamic */
  /* By value: its copy that is quantized at run time, with a scale for each row; with one scale, as
   * rows of one image; with one for each image of the batch; or XNN_NONE. */
  XnnId *row_codes, *image_row_codes, *image_codes;
  XnnId *sums; /* by value: the sums over blocks of its rows, or XNN_NONE */
  XnnId *floats_by_block, *row_codes_by_block; /* by value: the first of its blocks of columns,
                                               whose ids follow each other, as floats or quantized
                                               at run time, or XNN_NONE */
  XnnId *unsigned_codes; /* by value of codes: the same as unsigned ones, or XNN_NONE */
  XnnId *reshaped_from;  /* by value of codes that a reshape made: its operand, or XNN_NONE */
  bool *has_floats;      /* by value that has codes: whether there are floats, too */
  bool has_dynamic_dims; /* some dim of some value */
} Fuse;

/* Whether the node commutes with quantization: it moves elements, picks or limits them. */
bool xf_moves(const XnnNode *n);
/* Makes the node on codes where its operands are codes; false: it was left. */
bool xf_move(Fuse *f, const XnnNode *n);
/* Makes the node an integer one where its operands are codes and codes are wanted; false: it was
 * left. */
bool xf_compute(Fuse *f, const XnnNode *n);

/* Makes a product of what is quantized at run time and codes; false: it was left. */
bool xf_compute_dynamic(Fuse *f, const XnnNode *n);
/* Whether the codes of a constant of floats are blocks of columns, or have something added: one
 * filter of 4 bits, or one of 8 for each block, whose ids follow each other. */
static inline bool xf_is_in_blocks(const XnnGraph *x, const XnnValue *floats) {
  const XnnValue *codes = &x->values[floats->codes - 1];
  return floats->shift || codes->datatype == (uint8_t)XNN_QBINT4 ||
         (floats->rank && codes->dims[floats->rank - 1] != floats->dims[floats->rank - 1]);
}
/* xf_compute for codes that have a scale for each block of a row, or a zero point (fuse_blocks.c).
 */
bool xf_compute_blocks(Fuse *f, const XnnNode *n);
/* The node on floats; a product with weights of 8 bits takes those instead of floats made of them.
 */
XnnNode xf_weight_only(Fuse *f, const XnnNode *n);

/* The part of xf_compute for products and convolutions. */
bool xf_compute_product(Fuse *f, const XnnNode *n);

/* The node, whose operands are codes, with out for its result; out holds the codes of that. true.
 */
bool xf_give(Fuse *f, const XnnNode *n, XnnId out);
/* The codes of a filter, if the node takes them; XNN_NONE otherwise. */
XnnId xf_filter_of(const Fuse *f, const XnnNode *n, XnnId filter);
/* A filter of codes of one scale as one with a scale for each channel: XNNPACK's kernels for one
 * scale are slower. */
XnnId xf_by_channels(Fuse *f, const XnnNode *n, XnnId filter);
/* The first of count scales, in the arena of the graph; those as a constant. */
float *xf_channel_scales(const Fuse *f, const XnnValue *filter, uint32_t count);
XnnData xf_floats_constant(Fuse *f, const float *values, uint32_t count);

/* `in` quantized at run time, with a scale for its last nonbatch dims; *kept when it is there. */
XnnId xf_quantized_at_run(Fuse *f, XnnId in, uint32_t nonbatch, XnnId *kept);
void xf_emit_reshape(Fuse *f, XnnId in, XnnId out);
uint32_t xf_rows_of(const XnnValue *value); /* what all dims but the last make */
/* How many dims may vary. */
static inline uint32_t xf_dynamic_dim_count(const XnnValue *value) {
  return (uint32_t)__builtin_popcount(value->dynamic);
}

/* The two values have the same scale and zero point. */
bool xf_same_codes(const Fuse *f, XnnId a, XnnId b);
/* A new value with the dims of one and the quantization of another. */
XnnId xf_codes_like(Fuse *f, XnnId shape, XnnId parameters);
/* The codes of an operand, a constant among them; XNN_NONE when there are none. */
XnnId xf_operand(const Fuse *f, XnnId v);
/* The codes of a constant of floats whose elements are all the same number: 1 or -1, of which that
 * is the scale. XNN_NONE when they are not, or the number is no scale. */
XnnId xf_number(Fuse *f, XnnId v);
/* Adds the conversion of codes to those of another value. */
void xf_requantize(Fuse *f, XnnId in, XnnId out);
/* A value that has codes and no floats yet gets them. */
void xf_make_floats(Fuse *f, XnnId v);
/* Adds a node to the graph that is made. */
XnnNode *xf_emit(Fuse *f, const XnnNode *node);

#endif
