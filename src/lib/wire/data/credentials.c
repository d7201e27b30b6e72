/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/credentials.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* MAX_SAME: records with the same id, distinguished by a number at its end. */
enum { MAX_SAME = 1000, MAX_ID = 128 };

/* ---- Reading ---- */

/* Returns whether a member is absent or a string. */
static int is_optional_text(const json_t *object, const char *name) {
  const char *text;

  return tnk__json_get_text(object, name, &text) != TNK__JSON_WRONG;
}

static int record_is_valid(const json_t *record) {
  const char *type = tnk__json_str(record, "type");

  if (type == NULL || tnk__json_str(record, "key") == NULL ||
      tnk__json_str(record, "name") == NULL ||
      !is_optional_text(record, "note") ||
      !is_optional_text(record, "base_url"))
    return 0;
  if (strcmp(type, "manual") == 0)
    return 1;
  return strcmp(type, "generated") == 0 &&
         tnk__json_obj(record, "details") != NULL;
}

static int is_valid(json_t *store) {
  const json_t *version = json_object_get(store, "version");
  json_t *keys = json_object_get(store, "keys");
  const char *id;
  json_t *record;

  if ((version != NULL && json_integer_value(version) != 1) ||
      (keys != NULL && !json_is_object(keys)) ||
      !is_optional_text(store, "default"))
    return 0;
  json_object_foreach(keys, id, record) {
    if (!record_is_valid(record))
      return 0;
  }
  return 1;
}

int tnk__credentials_open(json_t **out, const void *text, size_t n) {
  int err = tnk__json_parse_object(out, text, n);

  if (err == TNK_OK && !is_valid(*out)) {
    tnk__credentials_close(*out);
    *out = NULL;
    err = TNK_EPROTO;
  }
  return err == TNK_EPROTO ? TNK_ECREDENTIAL : err;
}

/* jansson allocates the string separately and does not share it, so it may be
 * overwritten. */
static void wipe_key(const json_t *record) {
  const char *key = tnk__json_str(record, "key");

  if (key != NULL)
    tnk__wipe((char *)key, strlen(key));
}

void tnk__credentials_close(json_t *store) {
  json_t *keys = json_object_get(store, "keys");
  const char *id;
  json_t *record;

  json_object_foreach(keys, id, record) {
    wipe_key(record);
  }
  json_decref(store);
}

/* ---- Finding ---- */

static tnk__stored_key_t key_of(const char *id, const json_t *record) {
  tnk__stored_key_t key = {
      .id = id,
      .key = tnk__json_str(record, "key"),
      .name = tnk__json_str(record, "name"),
      .note = tnk__json_str(record, "note"),
      .base_url = tnk__json_str(record, "base_url"),
      .details = tnk__json_obj(record, "details"),
      .is_generated = strcmp(tnk__json_str(record, "type"), "generated") == 0,
  };

  return key;
}

static const json_t *default_of(const json_t *store, const char **id) {
  *id = tnk__json_str(store, "default");
  return *id != NULL ? json_object_get(json_object_get(store, "keys"), *id)
                     : NULL;
}

static int is_for(const json_t *record, const tnk__url_t *url) {
  const char *bound = tnk__json_str(record, "base_url");

  return bound != NULL && strcmp(bound, url->text) == 0;
}

static tnk__stored_t judge(const tnk__stored_key_t *key,
                           const tnk__url_t *url) {
  if (key->base_url != NULL)
    return strcmp(key->base_url, url->text) == 0 ? TNK__STORED_FOUND
                                                 : TNK__STORED_ELSEWHERE;
  return url->is_tls || tnk__url_is_loopback(url) ? TNK__STORED_FOUND
                                                  : TNK__STORED_EXPOSED;
}

tnk__stored_t tnk__credentials_find(tnk__stored_key_t *out, const json_t *store,
                                    const tnk__url_t *url) {
  json_t *keys = json_object_get(store, "keys");
  const char *default_id;
  const json_t *standard = default_of(store, &default_id);
  const char *id;
  json_t *record;

  if (standard == NULL || !is_for(standard, url)) {
    json_object_foreach(keys, id, record) {
      if (is_for(record, url)) {
        *out = key_of(id, record);
        return TNK__STORED_FOUND;
      }
    }
  }
  if (standard == NULL)
    return TNK__STORED_NONE;
  *out = key_of(default_id, standard);
  return judge(out, url);
}

/* ---- Changing ---- */

/* The keys of a store. They are created if the store has none. */
static json_t *keys_of(json_t *store) {
  json_t *keys = json_object_get(store, "keys");

  if (keys != NULL)
    return keys;
  if (json_object_set_new(store, "keys", json_object()) != 0)
    return NULL;
  return json_object_get(store, "keys");
}

/* The id itself, or a free variant of it. */
static const char *free_id(const json_t *keys, const char *id,
                           char room[MAX_ID]) {
  int i;

  if (json_object_get(keys, id) == NULL)
    return id;
  for (i = 2; i < MAX_SAME; i++) {
    snprintf(room, MAX_ID, "%.100s-%d", id, i);
    if (json_object_get(keys, room) == NULL)
      return room;
  }
  return NULL;
}

static int put(json_t *record, const char *name, const char *text) {
  return text == NULL ? 0
                      : json_object_set_new(record, name, json_string(text));
}

static json_t *record_of(const tnk__stored_key_t *key) {
  json_t *record = json_object();
  json_t *details = key->details != NULL ? json_deep_copy(key->details) : NULL;

  if (record == NULL || (key->details != NULL && details == NULL) ||
      put(record, "type", key->is_generated ? "generated" : "manual") != 0 ||
      put(record, "key", key->key) != 0 ||
      put(record, "name", key->name) != 0 ||
      put(record, "note", key->note) != 0 ||
      put(record, "base_url", key->base_url) != 0 ||
      (details != NULL && json_object_set(record, "details", details) != 0)) {
    json_decref(record);
    record = NULL;
  }
  json_decref(details);
  return record;
}

int tnk__credentials_add(json_t *store, const tnk__stored_key_t *key) {
  const char *default_id;
  const int has_default = default_of(store, &default_id) != NULL;
  const int is_new = json_object_size(store) == 0;
  json_t *keys;
  const char *id;
  char room[MAX_ID];

  if (is_new && json_object_set_new(store, "version", json_integer(1)) != 0)
    return TNK_ENOMEM;
  /* Before the keys, as in files of other programs. */
  if (!has_default && json_object_get(store, "default") == NULL &&
      json_object_set_new(store, "default", json_null()) != 0)
    return TNK_ENOMEM;
  keys = keys_of(store);
  id = keys != NULL ? free_id(keys, key->id, room) : NULL;
  if (id == NULL || json_object_set_new(keys, id, record_of(key)) != 0 ||
      (!has_default && json_object_set_new(store, "default", json_string(id))))
    return TNK_ENOMEM;
  return TNK_OK;
}

int tnk__credentials_remove(json_t *store, const char *id) {
  const char *default_id = tnk__json_str(store, "default");
  json_t *keys = json_object_get(store, "keys");
  const json_t *record = json_object_get(keys, id);
  const int is_default = default_id != NULL && strcmp(default_id, id) == 0;

  if (record == NULL)
    return 0;
  wipe_key(record);
  json_object_del(keys, id);
  if (is_default)
    json_object_del(store, "default");
  return 1;
}

/* ---- Writing ---- */

static int put_piece(const char *piece, size_t n, void *user) {
  return tnk__buf_append(user, piece, n) == TNK_OK ? 0 : -1;
}

int tnk__credentials_write(const json_t *store, tnk__buf_t *out) {
  if (json_dump_callback(store, put_piece, out, JSON_INDENT(2)) != 0 &&
      out->err == TNK_OK)
    out->err = TNK_ENOMEM;
  return tnk__buf_byte(out, '\n');
}
