/* The options of a session, by the names that they have on the command line. */
#ifndef ETC_PIPELINE_SETTINGS_H
#define ETC_PIPELINE_SETTINGS_H

#include "pipeline/session.h"

/* value is empty for options without one. Wrong usage is reported. */
EtcStatus session_set(Session *s, StrView name, StrView value);
/* NAME=VALUE, an option that a textual graph brings along: of the graph, or of the whole program.
 */
EtcStatus session_set_text(Session *s, StrView text, bool *of_program);
extern const uint32_t setting_count; /* of EtcSession.given */
/* Whether a recipe may say that; reported if not, with the nearest spelling. */
EtcStatus session_recipe_knows(Session *s, StrView name);
/* Whether a recipe may say that, without a report; not `model` and the keys that are no options
 * (recipe.h). */
bool session_is_recipe_key(StrView name);
/* Whether the option may be given several times: its value may be a list or a mapping then. */
bool session_recipe_repeats(StrView name);
/* Whether its value is a list with commas. */
bool session_recipe_joins(StrView name);
/* Sets what a recipe says, for s->setting. */
EtcStatus session_recipe_set(Session *s, StrView name, StrView value);
/* A path that begins in folder, which ends with a slash or is empty. */
const char *session_path_in(Session *s, const char *folder, StrView path);

/* --- for settings_backend.c --- */

/* "'VALUE': the WHAT is missing" */
EtcStatus session_missing(Session *s, const char *option, const char *hint, const char *what,
                          StrView value);

/* --backend NAME or NAME:KEY=VALUE,KEY=VALUE */
EtcStatus session_set_backend(Session *s, StrView value);
/* --dim (settings_dim.c) */
EtcStatus session_set_dim(Session *s, StrView value);
/* Where the number of NAME=NUMBER begins: behind the last '=', since names may hold others. 0
 * without one. */
size_t settings_number_at(StrView value);
/* Passes by name (settings_pass.c). */
EtcStatus session_set_pass(Session *s, StrView value);
EtcStatus session_set_print_before(Session *s, StrView value);
EtcStatus session_set_print_after(Session *s, StrView value);
EtcStatus session_set_skip_pass(Session *s, StrView value);
EtcStatus session_set_stop_after(Session *s, StrView value);
/* --plan, --memory, --share-state, --max-arena, --fold-limit (settings_memory.c) */
EtcStatus session_set_plan(Session *s, StrView value);
EtcStatus session_set_memory(Session *s, StrView value);
EtcStatus session_set_share_state(Session *s, StrView value);
EtcStatus session_set_max_arena(Session *s, StrView value);
EtcStatus session_set_fold_limit(Session *s, StrView value);
/* --bound NAME=N or NAME:AXIS=N (settings_bound.c) */
EtcStatus session_set_bound(Session *s, StrView value);
/* After the import: reports bounds of unknown values, and those that nothing needed if it went
 * well. */
Status session_check_bounds(Session *s, bool imported);
/* --custom-op DOMAIN.OP=SCHEMA (settings_custom_op.c) */
EtcStatus session_set_custom_op(Session *s, StrView value);
/* --lowered DOMAIN.OP=FILE.pte (settings_lowered.c) */
EtcStatus session_set_lowered(Session *s, StrView value);
/* Before and after the import: reads the programs; reports those of operators that no model has. */
Status session_open_lowered(Session *s);
Status session_check_lowered(Session *s);
void session_close_lowered(Session *s);
/* --quantize, --calibrate, --ranges, --calibrate-method (settings_quantize.c) */
EtcStatus session_set_quantize(Session *s, StrView value);
EtcStatus session_set_calibrate(Session *s, StrView value);
EtcStatus session_set_compare(Session *s, StrView value);
EtcStatus session_set_ranges(Session *s, StrView value);
EtcStatus session_set_calibrate_method(Session *s, StrView value);
EtcStatus session_set_quantize_config(Session *s, StrView value);
/* Whether what was given goes together; reported if not. Before the import: for all methods. */
Status session_check_quantize(Session *s);
/* Before the stage quantize: what it needs to know of the model of m. */
Status session_begin_quantize(Session *s, const Method *m);
/* After the stage source: the passes that change values before they are observed, so that what
 * `etc calibrate` writes fits what --ranges reads. */
Status session_prepare_ranges(Session *s);
/* The options that are being set. */
MethodOptions *settings_options(Session *s);
/* A path as the present folder knows it, kept; it is given as s->setting.folder knows it. */
const char *session_path(Session *s, StrView path);
/* "did you mean '…'?", or NULL when nearest is. */
const char *session_did_you_mean(Session *s, const char *nearest);
/* Names of the operators of ONNX models that can be lowered, of all domains; returns how many. */
enum { OPERATORS_MAX = 1024 };
size_t session_operators(const char *names[OPERATORS_MAX]);
/* Whether name is one of them. */
bool session_is_operator(StrView name);
/* NAME, at, REST; false without a name or `at`. */
bool session_split(StrView value, char at, StrView *name, StrView *rest);
/* "DOMAIN.OP" at the last dot; whether it has a domain. That of ONNX itself, "ai.onnx", is "". */
bool session_split_operator(StrView name, StrView *domain, StrView *op);
/* The value of an option with two parts, neither of them empty: "--state INPUT:OUTPUT". */
typedef struct PairForm {
  const char *option, *hint, *first;
  char at;
  const char *second;
} PairForm;
EtcStatus session_pair(Session *s, const PairForm *form, StrView value, StrView *first,
                       StrView *second);

#endif
