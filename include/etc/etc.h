/* libetc: lowering of ONNX models to ExecuTorch programs (.pte), as a library.
 *
 *   EtcSession *session = etc_session_new();
 *   etc_session_set(session, "dim", "batch=1..8");
 *   etc_session_add_method(session, "forward", "model.onnx");
 *   EtcStatus status = etc_lower(session, "model.pte");   // messages went to standard error
 *   etc_session_free(session);
 *
 * A session lowers one program. Different sessions may be used by different threads; one session by
 * one thread at a time. Strings are copied and may be freed after the call. The library never ends
 * the process but for faults of its own. When memory runs out, a call returns ETC_NO_MEMORY, after
 * a message; all files and memory of the session are given back, no output is left half written,
 * and the session can only be freed.
 *
 * Work is shared with threads that are started once and wait until the process ends; after dlclose
 * the library stays loaded for them. */
#ifndef ETC_ETC_H
#define ETC_ETC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ETC_API __attribute__((visibility("default")))
#else
#define ETC_API
#endif

/* The numbers are the exit codes of the command, which ends with 1 for ETC_NO_MEMORY. */
typedef enum EtcStatus {
  ETC_OK = 0,
  /* The model cannot be read or lowered, or not with the options that are set; the output cannot be
   * written. */
  ETC_FAILED = 1,
  ETC_USAGE = 2,     /* an unknown option, a value that it cannot have; a wrong call */
  ETC_NO_MEMORY = 3, /* every other call of the session returns it as well */
  ETC_INTERNAL = 70  /* a fault of etc */
} EtcStatus;

typedef struct EtcSession EtcSession;

/* Takes bytes, mostly text that is not terminated, which are only valid during the call. user is
 * what was given with the function. */
typedef void EtcWrite(void *user, const char *text, size_t size);

/* "0.1.0". */
ETC_API const char *etc_version(void);

/* A session without methods; NULL when there is no memory for it. */
ETC_API EtcSession *etc_session_new(void);
/* session may be NULL, here and in the two functions below, which do nothing then: those that
 * return a status say ETC_USAGE, and so they do for each other NULL that is not allowed. */
ETC_API void etc_session_free(EtcSession *session);

/* Where messages go: one call a message, as text or, after etc_session_set(session, "diagnostics",
 * "json"), as one JSON object on a line. Standard error without this call, and where write is NULL.
 */
ETC_API void etc_session_on_diagnostic(EtcSession *session, EtcWrite *write, void *user);
/* Where the text goes that print-before, print-after, time-passes and the like ask for; nowhere
 * without this call, and where write is NULL. */
ETC_API void etc_session_on_output(EtcSession *session, EtcWrite *write, void *user);

/* Sets an option, named as that of `etc lower` without the dashes ("dim", "value", "plan",
 * "threads", ...; `etc help lower` lists them). value is NULL or "" for options without one,
 * or "true"; "false" leaves them out.
 * Options that repeat add. ETC_USAGE with a message for a wrong name or value, ETC_FAILED for what
 * this version does not do. After etc_lower nothing can be set or added any more: ETC_USAGE. */
ETC_API EtcStatus etc_session_set(EtcSession *session, const char *name, const char *value);
/* Sets an option for one method only, one that shapes methods, such as "dim", "state", "backend" or
 * "quantize". It goes before what is set for all. */
ETC_API EtcStatus etc_session_set_method(EtcSession *session, const char *method, const char *name,
                                         const char *value);
/* One more method of the program, and the path of the model that it is made from, "-" for standard
 * input (which is read now). Names differ; "forward" is what runtimes expect. */
ETC_API EtcStatus etc_session_add_method(EtcSession *session, const char *name, const char *path);

/* One more method, without inputs, that returns count values (1 or more); as the option "constant",
 * with values that need no text. Strings are UTF-8. ETC_USAGE for a name that is empty or was given
 * before, no values, or a float that is not finite. */
ETC_API EtcStatus etc_session_add_constant_ints(EtcSession *session, const char *name,
                                                const int64_t *values, size_t count);
ETC_API EtcStatus etc_session_add_constant_doubles(EtcSession *session, const char *name,
                                                   const double *values, size_t count);
ETC_API EtcStatus etc_session_add_constant_bools(EtcSession *session, const char *name,
                                                 const bool *values, size_t count);
ETC_API EtcStatus etc_session_add_constant_strings(EtcSession *session, const char *name,
                                                   const char *const *values, size_t count);

/* One more method of the program, and the model in memory that it is made from: ONNX without
 * external data, or a textual graph. data must stay as it is until etc_session_free; name stands
 * for its path in messages. */
ETC_API EtcStatus etc_session_add_model(EtcSession *session, const char *method, const char *name,
                                        const void *data, size_t size);

/* Reads the models, lowers them and writes the program, once a session. output appears when it is
 * whole, or not at all; "-" is standard output, NULL what the option "output" says. */
ETC_API EtcStatus etc_lower(EtcSession *session, const char *output);

/* As etc_lower, and hands the program to write, in pieces and in order, once all of it was made;
 * not at all on any error. */
ETC_API EtcStatus etc_lower_to(EtcSession *session, EtcWrite *write, void *user);

#ifdef __cplusplus
}
#endif

#endif
