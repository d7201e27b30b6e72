/* SPDX-License-Identifier: MIT */
#include "tools/local/links/link.h"

#include <inttypes.h>
#include <mbedtls/md.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "tools/local/base/clock.h"
#include "tools/local/fault/calls.h"

/* ---- Links ---- */

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
  local_hex(out, mac, sizeof(mac));
  return 1;
}

/* ---- Links: the server's address ---- */

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

/* ---- Links: writing and checking ---- */

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

/* ---- External weights ---- */

/* Links to the files of external weights. */

/* The name of a file in the answer, or another name if a fault requires it. */
static void write_name(const local_fault_t *fault, const char *name, char *out,
                       size_t size) {
  static const struct {
    const char *arg;
    const char *before;
  } ways[] = {
      {LOCAL_NAME_OTHER, "other-"},
      {LOCAL_NAME_PARENT, "../"},
      {LOCAL_NAME_ABSOLUTE, "/tmp/"},
  };

  snprintf(out, size, "%s", name);
  for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
    if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, ways[i].arg))
      snprintf(out, size, "%s%s", ways[i].before, name);
  if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, LOCAL_NAME_EMPTY))
    out[0] = '\0';
  else if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, LOCAL_NAME_DOT))
    snprintf(out, size, ".");
  else if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, LOCAL_NAME_LONG))
    snprintf(out, size, "%0300d-%s", 0, name);
}

static void put_files(tnk__json_writer_t *w, const local_call_t *call,
                      const local_place_t *place,
                      const local_listing_t *listing, int64_t expires_s) {
  char link[LOCAL_LINK];
  char name[512];

  tnk__json_put_object(w, "urls");
  for (size_t i = 0; i < listing->n; i++)
    if (local_link_write(call->server, call->req, place, listing->files[i].name,
                         expires_s, link)) {
      write_name(local_fault_of(call->req), listing->files[i].name, name,
                 sizeof(name));
      tnk__json_put_text(w, name, link);
    }
  tnk__json_end(w);
}

void local_external_urls(local_call_t *call) {
  const int64_t expires_s = local_link_end(call->server);
  local_listing_t listing;
  local_meta_t meta;
  char dir[LOCAL_FILE];
  local_out_t out;

  if (!local_need_checkpoint(call, &meta))
    return;
  local_meta_free(call->server, &meta);
  if (meta.place.kind != LOCAL_EXTERNAL_WEIGHTS) {
    local_reply_error(call->req, 400,
                      "Only external weights have files to download, not %s/%s",
                      call->args[1], call->args[2]);
    return;
  }
  if (!local_place_dir(call->server, &meta.place, dir) ||
      local_store_files(dir, &listing) != TNK_OK) {
    local_reply_error(call->req, 404, "Checkpoint not found: %s/%s",
                      call->args[1], call->args[2]);
    return;
  }
  local_place_note(call->server, "checkpoint_read", &meta.place);
  local_out_begin(&out, call->server->alloc);
  put_files(&out.w, call, &meta.place, &listing, expires_s);
  local_put_time(&out.w, "expires", expires_s * 1000);
  local_out_reply(&out, call->req, 200);
}
