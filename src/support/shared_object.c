/* See shared_object.h. With ETC_STATIC_BINARY nothing can be opened; this file alone is compiled
 * both ways. */
#include "support/shared_object.h"

#ifdef ETC_STATIC_BINARY

bool shared_object_loader(void) { return false; }
void *shared_object_open(const char *path, const char **why) {
  (void)path;
  *why = "this etc is a static binary, which loads no shared objects";
  return NULL;
}
void *shared_object_variable(void *object, const char *name) {
  (void)object, (void)name;
  return NULL;
}
bool shared_object_function(void *object, const char *name, void *function) {
  (void)object, (void)name, (void)function;
  return false;
}

#else
#include <dlfcn.h>

bool shared_object_loader(void) { return true; }

void *shared_object_open(const char *path, const char **why) {
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  *why = object ? NULL : dlerror();
  return object;
}

void *shared_object_variable(void *object, const char *name) { return dlsym(object, name); }

/* POSIX has dlsym return functions as object pointers, which C cannot convert. */
bool shared_object_function(void *object, const char *name, void *function) {
  void *found = dlsym(object, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}
#endif
