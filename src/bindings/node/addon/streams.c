/* SPDX-License-Identifier: MIT */
#include <stdio.h>

/*
 * The archives of Debian are compiled for programs. Two of their objects read
 * stdin or stderr in a way that a shared object cannot, unless the variable is
 * its own. The linker replaces these names (--wrap) by the copies below.
 * jansson compares a stream with stdin, and nghttp2 has a function for
 * debugging that is never called.
 */

extern FILE *__real_stdin;
extern FILE *__real_stderr;
__attribute__((visibility("hidden"))) FILE *__wrap_stdin;
__attribute__((visibility("hidden"))) FILE *__wrap_stderr;

__attribute__((constructor)) static void copy_streams(void) {
  __wrap_stdin = __real_stdin;
  __wrap_stderr = __real_stderr;
}
