/* SPDX-License-Identifier: MIT */
/*
 * Who sends a request, what its key permits, and which session it names. A path
 * may start with /s/NAME, which selects the session.
 *
 * The key of agents samples. Rewards, weights and the record need the key of
 * administrators, because agents run generated code beside their own key.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/send.h"

typedef enum { NOBODY = 0, AGENT, ADMIN } power_t;

/* ---- Credentials ---- */

/* Compare in constant time, so that the duration does not show how much of the
 * key is right. */
static int is_key(const char *key, const char *given, size_t n) {
  size_t n_key = strlen(key);
  unsigned differs = n != n_key;

  for (size_t i = 0; i < n; i++)
    differs |= (unsigned char)given[i] ^ (unsigned char)key[i % (n_key + 1)];
  return differs == 0;
}

static const char *credential(const tnk__srv_req_t *req) {
  const char *bearer = tnk__srv_req_header(req, "authorization");
  const char *key = tnk__srv_req_header(req, "x-api-key");

  if (bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0)
    return bearer + 7;
  return key != NULL ? key : "";
}

/* Returns whether a credential is this key, perhaps with a colon and the name
 * of a session after it. *n receives the length of the key in it. */
static int is_given(const char *key, const char *given, size_t *n) {
  size_t n_key = key != NULL ? strlen(key) : 0;
  size_t n_given = strlen(given);

  if (key == NULL)
    return 0;
  *n = n_given > n_key && given[n_key] == ':' ? n_key : n_given;
  return is_key(key, given, *n);
}

/* *n receives the length of the key in the credential. */
static power_t power_of(const tnk_gateway_t *gateway, const char *given,
                        size_t *n) {
  if (is_given(gateway->admin_key, given, n))
    return ADMIN;
  if (is_given(gateway->key, given, n))
    return AGENT;
  *n = strcspn(given, ":");
  return gateway->key == NULL && gateway->admin_key == NULL ? ADMIN : NOBODY;
}

/* A gateway without a key serves this machine only. A page in a browser must
 * not reach it, neither as a cross-site request nor by a host name that
 * resolves to this machine. */
static int is_of_a_page(const tnk_gateway_t *gateway,
                        const tnk__srv_req_t *req) {
  static const char *const ours[] = {"127.0.0.1", "localhost", "[::1]"};
  const char *host = tnk__srv_req_header(req, "host");
  const char *site = tnk__srv_req_header(req, "sec-fetch-site");

  if (tnk__srv_req_header(req, "origin") != NULL)
    return 1;
  /* A browser sends no Origin with a GET without CORS, but Sec-Fetch-Site says
   * where the request comes from. "none" means the user, for example by the
   * address bar. */
  if (site != NULL && strcmp(site, "none") != 0 &&
      strcmp(site, "same-origin") != 0)
    return 1;
  for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
    size_t n = strlen(ours[i]);

    if (host == NULL ||
        (strncmp(host, ours[i], n) == 0 && (host[n] == '\0' || host[n] == ':')))
      return 0;
  }
  return strcmp(host, strstr(gateway->address, "//") + 2) != 0;
}

/* Check the credential before the body is read. */
int tnk__gw_admit(tnk__srv_req_t *req, void *user) {
  const tnk_gateway_t *gateway = user;
  size_t n;

  tnk__gw_log_begin(gateway, req);
  if (gateway->key == NULL && gateway->admin_key == NULL)
    return is_of_a_page(gateway, req) ? 403 : 0;
  return power_of(gateway, credential(req), &n) == NOBODY ? 401 : 0;
}

/* The whole folder of administrators is guarded, and not only its routes, so
 * that a new route cannot be forgotten. */
static int is_for_admins(const char *path) {
  return strncmp(path, "/tnk", 4) == 0 && (path[4] == '/' || path[4] == '\0');
}

int tnk__gw_may(const tnk__gw_call_t *call) {
  const tnk_gateway_t *gateway = call->gateway;
  size_t n;

  if (!is_for_admins(call->path) ||
      power_of(gateway, credential(call->req), &n) == ADMIN)
    return 1;
  tnk__gw_call_refuse(
      call, 403, "admin_key_required", "%s%s",
      "this key is for sampling alone; /tnk/ needs the admin key",
      gateway->admin_key != NULL
          ? " of this gateway"
          : ": start the gateway with --admin-key or TNK_GATEWAY_ADMIN_KEY, "
            "and send that key here");
  return 0;
}

/* ---- Sessions ---- */

static int is_name(const char *name, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
      return 0;
  return n > 0 && n <= TNK__GW_MAX_SESSION;
}

static int set_session(tnk__gw_call_t *call, const char *name, size_t n) {
  if (!is_name(name, n)) {
    tnk__gw_call_refuse(
        call, 400, NULL,
        "the name of a session has 1 to %d printable characters",
        TNK__GW_MAX_SESSION);
    return -1;
  }
  memcpy(call->session, name, n);
  call->session[n] = '\0';
  return 0;
}

/* The path takes precedence, then the header, then the session after the
 * key. */
int tnk__gw_find_session(tnk__gw_call_t *call) {
  const char *header = tnk__srv_req_header(call->req, "x-tnk-session");
  const char *given = credential(call->req);
  size_t n;

  (void)power_of(call->gateway, given, &n);
  if (given[n] == ':' && given[n + 1] != '\0' &&
      set_session(call, given + n + 1, strlen(given + n + 1)) != 0)
    return -1;
  if (header != NULL && set_session(call, header, strlen(header)) != 0)
    return -1;
  if (strncmp(call->path, "/s/", 3) != 0)
    return 0;
  n = strcspn(call->path + 3, "/");
  if (set_session(call, call->path + 3, n) != 0)
    return -1;
  call->path += 3 + n;
  return 0;
}
