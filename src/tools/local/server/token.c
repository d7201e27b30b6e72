/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/base64.h"
#include "tools/local/server/parts.h"

enum { MAX_PART = 512 };

/* The owner of the keys. */
#define DETAILS                                                                \
  "{\"org_details\":{\"name\":\"local\"},"                                     \
  "\"user_details\":{\"email\":\"nobody@localhost\"}}"
/* {"alg":"none"} */
#define HEADER "eyJhbGciOiJub25lIn0"

static local_token_t *next_token(local_server_t *server) {
  local_token_t *token = &server->tokens[server->n_tokens % LOCAL_MAX_TOKENS];

  if (local_random_hex(token->id, LOCAL_TOKEN_ID / 2) != 0)
    return NULL;
  token->end_ms = uv_now(server->loop) + server->options.token_life_s * 1000;
  server->n_tokens++;
  return token;
}

static int put_claims(const local_server_t *server, tnk__buf_t *out) {
  char claims[MAX_PART];
  uv_timeval64_t now;
  int n;

  if (uv_gettimeofday(&now) != 0)
    return 0;
  n = snprintf(claims, sizeof(claims),
               "{\"iat\":%lld,\"exp\":%lld,\"sub\":\"tml:user:local\","
               "\"org_id\":\"local\",\"email\":\"\"}",
               (long long)now.tv_sec,
               (long long)now.tv_sec + (long long)server->options.token_life_s);
  tnk__base64_write(out, claims, (size_t)n);
  while (out->len > 0 && out->data[out->len - 1] == '=')
    out->len--; /* a JWT has no padding */
  return 1;
}

void local_auth_token(local_call_t *call) {
  local_server_t *server = call->server;
  const local_token_t *token;
  tnk__buf_t text;
  local_out_t out;

  if (server->options.token_life_s == 0) {
    local_reply_error(call->req, 404, "Not Found");
    return;
  }
  token = next_token(server);
  tnk__buf_init(&text, server->alloc, 2 * MAX_PART);
  tnk__buf_text(&text, HEADER ".");
  if (token == NULL || !put_claims(server, &text) ||
      tnk__buf_printf(&text, ".%s", token->id) != TNK_OK ||
      tnk__buf_cstr(&text) == NULL) {
    tnk__buf_deinit(&text);
    local_reply_error(call->req, 503, "Cannot create a token");
    return;
  }
  local_out_begin(&out, server->alloc);
  tnk__json_put_text(&out.w, "jwt", tnk__buf_cstr(&text));
  local_out_reply(&out, call->req, 200);
  tnk__buf_deinit(&text);
}

int local_token_is_valid(const local_server_t *server, const char *token) {
  const char *id = strrchr(token, '.');

  if (id == NULL || strlen(id + 1) != LOCAL_TOKEN_ID)
    return 0;
  for (size_t i = 0; i < LOCAL_MAX_TOKENS; i++)
    if (strcmp(server->tokens[i].id, id + 1) == 0)
      return uv_now(server->loop) < server->tokens[i].end_ms;
  return 0;
}

/* ---- Keys ---- */

/* The id of a key is a hash (FNV-1a), limited to integers that every language
 * can represent. */
static uint64_t id_of(const char *key) {
  uint64_t hash = 14695981039346656037u;

  for (; *key != '\0'; key++)
    hash = (hash ^ (unsigned char)*key) * 1099511628211u;
  return hash >> 12;
}

/* The sent key; without a required key any key is accepted. NULL: no key,
 * answered. */
static const char *key_of(local_call_t *call) {
  const char *key = tnk__srv_req_header(call->req, "x-api-key");

  if (key == NULL || key[0] == '\0') {
    local_reply_error(call->req, 401, "Missing API key");
    return NULL;
  }
  return key;
}

void local_get_key(local_call_t *call) {
  const char *key = key_of(call);
  local_out_t out;

  if (key == NULL)
    return;
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_int(&out.w, "key_id", (int64_t)id_of(key));
  tnk__json_put_text(&out.w, "name", "local");
  tnk__json_put_text(&out.w, "note", "");
  tnk__json_put_raw(&out.w, "details", DETAILS);
  local_out_reply(&out, call->req, 200);
}

void local_revoke_key(local_call_t *call) {
  local_server_t *server = call->server;
  const char *key = key_of(call);

  if (key == NULL)
    return;
  server->revoked[server->n_revoked++ % LOCAL_MAX_REVOKED] = id_of(key);
  local_reply_text(call->req, 200, "{}");
}

int local_key_is_revoked(const local_server_t *server, const char *key) {
  const size_t n = server->n_revoked < LOCAL_MAX_REVOKED ? server->n_revoked
                                                         : LOCAL_MAX_REVOKED;

  for (size_t i = 0; key != NULL && i < n; i++)
    if (server->revoked[i] == id_of(key))
      return 1;
  return 0;
}
