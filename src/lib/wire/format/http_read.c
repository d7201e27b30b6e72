/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/http_read.h"

#include <string.h>

#include "lib/base/limits.h"
#include "lib/wire/format/http_write.h"
#include "tnk/error.h"

/*
 * HEAD --on_headers_complete--> BODY --on_message_complete--> DONE
 *   ^------------- after an interim response ----|
 *
 * The parser stops at the end of the message, so bytes after it are never read
 * as another response. This file rejects input that the parser accepts:
 * excessive sizes, transfer codings other than chunked, bodies of responses
 * that must have none.
 */

#if LLHTTP_VERSION_MAJOR == 8
_Static_assert(LLHTTP_STRICT_MODE == 1, "version 8 is unsafe without it");
#endif

/* A peer's content-length is trusted up to this size when memory is
 * reserved. */
#define MAX_CLAIM (1 * TNK__MIB)

/* Reserve for the names and values of a small head. */
enum { SOME_TEXT = 255 };

void tnk__response_init(tnk__response_t *response, const tnk_allocator_t *alloc,
                        size_t max_body) {
  response->status = 0;
  response->is_keep_alive = 0;
  response->n_headers = 0;
  response->lengths = 0;
  response->same_lengths = 0;
  /* Twice the size, because joining repeats copies their values. */
  tnk__buf_init(&response->text, alloc, 2 * TNK__MAX_RESPONSE_HEAD + 1024);
  tnk__buf_init(&response->index, alloc,
                TNK__MAX_RESPONSE_HEADERS * sizeof(tnk__response_header_t));
  tnk__buf_init(&response->body, alloc, max_body);
  tnk__unzstd_init(&response->unzstd, alloc);
}

void tnk__response_deinit(tnk__response_t *response) {
  tnk__buf_deinit(&response->text);
  tnk__buf_deinit(&response->index);
  tnk__buf_deinit(&response->body);
  tnk__unzstd_deinit(&response->unzstd);
}

static const tnk__response_header_t *headers(const tnk__response_t *response) {
  return response->n_headers <= TNK__FEW_HEADERS
             ? response->few
             : (const tnk__response_header_t *)(const void *)
                   response->index.data;
}

static tnk__response_header_t *header_at(tnk__response_t *response, size_t i) {
  return (tnk__response_header_t *)(uintptr_t)headers(response) + i;
}

static uint32_t length_bit(size_t n) {
  return (uint32_t)1 << (n < 31 ? n : 31);
}

/* Store the position of a header. If `few` is full, its entries move to
 * `index`. Returns TNK_OK, TNK_ENOMEM or TNK_ETOOBIG. */
static int add_header(tnk__response_t *response,
                      const tnk__response_header_t *header) {
  const size_t n = response->n_headers;
  const uint32_t bit = length_bit(header->value - 1 - header->name);

  response->same_lengths |= response->lengths & bit;
  response->lengths |= bit;
  if (n < TNK__FEW_HEADERS) {
    response->few[n] = *header;
  } else {
    if (n == TNK__FEW_HEADERS)
      tnk__buf_append(&response->index, response->few, sizeof(response->few));
    if (tnk__buf_append(&response->index, header, sizeof(*header)) != TNK_OK)
      return response->index.err;
  }
  response->n_headers++;
  return TNK_OK;
}

void tnk__response_clear(tnk__response_t *response) {
  tnk__buf_clear(&response->text);
  tnk__buf_clear(&response->index);
  response->n_headers = 0;
  response->lengths = 0;
  response->same_lengths = 0;
}

static const char *text_at(const tnk__response_t *response, uint32_t offset) {
  return (const char *)response->text.data + offset;
}

/* Returns whether header `i` has this name of `n` bytes. The end is compared
 * first, because many names begin alike. */
static inline int has_name(const tnk__response_t *response,
                           const tnk__response_header_t *header,
                           const char *name, size_t n) {
  const char *own = text_at(response, header->name);

  return n < response->text.len - header->name && own[n] == '\0' &&
         (memcmp(own, name, n) == 0 || tnk__http_compare_names(own, name) == 0);
}

const char *tnk__response_header(const tnk__response_t *response,
                                 const char *name) {
  const size_t n_name = strlen(name);
  const tnk__response_header_t *list = headers(response);

  if (response->status == 0 || n_name == 0 ||
      (response->lengths & length_bit(n_name)) == 0)
    return NULL;
  for (size_t i = 0; i < response->n_headers; i++)
    if (has_name(response, &list[i], name, n_name))
      return text_at(response, list[i].value);
  return NULL;
}

static tnk__http_reader_t *reader_of(llhttp_t *parser) {
  return parser->data;
}

static int fail(tnk__http_reader_t *reader, int err) {
  if (reader->err == TNK_OK)
    reader->err = err;
  return HPE_USER;
}

static int add_text(tnk__http_reader_t *reader, const char *at, size_t n) {
  int err = tnk__buf_append(&reader->response->text, at, n);

  return err == TNK_OK ? 0 : fail(reader, err);
}

static int on_field(llhttp_t *parser, const char *at, size_t n) {
  tnk__http_reader_t *reader = reader_of(parser);

  /* Trailers are not kept, because nothing that the client needs is sent in
   * them. */
  return reader->state == TNK__HTTP_READ_HEAD ? add_text(reader, at, n) : 0;
}

static int on_field_end(llhttp_t *parser) {
  tnk__http_reader_t *reader = reader_of(parser);
  tnk__response_t *response = reader->response;
  tnk__response_header_t header;
  const size_t n = response->n_headers;

  if (reader->state != TNK__HTTP_READ_HEAD)
    return 0;
  if (++reader->n_headers > TNK__MAX_RESPONSE_HEADERS)
    return fail(reader, TNK_ETOOBIG);
  /* A name begins after the NUL of the previous value. This works because the
   * parser allows no NUL in a value. */
  header.name = 0;
  if (n > 0) {
    const uint32_t last = header_at(response, n - 1)->value;
    header.name = last + (uint32_t)strlen(text_at(response, last)) + 1;
  }
  if (tnk__buf_byte(&response->text, '\0') != TNK_OK)
    return fail(reader, response->text.err);
  header.value = (uint32_t)response->text.len;
  if (add_header(response, &header) != TNK_OK)
    return fail(reader, response->index.err);
  return 0;
}

static int on_value_end(llhttp_t *parser) {
  tnk__http_reader_t *reader = reader_of(parser);
  tnk__buf_t *text = &reader->response->text;
  const size_t n = reader->response->n_headers;
  uint32_t value;

  if (reader->state != TNK__HTTP_READ_HEAD || n == 0)
    return 0;
  value = header_at(reader->response, n - 1)->value;
  /* The parser skips only the blanks before the value. */
  while (text->len > value && (text->data[text->len - 1] == ' ' ||
                               text->data[text->len - 1] == '\t'))
    text->len--;
  return add_text(reader, "", 1);
}

/* Append the value of header `i` and of all later headers with its name as one
 * string. The later headers lose their names. */
static void join_repeats(tnk__response_t *response, size_t i) {
  const size_t n = response->n_headers;
  tnk__response_header_t *list = header_at(response, 0);
  const size_t n_name = strlen(text_at(response, list[i].name));
  uint32_t joined = 0;

  for (size_t j = i + 1; j < n; j++) {
    const char *name = text_at(response, list[i].name);
    uint32_t empty = list[j].value - 1;
    if (!has_name(response, &list[j], name, n_name))
      continue;
    if (joined == 0) {
      const char *first = text_at(response, list[i].value);
      size_t len = strlen(first);
      joined = (uint32_t)response->text.len;
      /* Reserve first: the appended bytes are in this buffer, which may
       * move. */
      if (tnk__buf_reserve(&response->text, len) == NULL)
        return;
      first = text_at(response, list[i].value);
      tnk__buf_append(&response->text, first, len);
    }
    size_t len = strlen(text_at(response, list[j].value));
    if (tnk__buf_reserve(&response->text, len + 2) == NULL)
      return;
    tnk__buf_append(&response->text, ", ", 2);
    tnk__buf_append(&response->text, text_at(response, list[j].value), len);
    /* Point to the NUL that ends the name: an empty name, which matches
     * nothing. */
    list[j].name = empty;
  }
  if (joined == 0)
    return;
  tnk__buf_byte(&response->text, '\0');
  list[i].value = joined;
}

int tnk__response_join(tnk__response_t *response) {
  const tnk__response_header_t *list = headers(response);

  for (size_t i = 0; response->same_lengths != 0 && i < response->n_headers;
       i++)
    if (*text_at(response, list[i].name) != '\0')
      join_repeats(response, i);
  return response->text.err;
}

int tnk__response_add(tnk__response_t *response, const void *name,
                      size_t n_name, const void *value, size_t n_value) {
  tnk__buf_t *text = &response->text;
  tnk__response_header_t header;
  uint8_t *at;

  if (text->cap == 0)
    tnk__buf_reserve(text, SOME_TEXT);
  at = tnk__buf_reserve(text, n_name + n_value + 2);
  if (at == NULL)
    return text->err;
  header.name = (uint32_t)text->len;
  header.value = (uint32_t)(text->len + n_name + 1);
  memcpy(at, name, n_name);
  at[n_name] = '\0';
  if (n_value > 0)
    memcpy(at + n_name + 1, value, n_value);
  at[n_name + 1 + n_value] = '\0';
  text->len += n_name + n_value + 2;
  return add_header(response, &header);
}

int tnk__response_encoding(const tnk__response_t *response, int is_streamed,
                           int *is_zstd) {
  const char *encoding = tnk__response_header(response, "content-encoding");

  *is_zstd = 0;
  if (encoding == NULL || *encoding == '\0' ||
      tnk__http_compare_names(encoding, "identity") == 0)
    return TNK_OK;
  *is_zstd = !is_streamed && tnk__http_compare_names(encoding, "zstd") == 0;
  return *is_zstd ? TNK_OK : TNK_EPROTO;
}

int tnk__response_unzstd(tnk__response_t *response, size_t *n_compressed,
                         const void *data, size_t n) {
  *n_compressed += n;
  if (*n_compressed > TNK__MAX_RESPONSE_BODY)
    return TNK_ETOOBIG;
  return tnk__unzstd_feed(&response->unzstd, &response->body, data, n);
}

/* Reject ambiguous framing that the parser would accept. */
static int check_framing(tnk__http_reader_t *reader) {
  const tnk__response_t *response = reader->response;
  const char *coding = tnk__response_header(response, "transfer-encoding");

  if (coding != NULL &&
      (tnk__http_compare_names(coding, "chunked") != 0 ||
       tnk__response_header(response, "content-length") != NULL))
    return TNK_EPROTO;
  return tnk__response_encoding(response, reader->is_streamed,
                                &reader->is_zstd);
}

/* If the announced length is too large, reject the response early. Otherwise
 * reserve memory. */
static int expect_length(tnk__http_reader_t *reader) {
  const llhttp_t *parser = &reader->parser;
  tnk__buf_t *body = &reader->response->body;
  uint64_t claim = parser->content_length;

  if ((parser->flags & F_CONTENT_LENGTH) == 0 || reader->is_streamed)
    return TNK_OK;
  if (claim > (reader->is_zstd ? TNK__MAX_RESPONSE_BODY : body->max))
    return TNK_ETOOBIG;
  /* The size of the decompressed body is unknown. */
  if (reader->is_zstd)
    return TNK_OK;
  /* The rest is reserved when the bytes arrive. */
  if (claim > MAX_CLAIM)
    claim = MAX_CLAIM;
  return tnk__buf_reserve(body, (size_t)claim) == NULL ? body->err : TNK_OK;
}

enum { GO_ON = 0, SKIP_BODY = 1 };

static int on_head_end(llhttp_t *parser) {
  tnk__http_reader_t *reader = reader_of(parser);
  tnk__response_t *response = reader->response;
  int err;

  /* 101 is invalid, because the client offered no protocol to switch to. */
  if (parser->http_major != 1 || parser->status_code < 100 ||
      parser->status_code > 599 || parser->status_code == 101)
    return fail(reader, TNK_EPROTO);
  if (parser->status_code < 200)
    return SKIP_BODY;
  if (tnk__response_join(response) != TNK_OK)
    return fail(reader, response->text.err);
  /* From here on headers can be read by the caller. */
  response->status = parser->status_code;
  reader->state = TNK__HTTP_READ_BODY;
  reader->n_overhead = 0;
  err = check_framing(reader);
  if (err != TNK_OK)
    return fail(reader, err);
  if (reader->is_head_request || response->status == 204 ||
      response->status == 304)
    return SKIP_BODY;
  err = expect_length(reader);
  return err == TNK_OK ? GO_ON : fail(reader, err);
}

static int on_body(llhttp_t *parser, const char *at, size_t n) {
  tnk__http_reader_t *reader = reader_of(parser);
  int err = reader->is_zstd ? tnk__response_unzstd(reader->response,
                                                   &reader->n_compressed, at, n)
                            : tnk__buf_append(&reader->response->body, at, n);

  if (err != TNK_OK)
    return fail(reader, err);
  reader->progress = at + n;
  return 0;
}

static int on_end(llhttp_t *parser) {
  tnk__http_reader_t *reader = reader_of(parser);
  tnk__response_t *response = reader->response;

  if (reader->state == TNK__HTTP_READ_HEAD) {
    /* This was an interim response. */
    tnk__response_clear(response);
    return 0;
  }
  /* A response may have a Content-Encoding and an empty body. No body is no
   * frame, which is valid. */
  if (reader->n_compressed > 0 &&
      tnk__unzstd_finish(&response->unzstd) != TNK_OK)
    return fail(reader, TNK_EPROTO);
  response->is_keep_alive = llhttp_should_keep_alive(parser);
  reader->state = TNK__HTTP_READ_DONE;
  return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_header_field_complete = on_field_end,
    .on_header_value = on_field,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head_end,
    .on_body = on_body,
    .on_message_complete = on_end,
};

void tnk__http_reader_init(tnk__http_reader_t *reader,
                           tnk__response_t *response, int is_head_request) {
  *reader = (tnk__http_reader_t){.response = response,
                                 .is_head_request = is_head_request};
  llhttp_init(&reader->parser, HTTP_RESPONSE, &settings);
  reader->parser.data = reader;
}

/* The parser does not count skipped bytes, so they are counted here: the bytes
 * of all heads, and later the bytes between parts of the body. */
static int check_size(tnk__http_reader_t *reader, const char *data, size_t n) {
  if (reader->state == TNK__HTTP_READ_HEAD) {
    reader->n_head += n;
    return reader->n_head < TNK__MAX_RESPONSE_HEAD ? TNK_OK : TNK_ETOOBIG;
  }
  if (reader->progress != NULL)
    /* Count only the bytes after the last part of the body. */
    reader->n_overhead = (size_t)(data + n - reader->progress);
  else
    reader->n_overhead += n;
  return reader->n_overhead <= TNK__MAX_RESPONSE_HEAD ? TNK_OK : TNK_ETOOBIG;
}

static void has_more(tnk__http_reader_t *reader) {
  reader->has_more = 1;
  reader->response->is_keep_alive = 0;
}

static int read_piece(tnk__http_reader_t *reader, const char *data, size_t n) {
  const int was_head = reader->state == TNK__HTTP_READ_HEAD;
  llhttp_errno_t code;

  reader->progress = NULL;
  code = llhttp_execute(&reader->parser, data, n);
  if (reader->err != TNK_OK)
    return reader->err;
  if (reader->state == TNK__HTTP_READ_DONE) {
    /* Extra bytes were not requested. They could be mistaken for the next
     * response. */
    if (llhttp_get_error_pos(&reader->parser) != data + n)
      has_more(reader);
    return TNK_OK;
  }
  if (code != HPE_OK)
    return TNK_EPROTO;
  /* Bytes after the head in its last piece are few, so they are not counted. */
  if (was_head && reader->state != TNK__HTTP_READ_HEAD)
    return TNK_OK;
  return check_size(reader, data, n);
}

int tnk__http_reader_feed(tnk__http_reader_t *reader, const uint8_t *data,
                          size_t n) {
  const char *at = (const char *)data;

  while (n > 0 && reader->err == TNK_OK) {
    size_t piece = n;
    if (reader->state == TNK__HTTP_READ_DONE) {
      has_more(reader);
      break;
    }
    /* The parser never gets more bytes than a head may have. A head that is too
     * long thus fails at the same byte, however the input is split. */
    if (reader->state == TNK__HTTP_READ_HEAD &&
        piece > TNK__MAX_RESPONSE_HEAD - reader->n_head)
      piece = TNK__MAX_RESPONSE_HEAD - reader->n_head;
    reader->err = read_piece(reader, at, piece);
    at += piece;
    n -= piece;
  }
  return reader->err;
}

int tnk__http_reader_eof(tnk__http_reader_t *reader) {
  if (reader->err != TNK_OK || reader->state == TNK__HTTP_READ_DONE)
    return reader->err;
  /* A body without a length ends with the connection. on_end() is called from
   * inside this call then. */
  llhttp_finish(&reader->parser);
  if (reader->err == TNK_OK && reader->state != TNK__HTTP_READ_DONE)
    reader->err = TNK_ECONN;
  return reader->err;
}
