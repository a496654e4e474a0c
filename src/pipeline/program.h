/* A program on its way through the stages: the files it comes from, and its methods. */
#ifndef ETC_PIPELINE_PROGRAM_H
#define ETC_PIPELINE_PROGRAM_H

#include "ir/constant_method.h"
#include "onnx/file/model.h"
#include "pipeline/options.h"
#include "pte/bundle.h"
#include "pte/emit.h"
#include "pte/read.h"

typedef enum SourceKind { SOURCE_ONNX, SOURCE_TEXT, SOURCE_PTE } SourceKind;

/* A file that methods come from. */
typedef struct Source {
  const char *method; /* name given with it; of ONNX models only */
  const char *path;   /* "-": standard input; of bytes their name */
  int priority;       /* of the layer that names it */
  SourceKind kind;
  bool open;
  OnnxModel onnx;
  MappedFile mapped; /* a textual file, or what is in memory */
  bool in_memory;    /* standard input, or bytes of the caller */
  bool shared;       /* mapped is of somebody else, who unmaps it */
  PteFile pte;
  BundleFile bundle; /* that pte is of, if bundled */
  bool bundled;
  bool external_open;
  PtdFile external; /* constants of pte that are in a file of their own */
} Source;

typedef struct Method {
  Graph *graph;
  Source *source;
  MethodOptions *options;        /* resolved */
  struct BundleSuite *suite;     /* test cases, or NULL */
  struct QuantizeErrors *errors; /* what --report measured, or NULL */
  struct ReportMethod *report;   /* what --report keeps of the stages, or NULL */
  double sqnr;            /* dB, the least of the outputs on the samples; NaN: not measured */
  const char *worst;      /* the nodes that cost most of it */
  bool quantized_before;  /* the model has operators that quantize or dequantize */
  DType weights;          /* with --quantize: the type of its matrices, f32 if there is one of it */
  bool quantized_nothing; /* --quantize was given, and changed no node */
  bool quantized_blocks;  /* it gave weights 4 bits */
} Method;

typedef struct Program {
  StageId next; /* stages before it are done */
  Source **sources;
  Method *methods; /* after the stage import */
  uint32_t source_count, source_capacity, method_count, method_capacity;
  ConstantMethod *constants; /* --constant; of programs that are read, theirs */
  int *constant_priorities;  /* of the layers that name them, by constant */
  uint32_t constant_count, constant_capacity;
  const char *kept_text;      /* what --max-drop left in floats, or NULL */
  Facts facts;                /* recorded by the stages */
  EmitFigures written;        /* after the stage emit */
  const InstructionMap *maps; /* likewise: by method, which node each instruction is of */
} Program;

/* Its path for messages, or "<stdin>". */
StrView source_name(const Source *source);
StrView method_name(const Method *m);
/* What the file at path is: by its suffix, else by its first bytes. What cannot be read, or is
 * something else, counts as ONNX, whose reader says why. */
SourceKind source_kind(const char *path);
/* Whether it stands for standard input. */
bool path_is_stdin(const char *path);

#endif
