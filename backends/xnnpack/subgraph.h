/* A graph of XNNPACK in memory: what a blob of the XNNPACK delegate holds.
 *
 * Values are named by the index that they have in the blob. Constants live outside of it, in the
 * named data of the program. Meaning of nodes and flags: XNNPACK, include/xnnpack.h. */
#ifndef ETC_BACKENDS_XNNPACK_SUBGRAPH_H
#define ETC_BACKENDS_XNNPACK_SUBGRAPH_H

#include "ir/graph.h"

typedef uint32_t XnnId;
#define XNN_NONE ((XnnId)UINT32_MAX) /* an absent operand */

enum {
  XNN_MAX_RANK = 6,    /* XNN_MAX_TENSOR_DIMS */
  XNN_MAX_FIELDS = 20, /* of a node */
  XNN_MAX_EXTERNS = 4096,
  XNN_FLAG_TRANSPOSE_WEIGHTS = 1,
  XNN_FLAG_TRANSPOSE_B = 1,
  XNN_MARK_ROWS = 1, /* these two are never written: of a conversion of floats to floats, which */
  XNN_MARK_GRID = 2, /* fuse.c takes away; GRID: of [1, height, width, columns] */
  XNN_FLAG_KEEP_DIMS = 0x40,
  XNN_FLAG_ALIGN_CORNERS = 8
};

typedef enum XnnNodeKind {
#define XNN_NODE(name, tag, fields) XNN_##name,
#include "backends/xnnpack/nodes.def"
#undef XNN_NODE
  XNN_NODE_KINDS
} XnnNodeKind;

typedef struct XnnNodeRow {
  uint8_t tag;
  const char *fields; /* see nodes.def */
} XnnNodeRow;
extern const XnnNodeRow xnn_node_rows[XNN_NODE_KINDS];

/* Numbers of enum XNNDatatype. Quantized ones stand for (q - zero point) * scale. */
typedef enum XnnDatatype {
  XNN_FP32 = 1,
  XNN_FP16 = 2,
  XNN_QINT8 = 3,   /* int8, one scale and zero point */
  XNN_QUINT8 = 4,  /* uint8, likewise; booleans have scale 1 and zero point 0 */
  XNN_QINT32 = 5,  /* bias; zero point 0, the kernels ignore the scale */
  XNN_QCINT8 = 6,  /* int8 filter: a scale for each channel, zero point 0 */
  XNN_QCINT32 = 7, /* bias, likewise */
  XNN_QCINT4 = 8,  /* filter: two in a byte, the low nibble first, each stored as q + 8 */
  XNN_QDINT8 = 9,  /* int8 activation, quantized while it runs: a scale and zero point a row */
  XNN_QBINT4 = 10, /* like QCINT4, with a bfloat16 scale for each group of a row */
  XNN_INT32 = 12
} XnnDatatype;

/* Where the quantization parameters of a datatype are. */
typedef enum XnnScheme {
  XNN_PLAIN,       /* it has none */
  XNN_PER_TENSOR,  /* scale, zero_point */
  XNN_PER_CHANNEL, /* scales, channel_dim */
  XNN_PER_GROUP,   /* scales, group_size */
  XNN_PER_TOKEN    /* computed: nonbatch_dims */
} XnnScheme;
XnnScheme xnn_scheme(XnnDatatype datatype); /* which one a datatype has */
/* Bytes of an element; those of 4 bits count as one. */
static inline uint32_t xnn_element_size(uint32_t datatype) {
  return datatype == XNN_FP16 ? 2
         : datatype == XNN_FP32 || datatype == XNN_INT32 || datatype == XNN_QINT32 ||
                 datatype == XNN_QCINT32
             ? 4
             : 1;
}
/* The elements of a value of these dims. */
static inline uint64_t xnn_dims_count(const uint32_t *dims, uint32_t rank) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++)
    count *= dims[i];
  return count;
}

typedef struct XnnValue {
  uint8_t datatype; /* XnnDatatype */
  uint8_t rank;
  uint32_t dims[XNN_MAX_RANK]; /* upper bounds */
  uint32_t data;               /* 1 + index of its constant; 0: none */
  uint32_t external;           /* 1 + index of the delegate's argument; 0: internal */
  bool is_input;               /* of external ones: read, not written */
  XnnId origin;                /* 1 + the value that a reshape made it of; 0: none, or dims vary */
  uint8_t dynamic;             /* bit i: dim i is dynamic */
  uint8_t may_be_one;          /* bit i: dim i may be 1 in some calls, or nothing is known of it */
  bool follows_window;         /* from a convolution or pool by nothing but copies and limits; or
                                  from a product, where what is quantized at run time may make it
                                  a convolution (fuse_dynamic.c) */
  XnnId codes;          /* 1 + the constant of integers that this one of floats was; 0: none */
  XnnId shift;          /* 1 + what the zero points of blocks add, [outputs, blocks]; 0: nothing */
  float scale;          /* XNN_PER_TENSOR; 1 at first */
  int32_t zero_point;   /* likewise; 0 at first */
  uint32_t scales;      /* 1 + index of the constant with its scales; 0: none */
  uint32_t scale_count; /* of them */
  uint32_t channel_dim; /* XNN_PER_CHANNEL: the dim that they are for */
  uint32_t group_size;  /* XNN_PER_GROUP: elements of a row that share a scale */
  uint32_t nonbatch_dims; /* XNN_PER_TOKEN: the last dims, which share one scale */
} XnnValue;

typedef struct XnnNode {
  uint8_t kind;                    /* XnnNodeKind */
  uint8_t vector_count;            /* elements of each of its vectors */
  bool limited;                    /* limit_low and limit_high hold */
  uint32_t debug_handle;           /* the node of the partition that it is of, from 1; 0: none */
  uint32_t fields[XNN_MAX_FIELDS]; /* floats by their bits, vectors as index into ints */
  float limit_low, limit_high;
} XnnNode;

static inline const char *xnn_fields(const XnnNode *n) { return xnn_node_rows[n->kind].fields; }
/* The first operand of a node, and the first result. */
static inline XnnId xnn_operand(const XnnNode *n) { return n->fields[strcspn(xnn_fields(n), "i")]; }
static inline XnnId xnn_result(const XnnNode *n) { return n->fields[strcspn(xnn_fields(n), "o")]; }

/* The order of the elements of a constant: dim i of the result is dim perm[i] of the source. */
typedef struct XnnOrder {
  uint32_t element, rank; /* element: bytes */
  uint32_t dims[XNN_MAX_RANK], perm[XNN_MAX_RANK];
} XnnOrder;

/* A constant: a value of the IR graph, and the order of its elements, NULL: as they lie. */
typedef struct XnnData {
  ValueId v;
  const XnnOrder *order;
} XnnData;

typedef struct XnnGraph {
  XnnValue *values;
  XnnNode *nodes;
  uint32_t *ints;
  XnnData *data;
  uint32_t value_count, value_capacity, node_count, node_capacity, int_count, int_capacity,
      data_count, data_capacity, extern_count;
  uint32_t debug_handle; /* of nodes that are added without one */
  bool quantizes_at_run; /* a node marks what is quantized at run time */
  const XnnId *order;    /* in which the values are written; NULL: by id */
} XnnGraph;

void xnn_init(XnnGraph *x);
void xnn_release(XnnGraph *x);
void xnn_clear(XnnGraph *x); /* as after xnn_init, the memory is kept */

/* A new internal value, of scale 1 and zero point 0. */
XnnId xnn_value(XnnGraph *x, XnnDatatype datatype, uint32_t rank, const uint32_t *dims);
/* A new internal value with the dims of another one and what is known of them; with its scale and
 * zero point, too, if it has the type. */
XnnId xnn_value_like(XnnGraph *x, XnnDatatype datatype, XnnId like);
/* A new value with the bytes of a constant of the IR graph. Each use as a filter or bias needs one
 * of its own: the delegate frees the bytes of those after packing. */
XnnId xnn_constant(XnnGraph *x, XnnDatatype datatype, uint32_t rank, const uint32_t *dims,
                   XnnData data);

/* A new internal value QDINT8, which a CONVERT of floats computes: 1 nonbatch dim for fully
 * connected nodes (a scale for each row), 3 for convolutions (one for each image). */
XnnId xnn_dynamic(XnnGraph *x, uint32_t rank, const uint32_t *dims, uint32_t nonbatch_dims);
/* Gives a value of QINT8, QUINT8 or QINT32, its scale and zero point. */
void xnn_set_scale(XnnGraph *x, XnnId id, float scale, int32_t zero_point);
/* Gives a constant of QCINT8, QCINT32 or QCINT4 its scales: count of them in f32, one for each
 * element of dim channel_dim. They are one more constant of the graph. channel_dim is 0 for filters
 * and biases, but 1 for a filter that is marked as transposed, and 3 for a depthwise filter. */
void xnn_set_channels(XnnGraph *x, XnnId id, uint32_t channel_dim, XnnData scales, uint32_t count);
/* Gives a filter [outputs, inputs] of QBINT4 its scales: count of them in bfloat16,
 * [outputs, inputs / group_size]. group_size is a multiple of 32 that divides the inputs. */
void xnn_set_groups(XnnGraph *x, XnnId id, uint32_t group_size, XnnData scales, uint32_t count);
/* Adds a node as it is; the pointer is valid until the next one. */
XnnNode *xnn_add_node(XnnGraph *x, const XnnNode *node);
/* Takes all nodes out of the graph, to be added again or others in their place. *count of them, in
 * scratch. */
XnnNode *xnn_take_nodes(XnnGraph *x, uint32_t *count, Arena *scratch);
/* Whether nodes of the kind compute each element of two operands, which are broadcast. */
bool xnn_broadcasts(uint32_t kind);
/* Whether some dim of some value is dynamic. */
bool xnn_has_dynamic_dims(const XnnGraph *x);
void xnn_make_external(XnnGraph *x, XnnId id, bool is_input); /* the next argument of the call */

/* A new node with fields in the order of its row; vectors by xnn_vector. */
XnnNode *xnn_node(XnnGraph *x, XnnNodeKind kind, const uint32_t *fields, uint32_t count);
#define XNN_ADD_NODE(x, kind, ...)                                                                 \
  xnn_node((x), (kind), (const uint32_t[]){__VA_ARGS__},                                           \
           (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))
/* Removes nodes of which nothing is used. Values stay, so that ids do. */
/* Users of a copy read what was copied. XNNPACK does so, too, when it loads a graph, and leaves one
 * that reads a copy twice, or is behind a conversion, without its operand. Copies of constants
 * stay. */
void xnn_pass_copies(XnnGraph *x, Arena *scratch);
void xnn_drop_dead(XnnGraph *x, Arena *scratch);
/* Removes constants that no node uses from the list of them. */
void xnn_drop_constants(XnnGraph *x, Arena *scratch);
uint32_t xnn_vector(XnnGraph *x, const uint32_t *items, uint32_t count);

#endif
