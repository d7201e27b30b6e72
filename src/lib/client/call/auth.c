/* SPDX-License-Identifier: MIT */
#include "lib/client/call/auth.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* Calls wait for the next token when the current one has less than this or half
 * its lifetime left, whichever is less. */
enum { MARGIN_MS = 60000, MIN_SECRET = 16 };

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static void drop(const tnk__auth_t *auth, char **secret) {
  tnk__free_secret(&auth->context->alloc, *secret);
  *secret = NULL;
}

void tnk__auth_open(tnk__auth_t *auth, tnk__context_t *context,
                    const tnk__config_t *config) {
  memset(auth, 0, sizeof(*auth));
  auth->context = context;
  auth->config = config;
  auth->uses_command = config->api_key == NULL;
  tnk__list_init(&auth->waiters);
}

void tnk__auth_close(tnk__auth_t *auth) {
  drop(auth, &auth->secret);
  drop(auth, &auth->token);
  drop(auth, &auth->last);
}

/* The clock that measures the token's lifetime. */
static uint64_t now_of(const tnk__auth_t *auth) {
  const uint64_t now = tnk__context_now_ms(auth->context);
  const int64_t passed_s = tnk__context_wall_s(auth->context) - auth->taken_s;
  uint64_t other = auth->taken_ms;

  /* Whole seconds: the last one may be incomplete. */
  if (passed_s > 1)
    other += (uint64_t)(passed_s - 1) * 1000;
  return now > other ? now : other;
}

/* ---- For calls ---- */

static const char *api_key(const tnk__auth_t *auth, const char *name,
                           tnk__error_t **error) {
  const tnk__config_t *config = auth->config;

  if (config->key_expires_s == 0 ||
      tnk__context_wall_s(auth->context) < config->key_expires_s)
    return config->api_key;
  *error = tnk__error_new(&auth->context->alloc, TNK_ECREDENTIAL,
                          "%s: the API key, a JWT, has expired", name);
  return NULL;
}

const char *tnk__auth_key(const tnk__auth_t *auth, int is_exchange,
                          const char *name, tnk__error_t **error) {
  *error = NULL;
  if (is_exchange && auth->uses_command)
    return auth->secret;
  if (is_exchange || (!auth->exchanges && !auth->uses_command))
    return api_key(auth, name, error);
  if (auth->token != NULL && (auth->is_shut || now_of(auth) < auth->due_ms))
    return auth->token;
  if (auth->is_shut)
    *error = tnk__error_static(TNK_ECLOSED);
  return NULL;
}

void tnk__auth_wait(tnk__auth_t *auth, tnk__deferred_t *waiter, int background,
                    void (*resume)(tnk__deferred_t *waiter,
                                   tnk__error_t *error)) {
  auth->resume = resume;
  tnk__list_append(&auth->waiters, &waiter->link);
  auth->fetch(auth, background);
}

int tnk__auth_reject(tnk__auth_t *auth, uint32_t number) {
  if (auth->is_shut || (!auth->exchanges && !auth->uses_command))
    return 0;
  if (number == auth->number && auth->token != NULL)
    tnk__auth_retire(auth);
  return 1;
}

void tnk__auth_blot(char *at, const char *secret) {
  size_t n = secret != NULL ? strlen(secret) : 0;

  while (at != NULL && n > 0 && (at = strstr(at, secret)) != NULL)
    memset(at, '*', n);
}

/* The caller's headers may hold secrets too, but also short words that may
 * occur anywhere. */
static void blot_headers(char *message, const tnk__config_t *config) {
  for (size_t i = 0; i < config->n_headers; i++)
    if (strlen(config->headers[i].value) >= MIN_SECRET)
      tnk__auth_blot(message, config->headers[i].value);
}

void tnk__auth_hide(const tnk__auth_t *auth, const char *message) {
  blot_headers((char *)message, auth->config);
  tnk__auth_blot((char *)message, auth->config->api_key);
  tnk__auth_blot((char *)message, auth->secret);
  tnk__auth_blot((char *)message, auth->token);
  tnk__auth_blot((char *)message, auth->last);
}

/* ---- For the renewal ---- */

uint64_t tnk__auth_left_ms(const tnk__auth_t *auth) {
  const uint64_t now = now_of(auth);

  return auth->token != NULL && now < auth->expires_ms ? auth->expires_ms - now
                                                       : 0;
}

void tnk__auth_retire(tnk__auth_t *auth) {
  drop(auth, &auth->last);
  auth->last = auth->token;
  auth->token = NULL;
}

void tnk__auth_take(tnk__auth_t *auth, char *token, uint64_t life_ms) {
  if (auth->token != NULL)
    tnk__auth_retire(auth);
  auth->token = token;
  auth->number++;
  auth->taken_ms = tnk__context_now_ms(auth->context);
  auth->taken_s = tnk__context_wall_s(auth->context);
  auth->expires_ms = auth->taken_ms + life_ms;
  auth->due_ms = auth->expires_ms - smaller(life_ms / 2, MARGIN_MS);
}

void tnk__auth_prolong(tnk__auth_t *auth, uint64_t ms) {
  uint64_t until = now_of(auth) + ms;

  until = smaller(until, auth->expires_ms);
  if (auth->due_ms < until)
    auth->due_ms = until;
}

void tnk__auth_drop_secret(tnk__auth_t *auth) {
  drop(auth, &auth->secret);
}

void tnk__auth_wake(tnk__auth_t *auth, tnk__error_t *error) {
  tnk__list_t *node;

  while ((node = tnk__list_pop(&auth->waiters)) != NULL)
    auth->resume(tnk__container_of(node, tnk__deferred_t, link),
                 error != NULL ? tnk__error_ref(error) : NULL);
}
