/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_FETCH_FETCH_H
#define TNK_LIB_FILES_FETCH_FETCH_H

#include "lib/base/error.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/promise.h"
#include "lib/wire/format/location.h"

/* The request of a fetch. Strings are copied unless stated otherwise. */
typedef struct {
  const char *url;
  const char *name;  /* name of the fetched file in messages */
  const char *token; /* bearer token; NULL: none */
  /* The address is signed and refers to an immutable file. Plain HTTP is then
   * allowed only to this machine, also after redirections. An answer must state
   * its length. The rest may be requested without a validator, because the
   * total length is compared. */
  int is_signed;
  /* A previous part of the file: its length, the total size (UINT64_MAX:
   * unknown), and the validator of both, or NULL. */
  uint64_t offset;
  uint64_t n_total;
  const char *validator;
  /* Send a HEAD request. A redirection to another origin then counts as the
   * answer if it names a commit, because only the hub knows the commit. */
  int is_head;
  uint64_t silence_ms;
  uint32_t max_retries; /* consecutive attempts without progress */
  tnk__lane_t lane;
} tnk__fetch_request_t;

/*
 * Fetches a file from an address. It follows redirections and retries transient
 * failures. A retry resumes if the server can do that.
 *
 * States: idle; asking (an exchange is in progress), pausing (a timer runs
 * before the next attempt), failing (an error is about to be reported). Every
 * state except idle ends with `done` or a cancel.
 *
 * Fetches pause by themselves: a response to one does not end the pause of
 * another. A pause that the server did not ask for lasts at most 10 s, so
 * little would be gained by a list of pauses per origin.
 *
 * The token is sent only to the origin of the URL. Messages and logs contain
 * only the authority of an address, because the address may be signed.
 */
typedef struct tnk__fetch {
  /* Set by the owner; either may be NULL. on_begin: the body of an answer
   * follows. It begins at `offset` if is_rest is set, else at 0, possibly
   * again. on_body: bytes are available in `exchange`. */
  void (*on_begin)(struct tnk__fetch *fetch);
  void (*on_body)(struct tnk__fetch *fetch);
  /* `error` is borrowed and is NULL after a success. Then `result` is the
   * answer, with the last part of its body. This callback is the last access to
   * the fetch. */
  void (*done)(struct tnk__fetch *fetch, const tnk__http_result_t *result,
               tnk__error_t *error);
  /* The operation whose observer gets the events, and the request's number in
   * it; NULL: no observer. The promise stays pending while the fetch is not
   * idle. */
  const tnk_promise_t *observed;
  uint32_t part;
  uint64_t offset;  /* bytes that the owner has taken */
  uint64_t n_total; /* from the answers; UINT64_MAX: unknown */
  /* The validator of the received bytes: a strong ETag or, for a signed
   * address, the date of the last change; or NULL. */
  char *validator;
  int is_rest;
  uint32_t n_attempts;
  tnk__exchange_t exchange;
  /* Private. */
  tnk__context_t *context;
  tnk__http_t *http;
  tnk__location_t first;
  tnk__location_t at; /* address after redirections */
  char *name;
  char *token;
  const tnk__http_result_t *result; /* valid while `done` is called */
  tnk__timer_t timer;
  tnk__deferred_t failed;
  tnk__error_t *early;
  tnk__lane_t lane;
  int is_head;
  int is_signed;
  int is_short;  /* the last answer was shorter than announced */
  int wants_all; /* the received bytes cannot be used */
  int is_new;    /* this answer was not examined yet */
  int is_good;   /* the answer was examined and is acceptable */
  int n_redirects;
  uint32_t n_retries;
  uint32_t max_retries;
  uint64_t silence_ms;
  uint64_t most;      /* most bytes that any attempt has reached */
  uint64_t told_from; /* offset at which the current answer begins */
} tnk__fetch_t;

void tnk__fetch_init(tnk__fetch_t *fetch, tnk__context_t *context,
                     tnk__http_t *http);
/* Start a fetch. Returns TNK_OK, TNK_EINVAL (the URL) or TNK_ENOMEM. After an
 * error no callback is called. */
int tnk__fetch_start(tnk__fetch_t *fetch, const tnk__fetch_request_t *request);
/* Cancel the fetch; allowed in every state. No callback is called
 * afterwards. */
void tnk__fetch_cancel(tnk__fetch_t *fetch);
/* A header of the answer; for on_body and done. */
const char *tnk__fetch_header(const tnk__fetch_t *fetch, const char *name);
/* Parse a number in a header. Returns 0 if it is absent or invalid. */
int tnk__fetch_number(const tnk__fetch_t *fetch, const char *name,
                      uint64_t *out);
/* The hub's message about a refusal, from a header; NULL: none, or it may not
 * be shown. */
const char *tnk__fetch_said(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result);
/* Make an error with the message "name from host: ...". */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
tnk__error_t *
tnk__fetch_error(const tnk__fetch_t *fetch, int code, const char *format, ...);
/* The error code for the status of a refusal. */
int tnk__fetch_code_of(int status);
/* Returns whether a retry may succeed after this failure. */
int tnk__fetch_is_transient(const tnk__http_result_t *result);
/* The delay that the server requests, in milliseconds; 0: none. */
uint64_t tnk__fetch_asked_ms(tnk__context_t *context,
                             const tnk__http_result_t *result);
/* Log a failed attempt and the pause after it: as a warning if the pause is
 * long. */
void tnk__fetch_log_pause(const tnk__context_t *context, const char *subject,
                          const char *name, unsigned n_attempts,
                          const tnk__http_result_t *result, uint64_t delay_ms);
/* Describe the current step, as the end of a sentence. */
void tnk__fetch_explain(const tnk__fetch_t *fetch, tnk__text_t *out);

#endif
