/* Files of dependencies: a rule for make, as compilers write it with -MD. */
#ifndef ETC_SUPPORT_DEPFILE_H
#define ETC_SUPPORT_DEPFILE_H

#include "support/diag.h"

/* The output depends on all that was read, and each of those has an empty rule, so that make goes
 * on when one is gone. */
typedef struct Depfile {
  StrBuf rule, empty_rules;
} Depfile;

/* Warns of a name that Make has no way to write, as target or as one that is read. */
Status depfile_check_name(DiagSink *sink, const char *path);
void depfile_begin(Depfile *d, const char *target);
void depfile_add(Depfile *d, const char *path);
/* Appends the text to out and releases d. */
void depfile_end(Depfile *d, StrBuf *out);

#endif
