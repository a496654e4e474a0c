/* What shapes one method: dims, states, backends, quantization and the like, and where it was said.
 *
 * The same option may be given on the command line, in a recipe, in a file that a recipe includes
 * and in a textual graph that goes on from a stage, for one method or for all. Each of these is a
 * layer; what a method is lowered with is what the layers say together, the first one to name a
 * thing wins. */
#ifndef ETC_PIPELINE_OPTIONS_H
#define ETC_PIPELINE_OPTIONS_H

#include "onnx/import.h"
#include "pipeline/manager.h"

#define RANGE_PERCENTILE_DEFAULT 99.99

/* Options of which a method has one value; bits of MethodOptions.given. */
typedef enum OptionBit {
  GIVEN_FOLD_LIMIT = 1 << 0,
  GIVEN_PLAN = 1 << 1,
  GIVEN_MAX_ARENA = 1 << 2,
  GIVEN_SCHEME = 1 << 3, /* and the size of blocks */
  GIVEN_DATA = 1 << 4,
  GIVEN_RANGES = 1 << 5,
  GIVEN_RANGE_METHOD = 1 << 6,
  GIVEN_QUANTIZE_CONFIG = 1 << 7,
  GIVEN_MAX_DROP = 1 << 8,
  GIVEN_BACKENDS = 1 << 9,
  GIVEN_DERIVE = 1 << 10,
  GIVEN_MEMORY = 1 << 11,
  GIVEN_BUNDLE = 1 << 12,
  GIVEN_KERNELS = 1 << 13,
  GIVEN_COMPARE = 1 << 14
} OptionBit;

/* Options that name something, each with a mark that one of the methods had it. */
typedef struct DimOption {
  DimFlag flag;
  bool *used;
} DimOption;

typedef struct BoundOption {
  BoundFlag flag;
  bool *used;
} BoundOption;

typedef struct TextOption {
  StrView text;       /* as it was given */
  const char *folder; /* that paths in it begin in, with its slash; "": the present one */
  bool *used;
} TextOption;

/* An option as it was given, NAME=VALUE. */
typedef struct SaidOption {
  StrView text;
  uint32_t bit;  /* OptionBit; 0: an option that adds */
  bool of_graph; /* a graph that is written and read back brings it along */
} SaidOption;

typedef struct MethodOptions {
  uint32_t given; /* OptionBit */
  PassOptions pass;
  QuantOptions quantize;       /* pass.quantize points here in options that are resolved */
  const struct Derive *derive; /* --derive, see derive.h */
  const char *bundle;          /* samples that become test cases, or NULL */
  const char *compare;         /* samples to compare on; NULL: those of quantize.data */
  double max_drop;             /* SQNR in dB that outputs must have; 0: not asked for */
  DimOption *dims;
  BoundOption *bounds;
  TextOption *states, *values; /* --state, --value */
  AddedPasses passes;
  SaidOption *said;
  uint32_t dim_count, dim_capacity, bound_count, bound_capacity, state_count, state_capacity,
      value_count, value_capacity, said_count, said_capacity;
} MethodOptions;

/* What quantization is measured on: a path of samples, or NULL. */
const char *options_samples(const MethodOptions *o);
/* Frees the lists. */
void options_release(MethodOptions *o);
/* Adds to `o` what `below` says and `o` does not. */
void options_merge(MethodOptions *o, const MethodOptions *below);
void options_add_dim(MethodOptions *o, DimFlag flag, bool *used);
/* The ranges of the dims, in arena. */
DimFlag *options_dim_flags(Arena *arena, const MethodOptions *o);
/* As --dim takes it: NAME=N, NAME=LO..HI or NAME=OTHER. */
const char *options_dim_text(Arena *arena, const DimFlag *flag);
/* The name that stands for the sizes of `name`: itself, or what --dim NAME=OTHER leads to. */
StrView options_dim_root(Arena *arena, const MethodOptions *o, StrView name);
/* The range of that dimension; NULL when there is none. */
const DimFlag *options_dim(const MethodOptions *o, StrView name);

#endif
