/* SPDX-License-Identifier: MIT */
/*
 * A key is unknown, then noted in its request (key_hash) until the answer.
 * Afterwards it is stored with the answer, if that was a short success. Above
 * the limit the oldest are dropped.
 */
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/server/parts.h"

enum { MAX_KEY = 200, MAX_ANSWER = 65536 };

typedef struct {
  local_node_t node;
  tnk__list_t link;
  uint64_t hash; /* hash of path and body */
  int status;
  uint8_t *body;
  size_t n_body;
  char key[MAX_KEY + 1];
} kept_t;

#define KEY(p) tnk__container_of(p, kept_t, link)

static void drop(local_server_t *server, kept_t *key) {
  local_table_remove(&server->keys, &key->node);
  tnk__list_remove(&key->link);
  tnk__free(server->alloc, key->body);
  tnk__free(server->alloc, key);
}

void local_keys_free(local_server_t *server) {
  while (!tnk__list_empty(&server->key_list))
    drop(server, KEY(server->key_list.next));
}

static const char *header(const tnk__srv_req_t *req) {
  const char *key = tnk__srv_req_header(req, "x-idempotency-key");

  return key != NULL && key[0] != '\0' && strlen(key) <= MAX_KEY ? key : NULL;
}

static void replay(local_call_t *call, const kept_t *key) {
  /* The sent answer belongs to the connection. */
  uint8_t *copy = tnk__malloc(call->server->alloc, key->n_body);

  if (copy == NULL) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  memcpy(copy, key->body, key->n_body);
  tnk__srv_req_reply(call->req, key->status, "application/json", NULL, copy,
                     key->n_body);
}

int local_keys_answer(local_call_t *call) {
  const char *text = header(call->req);
  uint64_t hash;
  local_node_t *node;

  if (text == NULL || call->server->options.sequence != LOCAL_BUFFERED)
    return 0;
  hash = local_hash(3, call->req->path, strlen(call->req->path));
  hash = local_hash(hash, call->bytes, call->n_bytes) | 1;
  node = local_table_find(&call->server->keys, text);
  if (node == NULL) {
    call->req->key_hash = hash;
    return 0;
  }
  if (tnk__container_of(node, kept_t, node)->hash == hash)
    replay(call, tnk__container_of(node, kept_t, node));
  else
    local_reply_error(call->req, 422,
                      "The idempotency key was used with another request");
  return 1;
}

/* Without memory the answer is not remembered, and a repeat runs again. */
void local_keys_answered(tnk__srv_req_t *req, int status, const uint8_t *body,
                         size_t len, void *user) {
  local_server_t *server = user;
  const char *text = req->key_hash != 0 ? header(req) : NULL;
  kept_t *key;

  /* Failures are not remembered, so that the same key can be used again. Long
   * answers are results, which have ids. */
  if (text == NULL || status >= 300 || len == 0 || len > MAX_ANSWER)
    return;
  key = tnk__calloc(server->alloc, 1, sizeof(*key));
  if (key == NULL)
    return;
  key->hash = req->key_hash;
  key->status = status;
  key->n_body = len;
  memcpy(key->key, text, strlen(text) + 1);
  key->body = tnk__malloc(server->alloc, len);
  if (key->body == NULL ||
      local_table_add(&server->keys, &key->node, key->key) != TNK_OK) {
    tnk__free(server->alloc, key->body);
    tnk__free(server->alloc, key);
    return;
  }
  memcpy(key->body, body, len);
  tnk__list_append(&server->key_list, &key->link);
  if (server->keys.n > LOCAL_MAX_KEYS)
    drop(server, KEY(server->key_list.next));
}
