#define _GNU_SOURCE
#include "tokenizers/sentencepiece/shim.h"

#include <dlfcn.h>
#include <stdio.h>

/*
 * The C++ side is in a module beside this library, loaded with the first model
 * and never unloaded. libsentencepiece exports its copy of an old protobuf
 * runtime: linked in, it would give its functions to a program that has
 * libprotobuf, or take those of the program. In a scope of its own it does
 * neither: RTLD_LOCAL keeps its names in, RTLD_DEEPBIND keeps others out.
 */
const tnk__sp_calls_t *tnk__sp_open(char *why, size_t why_size) {
  void *module = dlopen(TNK_SP_MODULE,
                        RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND | RTLD_NODELETE);
  const tnk__sp_calls_t *calls =
      module == NULL ? NULL : dlsym(module, "tnk__sp_shim");
  const char *error = calls == NULL ? dlerror() : NULL;

  why[0] = '\0';
  if (calls == NULL)
    (void)snprintf(why, why_size, "%s", error != NULL ? error : TNK_SP_MODULE);
  if (module != NULL)
    (void)dlclose(module);
  return calls;
}
