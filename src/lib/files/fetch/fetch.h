#ifndef TNK_LIB_FILES_FETCH_FETCH_H
#define TNK_LIB_FILES_FETCH_FETCH_H

#include "lib/base/error.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/promise.h"
#include "lib/wire/format/location.h"

/* What is asked for. Texts are copied unless said otherwise. */
typedef struct {
  const char *url;
  const char *name;  /* of the thing, in sentences */
  const char *token; /* bearer token; NULL: none */
  /* The address is signed, for one thing that never changes. Plain HTTP is then
   * for this machine alone, at each address on the way; an answer must say how
   * long it is; and the rest of the thing is asked for even where nothing
   * proves that it belongs to what is there, but for its whole length. */
  int is_signed;
  /* What is there of it from an earlier time: so many bytes of so many
   * (UINT64_MAX: unknown), and what proves that the rest belongs to them, or
   * NULL. */
  uint64_t offset;
  uint64_t n_total;
  const char *validator;
  /* Ask for the head alone. A redirection to another origin is an answer then
   * if it names a commit, as it is the hub that knows what it points to. */
  int is_head;
  uint64_t silence_ms;
  uint32_t max_retries; /* in a row without a byte of progress */
  tnk__lane_t lane;
} tnk__fetch_request_t;

/*
 * Getting one thing from an address: redirections are followed, failures that
 * may pass are repeated, from where the bytes ended if the server can.
 *
 * States: idle; asking (an exchange is under way), pausing (the timer runs
 * before the next attempt), failing (the error is due). All but idle end with
 * `done` or by a cancel.
 *
 * The token goes to the origin of the URL and to no other. No address is ever
 * told or logged but its authority, since it may be signed.
 */
typedef struct tnk__fetch {
  /* The owner's. on_begin: the bytes of an answer follow, from `offset` on when
   * is_rest is set, else all of it, maybe once more. on_body: some have come,
   * take them from `exchange`. Either may be NULL. */
  void (*on_begin)(struct tnk__fetch *fetch);
  void (*on_body)(struct tnk__fetch *fetch);
  /* `error` is borrowed, NULL after a success; then `result` is the answer,
   * with the last part of its body. The last touch. */
  void (*done)(struct tnk__fetch *fetch, const tnk__http_result_t *result,
               tnk__error_t *error);
  /* Whose observer hears of it, and as which part of the operation; NULL:
   * nobody does. It is pending as long as this is not idle. */
  const tnk_promise_t *observed;
  uint32_t part;
  uint64_t offset;  /* how many bytes the owner has taken */
  uint64_t n_total; /* as the answers say; UINT64_MAX: they do not */
  /* What the bytes so far belong to: a strong ETag, else of a signed address
   * the date of the last change; or NULL. */
  char *validator;
  int is_rest;
  uint32_t n_attempts;
  tnk__exchange_t exchange;
  /* Private. */
  tnk__context_t *context;
  tnk__http_t *http;
  tnk__location_t first;
  tnk__location_t at; /* after redirections */
  char *name;
  char *token;
  const tnk__http_result_t *result; /* while done is called */
  tnk__timer_t timer;
  tnk__deferred_t failed;
  tnk__error_t *early;
  tnk__lane_t lane;
  int is_head;
  int is_signed;
  int is_short;  /* the last answer, which had announced more */
  int wants_all; /* what is there is of no use */
  int is_new;    /* nothing of this answer has been looked at */
  int is_good;   /* what has been looked at is what was asked for */
  int n_redirects;
  uint32_t n_retries;
  uint32_t max_retries;
  uint64_t silence_ms;
  uint64_t most;      /* bytes that any attempt has brought */
  uint64_t told_from; /* where the answer under way begins */
} tnk__fetch_t;

void tnk__fetch_init(tnk__fetch_t *fetch, tnk__context_t *context,
                     tnk__http_t *http);
/* Start it. TNK_OK; or TNK_EINVAL (the URL), TNK_ENOMEM, and then nothing is
 * called. */
int tnk__fetch_start(tnk__fetch_t *fetch, const tnk__fetch_request_t *request);
/* Cancel it; legal in every state. Nothing is called any more. */
void tnk__fetch_cancel(tnk__fetch_t *fetch);
/* A header of the answer, in on_body and done. */
const char *tnk__fetch_header(const tnk__fetch_t *fetch, const char *name);
/* Read a number in a header; 0: there is none. */
int tnk__fetch_number(const tnk__fetch_t *fetch, const char *name,
                      uint64_t *out);
/* What a hub says in a header about its refusal; NULL: nothing that could be
 * told. */
const char *tnk__fetch_said(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result);
/* Make an error about the thing: "name from host: what happened". */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
tnk__error_t *
tnk__fetch_error(const tnk__fetch_t *fetch, int code, const char *format, ...);
/* The code of an answer that is a refusal. */
int tnk__fetch_code_of(int status);
/* How long the server wants to be left alone, in ms; 0: it does not say. */
uint64_t tnk__fetch_asked_ms(tnk__context_t *context,
                             const tnk__http_result_t *result);
/* Write what it waits for, as the end of a sentence. */
void tnk__fetch_explain(const tnk__fetch_t *fetch, tnk__text_t *out);

/* ---- What an observer hears: tell.c, for fetch.c alone ---- */

/* A request is about to be sent. */
void tnk__fetch_tell_begin(tnk__fetch_t *fetch);
/* It was answered. */
void tnk__fetch_tell_answer(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result);
/* The next attempt follows. */
void tnk__fetch_tell_repeat(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result);

#endif
