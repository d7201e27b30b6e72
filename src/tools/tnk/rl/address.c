/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/address.h"

#include <stdlib.h>
#include <string.h>

static int read_port(const char *text) {
  const size_t n = strspn(text, "0123456789");
  long port;

  if (n == 0 || n > 5 || (text[n] != '\0' && strcmp(text + n, "/") != 0))
    return -1;
  port = strtol(text, NULL, 10);
  return port <= 65535 ? (int)port : -1;
}

int rl_address_read(rl_address_t *out, const char *url) {
  static const char scheme[] = "http://";
  const char *host = url + sizeof(scheme) - 1;
  int is_bracketed;
  size_t n;

  if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
    return -1;
  is_bracketed = *host == '[';
  n = is_bracketed ? strcspn(++host, "]") : strcspn(host, ":");
  if (n == 0 || (is_bracketed && host[n] != ']') || n >= sizeof(out->host) ||
      strspn(host, "0123456789abcdefABCDEF:.") < n)
    return -1;
  memcpy(out->host, host, n);
  out->host[n] = '\0';
  host += n + (size_t)is_bracketed;
  if (*host != ':')
    return -1;
  out->port = read_port(host + 1);
  return out->port >= 0 ? 0 : -1;
}
