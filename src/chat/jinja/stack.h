/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_STACK_H
#define TNK_CHAT_JINJA_STACK_H

#include <stdint.h>

/*
 * Bytes of the thread's stack that nested calls may use. A number of levels is
 * no bound by itself, because processors and compilers make frames of different
 * sizes. The rest of 128 KiB is for the start of the thread and for what is not
 * counted: a deep value that is written or compared.
 */
enum { TNK__STACK_MAX = 92 * 1024 };

/* Returns whether the stack below the first caller, which *start remembers, is
 * used up. *start is 0 before the first call. */
static inline int tnk__stack_is_used_up(uintptr_t *start) {
  const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

  if (*start == 0)
    *start = here;
  /* It grows downward on most processors. */
  return (here < *start ? *start - here : here - *start) > TNK__STACK_MAX;
}

#endif
