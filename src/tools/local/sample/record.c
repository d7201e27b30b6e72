/* SPDX-License-Identifier: MIT */
#include "tools/local/sample/record.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"

#define RECORD(p) tnk__container_of(p, local_record_t, link)

static void drop(local_server_t *server, local_record_t *record) {
  local_table_remove(&server->records, &record->node);
  tnk__list_remove(&record->link);
  server->n_record_bytes -= record->n_bytes;
  tnk__free(server->alloc, record);
}

void local_records_free(local_server_t *server, const char *session) {
  TNK__LIST_FOREACH_SAFE (node, next, &server->record_list) {
    if (session == NULL || strcmp(RECORD(node)->session, session) == 0)
      drop(server, RECORD(node));
  }
}

/* Drop expired records, and the least recently used ones above the limit. */
static void evict(local_server_t *server) {
  uint64_t now = uv_now(server->loop);
  tnk__list_t *node;

  while ((node = tnk__list_first(&server->record_list)) != NULL &&
         (now - RECORD(node)->used_ms > LOCAL_RECORD_LIFE_MS ||
          server->n_record_bytes > LOCAL_RECORDS_MAX_BYTES))
    drop(server, RECORD(node));
}

static int add(local_server_t *server, const local_sample_t *sample,
               uint32_t i) {
  tnk__lm_sample_t s = tnk__lm_draw_sample(sample->draw, i);
  size_t n_prompt = sample->options.n_prompt;
  size_t n_bytes =
      sizeof(local_record_t) + s.n_tokens * 8 + n_prompt * sizeof(int32_t);
  local_record_t *record = tnk__calloc(server->alloc, 1, n_bytes);
  int32_t *tokens;

  if (record == NULL)
    return TNK_ENOMEM;
  tokens = (int32_t *)(void *)(record->logprobs + s.n_tokens);
  memcpy(record->logprobs, s.logprobs, s.n_tokens * sizeof(float));
  memcpy(tokens, s.tokens, s.n_tokens * sizeof(*tokens));
  memcpy(tokens + s.n_tokens, sample->options.prompt,
         n_prompt * sizeof(*tokens));
  record->tokens = tokens;
  record->n_tokens = s.n_tokens;
  record->prompt = tokens + s.n_tokens;
  record->n_prompt = n_prompt;
  record->n_bytes = n_bytes;
  record->used_ms = uv_now(server->loop);
  snprintf(record->id, sizeof(record->id), "%s-%u", sample->future->id,
           (unsigned)i);
  snprintf(record->session, sizeof(record->session), "%s", sample->session);
  if (local_table_add(&server->records, &record->node, record->id) != TNK_OK) {
    tnk__free(server->alloc, record);
    return TNK_ENOMEM;
  }
  tnk__list_append(&server->record_list, &record->link);
  server->n_record_bytes += n_bytes;
  return TNK_OK;
}

int local_records_add(const local_sample_t *sample) {
  int err = TNK_OK;

  for (uint32_t i = 0; i < sample->options.n_samples && err == TNK_OK; i++)
    err = add(sample->server, sample, i);
  evict(sample->server);
  return err;
}

const local_record_t *local_records_find(local_server_t *server,
                                         const char *session, const char *id) {
  local_node_t *node;
  local_record_t *record;

  evict(server);
  node = local_table_find(&server->records, id);
  if (node == NULL)
    return NULL;
  record = tnk__container_of(node, local_record_t, node);
  /* A session cannot use the records of another one. */
  if (strcmp(record->session, session) != 0)
    return NULL;
  record->used_ms = uv_now(server->loop);
  tnk__list_remove(&record->link);
  tnk__list_append(&server->record_list, &record->link);
  return record;
}
