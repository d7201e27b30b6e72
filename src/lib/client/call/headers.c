/* SPDX-License-Identifier: MIT */
#include "lib/client/call/headers.h"

#include <string.h>
#include <strings.h>

#include "lib/wire/format/number_text.h"

/* The longest value that is formatted here. */
enum { MAX_VALUE = 48 };

void tnk__headers_init(tnk__headers_t *headers, const tnk__config_t *config) {
  headers->config = config;
  headers->n = 0;
  headers->n_text = 0;
}

/* Returns whether the caller's options set that header. */
static int is_given(const tnk__config_t *config, const char *name) {
  for (size_t i = 0; i < config->n_headers; i++)
    if (strcasecmp(config->headers[i].name, name) == 0)
      return 1;
  return 0;
}

void tnk__headers_add(tnk__headers_t *headers, const char *name,
                      const char *value) {
  if (is_given(headers->config, name))
    return;
  if (headers->n < TNK__MAX_HEADERS)
    headers->pairs[headers->n++] = (tnk_pair_t){name, value};
}

/* Begin a line with its name. Returns the position of the value, with room for
 * `room` bytes. Returns NULL, and the header is omitted, if the caller's
 * options have it or the buffer is full. */
static char *begin_line(tnk__headers_t *headers, const char *name,
                        size_t n_name, size_t room) {
  char *at = headers->text + headers->n_text;

  if (TNK__MAX_HEADER_TEXT - headers->n_text < n_name + 4 + room ||
      is_given(headers->config, name))
    return NULL;
  memcpy(at, name, n_name);
  memcpy(at + n_name, ": ", 2);
  return at + n_name + 2;
}

static void end_line(tnk__headers_t *headers, char *end) {
  memcpy(end, "\r\n", 2);
  headers->n_text = (size_t)(end + 2 - headers->text);
}

void tnk__headers_add_text(tnk__headers_t *headers, const char *name,
                           const char *value) {
  const size_t n = strlen(value);
  char *at = begin_line(headers, name, strlen(name), n);

  if (at == NULL) {
    tnk__headers_add(headers, name, value);
    return;
  }
  memcpy(at, value, n);
  end_line(headers, at + n);
}

void tnk__headers_add_uint(tnk__headers_t *headers, const char *name,
                           uint64_t value) {
  char *at = begin_line(headers, name, strlen(name), MAX_VALUE);

  if (at != NULL)
    end_line(headers, at + tnk__uint_text(at, value));
}

void tnk__headers_add_seconds(tnk__headers_t *headers, const char *name,
                              uint64_t ms) {
  char *at = begin_line(headers, name, strlen(name), MAX_VALUE);
  unsigned rest = (unsigned)(ms % 1000);

  if (at == NULL)
    return;
  at += tnk__uint_text(at, ms / 1000);
  *at++ = '.';
  *at++ = (char)('0' + rest / 100);
  *at++ = (char)('0' + rest / 10 % 10);
  *at++ = (char)('0' + rest % 10);
  end_line(headers, at);
}

static size_t put_hex(char *out, uint64_t value, size_t n_digits) {
  size_t i;

  for (i = n_digits; i-- > 0; value >>= 4)
    out[i] = "0123456789abcdef"[value & 15];
  return n_digits;
}

/* Four groups, then the fifth. The third begins with the version, 4, and the
 * fourth with the variant. */
void tnk__headers_add_uuid(tnk__headers_t *headers, const char *name,
                           const uint64_t bits[2]) {
  char *text = begin_line(headers, name, strlen(name), MAX_VALUE);
  size_t n = 4;

  if (text == NULL)
    return;
  memcpy(text, "tnk-", n);
  n += put_hex(text + n, bits[0] >> 32, 8);
  text[n++] = '-';
  n += put_hex(text + n, bits[0] >> 16, 4);
  text[n++] = '-';
  n += put_hex(text + n, 0x4000 | (bits[0] & 0xfff), 4);
  text[n++] = '-';
  n += put_hex(text + n, 0x8000 | (bits[1] >> 48 & 0x3fff), 4);
  text[n++] = '-';
  n += put_hex(text + n, bits[1], 12);
  end_line(headers, text + n);
}

void tnk__headers_add_span(tnk__headers_t *headers, uint64_t span) {
  static const char name[] = "traceparent";
  const tnk__config_t *config = headers->config;
  char *at;

  if (config->trace.trace_id[0] == '\0')
    return;
  at = begin_line(headers, name, sizeof(name) - 1, TNK__TRACEPARENT);
  if (at == NULL)
    return;
  tnk__traceparent_write(&config->trace, span, at);
  end_line(headers, at + TNK__TRACEPARENT);
}
