#include "codec/http_write.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tnk/error.h"

/* Room for the text that does not depend on the caller: version, the names of
 * our own headers, numbers. */
enum { FIXED_SIZE = 160 };

/* A second one of these, or one that contradicts ours, would let two readers
 * of the same bytes see two different requests. */
static const char *const reserved[] = {"accept-encoding",
                                       "connection",
                                       "content-length",
                                       "expect",
                                       "host",
                                       "keep-alive",
                                       "te",
                                       "trailer",
                                       "proxy-connection",
                                       "upgrade",
                                       "transfer-encoding"};

/* Letters, digits and !#$%&'*+-.^_`|~ as one bit each, by code. */
static const uint32_t token_chars[4] = {0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff};

static int is_token_char(unsigned char c) {
  return c < 0x80 && (token_chars[c / 32] >> (c % 32) & 1) != 0;
}

int tnk__http_is_token(const char *text) {
  const char *p = text;

  while (is_token_char((unsigned char)*p))
    p++;
  return p != text && *p == '\0';
}

int tnk__http_is_field_value(const char *text) {
  for (const char *p = text; *p != '\0'; p++) {
    unsigned char c = (unsigned char)*p;
    if ((c < ' ' && c != '\t') || c == 0x7f)
      return 0;
  }
  return 1;
}

static int lower(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

int tnk__http_compare_names(const char *a, const char *b) {
  while (*a != '\0' && lower(*a) == lower(*b)) {
    a++;
    b++;
  }
  return lower(*a) - lower(*b);
}

int tnk__http_is_reserved(const char *name) {
  for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
    if (lower(*name) == reserved[i][0] &&
        tnk__http_compare_names(name, reserved[i]) == 0)
      return 1;
  return 0;
}

/* Visible characters only, so that neither a line nor a word can end early. */
static int is_visible(const char *text) {
  const char *p = text;

  while ((unsigned char)*p > ' ' && *p != 0x7f)
    p++;
  return p != text && *p == '\0';
}

static int is_host(const char *host) {
  return is_visible(host) && strpbrk(host, "/?#@[]\\") == NULL;
}

/* Bytes that the list takes, or 0 with *ok cleared. */
static size_t check_headers(const tnk_pair_t *headers, size_t n, int *ok) {
  size_t size = 0;

  for (size_t i = 0; i < n; i++) {
    if (headers[i].name == NULL || headers[i].value == NULL ||
        !tnk__http_is_token(headers[i].name) ||
        !tnk__http_is_field_value(headers[i].value) ||
        tnk__http_is_reserved(headers[i].name)) {
      *ok = 0;
      return 0;
    }
    size += strlen(headers[i].name) + strlen(headers[i].value) + 4;
  }
  return size;
}

static void write_headers(tnk__buf_t *out, const tnk_pair_t *headers,
                          size_t n) {
  for (size_t i = 0; i < n; i++) {
    tnk__buf_text(out, headers[i].name);
    tnk__buf_text(out, ": ");
    tnk__buf_text(out, headers[i].value);
    tnk__buf_text(out, "\r\n");
  }
}

static void write_host(tnk__buf_t *out, const tnk__http_head_t *head) {
  const int is_v6 = strchr(head->host, ':') != NULL;

  tnk__buf_text(out, is_v6 ? "Host: [" : "Host: ");
  tnk__buf_text(out, head->host);
  tnk__buf_text(out, is_v6 ? "]" : "");
  if (head->port != head->default_port)
    tnk__buf_printf(out, ":%u", (unsigned)head->port);
  tnk__buf_text(out, "\r\n");
}

/* A method whose meaning expects a body says so even when it is empty. */
static int needs_length(const tnk__http_head_t *head) {
  return head->body_len > 0 || (strcmp(head->method, "GET") != 0 &&
                                strcmp(head->method, "HEAD") != 0 &&
                                strcmp(head->method, "DELETE") != 0);
}

int tnk__http_write_head(tnk__buf_t *out, const tnk__http_head_t *head) {
  int ok = tnk__http_is_token(head->method) && is_visible(head->target) &&
           is_host(head->host);
  size_t size = FIXED_SIZE;

  if (ok)
    size += strlen(head->method) + strlen(head->target) + strlen(head->host);
  size += check_headers(head->headers, head->n_headers, &ok);
  size += check_headers(head->more_headers, head->n_more_headers, &ok);
  if (!ok)
    return TNK_EINVAL;
  if (tnk__buf_reserve(out, size) == NULL)
    return out->err;
  tnk__buf_text(out, head->method);
  tnk__buf_byte(out, ' ');
  tnk__buf_text(out, head->target);
  tnk__buf_text(out, " HTTP/1.1\r\n");
  write_host(out, head);
  write_headers(out, head->headers, head->n_headers);
  write_headers(out, head->more_headers, head->n_more_headers);
  tnk__buf_text(out, head->is_plain ? "Accept-Encoding: identity\r\n"
                                    : "Accept-Encoding: zstd\r\n");
  tnk__buf_text(out, "Connection: keep-alive\r\n");
  if (needs_length(head))
    tnk__buf_printf(out, "Content-Length: %zu\r\n", head->body_len);
  return tnk__buf_text(out, "\r\n");
}
