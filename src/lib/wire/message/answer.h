#ifndef TNK_LIB_WIRE_MESSAGE_ANSWER_H
#define TNK_LIB_WIRE_MESSAGE_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "tnk/error.h"

/*
 * What a body in JSON means before anybody knows the operation: a failure, an
 * accepted request, a word on how a future is getting on. Everything given
 * out is in the arena. Only lack of memory is TNK_ENOMEM.
 */

/* Why the server says no. */
typedef struct tnk__failure {
  /* The server's own words, at most TNK__MAX_ERROR_TEXT bytes of clean UTF-8
   * on one line; NULL when there are none worth showing (HTML, binary). */
  const char *message;
  tnk_category_t category; /* UNKNOWN when not stated */
  uint64_t retry_after_ms; /* 0: not stated in the body */
} tnk__failure_t;

/*
 * Read an error in any of the forms that servers use:
 *   {"detail": "..."}, {"detail": [{"loc": [...], "msg": "..."}]},
 *   {"error": "...", "category": "user"}, {"error": {"message": "..."}},
 *   {"error_message": "..."}, {"message": "..."}, a JSON text, plain text.
 * Any body will do; TNK_OK or TNK_ENOMEM.
 */
int tnk__failure_read(tnk__failure_t *out, tnk__arena_t *arena,
                      const uint8_t *body, size_t n);

/*
 * Whether the body of a refusal (HTTP 422) says that the request must not have
 * `member`: a problem whose "loc" ends with it, or a text that names it before
 * the names of members that the server does know. Any body will do.
 */
int tnk__failure_refuses(const uint8_t *body, size_t n, const char *member);

/* A submitted request, as answered with a 2xx. */
typedef struct {
  /* The id of the future; NULL: the body is a result or a failure already, to
   * be read with tnk__answer_read(). */
  const char *request_id;
  const char *model_id;            /* or NULL */
  const char *const *sequence_ids; /* of samples, in order of the results */
  size_t n_sequence_ids;           /* 0: none were given */
} tnk__accepted_t;

/* Read such an answer; TNK_EPROTO too, when it is none. */
int tnk__accepted_read(tnk__accepted_t *out, tnk__arena_t *arena,
                       const uint8_t *body, size_t n);

typedef enum {
  TNK__ANSWER_RESULT = 0, /* read the result from the same body */
  TNK__ANSWER_PENDING,    /* try again, or a 408 that tells of a queue */
  TNK__ANSWER_METADATA,   /* done; a result of result_bytes waits */
  TNK__ANSWER_FAILED
} tnk__answer_kind_t;

/* What retrieve_future says. Of a 408 in JSON only the two queue members and
 * retry_after_ms have a meaning. */
typedef struct {
  tnk__answer_kind_t kind;
  const char *queue_state;  /* the server's word; or NULL */
  const char *queue_reason; /* in the server's words; or NULL */
  uint64_t retry_after_ms;  /* the server's wish; 0: not stated */
  uint64_t result_bytes;    /* METADATA; 0: not stated */
  tnk__failure_t failure;   /* FAILED */
  /* RESULT: the body itself, or a part of it in the arena. */
  const uint8_t *result;
  size_t result_len;
} tnk__answer_t;

/* Read it. TNK_EPROTO: it is not a JSON object. */
int tnk__answer_read(tnk__answer_t *out, tnk__arena_t *arena,
                     const uint8_t *body, size_t n);

#endif
