#ifndef TNK_LIB_WIRE_FORMAT_HTTP_READ_H
#define TNK_LIB_WIRE_FORMAT_HTTP_READ_H

#include <llhttp.h>

#include "lib/base/buf.h"
#include "lib/wire/format/zstd.h"

/* Where the name and the value of a header stand in tnk__response_t.text. */
typedef struct {
  uint32_t name; /* offsets of NUL-terminated text */
  uint32_t value;
} tnk__response_header_t;

/* As many as most answers have need no memory of their own. */
enum { TNK__FEW_HEADERS = 12 };

/* One response as far as it has arrived. */
typedef struct tnk__response {
  int status;        /* 0 until the head is complete */
  int is_keep_alive; /* the connection may be used again; valid when done */
  tnk__buf_t text;   /* names and values, each with a NUL */
  /* Where they stand, repeats joined into one: in `few`, or else in `index`. */
  size_t n_headers;
  /* Bits for the lengths of their names, and for those that came twice: most
   * of what is asked for is not there, and mostly its length is not either. */
  uint32_t lengths;
  uint32_t same_lengths;
  tnk__response_header_t few[TNK__FEW_HEADERS];
  tnk__buf_t index;
  tnk__buf_t body; /* decoded */
  tnk__unzstd_t unzstd;
} tnk__response_t;

/* Begin with an empty response. `max_body` limits the decoded body. Nothing is
 * allocated. */
void tnk__response_init(tnk__response_t *response, const tnk_allocator_t *alloc,
                        size_t max_body);
void tnk__response_deinit(tnk__response_t *response);
/* The value of a header whose name is given in any case, or NULL. Repeats are
 * joined by ", ". */
const char *tnk__response_header(const tnk__response_t *response,
                                 const char *name);

/* For what reads a head: append a header; and when all are there, join those of
 * one name. Both return TNK_OK, TNK_ENOMEM or TNK_ETOOBIG. */
int tnk__response_add(tnk__response_t *response, const void *name,
                      size_t n_name, const void *value, size_t n_value);
int tnk__response_join(tnk__response_t *response);
/* Forget those of an interim answer. */
void tnk__response_clear(tnk__response_t *response);
/* What Content-Encoding says: TNK_OK, or TNK_EPROTO for one that was not asked
 * for. A streamed answer must have none. */
int tnk__response_encoding(const tnk__response_t *response, int is_streamed,
                           int *is_zstd);

/*
 * Reads one response, in pieces cut anywhere, into a response. Interim (1xx)
 * responses are read and dropped, trailers as well.
 *
 * States: HEAD; BODY, when the final head is in; DONE. Every error is final.
 * Must not be moved in memory between init and its end.
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
  int is_head_request; /* the response ends with its head, whatever it says */
  /* Set after init: the owner takes the body out as it comes, so that its
   * length is not limited here, and it must not be compressed. */
  int is_streamed;
  int err;       /* the first failure; sticky */
  size_t n_head; /* bytes given while the head was not complete */
  /* Bytes since the body last grew: chunk sizes, extensions, trailers. */
  size_t n_overhead;
  size_t n_headers;     /* lines, of interim heads too */
  int is_zstd;          /* the body is compressed ... */
  size_t n_compressed;  /* ... and that much of it has come */
  int has_more;         /* bytes came behind the end of the response */
  const char *progress; /* in the piece being read: where the body last grew */
} tnk__http_reader_t;

/* Begin to read into `response`, which is empty and outlives the reader. */
void tnk__http_reader_init(tnk__http_reader_t *reader,
                           tnk__response_t *response, int is_head_request);
/*
 * Read the next piece. TNK_OK; look at `state` then. Or TNK_EPROTO (not HTTP/1,
 * contradictory framing, an encoding that was not asked for), TNK_ETOOBIG,
 * TNK_ENOMEM. Bytes behind the end of the response are ignored, but the
 * connection may not be used again then.
 */
int tnk__http_reader_feed(tnk__http_reader_t *reader, const uint8_t *data,
                          size_t n);
/* Note that the peer has ended the stream in an orderly way. TNK_OK: that was
 * the end of the response as well. TNK_ECONN: it is cut off. */
int tnk__http_reader_eof(tnk__http_reader_t *reader);

#endif
