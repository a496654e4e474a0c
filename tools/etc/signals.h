/* Signals of the process: an interrupt leaves no temporary file, a crash names the pass that it
 * happened in. */
#ifndef ETC_TOOLS_SIGNALS_H
#define ETC_TOOLS_SIGNALS_H

#include "pipeline/manager.h"

/* Installs the handlers, once; what is returned is to be kept up to date by the pass manager. */
PassProgress *signals_install(void);

#endif
