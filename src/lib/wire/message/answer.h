/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_ANSWER_H
#define TNK_LIB_WIRE_MESSAGE_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "tnk/error.h"

/*
 * The meaning of a JSON body before its operation is considered: a failure, an
 * accepted request, or the progress of a future. All results are in the arena.
 * Only a lack of memory returns TNK_ENOMEM.
 */

/* The reason why the server rejected a request. */
typedef struct tnk__failure {
  /* The server's message: at most TNK__MAX_ERROR_TEXT bytes of valid UTF-8 on
   * one line. NULL if it has no readable text (HTML, binary). */
  const char *message;
  tnk_category_t category; /* UNKNOWN if not stated */
  uint64_t retry_after_ms; /* 0: not stated in the body */
} tnk__failure_t;

/*
 * Read an error in any of the forms that servers use:
 *   {"detail": "..."}, {"detail": [{"loc": [...], "msg": "..."}]},
 *   {"error": "...", "category": "user"}, {"error": {"message": "..."}},
 *   {"error_message": "..."}, {"message": "..."}, a JSON text, plain text.
 * Any body is accepted. Returns TNK_OK or TNK_ENOMEM.
 */
int tnk__failure_read(tnk__failure_t *out, tnk__arena_t *arena,
                      const uint8_t *body, size_t n);

/*
 * Whether the body of an HTTP 422 says that the request must not have `member`.
 * It does if the "loc" of a problem ends with the member. It also does if a
 * text names the member before the list of known members. Any body is accepted.
 */
int tnk__failure_refuses(const uint8_t *body, size_t n, const char *member);

/* The response to a submitted request, with a 2xx status. */
typedef struct {
  /* The id of the future. NULL: the body is already a result or a failure; read
   * it with tnk__answer_read(). */
  const char *request_id;
  const char *model_id; /* or NULL */
  /* For samples, in order of the results; 0 if not given. */
  const char *const *sequence_ids;
  size_t n_sequence_ids; /* 0: not given */
} tnk__accepted_t;

/* Read such a response. Returns TNK_OK, TNK_ENOMEM, or TNK_EPROTO for other
 * bodies. */
int tnk__accepted_read(tnk__accepted_t *out, tnk__arena_t *arena,
                       const uint8_t *body, size_t n);

typedef enum {
  TNK__ANSWER_RESULT = 0, /* read the result from the same body */
  TNK__ANSWER_PENDING,    /* try again, or a 408 with the state of the queue */
  TNK__ANSWER_METADATA,   /* done; a result of result_bytes is available */
  TNK__ANSWER_FAILED
} tnk__answer_kind_t;

/* The response of retrieve_future. In a 408 only the two queue members and
 * retry_after_ms are used. */
typedef struct {
  tnk__answer_kind_t kind;
  const char *queue_state;  /* word of the server, or NULL */
  const char *queue_reason; /* text of the server, or NULL */
  uint64_t retry_after_ms;  /* requested delay; 0: not stated */
  uint64_t result_bytes;    /* for METADATA; 0: not stated */
  tnk__failure_t failure;   /* for FAILED */
  /* For RESULT: the body itself, or a part of it in the arena. */
  const uint8_t *result;
  size_t result_len;
} tnk__answer_t;

/* Read it. Returns TNK_EPROTO if it is not a JSON object. */
int tnk__answer_read(tnk__answer_t *out, tnk__arena_t *arena,
                     const uint8_t *body, size_t n);

#endif
