#include "task/call/headers.h"

#include <string.h>
#include <strings.h>

#include "codec/format/number_text.h"

/* The longest value that is written here, with its end. */
enum { MAX_VALUE = 48 };

void tnk__headers_init(tnk__headers_t *headers, const tnk__config_t *config) {
  headers->config = config;
  headers->n = 0;
  headers->n_text = 0;
  headers->line = NULL;
  headers->line_len = 0;
}

/* Whether the caller's options have that one. */
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

/* Room for one value, or NULL: then the header is left out. */
static char *begin_text(tnk__headers_t *headers) {
  return TNK__MAX_HEADER_TEXT - headers->n_text < MAX_VALUE
             ? NULL
             : headers->text + headers->n_text;
}

static void end_text(tnk__headers_t *headers, const char *name, char *value,
                     size_t n) {
  value[n] = '\0';
  headers->n_text += n + 1;
  tnk__headers_add(headers, name, value);
}

void tnk__headers_add_uint(tnk__headers_t *headers, const char *name,
                           uint64_t value) {
  char *text = begin_text(headers);

  if (text != NULL)
    end_text(headers, name, text, tnk__uint_text(text, value));
}

void tnk__headers_add_seconds(tnk__headers_t *headers, const char *name,
                              uint64_t ms) {
  char *text = begin_text(headers);
  unsigned rest = (unsigned)(ms % 1000);
  size_t n;

  if (text == NULL)
    return;
  n = tnk__uint_text(text, ms / 1000);
  text[n++] = '.';
  text[n++] = (char)('0' + rest / 100);
  text[n++] = (char)('0' + rest / 10 % 10);
  text[n++] = (char)('0' + rest % 10);
  end_text(headers, name, text, n);
}

static size_t put_hex(char *out, uint64_t value, size_t n_digits) {
  size_t i;

  for (i = n_digits; i-- > 0; value >>= 4)
    out[i] = "0123456789abcdef"[value & 15];
  return n_digits;
}

/* Four groups, of which the third begins with the version, 4, and the fourth
 * with the variant, then the fifth. */
void tnk__headers_add_uuid(tnk__headers_t *headers, const char *name,
                           const uint64_t bits[2]) {
  char *text = begin_text(headers);
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
  end_text(headers, name, text, n);
}

/* In one piece, as it holds nothing that would have to be checked. */
void tnk__headers_add_span(tnk__headers_t *headers, uint64_t span) {
  static const char name[] = "traceparent: ";
  enum { NAME = sizeof(name) - 1, LINE = NAME + TNK__TRACEPARENT + 2 };
  const tnk__config_t *config = headers->config;
  char *text = headers->text + headers->n_text;

  if (config->trace.trace_id[0] == '\0' || is_given(config, "traceparent") ||
      TNK__MAX_HEADER_TEXT - headers->n_text < LINE)
    return;
  memcpy(text, name, NAME);
  tnk__traceparent_write(&config->trace, span, text + NAME);
  memcpy(text + NAME + TNK__TRACEPARENT, "\r\n", 2);
  headers->n_text += LINE;
  headers->line = text;
  headers->line_len = LINE;
}
