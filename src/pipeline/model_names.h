/* What the model calls the parts of the program that is made of it (PteNames), for `--size`,
 * budgets and `--map`. */
#ifndef ETC_PIPELINE_MODEL_NAMES_H
#define ETC_PIPELINE_MODEL_NAMES_H

#include "pipeline/session.h"
#include "pte/size.h"

/* A constant that a delegate finds by a key. */
typedef struct DataName {
  StrView key, name;
} DataName;

/* The named ones of all methods, each key once. In the session's arena. */
DataName *model_data_names(Session *s, uint32_t *count);
/* maps: by method; must live as long as what is returned. */
PteNames model_names(Session *s, const InstructionMap *maps);

/* "XnnpackBackend from /stem/Conv": the name of a delegate by a node that it was made of, in
 * arena; "" where that has no name. */
StrView delegate_label(Arena *arena, StrView backend, StrView node);

/* What a file that `etc lower --map` wrote says of program p, which must be the one that was
 * written with it. Reported (DIAG_MAP_FILE): what is no such file, a map of another program. */
Status map_names_read(Session *s, const char *path, const PteProgram *p, PteNames *out);

#endif
