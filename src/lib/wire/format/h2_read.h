#ifndef TNK_LIB_WIRE_FORMAT_H2_READ_H
#define TNK_LIB_WIRE_FORMAT_H2_READ_H

#include "lib/wire/format/http_read.h"

/*
 * Reads one response that comes as fields and pieces of a body, as HTTP/2 has
 * it, into a response; within the same limits as tnk__http_reader_t. Interim
 * (1xx) responses are read and dropped, trailers as well.
 *
 * States: HEAD; BODY, when the final head is in; DONE. Every error is final:
 * TNK_EPROTO, TNK_ETOOBIG or TNK_ENOMEM.
 */
typedef struct {
  tnk__response_t *response;
  tnk__http_read_state_t state;
  int is_head_request; /* the response ends with its head, whatever it says */
  /* Set after init: the owner takes the body out as it comes, so that its
   * length is not limited here, and it must not be compressed. */
  int is_streamed;
  int status;       /* of the head that is being read; 0: none yet */
  int err;          /* the first failure; sticky */
  size_t n_head;    /* bytes of all heads and trailers together */
  size_t n_headers; /* fields of them */
  uint64_t n_told;  /* its content-length; UINT64_MAX: none */
  uint64_t n_body;  /* bytes of the body that have come */
  /* The owner's: n_body with all of the latest frame, and whether that is the
   * last one. */
  uint64_t n_framed;
  int is_last;
  int is_zstd;         /* the body is compressed ... */
  size_t n_compressed; /* ... and that much of it has come */
} tnk__h2_reader_t;

/* Begin to read into `response`, which is empty and outlives the reader. */
void tnk__h2_reader_init(tnk__h2_reader_t *reader, tnk__response_t *response,
                         int is_head_request);
/* Read a field, of a head or of trailers. */
int tnk__h2_reader_field(tnk__h2_reader_t *reader, const uint8_t *name,
                         size_t n_name, const uint8_t *value, size_t n_value);
/* Note that the fields are complete: of a head, interim or final, or of
 * trailers. */
int tnk__h2_reader_fields_end(tnk__h2_reader_t *reader);
/* Read a piece of the body. */
int tnk__h2_reader_body(tnk__h2_reader_t *reader, const uint8_t *data,
                        size_t n);
/* Whether a body has begun, and less of it has come than its content-length. */
int tnk__h2_reader_is_short(const tnk__h2_reader_t *reader);
/* Note that the response is complete. */
int tnk__h2_reader_end(tnk__h2_reader_t *reader);

#endif
