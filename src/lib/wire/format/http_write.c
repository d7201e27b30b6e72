/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/http_write.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/number_text.h"
#include "tnk/error.h"

/* Size of the text that does not depend on the caller: version, names of our
 * own headers, numbers. */
enum { FIXED_SIZE = 160 };

/* A duplicate of these headers, or one that contradicts ours, would let two
 * parsers of the same bytes see two different requests. */
static const struct {
  const char *name;
  size_t len;
} reserved[] = {{"te", 2},
                {"host", 4},
                {"expect", 6},
                {"trailer", 7},
                {"upgrade", 7},
                {"connection", 10},
                {"keep-alive", 10},
                {"content-length", 14},
                {"accept-encoding", 15},
                {"proxy-connection", 16},
                {"transfer-encoding", 17}};

/* A bit for each length in the table. */
enum {
  RESERVED_LENGTHS = 1 << 2 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 14 |
                     1 << 15 | 1 << 16 | 1 << 17
};

/* The characters of names. A table, because each header of each request is
 * checked. */
static const uint8_t token_chars[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1, ['&'] = 1, ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1, ['^'] = 1, ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0'] = 1, ['1'] = 1, ['2'] = 1,
    ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1, ['8'] = 1,
    ['9'] = 1, ['A'] = 1, ['B'] = 1, ['C'] = 1, ['D'] = 1, ['E'] = 1,
    ['F'] = 1, ['G'] = 1, ['H'] = 1, ['I'] = 1, ['J'] = 1, ['K'] = 1,
    ['L'] = 1, ['M'] = 1, ['N'] = 1, ['O'] = 1, ['P'] = 1, ['Q'] = 1,
    ['R'] = 1, ['S'] = 1, ['T'] = 1, ['U'] = 1, ['V'] = 1, ['W'] = 1,
    ['X'] = 1, ['Y'] = 1, ['Z'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1,
    ['d'] = 1, ['e'] = 1, ['f'] = 1, ['g'] = 1, ['h'] = 1, ['i'] = 1,
    ['j'] = 1, ['k'] = 1, ['l'] = 1, ['m'] = 1, ['n'] = 1, ['o'] = 1,
    ['p'] = 1, ['q'] = 1, ['r'] = 1, ['s'] = 1, ['t'] = 1, ['u'] = 1,
    ['v'] = 1, ['w'] = 1, ['x'] = 1, ['y'] = 1, ['z'] = 1};

static int is_token_char(unsigned char c) {
  return token_chars[c];
}

/* token_len() returns the length of a name, or 0 if it is invalid. value_len()
 * below returns the length of a value, or SIZE_MAX if it is invalid. */
static size_t token_len(const char *text) {
  const char *p = text;

  while (is_token_char((unsigned char)*p))
    p++;
  return *p == '\0' ? (size_t)(p - text) : 0;
}

/* Nonzero if one of eight bytes is below a blank or equals 0x7f. A borrow can
 * mark a wrong byte only after a byte that is really one of these. */
static inline uint64_t controls(const char *text) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t x;
  uint64_t del;

  memcpy(&x, text, sizeof(x));
  del = x ^ ones * 0x7f;
  return (((x - ones * ' ') & ~x) | ((del - ones) & ~del)) & ones * 0x80;
}

/* Returns whether there is certainly no control character. The last block of
 * eight may overlap the one before it. */
static int is_plain(const char *text, size_t n) {
  uint64_t found = 0;

  if (n < 8)
    return 0;
  for (size_t i = 0; i + 8 < n; i += 8)
    found |= controls(text + i);
  return (found | controls(text + n - 8)) == 0;
}

static size_t value_len(const char *text) {
  const size_t n = strlen(text);

  if (is_plain(text, n))
    return n;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if ((c < ' ' && c != '\t') || c == 0x7f)
      return SIZE_MAX;
  }
  return n;
}

int tnk__http_is_token(const char *text) {
  return token_len(text) > 0;
}

int tnk__http_is_field_value(const char *text) {
  return value_len(text) != SIZE_MAX;
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

static int is_reserved(const char *name, size_t len) {
  if (len > 17 || (RESERVED_LENGTHS >> len & 1) == 0)
    return 0;
  for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
    if (len == reserved[i].len &&
        tnk__http_compare_names(name, reserved[i].name) == 0)
      return 1;
  return 0;
}

int tnk__http_is_reserved(const char *name) {
  return is_reserved(name, strlen(name));
}

/* Only visible characters are allowed, so that neither a line nor a word can
 * end early. */
static int is_visible(const char *text) {
  const char *p = text;

  while ((unsigned char)*p > ' ' && *p != 0x7f)
    p++;
  return p != text && *p == '\0';
}

static int is_host(const char *host) {
  return is_visible(host) && strpbrk(host, "/?#@[]\\") == NULL;
}

/* The size of the list in bytes. An invalid header clears *ok and returns 0. */
static size_t check_headers(const tnk_pair_t *headers, size_t n, int *ok) {
  size_t size = 0;

  for (size_t i = 0; i < n; i++) {
    size_t name = headers[i].name != NULL ? token_len(headers[i].name) : 0;
    size_t value =
        headers[i].value != NULL ? value_len(headers[i].value) : SIZE_MAX;
    if (name == 0 || value == SIZE_MAX || is_reserved(headers[i].name, name)) {
      *ok = 0;
      return 0;
    }
    size += name + value + 4;
  }
  return size;
}

/* These functions write to reserved memory and return the next position. */
static char *put(char *at, const char *text) {
  size_t n = strlen(text);

  memcpy(at, text, n);
  return at + n;
}

static char *put_headers(char *at, const tnk_pair_t *headers, size_t n) {
  for (size_t i = 0; i < n; i++) {
    at = put(at, headers[i].name);
    at = put(at, ": ");
    at = put(at, headers[i].value);
    at = put(at, "\r\n");
  }
  return at;
}

/* The default port is omitted; 0 means that there is no default. */
static char *put_authority(char *at, const tnk__http_head_t *head,
                           uint16_t default_port) {
  const int is_v6 = strchr(head->host, ':') != NULL;

  if (is_v6)
    *at++ = '[';
  at = put(at, head->host);
  if (is_v6)
    *at++ = ']';
  if (head->port != default_port) {
    *at++ = ':';
    at += tnk__uint_text(at, head->port);
  }
  return at;
}

static char *put_host(char *at, const tnk__http_head_t *head,
                      uint16_t default_port) {
  at = put(at, "Host: ");
  at = put_authority(at, head, default_port);
  return put(at, "\r\n");
}

/* A method that usually has a body sends a length even if the body is empty. */
static int needs_length(const tnk__http_head_t *head) {
  return head->body_len > 0 || (strcmp(head->method, "GET") != 0 &&
                                strcmp(head->method, "HEAD") != 0 &&
                                strcmp(head->method, "DELETE") != 0);
}

static char *put_head(char *at, const tnk__http_head_t *head) {
  at = put(at, head->method);
  *at++ = ' ';
  if (head->is_absolute) {
    at = put(at, "http://");
    at = put_authority(at, head, head->default_port);
  }
  at = put(at, head->target);
  at = put(at, " HTTP/1.1\r\n");
  at = put_host(at, head, head->default_port);
  at = put_headers(at, head->proxy_headers, head->n_proxy_headers);
  at = put_headers(at, head->headers, head->n_headers);
  at = put_headers(at, head->more_headers, head->n_more_headers);
  if (head->lines != NULL) {
    memcpy(at, head->lines, head->lines_len);
    at += head->lines_len;
  }
  at = put(at, head->is_plain ? "Accept-Encoding: identity\r\n"
                              : "Accept-Encoding: zstd\r\n");
  at = put(at, "Connection: keep-alive\r\n");
  if (needs_length(head)) {
    at = put(at, "Content-Length: ");
    at += tnk__uint_text(at, head->body_len);
    at = put(at, "\r\n");
  }
  return put(at, "\r\n");
}

/* `size` must suffice for the output of `put_it`, so that the buffer grows
 * once. */
static int write_all(tnk__buf_t *out, const tnk__http_head_t *head, size_t size,
                     char *(*put_it)(char *at, const tnk__http_head_t *head)) {
  char *at = (char *)tnk__buf_reserve(out, size);

  if (at == NULL)
    return out->err;
  out->len += (size_t)(put_it(at, head) - at);
  return TNK_OK;
}

int tnk__http_write_head(tnk__buf_t *out, const tnk__http_head_t *head) {
  int ok = tnk__http_is_token(head->method) && is_visible(head->target) &&
           is_host(head->host);
  size_t size = FIXED_SIZE + (head->lines != NULL ? head->lines_len : 0);

  if (ok)
    size +=
        strlen(head->method) + strlen(head->target) + 2 * strlen(head->host);
  size += check_headers(head->headers, head->n_headers, &ok);
  size += check_headers(head->more_headers, head->n_more_headers, &ok);
  size += check_headers(head->proxy_headers, head->n_proxy_headers, &ok);
  return ok ? write_all(out, head, size, put_head) : TNK_EINVAL;
}

static char *put_connect(char *at, const tnk__http_head_t *head) {
  at = put(at, "CONNECT ");
  at = put_authority(at, head, 0);
  at = put(at, " HTTP/1.1\r\n");
  at = put_host(at, head, 0);
  at = put_headers(at, head->proxy_headers, head->n_proxy_headers);
  return put(at, "\r\n");
}

int tnk__http_write_connect(tnk__buf_t *out, const tnk__http_head_t *head) {
  int ok = is_host(head->host);
  size_t size = FIXED_SIZE;

  if (ok)
    size += 2 * strlen(head->host);
  size += check_headers(head->proxy_headers, head->n_proxy_headers, &ok);
  return ok ? write_all(out, head, size, put_connect) : TNK_EINVAL;
}

char *tnk__http_bearer(const tnk_allocator_t *alloc, const char *token) {
  static const char scheme[] = "Bearer ";
  const size_t n = strlen(token) + 1;
  char *bearer = tnk__malloc(alloc, strlen(scheme) + n);

  if (bearer == NULL)
    return NULL;
  memcpy(bearer, scheme, strlen(scheme));
  memcpy(bearer + strlen(scheme), token, n);
  return bearer;
}
