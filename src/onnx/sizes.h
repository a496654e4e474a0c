/* Inputs whose elements become sizes.
 *
 * A model may compute the shape of something from an integer input and declare nothing but the
 * shapes of its outputs (CenterCropPad and AffineGrid as functions). When that stops an import, the
 * model is imported with symbols for the elements of such inputs, and "size of the output ==
 * declared size" is solved for them. Where one solution fits, the model is imported with it. The
 * program compares its input with the solution and fails at any other. */
#ifndef ETC_ONNX_SIZES_H
#define ETC_ONNX_SIZES_H

#include "onnx/translate.h"

enum {
  SIZES_ELEMENTS = 32,  /* of all inputs together */
  SIZES_GREATEST = 4096 /* sizes are tried up to this */
};

typedef enum SizesStage {
  SIZES_NOTED,    /* an import like any other that notes whether an unknown size stopped it */
  SIZES_SYMBOLIC, /* elements are symbols, which are solved in the end */
  SIZES_KNOWN     /* elements are those of the solution, symbols where there is none */
} SizesStage;

typedef struct SizeElement {
  ValueId input; /* of the import that goes on */
  uint32_t index;
  SymInt symbol;
  int64_t value; /* 0: not solved */
} SizeElement;

typedef struct Sizes {
  SizesStage stage;
  int64_t least; /* the size from which they are tried */
  bool stopped;  /* something needed a size that is known only while running */
  bool solved;   /* there is a solution for some element */
  uint32_t count;
  SizeElement elements[SIZES_ELEMENTS]; /* in the order of the inputs */
} Sizes;

/* Whether the graph has inputs that may hold sizes. */
bool sizes_possible(const Onnx__GraphProto *graph);
/* Tells of a new input of the graph. */
void sizes_input(Import *im, ValueId input);
/* When the outputs are set: solves the elements, or adds the comparison with the solution. */
Status sizes_finish(Import *im);

#endif
