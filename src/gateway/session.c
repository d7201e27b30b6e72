/* SPDX-License-Identifier: MIT */
/* Keys of one session each: created, listed, rotated and revoked, by a call or
 * by a request of an administrator. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

enum { MAX_BODY = 64 << 20 };

/* A hundred years. */
#define MAX_LIFETIME_S UINT64_C(3155760000)

/* ---- Options ---- */

static const char *check_certificate(const tnk_gateway_t *gateway,
                                     const char *certificate) {
  char name[TNK__SRV_CERTIFICATE];

  if (!gateway->has_client_ca)
    return "certificate needs a gateway that checks the certificates of "
           "clients (--client-ca)";
  return tnk__srv_certificate_read(certificate, name) == 0
             ? NULL
             : "certificate must be sha256:HEX, DNS:NAME, URI:TEXT or CN:TEXT, "
               "of at most 255 bytes";
}

/* Returns a sentence, or NULL if the options are valid. */
static const char *check(const tnk_gateway_t *gateway,
                         const tnk_gateway_key_options_t *o) {
  const uint64_t limits[] = {o->max_requests, o->max_tokens, o->max_turns,
                             o->max_body};

  if (gateway->key == NULL && gateway->admin_key == NULL)
    return "this gateway serves everybody: keys of sessions need an admin key "
           "(--admin-key)";
  if (o->session != NULL && !tnk__gw_is_session(o->session, strlen(o->session)))
    return "the name of a session has 1 to 128 printable characters";
  if (o->session != NULL &&
      tnk__gw_record_is_removed(gateway->record, o->session))
    return "this session was removed from the record: use another name";
  if (o->expires_in_s > MAX_LIFETIME_S)
    return "expires_in_s is more than 100 years";
  for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
    if (limits[i] > INT64_MAX)
      return "a limit is out of range";
  if (isnan(o->max_usd) || o->max_usd < 0 || o->max_usd > TNK__GW_MAX_USD)
    return "max_usd must be from 0 to 1000000";
  if (o->max_usd > 0 && !(gateway->pico_prompt + gateway->pico_sampled > 0))
    return "max_usd needs the prices of the model, which this gateway does not "
           "have";
  if (o->max_per_minute > TNK__GW_MAX_RATE)
    return "max_per_minute is more than 1000000";
  return o->certificate != NULL ? check_certificate(gateway, o->certificate)
                                : NULL;
}

static tnk__gw_limits_t limits_of(const tnk_gateway_t *gateway,
                                  const tnk_gateway_key_options_t *o) {
  return (tnk__gw_limits_t){
      .expires_s = o->expires_in_s > 0 ? gateway->grants.now_ms() / 1000 +
                                             (int64_t)o->expires_in_s
                                       : 0,
      .max_requests = o->max_requests,
      .max_tokens = o->max_tokens,
      .max_turns = o->max_turns,
      /* A limit below the unit is a limit all the same. */
      .max_pico = (uint64_t)ceil(o->max_usd * TNK__GW_PICO),
      .max_body = o->max_body,
      .max_concurrent = o->max_concurrent,
      .max_per_minute = o->max_per_minute,
      .may_reward = o->may_reward == TNK_YES};
}

/* ---- Changes ---- */

/* `options` are valid. */
static int create(tnk_gateway_t *gateway, const tnk_gateway_key_options_t *o,
                  char key[TNK__GW_KEY_TEXT], tnk__gw_grant_t **out) {
  tnk__gw_limits_t limits = limits_of(gateway, o);
  char certificate[TNK__SRV_CERTIFICATE];
  char name[TNK__GW_ID_TEXT];
  int err;

  *out = NULL;
  if (o->certificate != NULL &&
      tnk__srv_certificate_read(o->certificate, certificate) == 0)
    limits.certificate = certificate;
  err = o->session == NULL ? tnk__gw_secret_id(name) : TNK_OK;
  if (err == TNK_OK)
    err = tnk__gw_grant_new(&gateway->grants,
                            o->session != NULL ? o->session : name, &limits,
                            key, out);
  if (err == TNK_OK)
    tnk__gw_log_note(gateway, "%s was created for session %s%s%s%s", (*out)->id,
                     (*out)->session,
                     limits.may_reward ? ", with its own rewards" : "",
                     o->certificate != NULL ? ", for the certificate " : "",
                     o->certificate != NULL ? certificate : "");
  return err;
}

static int rotate(tnk_gateway_t *gateway, tnk__gw_grant_t *grant,
                  char key[TNK__GW_KEY_TEXT]) {
  int err = tnk__gw_grant_rotate(&gateway->grants, grant, key);

  if (err == TNK_OK)
    tnk__gw_log_note(gateway, "%s of session %s was rotated", grant->id,
                     grant->session);
  return err;
}

static int revoke(tnk_gateway_t *gateway, tnk__gw_grant_t *grant) {
  char id[TNK__GW_ID_TEXT];
  char session[TNK__GW_MAX_SESSION + 1];
  int err;

  memcpy(id, grant->id, sizeof(id));
  (void)snprintf(session, sizeof(session), "%s", grant->session);
  err = tnk__gw_grant_revoke(&gateway->grants, grant);
  if (err == TNK_OK)
    tnk__gw_log_note(gateway, "%s of session %s was revoked", id, session);
  return err;
}

/* ---- JSON ---- */

static void put_limit(tnk__json_writer_t *w, const char *name, uint64_t value) {
  if (value > 0)
    tnk__json_put_int(w, name, (int64_t)value);
}

static void put_limits(tnk__json_writer_t *w, const tnk__gw_limits_t *limits) {
  tnk__json_key(w, "limits");
  tnk__json_begin_object(w);
  put_limit(w, "max_requests", limits->max_requests);
  put_limit(w, "max_tokens", limits->max_tokens);
  put_limit(w, "max_turns", limits->max_turns);
  if (limits->max_pico > 0)
    tnk__json_put_double(w, "max_usd", (double)limits->max_pico / TNK__GW_PICO);
  put_limit(w, "max_body", limits->max_body);
  put_limit(w, "max_concurrent", limits->max_concurrent);
  put_limit(w, "max_per_minute", limits->max_per_minute);
  tnk__json_end(w);
}

/* `key` is the key, which only this answer contains, or NULL. */
static int put_grant(const tnk__gw_grant_t *grant, const char *key,
                     tnk__buf_t *out) {
  const tnk__gw_use_t *used = &grant->used;
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "id", grant->id);
  tnk__json_put_text(&w, "session", grant->session);
  if (key != NULL)
    tnk__json_put_text(&w, "key", key);
  if (grant->limits.expires_s > 0)
    tnk__json_put_int(&w, "expires_at", grant->limits.expires_s);
  tnk__json_put_bool(&w, "may_reward", grant->limits.may_reward);
  if (grant->limits.certificate != NULL)
    tnk__json_put_text(&w, "certificate", grant->limits.certificate);
  put_limits(&w, &grant->limits);
  tnk__json_key(&w, "used");
  tnk__json_begin_object(&w);
  tnk__json_put_int(&w, "requests", (int64_t)used->n_requests);
  tnk__json_put_int(&w, "tokens", (int64_t)used->n_tokens);
  tnk__json_put_int(&w, "turns", (int64_t)used->n_turns);
  tnk__json_put_double(&w, "usd", (double)used->pico / TNK__GW_PICO);
  tnk__json_end(&w);
  tnk__json_put_int(&w, "active", grant->n_active);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

static int read_count(const json_t *body, const char *name, int64_t max,
                      uint64_t *out) {
  int64_t value = 0;

  if (tnk__json_get_int(body, name, 0, max, &value) == TNK__JSON_WRONG)
    return -1;
  *out = (uint64_t)value;
  return 0;
}

/* *group is read if a program watches the sessions. Returns NULL, or the name
 * of a member that is unknown or malformed. */
static const char *read_options(const json_t *body,
                                tnk_gateway_key_options_t *o, int is_watched,
                                const char **group) {
  static const char *const known[] = {
      "session",    "expires_in_s",   "max_requests", "max_tokens",
      "max_turns",  "max_usd",        "max_body",     "max_concurrent",
      "may_reward", "max_per_minute", "certificate"};
  uint64_t concurrent = 0, per_minute = 0;
  const struct {
    const char *name;
    int64_t max;
    uint64_t *value;
  } counts[] = {{"expires_in_s", INT64_MAX, &o->expires_in_s},
                {"max_requests", INT64_MAX, &o->max_requests},
                {"max_tokens", INT64_MAX, &o->max_tokens},
                {"max_turns", INT64_MAX, &o->max_turns},
                {"max_body", INT64_MAX, &o->max_body},
                {"max_concurrent", UINT32_MAX, &concurrent},
                {"max_per_minute", UINT32_MAX, &per_minute}};
  int may_reward = 0;
  const char *name;
  json_t *value;

  json_object_foreach((json_t *)(uintptr_t)body, name, value) {
    size_t i = 0;

    while (i < sizeof(known) / sizeof(*known) && strcmp(known[i], name) != 0)
      i++;
    if (i == sizeof(known) / sizeof(*known) &&
        (!is_watched || strcmp(name, "group") != 0))
      return name;
  }
  for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
    if (read_count(body, counts[i].name, counts[i].max, counts[i].value) != 0)
      return counts[i].name;
  if (tnk__json_get_text(body, "session", &o->session) == TNK__JSON_WRONG)
    return "session";
  if (tnk__json_get_text(body, "certificate", &o->certificate) ==
      TNK__JSON_WRONG)
    return "certificate";
  if (is_watched &&
      (tnk__json_get_text(body, "group", group) == TNK__JSON_WRONG))
    return "group";
  if (tnk__json_get_double(body, "max_usd", &o->max_usd) == TNK__JSON_WRONG)
    return "max_usd";
  if (tnk__json_get_bool(body, "may_reward", &may_reward) == TNK__JSON_WRONG)
    return "may_reward";
  o->max_concurrent = (uint32_t)concurrent;
  o->max_per_minute = (uint32_t)per_minute;
  o->may_reward = may_reward ? TNK_YES : TNK_NO;
  return NULL;
}

/* ---- Requests of administrators ---- */

static void failed(const tnk__gw_call_t *call, int err) {
  tnk__gw_call_refuse(call, err == TNK_EFULL || err == TNK_ETOOBIG ? 503 : 500,
                      NULL, "the key cannot be recorded: %s",
                      err == TNK_EFULL ? "there are too many keys"
                                       : tnk_strerror(err));
}

/* Answer with a grant, and its new key if it has one. */
static void answer(const tnk__gw_call_t *call, const tnk__gw_grant_t *grant,
                   const char *key) {
  tnk__gw_call_t named = *call; /* the caller may be of no session */
  tnk__buf_t body;
  int err;

  (void)snprintf(named.session, sizeof(named.session), "%s", grant->session);
  tnk__buf_init(&body, &call->gateway->alloc, MAX_BODY);
  err = put_grant(grant, key, &body);
  if (err == TNK_OK)
    tnk__gw_confirm(&named, &body, "the key");
  else
    failed(call, err);
  tnk__buf_deinit(&body);
}

/* Returns whether the program that watches the sessions permits a new one. If
 * not, the request has been rejected. */
static int is_wanted(const tnk__gw_call_t *call, const char *session,
                     const char *group) {
  const tnk__gw_watch_t *watch = &call->gateway->watch;
  const char *why = "\"group\" is missing, or is not 1 to 128 printable "
                    "characters";
  tnk__gw_fault_t fault;
  int status = 400;

  if (watch->check == NULL)
    return 1;
  if (group != NULL && tnk__gw_is_session(group, strlen(group)))
    status = watch->check(watch->user, session, group, &why);
  if (status == 0)
    return 1;
  (void)tnk__gw_fault(&fault, status, NULL, "%s", why);
  fault.retry_s = status == 503;
  tnk__gw_refuse(call->gateway, call->req, call->api, &fault);
  return 0;
}

static void serve_create(const tnk__gw_call_t *call,
                         const tnk_gateway_key_options_t *options,
                         const char *group) {
  const tnk__gw_watch_t *watch = &call->gateway->watch;
  char key[TNK__GW_KEY_TEXT] = "";
  tnk__gw_grant_t *grant;
  const int err = create(call->gateway, options, key, &grant);

  if (err == TNK_OK && watch->created != NULL)
    watch->created(watch->user, grant->session, group, grant->id);
  if (err == TNK_OK)
    answer(call, grant, key);
  else
    failed(call, err);
  tnk__wipe(key, sizeof(key));
}

void tnk__gw_key_create(const tnk__gw_call_t *call) {
  const tnk__buf_t *bytes = &call->req->body;
  tnk_gateway_key_options_t options = TNK_GATEWAY_KEY_OPTIONS_INIT;
  const char *group = NULL;
  const char *wrong;
  json_t *body = NULL;

  if (tnk__json_parse_object(&body, bytes->data, bytes->len) != TNK_OK) {
    tnk__gw_call_refuse(call, 400, NULL, "the body must be an object");
    return;
  }
  wrong =
      read_options(body, &options, call->gateway->watch.check != NULL, &group);
  if (wrong != NULL)
    tnk__gw_call_refuse(call, 400, NULL,
                        "\"%.60s\" is unknown, of another type, or out of "
                        "range",
                        wrong);
  else if ((wrong = check(call->gateway, &options)) != NULL)
    tnk__gw_call_refuse(call, 400, NULL, "%s", wrong);
  else if (is_wanted(call, options.session, group))
    serve_create(call, &options, group);
  json_decref(body);
}

void tnk__gw_watch(tnk_gateway_t *gateway, const tnk__gw_watch_t *watch) {
  gateway->watch = *watch;
}

void tnk__gw_key_list(const tnk__gw_call_t *call) {
  tnk__buf_t body;
  int err = TNK_OK;
  int n = 0;

  tnk__buf_init(&body, &call->gateway->alloc, MAX_BODY);
  tnk__buf_text(&body, "{\"data\":[");
  TNK__LIST_FOREACH (node, &call->gateway->grants.all) {
    if (n++ > 0)
      tnk__buf_text(&body, ",");
    if (err == TNK_OK)
      err = put_grant(tnk__container_of(node, tnk__gw_grant_t, link), NULL,
                      &body);
  }
  tnk__buf_text(&body, "]}");
  if (err == TNK_OK)
    err = body.err;
  if (err == TNK_OK)
    tnk__gw_send(call->req, 200, 0, &body);
  else
    tnk__gw_call_refuse(call, 500, NULL, "%s", tnk_strerror(err));
  tnk__buf_deinit(&body);
}

/* Find the grant that ".../ID" or ".../ID/rotate" names. */
static tnk__gw_grant_t *find(const tnk__gw_call_t *call, const char *end) {
  const char *id = call->path + strlen(TNK__GW_SESSIONS);
  size_t n = strcspn(id, "/");
  char text[TNK__GW_ID_TEXT];

  if (n >= sizeof(text) || strcmp(id + n, end) != 0)
    return NULL;
  memcpy(text, id, n);
  text[n] = '\0';
  return tnk__gw_grant_by_id(&call->gateway->grants, text);
}

static void serve_rotate(const tnk__gw_call_t *call, tnk__gw_grant_t *grant) {
  char key[TNK__GW_KEY_TEXT] = "";
  int err = rotate(call->gateway, grant, key);

  if (err == TNK_OK)
    answer(call, grant, key);
  else
    failed(call, err);
  tnk__wipe(key, sizeof(key));
}

static void serve_revoke(const tnk__gw_call_t *call, tnk__gw_grant_t *grant) {
  const tnk__gw_watch_t *watch = &call->gateway->watch;
  char id[TNK__GW_ID_TEXT];
  tnk__buf_t body;
  int err;

  memcpy(id, grant->id, sizeof(id));
  tnk__buf_init(&body, &call->gateway->alloc, 64);
  err = tnk__buf_text(&body, "{\"ok\":true}");
  if (err == TNK_OK)
    err = revoke(call->gateway, grant);
  if (err == TNK_OK && watch->ended != NULL)
    watch->ended(watch->user, id);
  if (err == TNK_OK)
    tnk__gw_confirm(call, &body, "the end of the key");
  else
    failed(call, err);
  tnk__buf_deinit(&body);
}

static void refuse_method(const tnk__gw_call_t *call, const char *allowed) {
  tnk__gw_fault_t fault;

  (void)tnk__gw_fault(&fault, 405, NULL, "%s is not allowed here",
                      call->req->method);
  fault.allow = allowed;
  tnk__gw_refuse(call->gateway, call->req, call->api, &fault);
}

void tnk__gw_key_change(const tnk__gw_call_t *call) {
  tnk__gw_grant_t *whole = find(call, "");
  tnk__gw_grant_t *rotated = find(call, "/rotate");

  if (whole != NULL && strcmp(call->req->method, "DELETE") == 0)
    serve_revoke(call, whole);
  else if (rotated != NULL && strcmp(call->req->method, "POST") == 0)
    serve_rotate(call, rotated);
  else if (whole != NULL || rotated != NULL)
    refuse_method(call, whole != NULL ? "DELETE" : "POST");
  else
    tnk__gw_call_refuse(call, 404, NULL, "there is no such key");
}

/* ---- Calls in the process ---- */

static int copy(char *out, size_t size, const char *text) {
  if (out == NULL || size <= strlen(text))
    return TNK_EINVAL;
  memcpy(out, text, strlen(text) + 1);
  return TNK_OK;
}

int tnk_gateway_key_create(tnk_gateway_t *gateway,
                           const tnk_gateway_key_options_t *options, char *key,
                           size_t key_size, char *id, size_t id_size) {
  tnk_gateway_key_options_t own = TNK_GATEWAY_KEY_OPTIONS_INIT;
  char text[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  int err;

  if (gateway == NULL || gateway->is_closing || key == NULL ||
      key_size < TNK__GW_KEY_TEXT || (id != NULL && id_size < TNK__GW_ID_TEXT))
    return TNK_EINVAL;
  err = TNK__LOAD(tnk_gateway_key_options_t, &own, options, NULL, 0);
  if (err == TNK_OK && check(gateway, &own) != NULL)
    err = TNK_EINVAL;
  if (err == TNK_OK)
    err = create(gateway, &own, text, &grant);
  if (err == TNK_OK) {
    (void)copy(key, key_size, text);
    if (id != NULL)
      (void)copy(id, id_size, grant->id);
  }
  tnk__wipe(text, sizeof(text));
  return err;
}

/* Returns TNK_OK, TNK_EINVAL or TNK_ENOTFOUND. */
static int find_own(const tnk_gateway_t *gateway, const char *id,
                    tnk__gw_grant_t **out) {
  if (gateway == NULL || gateway->is_closing || id == NULL)
    return TNK_EINVAL;
  *out = tnk__gw_grant_by_id(&gateway->grants, id);
  return *out != NULL ? TNK_OK : TNK_ENOTFOUND;
}

int tnk_gateway_key_rotate(tnk_gateway_t *gateway, const char *id, char *key,
                           size_t key_size) {
  char text[TNK__GW_KEY_TEXT];
  tnk__gw_grant_t *grant;
  int err = find_own(gateway, id, &grant);

  if (key == NULL || key_size < sizeof(text))
    return TNK_EINVAL;
  if (err == TNK_OK)
    err = rotate(gateway, grant, text);
  if (err == TNK_OK)
    (void)copy(key, key_size, text);
  tnk__wipe(text, sizeof(text));
  return err;
}

int tnk_gateway_key_revoke(tnk_gateway_t *gateway, const char *id) {
  tnk__gw_grant_t *grant;
  int err = find_own(gateway, id, &grant);

  return err == TNK_OK ? revoke(gateway, grant) : err;
}

int tnk_gateway_keys(tnk_gateway_t *gateway, tnk_gateway_line_cb cb,
                     void *user) {
  tnk__buf_t line;
  int err = TNK_OK;

  if (gateway == NULL || gateway->is_closing || cb == NULL)
    return TNK_EINVAL;
  tnk__buf_init(&line, &gateway->alloc, MAX_BODY);
  TNK__LIST_FOREACH (node, &gateway->grants.all) {
    if (err != TNK_OK)
      break;
    tnk__buf_clear(&line);
    err =
        put_grant(tnk__container_of(node, tnk__gw_grant_t, link), NULL, &line);
    if (err == TNK_OK)
      err = tnk__buf_byte(&line, '\n');
    if (err == TNK_OK)
      err = cb(user, (const char *)line.data, line.len);
  }
  tnk__buf_deinit(&line);
  return err;
}
