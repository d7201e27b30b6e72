#include <string.h>

#include "local/http/conn.h"

/* The parts of a request, as handlers ask for them. */

static int hex(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

/* Percent-decode in place; 0 when malformed or when a NUL would come out. */
int local_url_decode(char *text) {
  char *to = text;

  for (const char *p = text; *p != '\0'; p++) {
    if (*p != '%') {
      *to++ = *p;
      continue;
    }
    if (hex(p[1]) < 0 || hex(p[2]) < 0 || (p[1] == '0' && p[2] == '0'))
      return 0;
    *to++ = (char)(hex(p[1]) * 16 + hex(p[2]));
    p += 2;
  }
  *to = '\0';
  return 1;
}

const char *local_req_header(const local_req_t *req, const char *name) {
  const char *at = (const char *)req->head.data;
  const char *end;

  if (req->head.len == 0)
    return NULL;
  end = at + req->head.len;
  while (at < end) {
    const char *value = at + strlen(at) + 1;

    if (value > end)
      break;
    if (strcmp(at, name) == 0)
      return value;
    at = value + strlen(value) + 1;
  }
  return NULL;
}

int local_req_query(const local_req_t *req, const char *name, char *out,
                    size_t size) {
  size_t n_name = strlen(name);
  const char *at = req->query;

  while (*at != '\0') {
    size_t n = strcspn(at, "&");

    if (n > n_name && at[n_name] == '=' && memcmp(at, name, n_name) == 0) {
      size_t n_value = n - n_name - 1;

      if (n_value >= size)
        return 0;
      memcpy(out, at + n_name + 1, n_value);
      out[n_value] = '\0';
      return local_url_decode(out);
    }
    at += n;
    if (*at == '&')
      at++;
  }
  return 0;
}
