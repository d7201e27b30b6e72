#ifndef TNK_LIB_WIRE_MESSAGE_SAMPLE_WIRE_H
#define TNK_LIB_WIRE_MESSAGE_SAMPLE_WIRE_H

#include "lib/base/buf.h"
#include "lib/wire/message/results.h"
#include "tnk/sampling.h"

/* One sampling request. All of it is borrowed; what the caller of the library
 * gave has passed tnk__check_sampling(). */
typedef struct {
  const tnk_model_input_t *prompt;
  const tnk_sampling_params_t *params; /* NULL: all absent */
  const tnk_sample_options_t *options; /* NULL: defaults */
  /* Either a sampling session with a number, or, for servers without
   * sessions, a base model, or the path of saved weights, or both. */
  const char *sampling_session_id;
  int64_t seq_id; /* sent with a session only */
  const char *base_model;
  const char *model_path;
  int record_stability_info;
} tnk__sample_request_t;

/* Where the sequence number stands in a written request. */
typedef struct {
  size_t at;
  uint32_t n;    /* 0: there is none */
  uint32_t id_n; /* bytes of the session's id before it, with its quotes */
} tnk__sample_seq_t;

/* Append the request. `seq` may be NULL. TNK_OK or the buffer's error. */
int tnk__sample_write(tnk__buf_t *out, const tnk__sample_request_t *request,
                      tnk__sample_seq_t *seq);
/* Give a written request another sequence number, without writing the prompt
 * again. Nobody may be reading the bytes. */
int tnk__sample_renumber(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         int64_t seq_id);
/* The same with the id of another sampling session. TNK_OK or the buffer's
 * error, and then nothing has changed. */
int tnk__sample_retarget(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         const char *sampling_session_id);
/* What the request counts in the byte budget is tnk__prompt_bytes(), see
 * lib/wire/data/data.h. */

/* Read the result, as protobuf or as JSON. On success *out is freed with
 * tnk__samples_free(). The sequences have no ids yet: tnk__samples_set_ids().
 * TNK_EPROTO, TNK_ENOMEM. */
int tnk__samples_read(tnk_samples_t **out, const tnk_allocator_t *alloc,
                      const void *body, size_t n, int is_proto);

/* Whether the server did what was asked. TNK_OK; TNK_EUNSUPPORTED with a
 * sentence in `text` when it went over prompt_alt_tokens_k or
 * prompt_logprobs_last_n, which is final. With TNK_OK a sentence, if it is not
 * empty, is a warning: something else that was asked for is missing. `text`
 * may be NULL; a longer sentence is cut. */
int tnk__samples_check(const tnk_samples_t *samples,
                       const tnk_sample_options_t *options, char *text,
                       size_t size);

/* What one event of a sample's stream says: a token, the end, both, or nothing
 * that we know of. */
typedef struct {
  void *json; /* what `text` lies in */
  int has_token;
  int32_t token;
  float logprob;    /* NaN: none was sent */
  const char *text; /* of the token, in the server's words; NULL: none */
  int64_t index;    /* of the token in its sequence; -1: none was sent */
  int is_end;
  tnk_stop_reason_t stop_reason; /* of the end */
  int64_t n_total;               /* tokens, by the server; -1: not told */
  int is_error; /* it reports a failure, and nothing else was read */
} tnk__sample_chunk_t;

/* Read one; members that are not known are skipped. TNK_OK, and then it is to
 * be cleared; TNK_EPROTO, also for a token without its id; TNK_ENOMEM. */
int tnk__sample_chunk_read(tnk__sample_chunk_t *out, const char *data,
                           size_t n);
void tnk__sample_chunk_clear(tnk__sample_chunk_t *chunk);

#endif
