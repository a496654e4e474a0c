/* --max-drop: nodes stay in floats until the outputs are near enough to those of the model. */
#ifndef ETC_PIPELINE_MAX_DROP_H
#define ETC_PIPELINE_MAX_DROP_H

#include "pipeline/session.h"

/* --max-drop DB */
EtcStatus session_set_max_drop(Session *s, StrView value);
/* Before the stage quantize, of a method that is quantized with samples: marks in
 * m->options->quantize.kept as many nodes as it takes, those whose own SQNR is least first, and
 * says in s->program.kept_text which. The graph is as before. Errors (reported): of the samples and
 * the passes; no output of floats, or none that is near enough whatever is left in floats. */
Status session_find_kept(Session *s, Method *m);
/* Compares the method with everything quantized that is to be, on the samples of --calibrate:
 * Method.sqnr and worst. The graph stays as it is. */
Status session_measure_sqnr(Session *s, Method *m);

#endif
