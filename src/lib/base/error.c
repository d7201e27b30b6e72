/* SPDX-License-Identifier: MIT */
#include "lib/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"

const char *tnk_version(void) {
  return TNK_VERSION_STRING;
}

const char *tnk_strerror(int err) {
  switch (err) {
  case TNK_OK:
    return "success";
#define XX(name, code, text)                                                   \
  case TNK_##name:                                                             \
    return text;
    TNK_ERROR_MAP(XX)
#undef XX
  default:
    return "unknown error";
  }
}

const char *tnk_err_name(int err) {
  switch (err) {
  case TNK_OK:
    return "TNK_OK";
#define XX(name, code, text)                                                   \
  case TNK_##name:                                                             \
    return "TNK_" #name;
    TNK_ERROR_MAP(XX)
#undef XX
  default:
    return "TNK_EUNKNOWN";
  }
}

int tnk_err_is_retryable(int err) {
  switch (err) {
  case TNK_EDNS:
  case TNK_ECONN:
  case TNK_ETIMEDOUT:
  case TNK_EFULL:
  case TNK_ESERVER:
  case TNK_ERATE:
  case TNK_EBILLING:
    return 1;
  default:
    return 0;
  }
}

/* The range that tnk/error.h reserves for codes after which the service cannot
 * continue. */
int tnk_err_is_fatal(int err) {
  return err <= -50900 && err > -51000;
}

#define RAN_UNKNOWN "; it may have been run"
#define RAN_NO "; it was not run"
#define RAN_YES "; the service has run it or will"
#define RAN_PARTLY "; a part of it was run"

static const char *const endings[] = {[TNK_RAN_UNKNOWN] = RAN_UNKNOWN,
                                      [TNK_RAN_NO] = RAN_NO,
                                      [TNK_RAN_YES] = RAN_YES,
                                      [TNK_RAN_PARTLY] = RAN_PARTLY};

enum { SILENT = 4, N_ENDINGS };

/* Static objects for each code, for a lack of memory. There is one for each
 * ending of the sentence, and one without an ending. */
#define STATIC(number, said, sentence)                                         \
  {                                                                            \
    .pub = {.code = (number), .ran = (said), .text = (sentence) }              \
  }
static tnk__error_t statics[][N_ENDINGS] = {
#define XX(name, number, sentence)                                             \
  {STATIC(number, TNK_RAN_UNKNOWN, sentence RAN_UNKNOWN),                      \
   STATIC(number, TNK_RAN_NO, sentence RAN_NO),                                \
   STATIC(number, TNK_RAN_YES, sentence RAN_YES),                              \
   STATIC(number, TNK_RAN_PARTLY, sentence RAN_PARTLY),                        \
   STATIC(number, TNK_RAN_UNKNOWN, sentence)},
    TNK_ERROR_MAP(XX)
#undef XX
};

static tnk__error_t *static_of(int code, size_t ending) {
  const size_t n = sizeof(statics) / sizeof(statics[0]);
  size_t i;

  for (i = 0; i < n - 1; i++)
    if (statics[i][0].pub.code == code)
      break;
  return &statics[i][ending];
}

tnk__error_t *tnk__error_static(int code) {
  return static_of(code, SILENT);
}

tnk__error_t *tnk__error_new(const tnk_allocator_t *alloc, int code,
                             const char *format, ...) {
  tnk__error_t *error;
  char text[TNK__MAX_ERROR_TEXT];
  va_list args;
  size_t size;
  char *copy;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  /* A server's text may be shown on a terminal, so control characters are
   * removed. */
  tnk__text_clean(text, strlen(text));
  /* The object and its strings are one allocation, so there is one failure and
   * one free. */
  size = strlen(text) + 1;
  error = tnk__malloc(alloc, sizeof(*error) + size);
  if (error == NULL)
    return tnk__error_static(TNK_ENOMEM);
  copy = (char *)(error + 1);
  memcpy(copy, text, size);
  *error = (tnk__error_t){.pub = {.code = code, .text = copy},
                          .alloc = *alloc,
                          .refs = 1,
                          .n_text = size - 1};
  return error;
}

/* Write the sentence: what failed, the general reason, and the details. */
static void compose(tnk__buf_t *buf, const char *what, const tnk_error_t *pub) {
  tnk__buf_printf(buf, "%s: %s", what, tnk_strerror(pub->code));
  /* If the failure came in a result, the status says nothing about it. */
  if (pub->http_status != 0 &&
      !(pub->code == TNK_EFAILED && pub->http_status == 200))
    tnk__buf_printf(buf, " (HTTP %d)", pub->http_status);
  if (pub->message != NULL && pub->message[0] != '\0')
    tnk__buf_printf(buf, ": %.*s", (int)TNK__MAX_ERROR_TEXT / 2, pub->message);
  if (pub->request_id != NULL)
    tnk__buf_printf(buf, " [request %.128s]", pub->request_id);
  if (pub->n_attempts > 1)
    tnk__buf_printf(buf, " (%u attempts)", pub->n_attempts);
}

/* Copy `text` to *at and advance *at. NULL stays NULL. */
static const char *place(char **at, const char *text, size_t max) {
  char *to = *at;
  size_t n;

  if (text == NULL)
    return NULL;
  n = strnlen(text, max);
  memcpy(to, text, n);
  to[n] = '\0';
  tnk__text_clean(to, n);
  *at = to + n + 1;
  return to;
}

tnk__error_t *tnk__error_from(const tnk_allocator_t *alloc, const char *what,
                              const tnk_error_t *pub) {
  const size_t max = TNK__MAX_ERROR_TEXT;
  tnk__error_t *error = NULL;
  tnk__buf_t sentence;
  const char *text;
  size_t size;
  char *at;

  tnk__buf_init(&sentence, alloc, 2 * max);
  compose(&sentence, what, pub);
  text = tnk__buf_cstr(&sentence);
  if (text == NULL)
    goto done;
  size = strlen(text) + 1;
  size += pub->message != NULL ? strnlen(pub->message, max) + 1 : 0;
  size += pub->request_id != NULL ? strnlen(pub->request_id, max) + 1 : 0;
  error = tnk__malloc(alloc, sizeof(*error) + size);
  if (error == NULL)
    goto done;
  at = (char *)(error + 1);
  *error = (tnk__error_t){
      .pub = *pub, .alloc = *alloc, .refs = 1, .n_text = strlen(text)};
  error->pub.text = place(&at, text, SIZE_MAX);
  error->pub.message = place(&at, pub->message, max);
  error->pub.request_id = place(&at, pub->request_id, max);
done:
  tnk__buf_deinit(&sentence);
  return error != NULL ? error : tnk__error_static(TNK_ENOMEM);
}

tnk__error_t *tnk__error_with(const tnk_allocator_t *alloc, const char *what,
                              const tnk_error_t *pub, const char *words) {
  tnk_error_t with = *pub;
  tnk__error_t *error;

  if (pub->message != NULL)
    return tnk__error_from(alloc, what, pub);
  with.message = words;
  error = tnk__error_from(alloc, what, &with);
  if (error->refs > 0)
    error->pub.message = NULL;
  return error;
}

/* Copy an error with another ending, and with memory for a longer sentence.
 * NULL if out of memory. */
static tnk__error_t *copy(const tnk__error_t *from, tnk_ran_t ran,
                          const char *ending, size_t room) {
  const tnk_error_t *pub = &from->pub;
  const size_t max = TNK__MAX_ERROR_TEXT;
  const size_t n_ending = strlen(ending);
  size_t size = from->n_text + n_ending + room + 1;
  tnk__error_t *error;
  char *at;

  size += pub->message != NULL ? strnlen(pub->message, max) + 1 : 0;
  size += pub->request_id != NULL ? strnlen(pub->request_id, max) + 1 : 0;
  error = tnk__malloc(&from->alloc, sizeof(*error) + size);
  if (error == NULL)
    return NULL;
  *error = *from;
  error->refs = 1;
  at = (char *)(error + 1);
  error->pub.ran = ran;
  error->pub.text = at;
  memcpy(at, pub->text, from->n_text);
  at += from->n_text;
  memcpy(at, ending, n_ending + 1);
  at += n_ending + room + 1;
  error->pub.message = place(&at, pub->message, max);
  error->pub.request_id = place(&at, pub->request_id, max);
  return error;
}

tnk__error_t *tnk__error_named(const tnk_allocator_t *alloc, const char *what,
                               const tnk__error_t *error) {
  const char *ending =
      tnk__error_says_ran(error) ? endings[error->pub.ran] : "";
  tnk__error_t *named = tnk__error_new(alloc, error->pub.code, "%s: %s%s", what,
                                       tnk_strerror(error->pub.code), ending);

  if (named->refs == 0)
    return NULL;
  named->pub.ran = error->pub.ran;
  named->n_text -= strlen(ending);
  return named;
}

tnk__error_t *tnk__error_about(tnk__error_t *error, const char *thing) {
  static const char of[] = " of ";
  const char *colon = error->refs > 0 ? strstr(error->pub.text, ": ") : NULL;
  const size_t n_thing = strnlen(thing, TNK__MAX_ERROR_TEXT);
  tnk__error_t *about;
  size_t n_name;
  char *text;

  if (colon == NULL || strstr(error->pub.text, thing) != NULL)
    return tnk__error_ref(error);
  n_name = (size_t)(colon - error->pub.text);
  about = copy(error, error->pub.ran, error->pub.text + error->n_text,
               sizeof(of) - 1 + n_thing);
  if (about == NULL)
    return tnk__error_ref(error);
  text = (char *)about->pub.text + n_name;
  memmove(text + sizeof(of) - 1 + n_thing, text, strlen(text) + 1);
  memcpy(text, of, sizeof(of) - 1);
  memcpy(text + sizeof(of) - 1, thing, n_thing);
  tnk__text_clean(text, sizeof(of) - 1 + n_thing);
  about->n_text += sizeof(of) - 1 + n_thing;
  return about;
}

int tnk__error_says_ran(const tnk__error_t *error) {
  return error->refs == 0 ? error != tnk__error_static(error->pub.code)
                          : error->pub.text[error->n_text] != '\0';
}

tnk__error_t *tnk__error_ran(tnk__error_t *error, tnk_ran_t ran) {
  tnk__error_t *other;

  if (error->refs == 0)
    return static_of(error->pub.code, ran);
  if (tnk__error_says_ran(error) && error->pub.ran == ran)
    return tnk__error_ref(error);
  other = copy(error, ran, endings[ran], 0);
  return other != NULL ? other : static_of(error->pub.code, ran);
}

tnk__error_t *tnk__error_behind(tnk__error_t *error) {
  static const char ending[] = "; later operations were not run";
  tnk__error_t *other = NULL;

  if (error->refs > 0)
    other = copy(error, TNK_RAN_NO, ending, 0);
  return other != NULL ? other : static_of(error->pub.code, TNK_RAN_NO);
}

tnk__error_t *tnk__error_ref(tnk__error_t *error) {
  if (error->refs > 0)
    error->refs++;
  return error;
}

void tnk__error_unref(tnk__error_t *error) {
  tnk_allocator_t alloc;

  if (error == NULL || error->refs == 0 || --error->refs > 0)
    return;
  /* The allocator is in the memory to be freed. */
  alloc = error->alloc;
  tnk__free(&alloc, error);
}
