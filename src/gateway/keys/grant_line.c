/* SPDX-License-Identifier: MIT */
/* Grants as lines of the record. */
#include <string.h>

#include "gateway/keys/grant.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

enum { MAX_LINE = 8192 };

/* ---- Writing ---- */

static void put_use(tnk__json_writer_t *w, const tnk__gw_use_t *use) {
  tnk__json_put_int(w, "requests", (int64_t)use->n_requests);
  tnk__json_put_int(w, "tokens", (int64_t)use->n_tokens);
  tnk__json_put_int(w, "turns", (int64_t)use->n_turns);
  tnk__json_put_int(w, "pico_usd", (int64_t)use->pico);
}

static void begin(const tnk__gw_grants_t *grants, const char *type,
                  const char *id, tnk__buf_t *line, tnk__json_writer_t *w) {
  tnk__buf_init(line, grants->alloc, MAX_LINE);
  tnk__json_writer_init(w, line);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", type);
  tnk__json_put_text(w, "id", id);
}

static int end(tnk__gw_grants_t *grants, const char *session, tnk__buf_t *line,
               tnk__json_writer_t *w) {
  const tnk__gw_about_t about = {.session = session, .is = TNK__GW_IS_KEY};

  tnk__json_end(w);
  return tnk__gw_record_write(grants->record, &about, line,
                              tnk__json_finish(w));
}

int tnk__gw_grant_put(tnk__gw_grants_t *grants, const tnk__gw_grant_t *grant,
                      const uint8_t hash[TNK__GW_HASH]) {
  const tnk__gw_limits_t *limits = &grant->limits;
  char text[TNK__GW_DIGITS + 1];
  tnk__json_writer_t w;
  tnk__buf_t line;

  tnk__gw_secret_write(hash, text);
  begin(grants, "key", grant->id, &line, &w);
  tnk__json_put_text(&w, "session", grant->session);
  tnk__json_put_text(&w, "hash", text);
  tnk__json_put_int(&w, "expires", limits->expires_s);
  put_use(&w, &(tnk__gw_use_t){limits->max_requests, limits->max_tokens,
                               limits->max_turns, limits->max_pico});
  tnk__json_put_int(&w, "body", (int64_t)limits->max_body);
  tnk__json_put_int(&w, "concurrent", limits->max_concurrent);
  tnk__json_put_int(&w, "per_minute", limits->max_per_minute);
  tnk__json_put_bool(&w, "may_reward", limits->may_reward);
  if (limits->certificate != NULL)
    tnk__json_put_text(&w, "certificate", limits->certificate);
  return end(grants, grant->session, &line, &w);
}

/* Other processes add to the use of the same key. So a line of a shared record
 * has the change, and not the total. */
static int put_change(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  const tnk__gw_use_t *used = &grant->used;
  const tnk__gw_use_t *told = &grant->told;
  const tnk__gw_use_t change = {
      used->n_requests - told->n_requests, used->n_tokens - told->n_tokens,
      used->n_turns - told->n_turns, used->pico - told->pico};
  tnk__json_writer_t w;
  tnk__buf_t line;
  int err;

  begin(grants, "key_change", grant->id, &line, &w);
  put_use(&w, &change);
  err = end(grants, grant->session, &line, &w);
  if (err == TNK_OK)
    grant->told = grant->used;
  return err;
}

int tnk__gw_grant_put_use(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  tnk__json_writer_t w;
  tnk__buf_t line;

  if (tnk__gw_record_is_shared(grants->record))
    return put_change(grants, grant);
  begin(grants, "key_used", grant->id, &line, &w);
  put_use(&w, &grant->used);
  return end(grants, grant->session, &line, &w);
}

int tnk__gw_grant_put_end(tnk__gw_grants_t *grants,
                          const tnk__gw_grant_t *grant) {
  tnk__json_writer_t w;
  tnk__buf_t line;

  begin(grants, "key_revoked", grant->id, &line, &w);
  return end(grants, grant->session, &line, &w);
}

/* ---- Reading ---- */

static int get(const json_t *line, const char *key, int64_t max,
               uint64_t *out) {
  int64_t value = 0;

  if (tnk__json_get_int(line, key, 0, max, &value) != TNK__JSON_FOUND)
    return -1;
  *out = (uint64_t)value;
  return 0;
}

static int read_use(const json_t *line, tnk__gw_use_t *use) {
  return get(line, "requests", INT64_MAX, &use->n_requests) == 0 &&
                 get(line, "tokens", INT64_MAX, &use->n_tokens) == 0 &&
                 get(line, "turns", INT64_MAX, &use->n_turns) == 0 &&
                 get(line, "pico_usd", INT64_MAX, &use->pico) == 0
             ? 0
             : -1;
}

/* Add a change, which may be negative. A store that has come back as an older
 * copy may lack changes before it. Then the use is 0. */
static int take_change(const json_t *line, const char *key, uint64_t *used,
                       uint64_t *told) {
  int64_t change = 0;

  if (tnk__json_get_int(line, key, -INT64_MAX, INT64_MAX, &change) !=
      TNK__JSON_FOUND)
    return -1;
  if (change > 0 && *used > (uint64_t)INT64_MAX - (uint64_t)change)
    return -1;
  if (change < 0 && *used < (uint64_t)-change)
    change = -(int64_t)*used;
  *used += (uint64_t)change;
  *told += (uint64_t)change;
  return 0;
}

static int take_changes(const json_t *line, tnk__gw_grant_t *grant) {
  tnk__gw_use_t used = grant->used;
  tnk__gw_use_t told = grant->told;

  if (take_change(line, "requests", &used.n_requests, &told.n_requests) != 0 ||
      take_change(line, "tokens", &used.n_tokens, &told.n_tokens) != 0 ||
      take_change(line, "turns", &used.n_turns, &told.n_turns) != 0 ||
      take_change(line, "pico_usd", &used.pico, &told.pico) != 0)
    return TNK_EPROTO;
  grant->used = used;
  grant->told = told;
  return TNK_OK;
}

static int read_limits(const json_t *line, tnk__gw_limits_t *limits) {
  uint64_t concurrent = 0, per_minute = 0, expires = 0;
  tnk__gw_use_t most = {0};

  if (read_use(line, &most) != 0 ||
      get(line, "expires", INT64_MAX, &expires) != 0 ||
      get(line, "body", INT64_MAX, &limits->max_body) != 0 ||
      get(line, "concurrent", UINT32_MAX, &concurrent) != 0 ||
      get(line, "per_minute", TNK__GW_MAX_RATE, &per_minute) != 0 ||
      tnk__json_get_bool(line, "may_reward", &limits->may_reward) !=
          TNK__JSON_FOUND ||
      tnk__json_get_text(line, "certificate", &limits->certificate) ==
          TNK__JSON_WRONG)
    return -1;
  limits->expires_s = (int64_t)expires;
  limits->max_requests = most.n_requests;
  limits->max_tokens = most.n_tokens;
  limits->max_turns = most.n_turns;
  limits->max_pico = most.pico;
  limits->max_concurrent = (uint32_t)concurrent;
  limits->max_per_minute = (uint32_t)per_minute;
  return 0;
}

/* The line of a new grant, or of a grant with another key. */
static int take_key(tnk__gw_grants_t *grants, const char *id,
                    const json_t *line) {
  tnk__gw_grant_t *grant = tnk__gw_grant_by_id(grants, id);
  const char *session = tnk__json_str(line, "session");
  const char *hash = tnk__json_str(line, "hash");
  uint8_t bytes[TNK__GW_HASH];
  tnk__gw_limits_t limits = {0};

  if (session == NULL || session[0] == '\0' || hash == NULL ||
      tnk__gw_secret_read(hash, bytes) != 0 || read_limits(line, &limits) != 0)
    return TNK_EPROTO;
  if (grant != NULL)
    return tnk__gw_grant_set_hash(grants, grant, bytes);
  if (tnk__gw_gone_has(&grants->revoked, id))
    return TNK_OK;
  /* The file keeps all keys; expired ones need no memory. */
  if (limits.expires_s != 0 && limits.expires_s <= grants->now_ms() / 1000)
    return TNK_OK;
  grant = tnk__gw_grant_make(grants, session, &limits);
  if (grant == NULL)
    return TNK_ENOMEM;
  memcpy(grant->id, id, strlen(id) + 1);
  memcpy(grant->hash, bytes, TNK__GW_HASH);
  return tnk__gw_grant_link(grants, grant);
}

void tnk__gw_grants_drop(tnk__gw_grants_t *grants, const char *session) {
  TNK__LIST_FOREACH_SAFE (node, next, &grants->all) {
    tnk__gw_grant_t *grant = tnk__container_of(node, tnk__gw_grant_t, link);

    if (strcmp(grant->session, session) == 0)
      tnk__gw_grant_drop(grants, grant);
  }
}

int tnk__gw_grants_take(void *user, const char *type, const json_t *line) {
  tnk__gw_grants_t *grants = user;
  const char *id = tnk__json_str(line, "id");
  tnk__gw_grant_t *grant;
  tnk__gw_use_t use;

  if (strncmp(type, "key", 3) != 0 || (type[3] != '\0' && type[3] != '_'))
    return TNK_OK;
  if (id == NULL || strlen(id) >= TNK__GW_ID_TEXT)
    return TNK_EPROTO;
  if (type[3] == '\0')
    return take_key(grants, id, line);
  grant = tnk__gw_grant_by_id(grants, id);
  if (grant == NULL)
    return strcmp(type, "key_revoked") == 0
               ? tnk__gw_gone_add(&grants->revoked, id)
               : TNK_OK;
  if (strcmp(type, "key_revoked") == 0) {
    tnk__gw_grant_drop(grants, grant);
  } else if (strcmp(type, "key_used") == 0) {
    if (read_use(line, &use) != 0)
      return TNK_EPROTO;
    grant->used = use;
  } else if (strcmp(type, "key_change") == 0) {
    return take_changes(line, grant);
  }
  return TNK_OK;
}
