/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_ERROR_H
#define TNK_LIB_BASE_ERROR_H

#include "tnk/error.h"

/*
 * A failure on its way from its origin to the promise that it rejects. It is
 * reference-counted, because one failure may reject several promises, and
 * immutable once published. It is never NULL: without memory a static object is
 * used.
 */
typedef struct tnk__error {
  tnk_error_t pub;
  tnk_allocator_t alloc; /* a copy, because a promise may outlive its service */
  size_t refs;           /* 0: static, not counted */
  /* Length of pub.text without the ending about `ran`; 0: static. */
  size_t n_text;
} tnk__error_t;

/* Create an error with a specific sentence. It is truncated to
 * TNK__MAX_ERROR_TEXT, and control characters become blanks. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
tnk__error_t *
tnk__error_new(const tnk_allocator_t *alloc, int code, const char *format, ...);
/* The same from parts. `what` names the operation ("forward_backward"). The
 * meaning of pub.code, the status and the server's message follow. Strings in
 * `pub` are copied. pub->text is ignored and created. */
tnk__error_t *tnk__error_from(const tnk_allocator_t *alloc, const char *what,
                              const tnk_error_t *pub);
/* The same with `words` from this library, which may be NULL. They replace a
 * missing message of the server. */
tnk__error_t *tnk__error_with(const tnk_allocator_t *alloc, const char *what,
                              const tnk_error_t *pub, const char *words);
/* The same error with the operation's name in front of its sentence. NULL if
 * out of memory. */
tnk__error_t *tnk__error_named(const tnk_allocator_t *alloc, const char *what,
                               const tnk__error_t *error);
/* Insert the object of the operation, for example the name of a model, after
 * the operation's name: "create_lora of org/model: ...". Returns a new
 * reference to a copy. If the sentence already names the object, or the error
 * is static, or memory is out, it is a reference to `error` itself. */
tnk__error_t *tnk__error_about(tnk__error_t *error, const char *thing);
/* The static error for a code, which needs no memory. */
tnk__error_t *tnk__error_static(int code);
/* Add to an error whether the operation was run, unless it says so already.
 * Returns a new reference. It is to a copy, or to `error` itself if nothing is
 * added. If `error` is static or memory is out, it is to a static error. */
tnk__error_t *tnk__error_ran(tnk__error_t *error, tnk_ran_t ran);
/* The error of an operation that was not run because an earlier one failed.
 * Returns a new reference like tnk__error_ran(). */
tnk__error_t *tnk__error_behind(tnk__error_t *error);
/* Returns whether the sentence states if the operation was run. */
int tnk__error_says_ran(const tnk__error_t *error);
tnk__error_t *tnk__error_ref(tnk__error_t *error);
void tnk__error_unref(tnk__error_t *error);

#endif
