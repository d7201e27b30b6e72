/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_H2_READ_H
#define TNK_LIB_WIRE_FORMAT_H2_READ_H

#include "lib/wire/format/http_read.h"

/*
 * Reads one HTTP/2 response, which arrives as fields and body pieces, into a
 * response. The limits are those of tnk__http_reader_t. Interim (1xx) responses
 * and trailers are read and dropped.
 *
 * States: HEAD; BODY, once the final head is complete; DONE. Every error is
 * final: TNK_EPROTO, TNK_ETOOBIG or TNK_ENOMEM.
 */
typedef struct {
  tnk__response_t *response;
  tnk__http_read_state_t state;
  int is_head_request; /* the request was HEAD: the response has no body */
  /* Set after init if the owner takes the body as it arrives. The length is
   * then not limited here, and the body must not be compressed. */
  int is_streamed;
  int status;       /* status of the current head; 0: none yet */
  int err;          /* first failure; never cleared */
  size_t n_head;    /* bytes of all heads and trailers together */
  size_t n_headers; /* number of fields in these */
  uint64_t n_told;  /* content-length; UINT64_MAX: none */
  uint64_t n_body;  /* received bytes of the body */
  /* Set by the owner: n_body including the whole latest frame, and whether that
   * is the last frame. */
  uint64_t n_framed;
  int is_last;
  int is_zstd;         /* the body is compressed ... */
  size_t n_compressed; /* ... and this many bytes of it were received */
} tnk__h2_reader_t;

/* Begin to read into `response`, which must be empty and outlive the reader. */
void tnk__h2_reader_init(tnk__h2_reader_t *reader, tnk__response_t *response,
                         int is_head_request);
/* Read a field of a head or of trailers. */
int tnk__h2_reader_field(tnk__h2_reader_t *reader, const uint8_t *name,
                         size_t n_name, const uint8_t *value, size_t n_value);
/* Note that the fields of a head (interim or final) or of trailers are
 * complete. */
int tnk__h2_reader_fields_end(tnk__h2_reader_t *reader);
/* Read a piece of the body. */
int tnk__h2_reader_body(tnk__h2_reader_t *reader, const uint8_t *data,
                        size_t n);
/* Returns whether a body has begun and is shorter than its content-length so
 * far. */
int tnk__h2_reader_is_short(const tnk__h2_reader_t *reader);
/* Note that the response is complete. */
int tnk__h2_reader_end(tnk__h2_reader_t *reader);

#endif
