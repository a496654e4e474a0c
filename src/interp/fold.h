/* Folding while building: a builder hook (ir/builder.h) that evaluates ops over constants with
 * their reference kernels, and knows the elements of small integer tensors made from shapes even
 * when those are symbolic, so that the shape arithmetic of exported models never becomes kernels.
 */
#ifndef ETC_INTERP_FOLD_H
#define ETC_INTERP_FOLD_H

#include "ir/builder.h"

typedef struct Fold {
  Arena arena;             /* contents */
  Arena scratch;           /* one evaluation */
  const SymInt **contents; /* by ValueId: known elements of an integer, bool or whole float tensor
                              that is not a constant; NULL = unknown */
  uint32_t capacity;
  uint64_t
      limit; /* a folded result may have at most limit bytes, or as many as its operands together */
  uint64_t made, work, products, file; /* bytes made, and work done so far, matrix products apart;
                                          size of the largest file seen */
  bool keep_transposes; /* leave transposes of large constant matrices alone: products may take the
                           matrix as it lies */
  bool keep_widenings;  /* leave the first step from large quantized weights to wider numbers alone:
                           the pass factor_scales looks for it */
  bool dequantizes;     /* fold dequantizations, too, which takes more bytes */
} Fold;

#define FOLD_LIMIT_DEFAULT ((uint64_t)1 << 20)
#define FOLD_CONTENTS_MAX 1024 /* elements */
/* What all folding of a graph may take, so that a small file cannot ask for much; models with large
 * files may fold more. Results that pass a limit stay computations. */
#define FOLD_TOTAL_MAX ((uint64_t)32 << 20)   /* bytes of results, and twice the file */
#define FOLD_WORK_MAX ((uint64_t)1 << 30)     /* element steps, and four times the file */
#define FOLD_PRODUCTS_MAX ((uint64_t)1 << 25) /* those of matrix products, and eight times it */
#define FOLD_COSTLY_MAX ((uint64_t)1 << 26)   /* element steps of one costly op, and the file */
#define FOLD_ALWAYS_MAX                                                                            \
  ((uint64_t)1 << 10) /* operands and results of that many bytes: no limit                         \
                       */

void fold_init(Fold *f, uint64_t limit); /* limit 0: the default */
void fold_release(Fold *f);
/* The hook: b->fold = fold_node, b->fold_data = Fold. Returns a constant (or an equal known value)
 * or 0. */
ValueId fold_node(Builder *b, NodeId n);
/* Folds nodes together with what they are computed of, where that is constants alone, dequantized
 * ones too, without limits of size. Nodes on the way stay as they are for others that use them. */
typedef struct FoldChain {
  Builder b;
  Fold fold;
  Arena *arena;
  uint8_t *known;  /* by ValueId, of those that the graph had: whether it is such a one */
  ValueId *made;   /* likewise: the constant */
  uint64_t folded; /* nodes */
} FoldChain;
/* c stays where it is until fold_chain_release. */
void fold_chain_init(FoldChain *c, Graph *g, Arena *arena);
void fold_chain_release(FoldChain *c);
/* Puts constants in the place of the results of n, if it is such a node. */
void fold_chain(FoldChain *c, NodeId n);
/* Declares the elements of v (an integer tensor of count elements); copied. */
void fold_set_contents(Fold *f, ValueId v, const SymInt *values, uint32_t count);
/* The elements of an integer or bool tensor: of a constant, or known. NULL when not known or too
 * many. In arena. */
const SymInt *fold_contents(Fold *f, const Graph *g, ValueId v, Arena *arena, uint32_t *count);

#endif
