/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SAMPLE_RECORD_H
#define TNK_TOOLS_LOCAL_SAMPLE_RECORD_H

#include "tools/local/sample/sampler.h"

/* One day, and the memory limit for all records. */
enum { LOCAL_RECORD_LIFE_MS = 86400000, LOCAL_RECORDS_MAX_BYTES = 256 << 20 };

/*
 * The record of a sequence that was sampled with record_stability_info, so that
 * a later pass can refer to its tokens. It has the tokens of prompt and sample
 * and the sampler's logprobs. A record belongs to the session that sampled it
 * and is kept for a day after its last use. Above the memory limit the least
 * recently used record is dropped.
 */
typedef struct {
  local_node_t node;
  tnk__list_t link; /* in local_server_t.record_list */
  char id[LOCAL_ID + 16];
  char session[40];
  uint64_t used_ms;
  size_t n_bytes;
  size_t n_prompt;
  size_t n_tokens;
  const int32_t *prompt;
  const int32_t *tokens;
  float logprobs[]; /* of the tokens, which follow; then the prompt */
} local_record_t;

/* Keep the sequences of a finished sample that has requested it. Returns TNK_OK
 * or TNK_ENOMEM. */
int local_records_add(const local_sample_t *sample);
/* Find a record of a session and mark it as used; NULL if it is unknown or was
 * dropped. */
const local_record_t *local_records_find(local_server_t *server,
                                         const char *session, const char *id);
/* Free the records of a session; NULL: all records. */
void local_records_free(local_server_t *server, const char *session);

#endif
