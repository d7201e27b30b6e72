#ifndef TNK_LIB_BASE_ERROR_H
#define TNK_LIB_BASE_ERROR_H

#include "tnk/error.h"

/*
 * A failure on its way from where it happened to the promise it ends in.
 * Counted, because one failure may reject several promises; immutable once it
 * has been handed on. Never NULL: when memory is out, a static object stands
 * in.
 */
typedef struct tnk__error {
  tnk_error_t pub;
  tnk_allocator_t alloc; /* a copy: a promise may outlive its service */
  size_t refs;           /* 0: static, not counted */
  size_t n_text; /* of pub.text, without what it says of `ran`; 0: static */
} tnk__error_t;

/* An error with a sentence of its own. The sentence is cut at
 * TNK__MAX_ERROR_TEXT and control characters become blanks. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
tnk__error_t *
tnk__error_new(const tnk_allocator_t *alloc, int code, const char *format, ...);
/* The same from parts: `what` names the operation ("forward_backward"), then
 * follow the meaning of pub.code, the status, the server's message. Strings
 * in `pub` are copied; pub->text is ignored and made anew. */
tnk__error_t *tnk__error_from(const tnk_allocator_t *alloc, const char *what,
                              const tnk_error_t *pub);
/* The same with `words` of our own, which may be NULL, where the server's
 * message would stand if there were one. */
tnk__error_t *tnk__error_with(const tnk_allocator_t *alloc, const char *what,
                              const tnk_error_t *pub, const char *words);
/* The same error with the name of the operation in front of its sentence; NULL
 * without memory. */
tnk__error_t *tnk__error_named(const tnk_allocator_t *alloc, const char *what,
                               const tnk__error_t *error);
/* Add what the operation is about, such as the name of a model, behind the name
 * of the operation: "create_lora of org/model: ...". Returns a new reference:
 * to a copy, or to `error` itself if its sentence names the thing already, is
 * static, or there is no memory. */
tnk__error_t *tnk__error_about(tnk__error_t *error, const char *thing);
/* The static error for a code: needs no memory. */
tnk__error_t *tnk__error_static(int code);
/* Add to an error whether the operation was run, unless it says so already.
 * Returns a new reference: to a copy; to a static error where `error` is one or
 * there is no memory; or to `error` itself. */
tnk__error_t *tnk__error_ran(tnk__error_t *error, tnk_ran_t ran);
/* The error of an operation that was not run because one before it failed.
 * Returns a new reference as tnk__error_ran() does. */
tnk__error_t *tnk__error_behind(tnk__error_t *error);
/* Whether the sentence says if the operation was run. */
int tnk__error_says_ran(const tnk__error_t *error);
tnk__error_t *tnk__error_ref(tnk__error_t *error);
void tnk__error_unref(tnk__error_t *error);

#endif
