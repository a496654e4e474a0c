/* A session: the models of one program on their way through the stages. The public interface is
 * include/etc/etc.h; the command uses what is here as well, for all that is not lowering. */
#ifndef ETC_PIPELINE_SESSION_H
#define ETC_PIPELINE_SESSION_H

#include "etc/etc.h"
#include "onnx/import.h"
#include "ir/constant_method.h"
#include "ir/text.h"
#include "pipeline/manager.h"
#include "pte/emit.h"
#include "pte/read.h"

typedef enum SourceKind { SOURCE_ONNX, SOURCE_TEXT, SOURCE_PTE } SourceKind;

/* A file that methods come from. */
typedef struct Source {
  const char *method; /* name given with it; of ONNX models only */
  const char *path;   /* "-": standard input */
  SourceKind kind;
  bool open;
  OnnxModel onnx;
  MappedFile mapped; /* a textual file, or standard input */
  bool shared;       /* another session unmaps it */
  PteFile pte;
} Source;

typedef struct Method {
  Graph *graph;
  const Source *source;
} Method;

/* --pass NAME@STAGE */
typedef struct UserPass {
  const PassRow *row;
  StageId stage;
} UserPass;

struct EtcSession {
  Arena arena;
  DiagSink sink;
  Context ctx;
  Manager manager;
  Source **sources;
  uint32_t source_count, source_capacity;
  Method *methods; /* after session_import */
  uint32_t method_count, method_capacity;
  DimFlag *dims;
  uint32_t dim_count, dim_capacity;
  StrView *states; /* --state, as given */
  uint32_t state_count, state_capacity;
  BoundFlag *bounds;
  bool *bounds_used;
  uint32_t bound_count, bound_capacity;
  StrView *values; /* --value, as given */
  uint32_t value_count, value_capacity;
  bool *dims_used, *values_used; /* with several models: by one of them */
  struct Derive *derive;         /* --derive, or NULL (derive.h) */
  ConstantMethod *constants;     /* --constant; of programs that are read, theirs */
  uint32_t constant_count, constant_capacity;
  QuantOptions quantize; /* manager.options.pass.quantize, when that was chosen */
  double max_drop;       /* SQNR in dB that outputs must have; 0: not asked for */
  const char *kept_text; /* what was left in floats for it, or NULL */
  UserPass *user_passes;
  uint32_t user_pass_count, user_pass_capacity;
  uint64_t given;      /* options that were set, by their row; not by the recipe */
  const char *recipe;  /* or NULL */
  DiagPlace recipe_at; /* of the value that is being set; line 0 outside of recipes */
  uint32_t own_bounds, own_dims, own_states, own_values, own_sources, own_backends,
      own_constants;          /* given before the recipe was read */
  const char *artifacts;      /* folder or NULL */
  const char *depfile;        /* or NULL */
  const char *depfile_target; /* or NULL: the output */
  const char *output;         /* or NULL */
  bool default_depfile;       /* OUT.d */
  bool sync;                  /* fsync the output */
  bool time_passes, time_json;
  EmitFigures written; /* after session_emit */
};
typedef struct EtcSession Session;

/* One more file to read, "-" for standard input, which is read now. Its kind is that of its name
 * (.etir, .pte) or, failing that, of its first bytes. Usage errors are reported. */
EtcStatus session_add_source(Session *s, const char *method, const char *path);
/* Standard input that another session has read, and that outlives this one. */
EtcStatus session_share_source(Session *s, const Source *read);
/* Its path for messages, or "<stdin>". */
StrView source_name(const Source *source);
/* The ONNX model of a source; to be closed by onnx_model_close. */
Status session_open_onnx(Session *s, const Source *source, OnnxModel *out);
/* Reads all files, and imports ONNX models. Programs (.pte) only where pte is true. */
Status session_import(Session *s, bool allow_pte);
/* Runs the stages after import up to and with last, each on all methods; a graph that is past a
 * stage already skips it. */
Status session_run(Session *s, StageId last);
/* Checks every method against the runtime's kernels and writes the program. */
Status session_emit(Session *s, const char *output);
/* Hands what time-passes asks for to the output. */
void session_print_times(const Session *s);
/* The graphs of all methods as text, as artifacts and `etc print` have them. */
void session_print(const Session *s, PrintOptions options, StrBuf *out);
/* The method of that name; the only one when name is empty. Reports an unknown or missing name
 * (with the nearest). */
Status session_method(Session *s, StrView name, Method **out);

/* Reports wrong usage of an option; returns ETC_USAGE. hint may be NULL. */
EtcStatus session_usage(Session *s, const char *option, const char *hint, const char *format, ...)
    ETC_PRINTF(4, 5);
EtcStatus session_status(Status status);

#endif
