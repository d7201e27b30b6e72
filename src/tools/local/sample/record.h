#ifndef TNK_TOOLS_LOCAL_SAMPLE_RECORD_H
#define TNK_TOOLS_LOCAL_SAMPLE_RECORD_H

#include "tools/local/sample/sampler.h"

/* A day, and what all records may take. */
enum { LOCAL_RECORD_LIFE_MS = 86400000, LOCAL_RECORDS_MAX_BYTES = 256 << 20 };

/*
 * What is kept of a sequence that was sampled with record_stability_info, so
 * that a later pass can name its tokens: those of the prompt and of the sample,
 * with the logprobs that the sampler had. A record belongs to the session that
 * sampled it and lives for a day after its last use; when there are too many,
 * the one that has not been used for longest goes.
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
  float logprobs[]; /* of the tokens, which follow, and then the prompt */
} local_record_t;

/* Keep the sequences of a sample that is done and has asked for it. TNK_OK or
 * TNK_ENOMEM. */
int local_records_add(const local_sample_t *sample);
/* Find one of a session, for use; NULL: it is not known, or no more. */
const local_record_t *local_records_find(local_server_t *server,
                                         const char *session, const char *id);
/* Free those of a session; NULL: of all. */
void local_records_free(local_server_t *server, const char *session);

#endif
