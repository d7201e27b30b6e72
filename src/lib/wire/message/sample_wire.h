/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_SAMPLE_WIRE_H
#define TNK_LIB_WIRE_MESSAGE_SAMPLE_WIRE_H

#include "lib/base/buf.h"
#include "lib/wire/message/results.h"
#include "tnk/sampling.h"

/* One sampling request. Everything is borrowed. Data from the caller of the
 * library must have passed tnk__check_sampling(). */
typedef struct {
  const tnk_model_input_t *prompt;
  const tnk_sampling_params_t *params; /* NULL: all defaults */
  const tnk_sample_options_t *options; /* NULL: defaults */
  /* Either a sampling session with a number. Or, for servers without sessions,
   * a base model, a path of saved weights, or both. */
  const char *sampling_session_id;
  int64_t seq_id; /* sent only with a session */
  const char *base_model;
  const char *model_path;
  int record_stability_info;
} tnk__sample_request_t;

/* The position of the sequence number in a written request. */
typedef struct {
  size_t at;
  uint32_t n;    /* 0: no sequence number */
  uint32_t id_n; /* size of the quoted session id before it */
} tnk__sample_seq_t;

/* Append the request. `seq` may be NULL. Returns TNK_OK or the buffer's
 * error. */
int tnk__sample_write(tnk__buf_t *out, const tnk__sample_request_t *request,
                      tnk__sample_seq_t *seq);
/* Replace the sequence number in a written request without writing the prompt
 * again. The bytes must not be in use. */
int tnk__sample_renumber(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         int64_t seq_id);
/* The same, also replacing the id of the sampling session. Returns TNK_OK or
 * the buffer's error; after an error nothing has changed. */
int tnk__sample_retarget(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         const char *sampling_session_id);
/* The size of a request for the byte budget is tnk__prompt_bytes(), see
 * lib/wire/data/data.h. */

/* Read the result, as protobuf or JSON. On success free *out with
 * tnk__samples_free(). The sequences have no ids yet: see
 * tnk__samples_set_ids(). Returns TNK_EPROTO or TNK_ENOMEM on failure. */
int tnk__samples_read(tnk_samples_t **out, const tnk_allocator_t *alloc,
                      const void *body, size_t n, int is_proto);

/* Check whether the server did what the options request. Returns
 * TNK_EUNSUPPORTED if it ignored prompt_alt_tokens_k or prompt_logprobs_last_n;
 * that is final, and `text` has a sentence. Otherwise returns TNK_OK. A
 * sentence in `text` is then a warning: another requested part is missing.
 * `text` may be NULL. A longer sentence is truncated. */
int tnk__samples_check(const tnk_samples_t *samples,
                       const tnk_sample_options_t *options, char *text,
                       size_t size);

/* One event of a sample's stream: a token, the end, both, or an event with no
 * known content. */
typedef struct {
  void *json; /* owner of the memory of `text` */
  int has_token;
  int32_t token;
  float logprob;    /* NaN: not sent */
  const char *text; /* text of the token as sent by the server; NULL: none */
  int64_t index;    /* index of the token in its sequence; -1: not sent */
  int is_end;
  tnk_stop_reason_t stop_reason; /* reason of the end */
  int64_t n_total; /* number of tokens according to the server; -1: not sent */
  int is_error;    /* it reports a failure; nothing else was read */
} tnk__sample_chunk_t;

/* Read an event. Unknown members are skipped. After TNK_OK the event must be
 * cleared. Returns TNK_EPROTO if malformed or for a token without its id,
 * otherwise TNK_ENOMEM. */
int tnk__sample_chunk_read(tnk__sample_chunk_t *out, const char *data,
                           size_t n);
void tnk__sample_chunk_clear(tnk__sample_chunk_t *chunk);

#endif
