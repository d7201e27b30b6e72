/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/h2_read.h"

#include <string.h>

#include "lib/base/limits.h"
#include "tnk/error.h"

/* A peer's content-length is trusted up to this size when memory is
 * reserved. */
#define MAX_CLAIM (1 * TNK__MIB)
/* The overhead of a field as counted for SETTINGS_MAX_HEADER_LIST_SIZE. */
enum { FIELD_COST = 32 };

void tnk__h2_reader_init(tnk__h2_reader_t *reader, tnk__response_t *response,
                         int is_head_request) {
  *reader = (tnk__h2_reader_t){.response = response,
                               .is_head_request = is_head_request};
}

static int fail(tnk__h2_reader_t *reader, int err) {
  if (reader->err == TNK_OK)
    reader->err = err;
  return reader->err;
}

static int read_status(tnk__h2_reader_t *reader, const uint8_t *value,
                       size_t n) {
  int status = 0;

  if (n != 3 || reader->status != 0 || reader->state != TNK__HTTP_READ_HEAD)
    return fail(reader, TNK_EPROTO);
  for (size_t i = 0; i < n; i++) {
    if (value[i] < '0' || value[i] > '9')
      return fail(reader, TNK_EPROTO);
    status = status * 10 + (value[i] - '0');
  }
  /* 101 is not valid in HTTP/2. */
  if (status < 100 || status > 599 || status == 101)
    return fail(reader, TNK_EPROTO);
  reader->status = status;
  return TNK_OK;
}

static int is_blank(uint8_t c) {
  return c == ' ' || c == '\t';
}

int tnk__h2_reader_field(tnk__h2_reader_t *reader, const uint8_t *name,
                         size_t n_name, const uint8_t *value, size_t n_value) {
  int err;

  if (reader->err != TNK_OK || reader->state == TNK__HTTP_READ_DONE)
    return fail(reader, TNK_EPROTO);
  if (n_name > TNK__MAX_RESPONSE_HEAD || n_value > TNK__MAX_RESPONSE_HEAD)
    return fail(reader, TNK_ETOOBIG);
  reader->n_head += n_name + n_value + FIELD_COST;
  if (reader->n_head >= TNK__MAX_RESPONSE_HEAD ||
      ++reader->n_headers > TNK__MAX_RESPONSE_HEADERS)
    return fail(reader, TNK_ETOOBIG);
  if (n_name == 7 && memcmp(name, ":status", 7) == 0)
    return read_status(reader, value, n_value);
  /* A NUL would truncate the string. */
  if (n_name == 0 || name[0] == ':' || memchr(name, '\0', n_name) != NULL ||
      (n_value > 0 && memchr(value, '\0', n_value) != NULL))
    return fail(reader, TNK_EPROTO);
  if (reader->state != TNK__HTTP_READ_HEAD)
    return TNK_OK;
  while (n_value > 0 && is_blank(value[n_value - 1]))
    n_value--;
  while (n_value > 0 && is_blank(*value)) {
    value++;
    n_value--;
  }
  err = tnk__response_add(reader->response, name, n_name, value, n_value);
  return err == TNK_OK ? TNK_OK : fail(reader, err);
}

/* Read a length; excess digits do not matter. Returns 0 if it is malformed. */
static int read_length(const char *text, uint64_t *out) {
  *out = 0;
  for (; *text >= '0' && *text <= '9'; text++)
    if (*out <= UINT64_MAX / 100)
      *out = *out * 10 + (uint64_t)(*text - '0');
  return *text == '\0';
}

/* If the announced length is too large, reject the response early. Otherwise
 * reserve memory. */
static int expect_length(tnk__h2_reader_t *reader) {
  tnk__buf_t *body = &reader->response->body;
  const char *text = tnk__response_header(reader->response, "content-length");
  uint64_t claim;

  reader->n_told = UINT64_MAX;
  if (text == NULL || reader->is_head_request)
    return TNK_OK;
  if (!read_length(text, &claim))
    return TNK_EPROTO;
  reader->n_told = claim;
  if (reader->is_streamed)
    return TNK_OK;
  if (claim > (reader->is_zstd ? TNK__MAX_RESPONSE_BODY : body->max))
    return TNK_ETOOBIG;
  if (reader->is_zstd)
    return TNK_OK;
  if (claim > MAX_CLAIM)
    claim = MAX_CLAIM;
  return tnk__buf_reserve(body, (size_t)claim) == NULL ? body->err : TNK_OK;
}

static int end_head(tnk__h2_reader_t *reader) {
  tnk__response_t *response = reader->response;
  int err;

  if (reader->status == 0)
    return TNK_EPROTO;
  if (reader->status < 200) {
    tnk__response_clear(response);
    reader->status = 0;
    return TNK_OK;
  }
  err = tnk__response_join(response);
  if (err != TNK_OK)
    return err;
  response->status = reader->status;
  reader->state = TNK__HTTP_READ_BODY;
  err = tnk__response_encoding(response, reader->is_streamed, &reader->is_zstd);
  return err == TNK_OK ? expect_length(reader) : err;
}

int tnk__h2_reader_fields_end(tnk__h2_reader_t *reader) {
  int err = reader->err;

  if (err == TNK_OK && reader->state == TNK__HTTP_READ_HEAD)
    err = end_head(reader);
  return err == TNK_OK ? TNK_OK : fail(reader, err);
}

int tnk__h2_reader_body(tnk__h2_reader_t *reader, const uint8_t *data,
                        size_t n) {
  int err = reader->err;

  reader->n_body += n;
  if (err == TNK_OK && (reader->state != TNK__HTTP_READ_BODY ||
                        (reader->is_head_request && n > 0)))
    err = TNK_EPROTO;
  if (err == TNK_OK)
    err = reader->is_zstd ? tnk__response_unzstd(reader->response,
                                                 &reader->n_compressed, data, n)
                          : tnk__buf_append(&reader->response->body, data, n);
  return err == TNK_OK ? TNK_OK : fail(reader, err);
}

int tnk__h2_reader_is_short(const tnk__h2_reader_t *reader) {
  return reader->err == TNK_OK && reader->state == TNK__HTTP_READ_BODY &&
         reader->n_told != UINT64_MAX && reader->n_body < reader->n_told;
}

int tnk__h2_reader_end(tnk__h2_reader_t *reader) {
  if (reader->err != TNK_OK)
    return reader->err;
  if (reader->state != TNK__HTTP_READ_BODY)
    return fail(reader, TNK_EPROTO);
  /* A response may have a Content-Encoding and an empty body. No body is no
   * frame, which is valid. */
  if (reader->n_compressed > 0 &&
      tnk__unzstd_finish(&reader->response->unzstd) != TNK_OK)
    return fail(reader, TNK_EPROTO);
  reader->response->is_keep_alive = 1;
  reader->state = TNK__HTTP_READ_DONE;
  return TNK_OK;
}
