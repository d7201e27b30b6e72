#include "lib/api/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/api/env.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/data/credentials.h"
#include "lib/wire/format/jwt.h"
#include "tnk/error.h"

#define FILE_NAME "~/" TNK__CREDENTIALS_FILE

/* Read the whole file, up to the maximum size. */
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

/* The server of a key is shown in full, because the user may have several
 * servers. */
static int choose(const tnk_allocator_t *alloc, const json_t *store,
                  const tnk__url_t *url, char **key, char *why, size_t size) {
  /* A mixed-up variable may contain a key. */
  const char *server =
      strstr(url->text, "tml-") == NULL ? url->text : "this server";
  tnk__stored_key_t record;

  switch (tnk__credentials_find(&record, store, url)) {
  case TNK__STORED_FOUND:
    *key = tnk__strdup(alloc, record.key);
    return *key != NULL ? TNK_OK : TNK_ENOMEM;
  case TNK__STORED_ELSEWHERE:
    snprintf(why, size,
             "no API key for %.70s: that of " FILE_NAME " is for %.70s", server,
             record.base_url);
    return TNK_ECREDENTIAL;
  case TNK__STORED_EXPOSED:
    snprintf(why, size,
             "the API key of " FILE_NAME " names no server, so it is not sent "
             "to %.70s, without TLS: set TINKER_API_KEY",
             server);
    return TNK_ECREDENTIAL;
  default:
    return TNK_OK;
  }
}

static int take(const tnk_allocator_t *alloc, const tnk__buf_t *buf,
                const tnk__url_t *url, char **key, char *why, size_t size) {
  json_t *store;
  int err = tnk__credentials_open(&store, buf->data, buf->len);

  if (err == TNK_OK)
    err = choose(alloc, store, url, key, why, size);
  else if (err == TNK_ECREDENTIAL)
    snprintf(why, size, FILE_NAME " is no credentials file");
  tnk__credentials_close(store);
  return err;
}

/* Open the file. Returns TNK_OK with NULL if it does not exist. */
static int open_file(FILE **file, char *why, size_t size) {
  const char *home = tnk__env("HOME");
  char path[4096];
  int n;

  *file = NULL;
  if (home == NULL)
    return TNK_OK;
  n = snprintf(path, sizeof(path), "%s/" TNK__CREDENTIALS_FILE, home);
  if (n < 0 || (size_t)n >= sizeof(path))
    return TNK_OK;
  *file = fopen(path, "re");
  if (*file != NULL || errno == ENOENT || errno == ENOTDIR)
    return TNK_OK;
  snprintf(why, size, "cannot read " FILE_NAME ": %.80s", strerror(errno));
  return TNK_ECREDENTIAL;
}

int tnk__credentials_read(const tnk_allocator_t *alloc, const tnk__url_t *url,
                          char **key, char *why, size_t size) {
  tnk__buf_t buf;
  FILE *file;
  int err = open_file(&file, why, size);

  *key = NULL;
  if (file == NULL)
    return err;
  tnk__buf_init(&buf, alloc, TNK__MAX_CREDENTIALS);
  err = read_all(file, &buf);
  fclose(file);
  if (err == TNK_OK)
    err = take(alloc, &buf, url, key, why, size);
  else
    snprintf(why, size, "cannot read " FILE_NAME);
  if (buf.data != NULL)
    tnk__wipe(buf.data, buf.cap);
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
