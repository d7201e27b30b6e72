/* SPDX-License-Identifier: MIT */
#include "tools/local/store/store.h"

#include <stdio.h>
#include <string.h>

#include "lib/files/age/age.h"
#include "tools/local/lm/file.h"
#include "tools/local/lm/lm.h"

/* ---- Places ---- */

/* Names of checkpoints, their paths and their directories. */

static const char *const kinds[] = {"weights", "sampler_weights",
                                    "external_weights", "ephemeral"};

const char *local_kind_name(local_place_kind_t kind) {
  return kinds[kind];
}

static int is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

int local_name_ok(const char *name, int strict) {
  size_t n = strlen(name);

  if (n < 1 || n > 255 || name[0] == '.')
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!is_name_char(name[i]) && (strict || name[i] != '.'))
      return 0;
  return 1;
}

/* Ids of runs contain no part that leads out of the directory. */
int local_run_ok(const char *run) {
  size_t n = strlen(run);

  if (n < 1 || n >= LOCAL_ID)
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!is_name_char(run[i]) && run[i] != ':')
      return 0;
  return 1;
}

int local_place_make(local_place_t *place, const char *run, const char *kind,
                     const char *name) {
  *place = (local_place_t){0};
  if (!local_run_ok(run) || !local_name_ok(name, 0))
    return 0;
  for (int i = LOCAL_WEIGHTS; i <= LOCAL_EXTERNAL_WEIGHTS; i++)
    if (strcmp(kind, kinds[i]) == 0) {
      place->kind = (local_place_kind_t)i;
      snprintf(place->run, sizeof(place->run), "%s", run);
      snprintf(place->name, sizeof(place->name), "%s", name);
      return 1;
    }
  return 0;
}

int local_place_parse(local_place_t *place, const char *path) {
  static const char scheme[] = "tinker://";
  char copy[LOCAL_PATH];
  char *kind;
  char *name;

  if (strncmp(path, scheme, sizeof(scheme) - 1) != 0 ||
      strlen(path) >= sizeof(copy))
    return 0;
  snprintf(copy, sizeof(copy), "%s", path + sizeof(scheme) - 1);
  kind = strchr(copy, '/');
  if (kind == NULL)
    return 0;
  *kind++ = '\0';
  name = strchr(kind, '/');
  if (name == NULL)
    return local_place_make(place, copy, kinds[LOCAL_SAMPLER_WEIGHTS], kind);
  *name++ = '\0';
  return local_place_make(place, copy, kind, name);
}

void local_place_text(const local_place_t *place, char *out) {
  snprintf(out, LOCAL_PATH, "tinker://%s/%s/%s", place->run, kinds[place->kind],
           place->name);
}

int local_place_dir(const local_server_t *server, const local_place_t *place,
                    char *out) {
  int n = snprintf(out, LOCAL_FILE, "%s/%s/%s/%s", server->data, place->run,
                   kinds[place->kind], place->name);

  if (n < 0 || n >= LOCAL_FILE - 64) /* space for the files' names */
    return 0;
  /* Not every file system or archive allows colons in names. */
  for (char *p = out + strlen(server->data); *p != '\0'; p++)
    if (*p == ':')
      *p = '_';
  return 1;
}

void local_place_note(const local_server_t *server, const char *event,
                      const local_place_t *place) {
  char path[LOCAL_PATH];

  local_place_text(place, path);
  local_ledger_note(server, event, path);
}

/* ---- Checkpoints ---- */

/* Saves, copies and removes checkpoints. */

/* An adapter of the highest rank has 6 MB. */
#define MAX_EXPORT ((size_t)64 << 20)

int local_store_files(const char *dir, local_listing_t *out) {
  char path[LOCAL_FILE + 256];
  uv_dirent_t entry;
  uv_fs_t scan;

  out->n = 0;
  if (uv_fs_scandir(NULL, &scan, dir, 0, NULL) < 0)
    return TNK_ENOTFOUND;
  while (uv_fs_scandir_next(&scan, &entry) == 0) {
    local_listed_t *file = &out->files[out->n];
    int n;

    if (out->n == LOCAL_MAX_FILES || strcmp(entry.name, LOCAL_META) == 0 ||
        strlen(entry.name) >= sizeof(file->name))
      continue;
    n = snprintf(path, sizeof(path), "%s/%s", dir, entry.name);
    if (n < 0 || (size_t)n >= sizeof(path))
      continue;
    memcpy(file->name, entry.name, strlen(entry.name) + 1);
    file->size = local_file_size(path);
    out->n++;
  }
  uv_fs_req_cleanup(&scan);
  return TNK_OK;
}

static int64_t total_size(const char *dir) {
  local_listing_t listing;
  int64_t n = 0;

  if (local_store_files(dir, &listing) != TNK_OK)
    return 0;
  for (size_t i = 0; i < listing.n; i++)
    n += listing.files[i].size;
  return n;
}

/* ---- Checkpoints: a directory that becomes a checkpoint ---- */

typedef struct {
  char dir[LOCAL_FILE];
  char temporary[LOCAL_FILE + 16];
} draft_t;

static int draft_open(const local_server_t *server, draft_t *draft,
                      const local_place_t *place, tnk__lm_why_t *why) {
  size_t n;
  int err;

  if (!local_place_dir(server, place, draft->dir))
    return tnk__lm_refuse(why, TNK_EINVAL, "The path is too long");
  /* Names of checkpoints never begin with a dot, so the name is free. */
  snprintf(draft->temporary, sizeof(draft->temporary), "%s", draft->dir);
  *strrchr(draft->temporary, '/') = '\0';
  n = strlen(draft->temporary);
  snprintf(draft->temporary + n, sizeof(draft->temporary) - n, "/.%s",
           place->name);
  /* An interrupted save may have left it. */
  local_remove_tree(draft->temporary);
  err = local_make_dirs(draft->temporary);
  return err == 0
             ? TNK_OK
             : tnk__lm_refuse(why, TNK_EFAILED, "Cannot make the directory: %s",
                              uv_strerror(err));
}

/* Write the metadata and rename the directory; after an earlier error remove
 * it. */
static int draft_close(const local_server_t *server, const draft_t *draft,
                       local_meta_t *meta, int err, tnk__lm_why_t *why) {
  uv_fs_t req;

  meta->time_ms = local_now_ms(server);
  meta->n_bytes = total_size(draft->temporary);
  if (err == TNK_OK)
    err = local_meta_write_to(server->alloc, draft->temporary, meta, why);
  if (err == TNK_OK) {
    local_remove_tree(draft->dir);
    if (uv_fs_rename(NULL, &req, draft->temporary, draft->dir, NULL) != 0)
      err = tnk__lm_refuse(why, TNK_EFAILED, "Cannot rename the checkpoint");
    uv_fs_req_cleanup(&req);
  }
  if (err != TNK_OK)
    local_remove_tree(draft->temporary);
  return err;
}

/* ---- Checkpoints: saving ---- */

static int refuse_taken(const local_server_t *server, const local_meta_t *meta,
                        int overwrite, tnk__lm_why_t *why) {
  if (overwrite || !local_place_exists(server, &meta->place))
    return TNK_OK;
  return tnk__lm_refuse(why, TNK_ECONFLICT,
                        "Checkpoint '%.200s' already exists", meta->place.name);
}

int local_store_save(const local_server_t *server, const tnk__lm_t *lm,
                     int with_optimizer, int overwrite, local_meta_t *meta,
                     tnk__lm_why_t *why) {
  draft_t draft;
  int err = refuse_taken(server, meta, overwrite, why);

  if (err == TNK_OK)
    err = draft_open(server, &draft, &meta->place, why);
  if (err != TNK_OK)
    return err;
  err = tnk__lm_save(lm, draft.temporary, with_optimizer, why);
  return draft_close(server, &draft, meta, err, why);
}

/* ---- Checkpoints: for other programs ---- */

static int draw_random(void *user, unsigned char *out, size_t n) {
  (void)user;
  return uv_random(NULL, NULL, out, n, 0, NULL);
}

/* Replace `plain` by its encrypted form. */
static int seal(tnk__buf_t *plain, const local_recipients_t *to) {
  tnk__age_seal_t age;
  tnk__buf_t out;
  int err;

  tnk__buf_init(&out, plain->alloc, 2 * MAX_EXPORT);
  err = tnk__age_seal_init(&age, plain->alloc, to->keys, to->n, draw_random,
                           NULL, &out);
  if (err == TNK_OK)
    err = tnk__age_seal_feed(&age, &out, plain->data, plain->len);
  if (err == TNK_OK)
    err = tnk__age_seal_finish(&age, &out);
  tnk__age_seal_deinit(&age);
  if (err == TNK_OK) {
    tnk__buf_deinit(plain);
    *plain = out;
  } else {
    tnk__buf_deinit(&out);
  }
  return err;
}

/* Write one file; the contents may have an error. */
static int put_file(const char *dir, const char *name,
                    const local_recipients_t *to, tnk__buf_t *contents, int err,
                    tnk__lm_why_t *why) {
  char sealed[64];

  snprintf(sealed, sizeof(sealed), "%s%s", name, to->n > 0 ? ".age" : "");
  if (err == TNK_OK && to->n > 0)
    err = seal(contents, to);
  if (err == TNK_OK)
    err = tnk__lm_file_write(dir, sealed, contents, why);
  else
    tnk__lm_refuse(why, err, "%s: %s", name,
                   err == TNK_ENOMEM   ? "out of memory"
                   : err == TNK_EPROTO ? "a recipient's key is not safe"
                                       : "cannot be written");
  tnk__buf_deinit(contents);
  return err;
}

static int export_to(const local_server_t *server, const tnk__lm_t *lm,
                     const local_recipients_t *to, const char *dir,
                     tnk__lm_why_t *why) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, server->alloc, MAX_EXPORT);
  err = tnk__lm_peft_tensors(lm, &buf);
  err = put_file(dir, TNK__LM_FILE_ADAPTER, to, &buf, err, why);
  if (err != TNK_OK)
    return err;
  tnk__buf_init(&buf, server->alloc, MAX_EXPORT);
  err = tnk__lm_peft_config(tnk__lm_config(lm), local_base_name(server), &buf);
  return put_file(dir, TNK__LM_FILE_CONFIG, to, &buf, err, why);
}

int local_store_export(const local_server_t *server, const tnk__lm_t *lm,
                       const local_recipients_t *to, int overwrite,
                       local_meta_t *meta, tnk__lm_why_t *why) {
  draft_t draft;
  int err = refuse_taken(server, meta, overwrite, why);

  if (err == TNK_OK)
    err = draft_open(server, &draft, &meta->place, why);
  if (err != TNK_OK)
    return err;
  err = export_to(server, lm, to, draft.temporary, why);
  return draft_close(server, &draft, meta, err, why);
}

/* ---- Checkpoints: copying and removing ---- */

/* Saved files never change, so two checkpoints can share them. */
static int share(const char *from, const char *to) {
  char source[LOCAL_FILE + 256];
  char target[LOCAL_FILE + 256];
  local_listing_t listing;
  uv_fs_t req;
  int err = 0;

  if (local_store_files(from, &listing) != TNK_OK)
    return TNK_EFAILED;
  for (size_t i = 0; err == 0 && i < listing.n; i++) {
    snprintf(source, sizeof(source), "%s/%s", from, listing.files[i].name);
    snprintf(target, sizeof(target), "%s/%s", to, listing.files[i].name);
    err = uv_fs_link(NULL, &req, source, target, NULL);
    uv_fs_req_cleanup(&req);
  }
  return err == 0 ? TNK_OK : TNK_EFAILED;
}

int local_store_copy(const local_server_t *server, const local_place_t *from,
                     local_meta_t *meta) {
  char source[LOCAL_FILE];
  draft_t draft;
  int err;

  if (!local_place_dir(server, from, source) ||
      draft_open(server, &draft, &meta->place, NULL) != TNK_OK)
    return TNK_EFAILED;
  err = share(source, draft.temporary);
  return draft_close(server, &draft, meta, err, NULL);
}

void local_store_expires(local_server_t *server, int64_t ms) {
  if (ms > 0 && (server->next_expiry_ms == 0 || ms < server->next_expiry_ms))
    server->next_expiry_ms = ms;
}

int local_store_remove(const local_server_t *server,
                       const local_place_t *place) {
  char dir[LOCAL_FILE];
  int64_t time_ms;
  int64_t n_bytes;

  if (!local_place_dir(server, place, dir) ||
      !local_place_exists(server, place))
    return TNK_ENOTFOUND;
  local_meta_peek(server, place, &time_ms, &n_bytes);
  local_ledger_stored(server, n_bytes, time_ms, INT64_MAX);
  local_remove_tree(dir);
  return TNK_OK;
}
