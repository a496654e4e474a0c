/* --bundle: test cases of the methods, and the bundle that is written beside the program. */
#ifndef ETC_PIPELINE_BUNDLES_H
#define ETC_PIPELINE_BUNDLES_H

#include "pipeline/session.h"

/* Runs the imported methods that have samples on them, in order and with their states; reported:
 * samples that cannot be read or do not fit. */
Status bundles_prepare(Session *s);
/* OUT.bpte beside OUT.pte, if there are test cases. program: all bytes of it are written. */
Status bundles_write(Session *s, AtomicFile *program, const char *output);
/* Where that is. */
const char *bundles_path(Session *s, const char *output);

#endif
