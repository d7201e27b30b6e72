#ifndef TNK_LIB_CLIENT_CALL_AUTH_H
#define TNK_LIB_CLIENT_CALL_AUTH_H

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/client/call/config.h"
#include "lib/io/loop/context.h"

/*
 * What the calls of a service say about who asks: the API key, or a token that
 * changes with time. Such a token is what the credential command prints, or
 * what the server gives for the key, or both: for what the command prints.
 * renewal.h fetches them; here they are kept, and waited for.
 *
 * The token at hand is fresh, and used; or due, when calls wait for the next
 * one; or expired. Times count from its arrival: the local clock may be wrong.
 * The clock that timers run by stands still while the machine sleeps, so what
 * has passed since is what this one or the clock of the day says, if that is
 * more.
 */
typedef struct tnk__auth {
  tnk__context_t *context;
  const tnk__config_t *config;
  int exchanges;    /* the server wants tokens of its own */
  int uses_command; /* ... or the command's output, not the key */
  int is_shut;      /* what there is may be used to the end, and then nothing */
  char *secret;     /* what the command printed, while that is exchanged */
  char *token;      /* NULL: none */
  char *last;       /* the one before: what is under way may still name it */
  uint32_t number;  /* of the token; tells a rejected one from its successor */
  uint64_t taken_ms;
  int64_t taken_s; /* the same, of the clock of the day */
  uint64_t due_ms;
  uint64_t expires_ms;
  tnk__list_t waiters; /* tnk__deferred_t, all of one kind */
  void (*resume)(tnk__deferred_t *waiter, tnk__error_t *error);
  /* The renewal's: to see to it that a token comes or tnk__auth_wake() is
   * called; and to write what that waits for, as the end of a sentence. */
  void (*fetch)(struct tnk__auth *self, int background);
  void (*explain)(const struct tnk__auth *self, tnk__text_t *out);
} tnk__auth_t;

/* Begin with the key, or the command without one, until the server's flags are
 * known. Allocates nothing. */
void tnk__auth_open(tnk__auth_t *auth, tnk__context_t *context,
                    const tnk__config_t *config);
/* Wipe all secrets. */
void tnk__auth_close(tnk__auth_t *auth);

/* What the call of that name may send now; valid until the next turn of the
 * loop. NULL: there is nothing, which is an error if *error is set, and else
 * worth waiting for. */
const char *tnk__auth_key(const tnk__auth_t *auth, int is_exchange,
                          const char *name, tnk__error_t **error);
/* Wait for a token: `resume` is called when there is one, to ask again, or with
 * an error, whose reference it takes. It may be called inside of this function,
 * so it must defer; canceling the deferred call ends the wait. */
void tnk__auth_wait(tnk__auth_t *auth, tnk__deferred_t *waiter, int background,
                    void (*resume)(tnk__deferred_t *waiter,
                                   tnk__error_t *error));
/* Give up the token of that number, which the server has rejected. 0: it cannot
 * be replaced. */
int tnk__auth_reject(tnk__auth_t *auth, uint32_t number);
/* Blot out every secret in the server's words, in place: a server may repeat
 * what it was sent. The text is in an arena of ours, or NULL. */
void tnk__auth_hide(const tnk__auth_t *auth, const char *message);
/* The same with one secret; both may be NULL. */
void tnk__auth_blot(char *message, const char *secret);

/* ---- For the renewal ---- */

/* How long the token may still be used; 0 without one. */
uint64_t tnk__auth_left_ms(const tnk__auth_t *auth);
/* Use this token from now on, for `life_ms`; the string is ours. */
void tnk__auth_take(tnk__auth_t *auth, char *token, uint64_t life_ms);
/* Let a token that has not expired be fresh for `ms` more. */
void tnk__auth_prolong(tnk__auth_t *auth, uint64_t ms);
/* Use the token no more. */
void tnk__auth_retire(tnk__auth_t *auth);
void tnk__auth_drop_secret(tnk__auth_t *auth);
/* Resume all who wait. */
void tnk__auth_wake(tnk__auth_t *auth, tnk__error_t *error);

#endif
