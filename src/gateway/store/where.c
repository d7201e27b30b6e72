/* SPDX-License-Identifier: MIT */
#include "gateway/store/where.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "tnk/error.h"

enum { PORT = 6379 };

static const char *const schemes[] = {"valkey://", "redis://"};
static const char *const secure[] = {"valkeys://", "rediss://"};

static const char *after(const char *text, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strncmp(text, names[i], strlen(names[i])) == 0)
      return text + strlen(names[i]);
  return NULL;
}

int tnk__gw_is_where(const char *text) {
  return after(text, schemes, 2) != NULL || after(text, secure, 2) != NULL;
}

int tnk__gw_is_secure_where(const char *text) {
  return after(text, secure, 2) != NULL;
}

static int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decode a part of the address. Returns 0, or -1 if it is malformed or has more
 * than `max` bytes. */
static int decode(const char *text, size_t n, char *out, size_t max) {
  size_t len = 0;

  for (size_t i = 0; i < n; i++) {
    char c = text[i];

    if (c == '%') {
      int high = n - i > 2 ? digit(text[i + 1]) : -1;
      int low = n - i > 2 ? digit(text[i + 2]) : -1;

      if (high < 0 || low < 0 || high + low == 0)
        return -1;
      c = (char)(high * 16 + low);
      i += 2;
    }
    if (len == max)
      return -1;
    out[len++] = c;
  }
  out[len] = '\0';
  return 0;
}

static int read_secrets(const char *text, size_t n, tnk__gw_where_t *out) {
  const char *colon = memchr(text, ':', n);
  size_t n_user = colon != NULL ? (size_t)(colon - text) : n;

  return colon != NULL &&
                 decode(text, n_user, out->user, TNK__GW_MAX_SECRET) == 0 &&
                 decode(colon + 1, n - n_user - 1, out->password,
                        TNK__GW_MAX_SECRET) == 0 &&
                 out->password[0] != '\0'
             ? 0
             : -1;
}

static int is_host(const char *text) {
  for (const char *c = text; *c != '\0'; c++)
    if (!(*c >= '0' && *c <= '9') && !(*c >= 'a' && *c <= 'z') &&
        !(*c >= 'A' && *c <= 'Z') && strchr(".-_:", *c) == NULL)
      return 0;
  return text[0] != '\0';
}

static int read_host(const char *text, size_t n, tnk__gw_where_t *out) {
  const char *end = text + n;
  const char *close = n > 0 && text[0] == '[' ? memchr(text, ']', n) : NULL;
  const char *host = close != NULL ? text + 1 : text;
  const char *colon = close != NULL ? close + 1 : memchr(text, ':', n);
  const char *host_end = close != NULL ? close : colon != NULL ? colon : end;
  char digits[8] = "";
  uint64_t port = PORT;

  if (colon != NULL && colon < end) {
    size_t n_port = (size_t)(end - colon) - 1;

    if (*colon != ':' || n_port == 0 || n_port >= sizeof(digits))
      return -1;
    memcpy(digits, colon + 1, n_port);
    if (tnk__text_u64(digits, 65535, &port) != TNK_OK || port == 0)
      return -1;
  }
  out->port = (uint16_t)port;
  if ((size_t)(host_end - host) > TNK__GW_MAX_HOST)
    return -1;
  memcpy(out->host, host, (size_t)(host_end - host));
  out->host[host_end - host] = '\0';
  return is_host(out->host) ? 0 : -1;
}

static int is_name(const char *text) {
  size_t n = strlen(text);

  for (size_t i = 0; i < n; i++)
    if (!(text[i] >= '0' && text[i] <= '9') &&
        !(text[i] >= 'a' && text[i] <= 'z') &&
        !(text[i] >= 'A' && text[i] <= 'Z') && strchr(".-_", text[i]) == NULL)
      return 0;
  return n > 0 && n <= TNK__GW_MAX_RECORD_NAME;
}

const char *tnk__gw_where_read(const char *text, tnk__gw_where_t *out) {
  const char *safe = after(text, secure, 2);
  const char *rest = safe != NULL ? safe : after(text, schemes, 2);
  const char *slash;
  const char *at = NULL;

  memset(out, 0, sizeof(*out));
  if (rest == NULL)
    return "the address of a shared record starts with valkey:// or redis://, "
           "with TLS with valkeys:// or rediss://";
  out->is_tls = safe != NULL;
  slash = strchr(rest, '/');
  if (slash == NULL || !is_name(slash + 1))
    return "the address of a shared record ends with a slash and a name of 1 "
           "to 128 letters, digits, '.', '-' and '_'";
  for (const char *c = rest; c < slash; c++)
    if (*c == '@')
      at = c;
  if (at != NULL && read_secrets(rest, (size_t)(at - rest), out) != 0)
    return "the password in the address of the shared record is malformed; "
           "reserved characters are percent-encoded";
  rest = at != NULL ? at + 1 : rest;
  if (read_host(rest, (size_t)(slash - rest), out) != 0)
    return "the host or the port in the address of the shared record is "
           "malformed";
  (void)snprintf(out->name, sizeof(out->name), "%s", slash + 1);
  (void)snprintf(out->shown, sizeof(out->shown), "valkey%s://%s%s%s:%d/%s",
                 out->is_tls ? "s" : "",
                 strchr(out->host, ':') != NULL ? "[" : "", out->host,
                 strchr(out->host, ':') != NULL ? "]" : "", out->port,
                 out->name);
  return NULL;
}
