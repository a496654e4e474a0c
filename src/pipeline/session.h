/* A session: one program, all that it is made with, and the way through the stages. The public
 * interface is include/etc/etc.h; the command uses what is here as well, for all that is not
 * lowering. */
#ifndef ETC_PIPELINE_SESSION_H
#define ETC_PIPELINE_SESSION_H

#include "etc/etc.h"
#include "ir/text.h"
#include "pipeline/program.h"
#include "pipeline/registry.h"

/* Options from one place, see options.h. Layers of lower priority numbers win, and of the same
 * number those for one method. */
typedef struct Layer {
  int priority;
  const char *method; /* NULL: all methods */
  MethodOptions options;
} Layer;

/* The command line and etc_session_set; recipes follow with the files that they include, and then
 * what a textual graph was lowered with up to its stage. */
enum { PRIORITY_COMMAND, PRIORITY_RECIPE, PRIORITY_FILE = 1000 };

/* What an option is being set for, and from where. */
typedef struct SettingPlace {
  Layer *layer;
  DiagPlace at;       /* in a recipe; line 0 outside */
  const char *folder; /* that paths begin in, with its slash; "": the present one */
  bool overruled;     /* what has set it before wins: the value is dropped */
} SettingPlace;

/* A program of --lowered. */
typedef struct LoweredFile {
  StrView domain, op;
  const char *path;
  PteFile file;
  bool open, used;
} LoweredFile;

/* A file of --report, made before the program is written so that both appear or none. */
typedef struct SessionReport {
  const char *path;
  AtomicFile file;
  bool open;
} SessionReport;
/* What is kept beside a program: the file of --map, and that of --external-weights. */
enum { CACHE_MAP, CACHE_EXTERNAL, CACHE_SIDES };

typedef struct CacheSide {
  const char *path;  /* in the folder; NULL: the option was not given */
  MappedFile mapped; /* after a hit or when it was kept */
} CacheSide;

/* --cache, see cache.h. */
typedef struct Cache {
  const char *folder;          /* NULL: none */
  StrBuf options;              /* those that count, as they were set */
  const char *extra_output;    /* an option that writes or prints more than the program, or NULL */
  const char *program, *entry; /* paths; after the import */
  const struct Summary *summary; /* after a hit */
  MappedFile mapped;             /* the program, after a hit or when it was kept */
  CacheSide sides[CACHE_SIDES];
  uint32_t files, warnings; /* that there were when the key was made */
  bool hit, writable, made; /* made: the folder, by this session */
} Cache;

struct EtcSession {
  MemoryScope memory; /* what the public functions allocate */
  bool no_memory;     /* it ran out: nothing but this, and where messages go, is there any more */
  bool begun;         /* etc_lower has begun: what is set now would count for nothing */
  bool inner;         /* see session_new_inner */
  unsigned threads;   /* see parallel_set_threads */
  EtcWrite *diagnostic;
  void *diagnostic_user;
  Arena arena;
  DiagSink sink;
  Context ctx;
  Registry registry;
  Manager manager;
  Program program;
  Layer **layers;
  MethodOptions **resolved; /* all that session_resolve made */
  uint32_t layer_count, layer_capacity, resolved_count, resolved_capacity;
  SettingPlace setting;
  SaidOption *said; /* what recipes say for the whole program */
  uint32_t said_count, said_capacity;
  int *given; /* by row of the settings: 1 + the priority of what set it for the whole program */
  const char *recipe; /* or NULL */
  bool recipe_read;
  FilesRead files;        /* all that was read, for depfiles and the cache */
  const char *artifacts;  /* folder or NULL */
  const char *depfile;    /* or NULL */
  const char *map;        /* file for --map, or NULL */
  const char *bundle;     /* file of test cases that was written, or NULL */
  struct Budget *budget;  /* --budget, or NULL */
  SessionReport *reports; /* of --report */
  uint32_t report_count, report_capacity;
  const char *depfile_target; /* or NULL: the output */
  const char *output;         /* or NULL */
  EtcWrite *deliver;          /* takes the program where the output is "-"; NULL: standard output */
  void *deliver_user;
  StrView *shared; /* --share-state, in which one '*' stands for any text */
  uint32_t shared_count;
  LoweredFile *lowered;   /* --lowered */
  LoweredOp *lowered_ops; /* the same for the import */
  uint32_t lowered_count;
  const char *external;      /* file for constants (.ptd), or NULL */
  const char *external_data; /* file with constants of programs that are read, or NULL */
  Cache cache;
  bool default_depfile; /* OUT.d */
  bool sync;            /* fsync the output */
  bool size, size_json; /* --size */
  bool time_passes, time_json, explain_json, explain_table;
  uint32_t explained;      /* delegations of the facts that session_explain told */
  uint32_t delegates_kept; /* as artifacts */
};
typedef struct EtcSession Session;

/* --- calls (api.c) --- */

typedef EtcStatus SessionCall(Session *s, void *user);
/* Runs call; when memory runs out in it, says so, leaves s fit for etc_session_free alone, and
 * returns ETC_NO_MEMORY. Every public function does its work in one; the command is one as a
 * whole. */
EtcStatus session_call(Session *s, SessionCall *call, void *user);
/* Refuses a call that would change what the session lowers once it has begun to. */
EtcStatus session_check_not_begun(Session *s);
/* Reports that a caller of the library gives NULL where that is not allowed. */
EtcStatus session_null(Session *s, const char *what);
/* A session that is made and freed within a call of another one, and shares its memory. */
Session *session_new_inner(void);

/* --- options (layers.c) --- */

/* The layer of that priority and method, made where there is none. */
Layer *session_layer(Session *s, int priority, const char *method);
/* What was set for all methods on the command line. */
MethodOptions *session_own(Session *s);
/* What the layers say of a method, in the arena of the session. */
MethodOptions *session_resolve(Session *s, StrView method);
/* Reports options that name an input, a dimension or a value that no model has. */
Status session_check_used(Session *s);
/* When the import has failed: reports the dimensions among these, which may be the reason. */
void session_name_unused_dims(Session *s);

/* --- sources and the stage import (sources.c) --- */

/* One more file to read, "-" for standard input, which is read now. Its kind is that of its name
 * (.etir, .pte) or, failing that, of its first bytes. Usage errors are reported. */
EtcStatus session_add_source(Session *s, const char *method, const char *path);
/* A model in memory, which must outlive the session; name stands for its path. */
EtcStatus session_add_bytes(Session *s, const char *method, const char *name, const void *data,
                            size_t size);
/* Standard input that another session has read, and that outlives this one. */
EtcStatus session_share_source(Session *s, const Source *read);
/* The ONNX model of a source; to be closed by onnx_model_close. */
Status session_open_onnx(Session *s, const Source *source, OnnxModel *out);
/* Reads all files, and imports ONNX models. Programs (.pte) only where allow_pte is true. */
Status session_import(Session *s, bool allow_pte);
/* For what an option says of the models: their file, if there is one only. */
DiagPlace session_option_place(const Session *s, const char *option);
/* From here on passes and messages are about that method. */
void session_enter(Session *s, const Method *m);

/* --- the stages (stages.c, output.c, session.c) --- */

/* Runs the stages after import up to and with last, each on all methods; a graph that is past a
 * stage already skips it. */
Status session_run(Session *s, StageId last);
/* Checks every method, after STAGE_TO_EXECUTORCH, against the runtime's kernels: what session_emit
 * begins with. */
Status session_check_methods(Session *s);
/* Checks every method and writes the program. */
Status session_emit(Session *s, const char *output);
/* Writes the program that the cache has, after a hit. */
Status session_emit_kept(Session *s, const char *output);
/* Writes the graph of a delegate as an artifact; user is the session (PassOptions.keep_delegate).
 */
void session_keep_delegate(void *user, Graph *part);
/* Hands what time-passes asks for to the output. */
void session_print_times(const Session *s);
/* Before anything is read: whether two outputs have one name; a usage error. */
EtcStatus session_check_outputs(Session *s, const char *output);
/* Whether the cache keeps all that is asked for; a usage error. */
EtcStatus session_check_cache(Session *s);
/* Before anything is written: whether an output would take the place of a file that was read, or
 * has the name of a model. */
Status session_check_overwrites(Session *s, const char *output);
/* The file of dependencies of that output, or NULL. */
const char *session_depfile(Session *s, const char *output);
/* Warns of names in it that Make cannot read; before anything is written. */
Status session_check_depfile(Session *s, const char *output);
/* Writes it, if there is to be one; before the output, which is never without it. */
Status session_write_depfile(Session *s, const char *output);
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
