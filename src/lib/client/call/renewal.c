/* SPDX-License-Identifier: MIT */
#include "lib/client/call/renewal.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/wire/format/jwt.h"

enum {
  COMMAND_MS = 30000,
  /* The current token is still valid, so no patience is needed. */
  REFRESH_TIMEOUT_MS = 10000,
  RETRY_MS = 60000,
  /* With less lifetime than this, a refused key is not tried again in the
   * background. */
  REFUSED_MS = 120000,
  UNKNOWN_LIFE_S = 120, /* if a token has no expiry */
  MAX_LIFE_S = 1000000000
};

static tnk__context_t *loop_of(const tnk__renewal_t *renewal) {
  return renewal->auth.context;
}

static const tnk_allocator_t *alloc_of(const tnk__renewal_t *renewal) {
  return &loop_of(renewal)->alloc;
}

/* ---- The end of a fetch ---- */

static void on_refresh_due(tnk__timer_t *timer);

static void refresh_in(tnk__renewal_t *renewal, uint64_t ms) {
  if (renewal->auth.exchanges)
    tnk__timer_start_background(loop_of(renewal), &renewal->timer, ms,
                                on_refresh_due);
}

/* The lifetime of a token from now on. A token that the server has just
 * issued contains it. For other tokens it is the time until they expire, by
 * the clock. */
static uint64_t life_of(const tnk__renewal_t *renewal, const tnk__jwt_t *jwt) {
  int64_t from = jwt->issued_s;
  int64_t life;

  if (!renewal->auth.exchanges || from == 0)
    from = tnk__context_wall_s(loop_of(renewal));
  life = jwt->expires_s > from ? jwt->expires_s - from : UNKNOWN_LIFE_S;
  return (uint64_t)(life < MAX_LIFE_S ? life : MAX_LIFE_S) * 1000;
}

/* Takes over `token`. */
static void succeed(tnk__renewal_t *renewal, char *token,
                    const tnk__jwt_t *jwt) {
  uint64_t life_ms = life_of(renewal, jwt);
  /* Clients that began together must not renew together. */
  double share = 0.45 + tnk__context_uniform(loop_of(renewal)) / 10;

  tnk__auth_drop_secret(&renewal->auth);
  tnk__auth_take(&renewal->auth, token, life_ms);
  refresh_in(renewal, (uint64_t)((double)life_ms * share));
  tnk__auth_wake(&renewal->auth, NULL);
}

static void fail(tnk__renewal_t *renewal, tnk__error_t *error, int is_refused) {
  uint64_t left = tnk__auth_left_ms(&renewal->auth);

  tnk__auth_drop_secret(&renewal->auth);
  if (left > 0)
    tnk__log(&loop_of(renewal)->logger, TNK_LOG_WARN, "auth",
             "the token could not be renewed %llu s before it expires: %s",
             (unsigned long long)(left / 1000), error->pub.text);
  if (left > (is_refused ? REFUSED_MS : 0))
    refresh_in(renewal, RETRY_MS);
  if (left == 0 || is_refused) {
    tnk__auth_wake(&renewal->auth, error);
    return;
  }
  tnk__auth_prolong(&renewal->auth, RETRY_MS);
  tnk__auth_wake(&renewal->auth, NULL);
}

/* Fail with our own message. */
static void fail_with(tnk__renewal_t *renewal, int code, const char *text) {
  tnk__error_t *error =
      code == TNK_ENOMEM ? tnk__error_static(TNK_ENOMEM)
                         : tnk__error_new(alloc_of(renewal), code, "%s", text);

  fail(renewal, error, 0);
  tnk__error_unref(error);
}

/* ---- The exchange ---- */

static int read_token(const tnk__renewal_t *renewal, const tnk__reply_t *reply,
                      char **token, tnk__jwt_t *jwt) {
  const tnk_allocator_t *alloc = alloc_of(renewal);
  const char *text = NULL;
  tnk__arena_t arena;
  int err;

  tnk__arena_init(&arena, alloc, TNK__MAX_CALL_ANSWER);
  err = tnk__auth_token_read(&text, &arena, reply->body, reply->body_len);
  if (err == TNK_OK && !tnk__token_is_sound(text))
    err = TNK_EPROTO;
  if (err == TNK_OK)
    err = tnk__jwt_read(jwt, alloc, text);
  if (err == TNK_OK) {
    *token = tnk__strdup(alloc, text);
    err = *token != NULL ? TNK_OK : TNK_ENOMEM;
  }
  if (text != NULL)
    tnk__wipe((char *)text, strlen(text));
  tnk__wipe(reply->buf->data, reply->buf->len);
  tnk__arena_deinit(&arena);
  return err;
}

static void on_exchanged(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__renewal_t *renewal = tnk__container_of(call, tnk__renewal_t, exchange);
  char *token = NULL;
  tnk__jwt_t jwt;
  int err;

  if (reply->error != NULL) {
    fail(renewal, reply->error, reply->status == 401);
    return;
  }
  err = read_token(renewal, reply, &token, &jwt);
  if (err == TNK_OK)
    succeed(renewal, token, &jwt);
  else
    fail_with(renewal, err, "auth/token: the server's response is not a token");
}

static void start_exchange(tnk__renewal_t *renewal) {
  tnk__call_t *exchange = &renewal->exchange;

  tnk__buf_clear(&renewal->body);
  tnk__auth_token_write(&renewal->body);
  if (renewal->body.err != TNK_OK) {
    fail_with(renewal, TNK_ENOMEM, NULL);
    return;
  }
  tnk__call_init(exchange, renewal->endpoint, TNK__ROUTE_AUTH_TOKEN,
                 "auth/token");
  exchange->request.body = renewal->body.data;
  exchange->request.body_len = renewal->body.len;
  exchange->request.background = renewal->is_background != 0;
  if (tnk__auth_left_ms(&renewal->auth) > 0) {
    exchange->request.once = 1;
    exchange->request.timeout_ms = REFRESH_TIMEOUT_MS;
  }
  tnk__call_start(exchange, on_exchanged);
}

/* ---- The command ---- */

static char *trimmed(const tnk_allocator_t *alloc, const char *text) {
  static const char blanks[] = " \t\r\n\v\f";
  size_t n;

  text += strspn(text, blanks);
  n = strlen(text);
  while (n > 0 && strchr(blanks, text[n - 1]) != NULL)
    n--;
  return tnk__strndup(alloc, text, n);
}

/* The fault of the command's exit, or NULL. */
static const char *fault_of(const tnk__command_result_t *result) {
  if (result->err == TNK_ETIMEDOUT)
    return "the credential command has not ended within 30 seconds";
  if (result->err == TNK_ETOOBIG)
    return "the credential command prints more than a credential";
  if (result->err != TNK_OK)
    return "the output of the credential command cannot be read";
  if (result->status != 0)
    return "the credential command has failed: its exit status is not 0";
  return NULL;
}

/* The fault of the command's output, or NULL. */
static const char *fault_in(const tnk__renewal_t *renewal, const char *secret,
                            const tnk__jwt_t *jwt) {
  if (secret[0] == '\0')
    return "the credential command has printed nothing";
  if (!tnk__token_is_sound(secret))
    return "the credential command has printed no credential";
  if (tnk__token_is_jwt(secret) &&
      jwt->expires_s <= tnk__context_wall_s(loop_of(renewal)))
    return "the credential command has printed a JWT that has expired";
  return NULL;
}

static void on_printed(tnk__renewal_t *renewal, const char *output) {
  const tnk_allocator_t *alloc = alloc_of(renewal);
  char *secret = trimmed(alloc, output);
  const char *fault;
  tnk__jwt_t jwt;

  renewal->auth.secret = secret; /* redacted in messages from now on */
  if (secret == NULL || tnk__jwt_read(&jwt, alloc, secret) != TNK_OK) {
    fail_with(renewal, TNK_ENOMEM, NULL);
    return;
  }
  fault = fault_in(renewal, secret, &jwt);
  if (fault != NULL) {
    fail_with(renewal, TNK_ECREDENTIAL, fault);
  } else if (renewal->auth.exchanges) {
    start_exchange(renewal);
  } else {
    renewal->auth.secret = NULL;
    succeed(renewal, secret, &jwt);
  }
}

static void on_command(void *user, const tnk__command_result_t *result) {
  tnk__renewal_t *renewal = user;
  const char *fault = fault_of(result);

  renewal->command = NULL;
  if (fault != NULL)
    fail_with(renewal, TNK_ECREDENTIAL, fault);
  else
    on_printed(renewal, result->output);
}

static void start_command(tnk__renewal_t *renewal) {
  const tnk__command_options_t options = {
      .text = renewal->endpoint->config->credential_cmd,
      .timeout_ms = COMMAND_MS,
      .background = renewal->is_background,
      .done = on_command,
      .user = renewal};
  int err;

  if (options.text == NULL) {
    fail_with(renewal, TNK_ECREDENTIAL,
              "the server requires the credential of a command: set "
              "credential_cmd or TINKER_CREDENTIAL_CMD");
    return;
  }
  err = tnk__command_start(&renewal->command, loop_of(renewal), &options);
  if (err != TNK_OK)
    fail_with(renewal, err == TNK_ENOMEM ? err : TNK_ECREDENTIAL,
              "the credential command cannot be started");
}

/* ---- The begin of a fetch ---- */

static int is_fetching(const tnk__renewal_t *renewal) {
  return renewal->command != NULL || tnk__call_is_active(&renewal->exchange);
}

static void stop(tnk__renewal_t *renewal) {
  tnk__timer_stop(&renewal->timer);
  tnk__command_kill(renewal->command);
  renewal->command = NULL;
  tnk__call_cancel(&renewal->exchange);
  tnk__auth_drop_secret(&renewal->auth);
}

static void fetch(tnk__renewal_t *renewal, int is_background) {
  tnk__timer_stop(&renewal->timer);
  renewal->is_background = is_background;
  renewal->since_ms = tnk__context_now_ms(loop_of(renewal));
  if (renewal->auth.uses_command)
    start_command(renewal);
  else
    start_exchange(renewal);
}

static void on_refresh_due(tnk__timer_t *timer) {
  tnk__renewal_t *renewal = tnk__container_of(timer, tnk__renewal_t, timer);

  if (tnk__auth_left_ms(&renewal->auth) > 0 && !is_fetching(renewal))
    fetch(renewal, 1);
}

/* A background fetch does not keep the loop alive. So a call that must keep it
 * alive restarts the fetch. */
static void on_wait(tnk__auth_t *auth, int background) {
  tnk__renewal_t *renewal = tnk__container_of(auth, tnk__renewal_t, auth);

  if (is_fetching(renewal) && renewal->is_background && !background)
    stop(renewal);
  if (!is_fetching(renewal))
    fetch(renewal, background);
}

static void explain(const tnk__auth_t *auth, tnk__text_t *out) {
  const tnk__renewal_t *renewal =
      tnk__container_of_const(auth, tnk__renewal_t, auth);

  if (renewal->command == NULL) {
    tnk__text_printf(out, "waits for a token; auth/token ");
    tnk__call_explain(&renewal->exchange, out);
    return;
  }
  tnk__text_printf(out, "waits for the credential command, since ");
  tnk__text_time(out, tnk__context_now_ms(auth->context) - renewal->since_ms);
}

/* ---- Lifetime ---- */

void tnk__renewal_open(tnk__renewal_t *renewal, tnk__endpoint_t *endpoint) {
  memset(renewal, 0, sizeof(*renewal));
  renewal->endpoint = endpoint;
  tnk__auth_open(&renewal->auth, endpoint->context, endpoint->config);
  renewal->auth.fetch = on_wait;
  renewal->auth.explain = explain;
  tnk__buf_init(&renewal->body, &endpoint->context->alloc, TNK__MAX_CREDENTIAL);
}

/* A key that is a JWT takes precedence over a command. */
void tnk__renewal_configure(tnk__renewal_t *renewal,
                            const tnk__flags_t *flags) {
  const tnk__config_t *config = renewal->endpoint->config;
  tnk__auth_t *auth = &renewal->auth;
  int uses_command =
      config->api_key == NULL ||
      (flags->use_jwt && flags->credential_cmd && config->key_expires_s == 0);

  if (auth->exchanges == flags->use_jwt && auth->uses_command == uses_command)
    return;
  stop(renewal);
  tnk__auth_retire(auth);
  auth->exchanges = flags->use_jwt;
  auth->uses_command = uses_command;
  tnk__auth_wake(auth, NULL); /* to check again */
}

void tnk__renewal_shut(tnk__renewal_t *renewal) {
  renewal->auth.is_shut = 1;
  stop(renewal);
}

void tnk__renewal_close(tnk__renewal_t *renewal) {
  stop(renewal);
  tnk__auth_close(&renewal->auth);
  tnk__buf_deinit(&renewal->body);
}
