/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/limits.h"
#include "lib/base/number.h"
#include "tnk/error.h"

/* A part of the text, not terminated. */
typedef struct {
  const char *at;
  size_t n;
} slice_t;

/* The parts of the text before normalization. */
typedef struct {
  slice_t host; /* without brackets */
  slice_t port; /* empty: no port */
  slice_t path;
  int is_tls;
  int is_ipv6;
} pieces_t;

/* Limits of DNS (RFC 1035). */
enum { MAX_HOST = 253, MAX_LABEL = 63 };

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

static int is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char upper(char c) {
  return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static int is_hex(char c) {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

/* Characters that RFC 3986 allows unencoded in a segment (pchar). */
static int is_segment_char(char c) {
  return is_digit(c) || is_alpha(c) ||
         (c != '\0' && strchr("-._~!$&'()*+,;=:@", c) != NULL);
}

static int starts_with(const char *text, const char *prefix) {
  for (; *prefix != '\0'; text++, prefix++)
    if (lower(*text) != *prefix)
      return 0;
  return 1;
}

/* ---- Cutting ---- */

static const char *cut_scheme(pieces_t *out, const char **text) {
  out->is_tls = starts_with(*text, "https://");
  if (!out->is_tls && !starts_with(*text, "http://"))
    return "the base URL does not begin with http:// or https://";
  *text += out->is_tls ? 8 : 7;
  return NULL;
}

static const char *cut_ipv6(pieces_t *out, slice_t *rest) {
  const char *end = memchr(rest->at, ']', rest->n);
  size_t n;

  if (end == NULL)
    return "the base URL's IPv6 address has no closing bracket";
  n = (size_t)(end - rest->at);
  out->host = (slice_t){rest->at + 1, n - 1};
  out->is_ipv6 = 1;
  rest->at += n + 1;
  rest->n -= n + 1;
  return NULL;
}

static const char *cut_host(pieces_t *out, slice_t authority) {
  slice_t rest = authority;
  const char *colon;
  const char *why;

  /* It would appear in logs and in error messages. */
  if (memchr(rest.at, '@', rest.n) != NULL)
    return "the base URL holds a user name or password";
  if (rest.n > 0 && rest.at[0] == '[') {
    why = cut_ipv6(out, &rest);
    if (why != NULL)
      return why;
  } else {
    colon = memchr(rest.at, ':', rest.n);
    out->host = rest;
    if (colon != NULL)
      out->host.n = (size_t)(colon - rest.at);
    rest.at += out->host.n;
    rest.n -= out->host.n;
  }
  if (rest.n > 0 && rest.at[0] != ':')
    return "the base URL has something between host and port";
  if (rest.n > 0)
    out->port = (slice_t){rest.at + 1, rest.n - 1};
  return NULL;
}

static const char *cut(pieces_t *out, const char *text) {
  const char *why = cut_scheme(out, &text);
  size_t n = strcspn(text, "/?#");

  if (why == NULL)
    why = cut_host(out, (slice_t){text, n});
  if (why != NULL)
    return why;
  text += n;
  out->path = (slice_t){text, strcspn(text, "?#")};
  if (text[out->path.n] == '?')
    return "the base URL has a query";
  if (text[out->path.n] == '#')
    return "the base URL has a fragment";
  /* Paths that are appended begin with a slash. */
  while (out->path.n > 0 && text[out->path.n - 1] == '/')
    out->path.n--;
  return NULL;
}

/* ---- Checking and normalizing ---- */

/* Underscores are allowed, because many internal names have them. */
static const char *check_name(slice_t host) {
  size_t label = 0;
  size_t i;

  if (host.n == 0)
    return "the base URL has no host";
  if (host.n > MAX_HOST)
    return "the base URL's host is too long";
  for (i = 0; i < host.n; i++) {
    char c = host.at[i];
    if (c == '.') {
      if (label == 0)
        return "the base URL's host has an empty part";
      label = 0;
    } else if (!is_digit(c) && !is_alpha(c) && c != '-' && c != '_') {
      return "the base URL's host holds a character that is not allowed";
    } else if (++label > MAX_LABEL) {
      return "a part of the base URL's host is too long";
    }
  }
  /* A final dot marks a complete name. */
  return NULL;
}

static const char *write_name(tnk__buf_t *out, slice_t host) {
  const char *why = check_name(host);
  size_t i;

  for (i = 0; why == NULL && i < host.n; i++)
    tnk__buf_byte(out, (uint8_t)lower(host.at[i]));
  return why;
}

/* An address has many spellings; the system's spelling is the normal form. */
static const char *write_ipv6(tnk__buf_t *out, slice_t host) {
  char text[INET6_ADDRSTRLEN];
  struct in6_addr address;

  if (host.n < sizeof(text)) {
    memcpy(text, host.at, host.n);
    text[host.n] = '\0';
    if (inet_pton(AF_INET6, text, &address) == 1 &&
        inet_ntop(AF_INET6, &address, text, sizeof(text)) != NULL) {
      tnk__buf_text(out, text);
      return NULL;
    }
  }
  return "the base URL's IPv6 address is none";
}

static const char *read_port(uint16_t *out, const pieces_t *pieces) {
  const char *at = pieces->port.at;
  uint64_t port;
  int err;

  if (pieces->port.n == 0) {
    *out = pieces->is_tls ? 443 : 80;
    return NULL;
  }
  err = tnk__read_u64(&at, at + pieces->port.n, UINT16_MAX, &port);
  if (err == TNK_ETOOBIG)
    return "the base URL's port is above 65535";
  if (err < 0 || at != pieces->port.at + pieces->port.n)
    return "the base URL's port is not a number";
  *out = (uint16_t)port;
  return port == 0 ? "the base URL's port is 0" : NULL;
}

/* Returns whether a segment is "." or "..", in any encoding. */
static int is_dots(slice_t segment) {
  size_t n_dots = 0;
  size_t i = 0;

  while (i < segment.n) {
    if (segment.at[i] == '.')
      i++;
    else if (i + 3 <= segment.n && segment.at[i] == '%' &&
             segment.at[i + 1] == '2' && lower(segment.at[i + 2]) == 'e')
      i += 3;
    else
      return 0;
    n_dots++;
  }
  return n_dots == 1 || n_dots == 2;
}

static const char *check_dots(slice_t path) {
  size_t i = 0;

  while (i < path.n) {
    slice_t segment = {path.at + i + 1, 0};
    while (i + 1 + segment.n < path.n && segment.at[segment.n] != '/')
      segment.n++;
    if (is_dots(segment))
      return "the base URL's path holds . or ..";
    i += 1 + segment.n;
  }
  return NULL;
}

static const char *write_path(tnk__buf_t *out, slice_t path) {
  size_t i;

  for (i = 0; i < path.n; i++) {
    char c = path.at[i];
    if (c == '%') {
      if (i + 2 >= path.n || !is_hex(path.at[i + 1]) || !is_hex(path.at[i + 2]))
        return "the base URL's path holds a % without two digits";
      tnk__buf_byte(out, '%');
      tnk__buf_byte(out, (uint8_t)upper(path.at[++i]));
      tnk__buf_byte(out, (uint8_t)upper(path.at[++i]));
    } else if (c == '/' || is_segment_char(c)) {
      tnk__buf_byte(out, (uint8_t)c);
    } else {
      return "the base URL's path holds a character that must be encoded";
    }
  }
  return check_dots(path);
}

/* ---- Putting together ---- */

/* Offsets of the parts in the normalized text, which may move as it grows. */
typedef struct {
  size_t host;
  size_t host_end;
  size_t authority;
  size_t path;
} marks_t;

static const char *write_all(tnk__buf_t *text, marks_t *marks, tnk__url_t *url,
                             const pieces_t *pieces) {
  const char *why = read_port(&url->port, pieces);

  if (why != NULL)
    return why;
  url->is_tls = pieces->is_tls;
  tnk__buf_text(text, url->is_tls ? "https://" : "http://");
  marks->authority = text->len;
  if (pieces->is_ipv6)
    tnk__buf_byte(text, '[');
  marks->host = text->len;
  why = pieces->is_ipv6 ? write_ipv6(text, pieces->host)
                        : write_name(text, pieces->host);
  marks->host_end = text->len;
  if (pieces->is_ipv6)
    tnk__buf_byte(text, ']');
  /* Omit the default port, so that equal URLs are equal strings and Host has
   * the usual form. */
  if (url->port != (url->is_tls ? 443 : 80))
    tnk__buf_printf(text, ":%u", (unsigned)url->port);
  marks->path = text->len;
  return why != NULL ? why : write_path(text, pieces->path);
}

static int keep(tnk__url_t *url, tnk__arena_t *arena, const tnk__buf_t *text,
                const marks_t *marks) {
  const char *data = (const char *)text->data;

  url->host = tnk__arena_strndup(arena, data + marks->host,
                                 marks->host_end - marks->host);
  url->authority = tnk__arena_strndup(arena, data + marks->authority,
                                      marks->path - marks->authority);
  url->text = tnk__arena_strndup(arena, data, text->len);
  if (url->host == NULL || url->authority == NULL || url->text == NULL)
    return TNK_ENOMEM;
  url->path = url->text + marks->path;
  return TNK_OK;
}

int tnk__url_parse(tnk__url_t *out, tnk__arena_t *arena, const char *text,
                   const char **why) {
  pieces_t pieces = {0};
  marks_t marks = {0};
  tnk__url_t url = {0};
  const char *wrong;
  tnk__buf_t buf;
  int err;

  /* The output is at most a few bytes longer than the input. */
  tnk__buf_init(&buf, arena->alloc, 2 * TNK__MAX_URL);
  wrong = strlen(text) > TNK__MAX_URL ? "the base URL is too long"
                                      : cut(&pieces, text);
  if (wrong == NULL)
    wrong = write_all(&buf, &marks, &url, &pieces);
  err = wrong != NULL ? TNK_EINVAL : buf.err;
  if (err == TNK_OK)
    err = keep(&url, arena, &buf, &marks);
  tnk__buf_deinit(&buf);
  if (err == TNK_OK)
    *out = url;
  else if (err == TNK_EINVAL && why != NULL)
    *why = wrong;
  return err;
}

/* ---- Segments ---- */

static void put_escape(tnk__buf_t *out, unsigned char c) {
  static const char digits[] = "0123456789ABCDEF";

  tnk__buf_byte(out, '%');
  tnk__buf_byte(out, (uint8_t)digits[c >> 4]);
  tnk__buf_byte(out, (uint8_t)digits[c & 15]);
}

static void put_segment(tnk__buf_t *out, slice_t segment) {
  size_t i;

  if (out->err != TNK_OK)
    return;
  /* Check only bare dots, because the percent sign of encoded ones is encoded
   * itself. */
  if (segment.n == 0 || (segment.n <= 2 && is_dots(segment))) {
    out->err = TNK_EINVAL;
    return;
  }
  for (i = 0; i < segment.n; i++) {
    unsigned char c = (unsigned char)segment.at[i];
    if (is_segment_char((char)c))
      tnk__buf_byte(out, c);
    else
      put_escape(out, c);
  }
}

void tnk__url_put_segment(tnk__buf_t *out, const char *segment) {
  put_segment(out, (slice_t){segment, strlen(segment)});
}

void tnk__url_put_segment_n(tnk__buf_t *out, const char *segment, size_t n) {
  put_segment(out, (slice_t){segment, n});
}

void tnk__url_put_segments(tnk__buf_t *out, const char *segments) {
  for (;;) {
    size_t n = strcspn(segments, "/");
    put_segment(out, (slice_t){segments, n});
    if (segments[n] == '\0')
      return;
    tnk__buf_byte(out, '/');
    segments += n + 1;
  }
}

void tnk__url_put_query(tnk__buf_t *out, const char *value) {
  for (; *value != '\0'; value++) {
    const unsigned char c = (unsigned char)*value;

    if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
        c == '-' || c == '_' || c == '.' || c == '~')
      tnk__buf_byte(out, c);
    else
      put_escape(out, c);
  }
}

int tnk__url_is_loopback(const tnk__url_t *url) {
  const char *host = url->host;

  return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
         (strncmp(host, "127.", 4) == 0 &&
          strspn(host, "0123456789.") == strlen(host));
}
