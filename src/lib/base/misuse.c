/* SPDX-License-Identifier: MIT */
#include "lib/base/misuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This file decides what a debug build is, and no other file does. Tests link
 * it again as for a release. */
#ifdef NDEBUG
enum { IS_FATAL = 0 };
#else
enum { IS_FATAL = 1 };
#endif

enum { POISON = 0xdb };

int tnk__misuse_is_fatal(void) {
  return IS_FATAL;
}

int tnk__misuse(const char *function, const char *handle) {
  if (!IS_FATAL)
    return 0;
  fprintf(stderr,
          "tnk: %s(): %s is no handle of its type, or it is gone already\n",
          function, handle);
  abort();
}

int tnk__is_broken(const char *expr, const char *file, int line) {
  if (!IS_FATAL)
    return 0;
  fprintf(stderr, "tnk: %s:%d: not true: %s\n", file, line, expr);
  abort();
}

void tnk__handle_end(void *handle, size_t size) {
  memset(handle, POISON, IS_FATAL ? size : sizeof(uint32_t));
}
