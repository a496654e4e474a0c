/* Shared objects that are opened while etc runs: plug-ins, OpenBLAS. A static binary has no loader
 * and opens none. */
#ifndef ETC_SUPPORT_SHARED_OBJECT_H
#define ETC_SUPPORT_SHARED_OBJECT_H

#include "support/base.h"

/* Whether this binary can open any. */
bool shared_object_loader(void);
/* Opens path, or finds a name without a slash where the system has its libraries. Stays open until
 * the process ends. NULL with *why otherwise: a text of this thread, until the next call. */
void *shared_object_open(const char *path, const char **why);
/* The address of a variable, NULL when there is none of that name. */
void *shared_object_variable(void *object, const char *name);
/* Sets the pointer to a function at *function; false when there is none. */
bool shared_object_function(void *object, const char *name, void *function);

#endif
