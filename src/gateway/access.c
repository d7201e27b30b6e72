/* SPDX-License-Identifier: MIT */
/*
 * Who sends a request, what its key permits, and which session it names. A path
 * may start with /s/NAME, which selects the session.
 *
 * The key of agents samples. Rewards, weights and the record need the key of
 * administrators, because agents run generated code beside their own key. The
 * key of a session samples only in this session.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/send.h"

/* `note` of a request. */
typedef enum {
  NOBODY = 0,
  SESSION, /* its `owner` is the grant */
  AGENT,
  ADMIN,
  PROBE, /* asks for the state of the gateway alone */
  /* Reasons of refusals. Some have a number of seconds above the low byte. */
  OF_A_PAGE,
  REPEATED,
  EXPIRED,
  TOO_FAST,
  TOO_MANY,
  NO_CERTIFICATE,
  OTHER_CERTIFICATE
} note_t;

enum { SECONDS = 8 /* shift of the seconds */ };

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
static note_t power_of(const tnk_gateway_t *gateway, const char *given,
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

/* A program between client and gateway might look at one of two values, and the
 * gateway at the other. */
static int is_repeated(const tnk__srv_req_t *req) {
  static const char *const names[] = {"authorization", "x-api-key",
                                      "x-tnk-session"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (tnk__srv_req_count(req, names[i]) > 1)
      return 1;
  return 0;
}

static int refuse(tnk__srv_req_t *req, int status, note_t why,
                  uint32_t wait_s) {
  req->note = (uint32_t)why | wait_s << SECONDS;
  return status;
}

/* Admit the request of a session key. */
static int admit_grant(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                       const char *given) {
  tnk__gw_grant_t *grant =
      tnk__gw_grant_by_key(&gateway->grants, given, strcspn(given, ":"));
  uint32_t wait_s;

  if (grant == NULL)
    return 401;
  if (grant->limits.certificate != NULL) {
    tnk__srv_certificate_t is =
        tnk__srv_req_certificate(req, grant->limits.certificate);

    if (is != TNK__SRV_CERTIFICATE_IS)
      return refuse(req, 403,
                    is == TNK__SRV_CERTIFICATE_NONE ? NO_CERTIFICATE
                                                    : OTHER_CERTIFICATE,
                    0);
  }
  switch (tnk__gw_grant_enter(&gateway->grants, grant, &wait_s)) {
  case TNK__GW_EXPIRED:
    return refuse(req, 401, EXPIRED, 0);
  case TNK__GW_TOO_FAST:
    return refuse(req, 429, TOO_FAST, wait_s);
  case TNK__GW_TOO_MANY:
    return refuse(req, 429, TOO_MANY, wait_s);
  case TNK__GW_ENTERED:
    break;
  }
  req->owner = grant;
  req->note = SESSION;
  if (grant->limits.max_body > 0 && grant->limits.max_body < req->max_body)
    req->max_body = (size_t)grant->limits.max_body;
  return 0;
}

/* Load balancers and supervisors have no key. The answers reveal nothing about
 * sessions. The URL is as it arrived, because it is decoded later. */
static int is_probe(const tnk__srv_req_t *req) {
  static const char *const paths[] = {"/health", "/healthz", "/readyz"};
  const char *url = (const char *)req->url.data;
  size_t n = 0;

  while (n < req->url.len && url[n] != '?')
    n++;
  n -= n > 1 && url[n - 1] == '/';
  for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
    if (strlen(paths[i]) == n && memcmp(paths[i], url, n) == 0)
      return 1;
  return 0;
}

/* Check the credential before the body is read. */
int tnk__gw_admit(tnk__srv_req_t *req, void *user) {
  tnk_gateway_t *gateway = user;
  const char *given = credential(req);
  size_t n;

  tnk__gw_log_begin(gateway, req);
  if (is_repeated(req))
    return refuse(req, 400, REPEATED, 0);
  if (gateway->key == NULL && gateway->admin_key == NULL &&
      is_of_a_page(gateway, req))
    return refuse(req, 403, OF_A_PAGE, 0);
  if (is_probe(req)) {
    req->max_body = 0;
    req->note = PROBE;
    return 0;
  }
  req->note = power_of(gateway, given, &n);
  return req->note != NOBODY ? 0 : admit_grant(gateway, req, given);
}

void tnk__gw_on_end(void *owner, void *user) {
  tnk__gw_grant_leave(&((tnk_gateway_t *)user)->grants, owner);
}

void tnk__gw_explain(const tnk__srv_req_t *req, tnk__gw_fault_t *fault) {
  static const char *const why[] = {
      [OF_A_PAGE] = "web pages, and names other than localhost, need a key",
      [REPEATED] = "Authorization, X-Api-Key and X-Tnk-Session may be given "
                   "once",
      [EXPIRED] = "this key has expired",
      [TOO_FAST] = "this key may not send so many requests in a minute",
      [TOO_MANY] = "this key may not have more requests in progress",
      [NO_CERTIFICATE] = "this key is bound to a client certificate, and the "
                         "connection has none",
      [OTHER_CERTIFICATE] = "this key is bound to another client certificate "
                            "than that of the connection"};
  note_t note = (note_t)(req->note & ((1U << SECONDS) - 1));

  if (note >= OF_A_PAGE)
    (void)tnk__gw_fault(fault, fault->status, NULL, "%s", why[note]);
  else if (fault->status == 401)
    (void)tnk__gw_fault(fault, 401, NULL, "the key of this gateway is another");
  fault->retry_s = req->note >> SECONDS;
  if (fault->status == 401)
    fault->code = "invalid_api_key";
}

/* The whole folder of administrators is guarded, and not only its routes, so
 * that a new route cannot be forgotten. */
static int is_for_admins(const char *path) {
  return strcmp(path, "/metrics") == 0 ||
         (strncmp(path, "/tnk", 4) == 0 && (path[4] == '/' || path[4] == '\0'));
}

/* Returns whether the key of a session may make this call, which sets a
 * reward. */
static int is_own_reward(const tnk__gw_call_t *call) {
  const tnk__gw_grant_t *grant = call->req->owner;

  return call->req->note == SESSION && grant->limits.may_reward &&
         strcmp(call->path, "/tnk/reward") == 0;
}

/* Returns whether the key of a session ends itself, for a program that trains
 * on complete sessions. */
static int is_own_end(const tnk__gw_call_t *call) {
  const tnk__gw_grant_t *grant = call->req->owner;
  const size_t n = strlen(TNK__GW_SESSIONS);

  return call->gateway->watch.ended != NULL && call->req->note == SESSION &&
         grant->limits.may_reward && strcmp(call->req->method, "DELETE") == 0 &&
         strncmp(call->path, TNK__GW_SESSIONS, n) == 0 &&
         strcmp(call->path + n, grant->id) == 0;
}

int tnk__gw_may(const tnk__gw_call_t *call) {
  if (!is_for_admins(call->path) || call->req->note == ADMIN ||
      is_own_reward(call) || is_own_end(call))
    return 1;
  tnk__gw_call_refuse(
      call, 403, "admin_key_required",
      "this key is for sampling alone; %s needs the admin key%s",
      strcmp(call->path, "/metrics") == 0 ? call->path : "/tnk/",
      call->gateway->admin_key != NULL
          ? " of this gateway"
          : ": start the gateway with --admin-key or TNK_GATEWAY_ADMIN_KEY, "
            "and send that key here");
  return 0;
}

int tnk__gw_may_reward(const tnk__gw_call_t *call, const char *session) {
  return call->req->note != SESSION || strcmp(call->session, session) == 0;
}

/* ---- Sessions ---- */

int tnk__gw_check_session(const tnk_gateway_t *gateway, const char *session,
                          tnk__gw_fault_t *fault) {
  return tnk__gw_record_is_removed(gateway->record, session)
             ? tnk__gw_fault(fault, 410, NULL,
                             "the session \"%.128s\" was removed from the "
                             "record: use another name",
                             session)
             : 0;
}

int tnk__gw_is_session(const char *name, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
      return 0;
  return n > 0 && n <= TNK__GW_MAX_SESSION;
}

static int set_session(tnk__gw_call_t *call, const char *name, size_t n) {
  const tnk__gw_grant_t *grant = call->req->owner;

  if (grant != NULL &&
      (n != strlen(grant->session) || memcmp(name, grant->session, n) != 0)) {
    tnk__gw_call_refuse(call, 403, "session_not_permitted",
                        "this key is for another session");
    return -1;
  }
  if (!tnk__gw_is_session(name, n)) {
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

/* The path takes precedence, then the header, then the session after the key.
 * With the key of a session, each of them must name this session. */
int tnk__gw_find_session(tnk__gw_call_t *call) {
  const tnk__gw_grant_t *grant = call->req->owner;
  const char *header = tnk__srv_req_header(call->req, "x-tnk-session");
  const char *given = credential(call->req);
  size_t n;

  (void)power_of(call->gateway, given, &n);
  if (grant != NULL)
    memcpy(call->session, grant->session, strlen(grant->session) + 1);
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
