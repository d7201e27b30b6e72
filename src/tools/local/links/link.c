#include "tools/local/links/link.h"

#include <inttypes.h>
#include <mbedtls/md.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"

/* The path after LOCAL_FILES_PATH has the maximum length of a place and a file
 * name. */
enum { MAX_FILE_PATH = 600, MAX_HOST = 255 };

int local_links_init(local_server_t *server) {
  return uv_random(NULL, NULL, server->link_key, sizeof(server->link_key), 0,
                   NULL);
}

/* Sign a path and a time. Returns 0 on failure. */
static int sign(const local_server_t *server, const char *path,
                int64_t expires_s, char out[LOCAL_SIGNATURE + 1]) {
  char text[MAX_FILE_PATH + 32];
  unsigned char mac[LOCAL_SIGNATURE / 2];
  int n = snprintf(text, sizeof(text), "%s\n%" PRId64, path, expires_s);

  if (n < 0 || (size_t)n >= sizeof(text) ||
      mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256),
                      server->link_key, sizeof(server->link_key),
                      (const unsigned char *)text, (size_t)n, mac) != 0)
    return 0;
  for (size_t i = 0; i < sizeof(mac); i++)
    snprintf(out + 2 * i, 3, "%02x", mac[i]);
  return 1;
}

/* ---- The server's address ---- */

static int is_host(const char *host) {
  size_t n = strlen(host);

  for (size_t i = 0; i < n; i++) {
    char c = host[i];

    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          (c >= '0' && c <= '9') || strchr(".:-_[]", c) != NULL))
      return 0;
  }
  return n >= 1 && n <= MAX_HOST;
}

/* The client can reach the host that it has used for this request. */
static int write_origin(const local_server_t *server, const tnk__srv_req_t *req,
                        char *out, size_t size) {
  const char *host = tnk__srv_req_header(req, "host");
  const char *own = server->options.host;
  const char *scheme = server->options.tls_cert != NULL ? "https" : "http";

  if (host != NULL && is_host(host))
    return snprintf(out, size, "%s://%s", scheme, host);
  return snprintf(out, size,
                  strchr(own, ':') != NULL ? "%s://[%s]:%d" : "%s://%s:%d",
                  scheme, own, server->http.port);
}

/* ---- Writing and checking ---- */

int64_t local_link_end(const local_server_t *server) {
  return local_now_ms(server) / 1000 + (int64_t)server->options.link_life_s;
}

int local_link_sign(const local_server_t *server, const tnk__srv_req_t *req,
                    const char *path, int64_t expires_s, char out[LOCAL_LINK]) {
  char signature[LOCAL_SIGNATURE + 1];
  int at;
  int n;

  if (!sign(server, path, expires_s, signature))
    return 0;
  at = write_origin(server, req, out, LOCAL_LINK);
  if (at < 0 || at >= LOCAL_LINK)
    return 0;
  n = snprintf(out + at, LOCAL_LINK - (size_t)at,
               "%s?expires=%" PRId64 "&signature=%s", path, expires_s,
               signature);
  return n >= 0 && n < LOCAL_LINK - at;
}

int local_link_write(const local_server_t *server, const tnk__srv_req_t *req,
                     const local_place_t *place, const char *file,
                     int64_t expires_s, char out[LOCAL_LINK]) {
  char path[MAX_FILE_PATH];
  int n = snprintf(path, sizeof(path), LOCAL_FILES_PATH "%s/%s/%s/%s",
                   place->run, local_kind_name(place->kind), place->name, file);

  return n >= 0 && (size_t)n < sizeof(path) &&
         local_link_sign(server, req, path, expires_s, out);
}

/* Takes the same time for every wrong signature. */
static int same_signature(const char *a, const char *b) {
  unsigned char diff = 0;

  if (strlen(a) != LOCAL_SIGNATURE)
    return 0;
  for (size_t i = 0; i < LOCAL_SIGNATURE; i++)
    diff |= (unsigned char)(a[i] ^ b[i]);
  return diff == 0;
}

local_link_state_t local_link_check(const local_server_t *server,
                                    const tnk__srv_req_t *req) {
  char expires[24];
  char given[LOCAL_SIGNATURE + 2];
  char right[LOCAL_SIGNATURE + 1];
  uint64_t expires_s;

  if (!tnk__srv_req_query(req, "expires", expires, sizeof(expires)) ||
      !tnk__srv_req_query(req, "signature", given, sizeof(given)) ||
      tnk__text_u64(expires, INT64_MAX / 1000, &expires_s) != TNK_OK ||
      strlen(req->path) >= MAX_FILE_PATH ||
      !sign(server, req->path, (int64_t)expires_s, right) ||
      !same_signature(given, right))
    return LOCAL_LINK_FORGED;
  return (int64_t)expires_s * 1000 > local_now_ms(server) ? LOCAL_LINK_GOOD
                                                          : LOCAL_LINK_EXPIRED;
}
