#include "api/credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "codec/format/jwt.h"
#include "tnk/error.h"

enum { MAX_FILE = 1024 * 1024 };

static const char *string_member(const json_t *object, const char *name) {
  return json_string_value(json_object_get(object, name));
}

/* One record of "keys" must have its type, key and name. */
static int record_is_valid(const json_t *record) {
  const char *type = string_member(record, "type");

  if (type == NULL || string_member(record, "key") == NULL ||
      string_member(record, "name") == NULL)
    return 0;
  if (strcmp(type, "manual") == 0)
    return 1;
  return strcmp(type, "generated") == 0 &&
         json_is_object(json_object_get(record, "details"));
}

static int pick_default(const tnk_allocator_t *alloc, const json_t *root,
                        char **key) {
  const json_t *version = json_object_get(root, "version");
  json_t *keys = json_object_get(root, "keys");
  const char *id = string_member(root, "default");
  const char *text;
  const char *name;
  json_t *record;

  if (!json_is_object(root) ||
      (version != NULL && json_integer_value(version) != 1) ||
      (keys != NULL && !json_is_object(keys)))
    return TNK_ECREDENTIAL;
  json_object_foreach(keys, name, record) {
    if (!record_is_valid(record))
      return TNK_ECREDENTIAL;
  }
  text = id != NULL ? string_member(json_object_get(keys, id), "key") : NULL;
  if (text == NULL)
    return TNK_OK;
  *key = tnk__strdup(alloc, text);
  return *key != NULL ? TNK_OK : TNK_ENOMEM;
}

int tnk__credentials_parse(const tnk_allocator_t *alloc, const char *text,
                           size_t length, char **key) {
  json_t *root = json_loadb(text, length, 0, NULL);
  int err;

  *key = NULL;
  if (root == NULL)
    return TNK_ECREDENTIAL;
  err = pick_default(alloc, root, key);
  json_decref(root);
  return err;
}

/* The whole file, at most MAX_FILE bytes. */
static int read_all(FILE *file, tnk__buf_t *buf) {
  for (;;) {
    uint8_t *to = tnk__buf_reserve(buf, 4096);
    size_t n;
    if (to == NULL)
      return buf->err == TNK_ENOMEM ? TNK_ENOMEM : TNK_ECREDENTIAL;
    n = fread(to, 1, 4096, file);
    buf->len += n;
    if (n < 4096)
      return ferror(file) ? TNK_ECREDENTIAL : TNK_OK;
  }
}

int tnk__credentials_read(const tnk_allocator_t *alloc, char **key) {
  const char *home = getenv("HOME");
  char path[4096];
  tnk__buf_t buf;
  FILE *file;
  int n;
  int err;

  *key = NULL;
  if (home == NULL || home[0] == '\0')
    return TNK_OK;
  n = snprintf(path, sizeof(path), "%s/.tinker/credentials.json", home);
  if (n < 0 || (size_t)n >= sizeof(path))
    return TNK_OK;
  file = fopen(path, "re");
  if (file == NULL)
    return TNK_OK;
  tnk__buf_init(&buf, alloc, MAX_FILE);
  err = read_all(file, &buf);
  fclose(file);
  if (err == TNK_OK)
    err = tnk__credentials_parse(alloc, (const char *)buf.data, buf.len, key);
  if (buf.data != NULL)
    memset(buf.data, 0, buf.cap);
  tnk__buf_deinit(&buf);
  return err;
}

int tnk__key_check(const tnk_allocator_t *alloc, const char *key,
                   int64_t *expires_s, const char **why) {
  tnk__jwt_t jwt;

  *expires_s = 0;
  if (!tnk__token_is_sound(key)) {
    *why = "the API key has a character that no key has, or is too long";
    return TNK_ECREDENTIAL;
  }
  if (strncmp(key, "tml-", 4) == 0)
    return TNK_OK;
  if (!tnk__token_is_jwt(key)) {
    *why = "the API key starts neither with tml- nor, as a JWT, with eyJ";
    return TNK_ECREDENTIAL;
  }
  if (tnk__jwt_read(&jwt, alloc, key) != TNK_OK)
    return TNK_ENOMEM;
  *expires_s = jwt.expires_s;
  if (*expires_s > 0)
    return TNK_OK;
  *why = "the API key is a JWT without a readable time of expiry";
  return TNK_ECREDENTIAL;
}
