/* What the lowerings of convolutions share. */
#ifndef ETC_BACKENDS_XNNPACK_CONVOLUTION_H
#define ETC_BACKENDS_XNNPACK_CONVOLUTION_H

#include "backends/xnnpack/lower.h"

/* What the ways to compute a convolution are chosen by: nanoseconds of one thread, fitted to the
 * times that tests/bench/convolutions.py shows on an AVX-512 CPU. XNNPACK computes 16 channels of a
 * result at a time, however few there are. */
#define TIME_PRODUCT 0.32     /* 16 channels of a result, for one input channel and tap */
#define TIME_NODE 1000.0      /* a convolution, and what moves its result */
#define TIME_SMALL_NODE 600.0 /* on a plane: part of it, or a sum */
#define TIME_COPIED 0.24      /* a float that is joined or cut out, of a result */
#define TIME_MOVED 0.48       /* in pieces that change places */
#define TIME_READ 0.12        /* a float of a part of an operand */
#define TIME_ADDED 0.4        /* filled up with zeros and added */
#define TIME_OF_BYTE 2.0      /* that must be saved for a byte by which the weights grow, ... */
#define TIME_OF_STEPS 6.0     /* ... in small programs */
#define TIME_PLANE 2.2        /* of a plane: moved, filled up, cut out, added */

static inline double sixteens(uint64_t channels) { return (double)((channels + 15) / 16); }

/* A convolution on images; one of lines is one on images that are 1 high. */
typedef struct Convolution {
  uint32_t rank; /* spatial dims, 1 or 2 */
  uint32_t stride[2], padding[2], dilation[2], adjust[2], kernel[2];
  uint32_t groups, in_channels, out_channels;
  bool transposed, depthwise;
} Convolution;

/* Whether each channel of the operand has a kernel of its own, also of a transposed convolution. */
bool xl_has_one_input_a_group(const Convolution *c);
/* The spatial sizes of operand and result; false when one is dynamic. */
bool xl_image_sizes(const XnnLowering *l, NodeId n, const Convolution *c, uint32_t in[2],
                    uint32_t out[2]);

/* The most taps that XNNPACK has a depthwise loop for (ExecuTorch 1.4.1). */
enum { DEPTHWISE_TAPS = 25 };
/* ns that such a loop takes for an element of the result. */
double xl_depthwise_time(uint32_t taps);

/* Some rows or columns of a kernel. */
typedef struct Taps {
  uint32_t first, count, step;
} Taps;

/* The part of a kernel that one node computes: rows and columns. */
typedef struct Piece {
  Taps taps[2];
} Piece;

enum { MAX_PIECES = 160 };

/* Padding before and after the taps of a piece; negative where they begin inside of the image. */
int64_t xl_piece_before(const Convolution *c, const Piece *p, uint32_t dim);
int64_t xl_piece_after(const Convolution *c, const Piece *p, uint32_t dim);

/* Cuts a depthwise kernel, of which p is left, into at most MAX_PIECES pieces whose sum is computed
 * fastest; returns their number. in: sizes of the image, 0: not known. least: taps from which on it
 * may be cut. */
uint32_t xl_depthwise_pieces(const Convolution *c, const Piece *p, const uint32_t in[2],
                             uint32_t least, Piece *pieces);

/* Makes a depthwise convolution with several outputs for each channel of the image one with an
 * image of so many channels, where XNNPACK has a loop for that; the image. */
XnnId xl_repeat_channels(XnnLowering *l, NodeId n, Convolution *c, XnnId in);

/* How a node of XNNPACK computes (a part of) one: its own window and channels. */
typedef struct ConvolutionNode {
  XnnNodeKind kind;
  uint32_t before[2], after[2]; /* padding */
  uint32_t kernel[2], stride[2], dilation[2], adjust[2];
  uint32_t groups, in_channels, out_channels;
} ConvolutionNode;

/* What it reads, and its result; no bias: XNN_NONE. */
typedef struct ConvolutionValues {
  XnnId in, weights, bias, out;
} ConvolutionValues;

void xl_convolution_node(XnnLowering *l, const ConvolutionNode *c, XnnId in, XnnId weights,
                         XnnId bias, XnnId out);

/* Computes a transposed convolution, from in to out, both [n, h, w, c], by ordinary ones; false
 * when XNNPACK's own node is to do it. */
bool xl_by_phases(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);
/* The same over dynamic sizes; in: lines may be rows of one image, too. */
bool xl_by_dynamic_phases(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);

/* Computes a convolution, from in to out, both [n, h, w, c], on strips of the image; false when
 * that saves too little memory. */
bool xl_by_strips(XnnLowering *l, NodeId n, const Convolution *c, const ConvolutionValues *v);

/* Columns that are channels: `in` of the image (1: it stays as it is), `out` of the result; see
 * lower_blocks.c. */
typedef struct Blocks {
  uint32_t in, out;
  uint32_t before, after; /* blocks of padding */
  uint32_t front;         /* columns of padding that the image gets before its first block */
  uint32_t kernel;        /* blocks that a block of the result reads */
  uint32_t image;         /* blocks of the image */
  double share;           /* of the time of one node that the other ways beside planes take */
} Blocks;

/* The fastest blocks for a convolution; false when none are faster than single columns. */
bool xl_find_blocks(XnnLowering *l, NodeId n, const Convolution *c, Blocks *b);
/* Computes the convolution, from in to out, both [n, h, w, c], on blocks of columns. */
void xl_by_blocks(XnnLowering *l, NodeId n, const Convolution *c, const Blocks *b, XnnId in,
                  XnnId out);

/* Computes the result of a convolution of few output channels, plain, from in, [n, h, w, c], by one
 * product and sums; false when that is not faster. share: of the time of one node, that the other
 * way to compute it takes. */
bool xl_by_planes(XnnLowering *l, NodeId n, const Convolution *c, double share, XnnId in);

/* Computes a depthwise convolution of few channels on lines of the image as channels; false when
 * that is not faster. */
bool xl_by_lines(XnnLowering *l, NodeId n, const Convolution *c);

/* Computes a dilated convolution, from in to out, both [n, h, w, c], without most of the taps that
 * meet padding; false when that is not faster. */
bool xl_by_live_taps(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);

/* Computes a convolution, from in to out, both [n, h, w, c], in two parts whose channels fill
 * XNNPACK's tiles; false when that is not faster. */
bool xl_by_tiles(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);

enum { WINDOW_RANK = 6, MAX_WINDOW_TAPS = 256 };
/* Taps of a window that are joined at once; those of more are joined by rows, and copied twice. */
enum { TAPS_AT_ONCE = 9 };

/* What the windows of a convolution meet of an image; see lower_windows.c. */
typedef struct Windows {
  const Convolution *c;
  SymInt batch;
  uint32_t in[2], out[2];
  uint32_t before[2];       /* padding in front of the image */
  SymInt dims[WINDOW_RANK]; /* of the view of the padded image */
} Windows;

/* The windows of a convolution on a whole image; false when a size is dynamic. */
bool xl_whole_windows(const XnnLowering *l, NodeId n, const Convolution *c, Windows *w);
/* The padded image as a view; sets w->dims. */
XnnId xl_window_view(XnnLowering *l, Windows *w, XnnId in);
/* What a tap meets of a view; dims become those of the result. */
XnnId xl_met_by_tap(XnnLowering *l, const Windows *w, uint32_t tap, XnnId in,
                    SymInt dims[WINDOW_RANK]);
/* All windows of a view, next to each other: [n, rows, 1, columns, 1, taps * c]. */
XnnId xl_windows_of(XnnLowering *l, const Windows *w, XnnId in, SymInt dims[WINDOW_RANK]);

/* Computes a convolution of constant weights, from in to out, both [n, h, w, c], as a product with
 * its windows; false when that is not faster. */
bool xl_by_product(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);

/* Adds a convolution node, or a product in its place where that is faster. Sizes of in and out are
 * fixed but for the batch. floats: the weights are no codes. */
void xl_node_or_product(XnnLowering *l, const ConvolutionNode *node, bool floats, SymInt batch,
                        const ConvolutionValues *v);

/* Computes a convolution of constant weights over patches of an image that is there in NCHW alone;
 * false when that is not faster, or the image is not such a one. */
bool xl_by_planar_patches(XnnLowering *l, NodeId n, const Convolution *c);

/* Computes a convolution whose weights arrive at run time, from in to out, both [n, h, w, c];
 * refuses what it does not take. */
bool xl_by_windows(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out);

#endif
