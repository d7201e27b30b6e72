/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "tokenizers/sentencepiece/shim.h"

#include <dlfcn.h>
#include <stdio.h>

/*
 * The C++ side is a separate module. It is loaded with the first model and
 * never unloaded. libsentencepiece exports its own copy of an old protobuf
 * runtime. If it were linked in, it and the program's libprotobuf would use
 * each other's functions. Separate scopes prevent that: RTLD_LOCAL hides the
 * names of the module, and RTLD_DEEPBIND makes the module prefer its own.
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
