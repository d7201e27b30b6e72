#include "codec/format/http_write.h"

#include <stdint.h>
#include <string.h>

#include "codec/format/number_text.h"
#include "tnk/error.h"

/* Room for the text that does not depend on the caller: version, the names of
 * our own headers, numbers. */
enum { FIXED_SIZE = 160 };

/* A second one of these, or one that contradicts ours, would let two readers
 * of the same bytes see two different requests. */
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

/* The characters of names, each at its own code; the others are blanks. */
static const char token_chars[129] = "                "
                                     "                "
                                     " ! #$%&'  *+ -. "
                                     "0123456789      "
                                     " ABCDEFGHIJKLMNO"
                                     "PQRSTUVWXYZ   ^_"
                                     "`abcdefghijklmno"
                                     "pqrstuvwxyz | ~ ";

static int is_token_char(unsigned char c) {
  return c < 0x80 && token_chars[c] != ' ';
}

/* The length of a name or a value, 0 for what cannot be a name, and SIZE_MAX
 * for what cannot be a value. */
static size_t token_len(const char *text) {
  const char *p = text;

  while (is_token_char((unsigned char)*p))
    p++;
  return *p == '\0' ? (size_t)(p - text) : 0;
}

/* Whether one of eight bytes is below a blank or 0x7f. Only behind such a byte
 * can a borrow tell of one that is not. */
static int has_control(const char *text) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t x;
  uint64_t del;

  memcpy(&x, text, sizeof(x));
  del = x ^ ones * 0x7f;
  return ((((x - ones * ' ') & ~x) | ((del - ones) & ~del)) & ones * 0x80) != 0;
}

static size_t value_len(const char *text) {
  const size_t n = strlen(text);
  size_t i = 0;

  while (n - i >= 8 && !has_control(text + i))
    i += 8;
  for (; i < n; i++) {
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
  for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
    if (len == reserved[i].len &&
        tnk__http_compare_names(name, reserved[i].name) == 0)
      return 1;
  return 0;
}

int tnk__http_is_reserved(const char *name) {
  return is_reserved(name, strlen(name));
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

/* These write where room has been made for all of it, and return where the
 * next byte goes. */
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

/* The default port is left out; 0 is nobody's. */
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

/* A method whose meaning expects a body says so even when it is empty. */
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

/* `size` is enough for what `put_it` writes, so that the buffer grows once. */
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
  size_t size = FIXED_SIZE;

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
