/* --map FILE: which nodes of the model each instruction of the program is of, as JSON. */
#ifndef ETC_PIPELINE_INSTRUCTION_MAP_H
#define ETC_PIPELINE_INSTRUCTION_MAP_H

#include "pipeline/session.h"

/* After the program was written. Writes the file. */
Status instruction_map_write(Session *s, const char *path);

#endif
