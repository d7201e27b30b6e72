/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_AUTH_H
#define TNK_LIB_CLIENT_CALL_AUTH_H

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/client/call/config.h"
#include "lib/io/loop/context.h"

/*
 * The credential of a service's calls: the API key, or a token that changes
 * with time. The credential command prints a token, or the server issues one in
 * exchange for the key or for the command's output. renewal.h fetches tokens;
 * auth.h keeps them and holds the calls that wait for one.
 *
 * A token is fresh and in use; or due, and calls wait for the next one; or
 * expired. Times count from its arrival, because the local clock may be wrong.
 * The loop's clock stops while the machine sleeps, so the elapsed time is the
 * larger of that clock's and the wall clock's.
 */
typedef struct tnk__auth {
  tnk__context_t *context;
  const tnk__config_t *config;
  int exchanges;    /* the server wants exchanged tokens */
  int uses_command; /* ... or the command's output, not the key */
  int is_shut;      /* no new tokens; the present one may be used until it
                       expires */
  char *secret;     /* the command's output during the exchange */
  char *token;      /* NULL: none */
  char *last;       /* previous token: active requests may still use it */
  uint32_t number;  /* number of the token; distinguishes a rejected one from
                       its successor */
  uint64_t taken_ms;
  int64_t taken_s; /* the same, by the wall clock */
  uint64_t due_ms;
  uint64_t expires_ms;
  tnk__list_t waiters; /* tnk__deferred_t, all of one kind */
  void (*resume)(tnk__deferred_t *waiter, tnk__error_t *error);
  /* Set by the renewal. `fetch` starts a fetch, which ends with
   * tnk__auth_wake(). `explain` writes the end of a sentence: the reason for
   * the wait. */
  void (*fetch)(struct tnk__auth *self, int background);
  void (*explain)(const struct tnk__auth *self, tnk__text_t *out);
} tnk__auth_t;

/* Begin with the key, or with the command if there is no key, until the
 * server's flags are known. Allocates nothing. */
void tnk__auth_open(tnk__auth_t *auth, tnk__context_t *context,
                    const tnk__config_t *config);
/* Wipe all secrets. */
void tnk__auth_close(tnk__auth_t *auth);

/* The credential that the call `name` may send now, valid until the next turn
 * of the loop. NULL with *error set: there is none. NULL without an error: wait
 * for one. */
const char *tnk__auth_key(const tnk__auth_t *auth, int is_exchange,
                          const char *name, tnk__error_t **error);
/* Wait for a token. `resume` is called when one has arrived and tnk__auth_key()
 * should be called again, or with an error, whose reference it takes. It may be
 * called inside of this function, so it must defer. Canceling the deferred call
 * ends the wait. */
void tnk__auth_wait(tnk__auth_t *auth, tnk__deferred_t *waiter, int background,
                    void (*resume)(tnk__deferred_t *waiter,
                                   tnk__error_t *error));
/* Discard the token with that number, which the server has rejected. Returns 0
 * if it cannot be replaced. */
int tnk__auth_reject(tnk__auth_t *auth, uint32_t number);
/* Redact every secret in a server's message, in place, because a server may
 * repeat the request. The message is in our arena, or NULL. */
void tnk__auth_hide(const tnk__auth_t *auth, const char *message);
/* Redact one secret; both may be NULL. */
void tnk__auth_blot(char *message, const char *secret);

/* ---- For the renewal ---- */

/* Remaining lifetime of the token; 0 without one. */
uint64_t tnk__auth_left_ms(const tnk__auth_t *auth);
/* Use this token from now on, for `life_ms`. Takes over the string. */
void tnk__auth_take(tnk__auth_t *auth, char *token, uint64_t life_ms);
/* Treat a token that has not expired as fresh for `ms` more. */
void tnk__auth_prolong(tnk__auth_t *auth, uint64_t ms);
/* Stop using the token. */
void tnk__auth_retire(tnk__auth_t *auth);
void tnk__auth_drop_secret(tnk__auth_t *auth);
/* Resume all waiting calls. */
void tnk__auth_wake(tnk__auth_t *auth, tnk__error_t *error);

#endif
