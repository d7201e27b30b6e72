/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_HTTP_READ_H
#define TNK_LIB_WIRE_FORMAT_HTTP_READ_H

#include <llhttp.h>

#include "lib/base/buf.h"
#include "lib/wire/format/zstd.h"

/* The position of a header's name and value in tnk__response_t.text. */
typedef struct {
  uint32_t name; /* offset of a NUL-terminated string */
  uint32_t value;
} tnk__response_header_t;

/* Number of headers that need no separate memory; most responses have fewer. */
enum { TNK__FEW_HEADERS = 12 };

/* One response, as far as it has been received. */
typedef struct tnk__response {
  int status;        /* 0 until the head is complete */
  int is_keep_alive; /* the connection may be reused; valid when done */
  tnk__buf_t text;   /* names and values, each ending with a NUL */
  /* Positions of the headers, with repeats joined: in `few`, or in `index` if
   * there are more. */
  size_t n_headers;
  /* Bits for the lengths of the names, and for lengths that occur twice. Most
   * requested headers are absent, and usually no name has that length. */
  uint32_t lengths;
  uint32_t same_lengths;
  tnk__response_header_t few[TNK__FEW_HEADERS];
  tnk__buf_t index;
  tnk__buf_t body; /* decoded */
  tnk__unzstd_t unzstd;
} tnk__response_t;

/* Initialize an empty response. `max_body` limits the decoded body. Allocates
 * nothing. */
void tnk__response_init(tnk__response_t *response, const tnk_allocator_t *alloc,
                        size_t max_body);
void tnk__response_deinit(tnk__response_t *response);
/* The value of a header, or NULL. The case of `name` is ignored. Repeats are
 * joined by ", ". */
const char *tnk__response_header(const tnk__response_t *response,
                                 const char *name);

/* For readers of a head: append a header; when all are there, join headers of
 * the same name. Both return TNK_OK, TNK_ENOMEM or TNK_ETOOBIG. */
int tnk__response_add(tnk__response_t *response, const void *name,
                      size_t n_name, const void *value, size_t n_value);
int tnk__response_join(tnk__response_t *response);
/* Remove the headers of an interim response. */
void tnk__response_clear(tnk__response_t *response);
/* Evaluate Content-Encoding. Returns TNK_OK, or TNK_EPROTO for an encoding that
 * was not requested. A streamed response must have no encoding. */
int tnk__response_encoding(const tnk__response_t *response, int is_streamed,
                           int *is_zstd);
/* Decompress a part of the body. *n_compressed counts the received bytes,
 * because a long compressed body may decompress to nothing. Returns TNK_OK,
 * TNK_EPROTO, TNK_ENOMEM or TNK_ETOOBIG. */
int tnk__response_unzstd(tnk__response_t *response, size_t *n_compressed,
                         const void *data, size_t n);

/*
 * Reads one response from pieces of any size. Interim (1xx) responses and
 * trailers are read and dropped.
 *
 * States: HEAD; BODY, once the final head is complete; DONE. Every error is
 * final. The reader must not be moved in memory after init.
 */
typedef enum {
  TNK__HTTP_READ_HEAD = 0,
  TNK__HTTP_READ_BODY,
  TNK__HTTP_READ_DONE
} tnk__http_read_state_t;

typedef struct {
  llhttp_t parser;
  tnk__response_t *response;
  tnk__http_read_state_t state;
  int is_head_request; /* the request was HEAD: the response has no body */
  /* Set after init if the owner takes the body as it arrives. The length is
   * then not limited here, and the body must not be compressed. */
  int is_streamed;
  int err;       /* first failure; never cleared */
  size_t n_head; /* bytes received while the head was incomplete */
  /* Bytes since the body last grew: sizes of chunks, extensions, trailers. */
  size_t n_overhead;
  size_t n_headers;    /* lines, including interim heads */
  int is_zstd;         /* the body is compressed ... */
  size_t n_compressed; /* ... and this many bytes of it were received */
  int has_more;        /* bytes follow the end of the response */
  /* Position in the current piece where the body last grew. */
  const char *progress;
} tnk__http_reader_t;

/* Begin to read into `response`, which must be empty and outlive the reader. */
void tnk__http_reader_init(tnk__http_reader_t *reader,
                           tnk__response_t *response, int is_head_request);
/*
 * Read the next piece. Returns TNK_OK; `state` then has the progress. Returns
 * TNK_EPROTO for input that is not HTTP/1, for contradictory framing, and for
 * an encoding that was not requested. Otherwise TNK_ETOOBIG or TNK_ENOMEM.
 * Bytes after the end of the response are ignored, but the connection must not
 * be reused then.
 */
int tnk__http_reader_feed(tnk__http_reader_t *reader, const uint8_t *data,
                          size_t n);
/* Note that the peer has ended the stream in an orderly way. Returns TNK_OK if
 * that ends the response, or TNK_ECONN if the response is cut off. */
int tnk__http_reader_eof(tnk__http_reader_t *reader);

#endif
