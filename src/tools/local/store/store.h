/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_STORE_STORE_H
#define TNK_TOOLS_LOCAL_STORE_STORE_H

#include "lib/files/age/key.h"
#include "tools/local/call/call.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/store/files.h"

/*
 * Checkpoints on the disk, one directory each:
 *
 *   <data>/<run id, ':' as '_'>/<kind>/<name>/ the model's files + meta.json
 *
 * A save writes a directory with a temporary name and renames it, so an
 * existing one is complete. Unnamed checkpoints for sampling have kind
 * "ephemeral" and are removed with their sampler.
 */
typedef enum {
  LOCAL_WEIGHTS,
  LOCAL_SAMPLER_WEIGHTS,
  LOCAL_EXTERNAL_WEIGHTS,
  LOCAL_EPHEMERAL
} local_place_kind_t;

typedef struct {
  local_place_kind_t kind;
  char run[LOCAL_ID];
  char name[256];
} local_place_t;

typedef struct {
  local_place_t place;
  int64_t time_ms;    /* since 1970 */
  int64_t expires_ms; /* 0: never */
  int64_t n_bytes;
  int is_public;
  tnk__lm_config_t config; /* older files have only the rank */
  char *metadata;          /* JSON, or NULL; owned */
  char *project;           /* NULL: the first project; owned */
} local_meta_t;

/* The file with the metadata, next to the checkpoint's files. */
#define LOCAL_META "meta.json"

/* The files of a checkpoint, sorted by name. */
enum { LOCAL_MAX_FILES = 8 };
typedef struct {
  char name[64];
  int64_t size;
} local_listed_t;
typedef struct {
  size_t n;
  local_listed_t files[LOCAL_MAX_FILES];
} local_listing_t;

const char *local_kind_name(local_place_kind_t kind);
/* Returns whether a name has only letters, digits, '-', '_' and, unless
 * `strict`, dots between them. */
int local_name_ok(const char *name, int strict);
/* Parse "tinker://run/kind/name". A path of two parts names sampler weights, as
 * SkyRL writes them. Returns 0 for any other string. */
int local_place_parse(local_place_t *place, const char *path);
/* Returns whether a run's id is valid: letters, digits, '-', '_' and colons, so
 * that no part leads out of the directory. */
int local_run_ok(const char *run);
/* Make a place from a run, a kind such as "weights", and a name. */
int local_place_make(local_place_t *place, const char *run, const char *kind,
                     const char *name);
/* Record an event about a checkpoint. */
void local_place_note(const local_server_t *server, const char *event,
                      const local_place_t *place);
/* Write the path as a string; `out` has at least LOCAL_PATH bytes. */
enum { LOCAL_PATH = 512 };
void local_place_text(const local_place_t *place, char *out);
/* Write the path of its directory; `out` has LOCAL_FILE bytes. */
int local_place_dir(const local_server_t *server, const local_place_t *place,
                    char *out);

/* Returns whether it exists and has not expired. This function and all that
 * follow block. */
int local_place_exists(const local_server_t *server,
                       const local_place_t *place);
/* Write a checkpoint of `lm`. Returns TNK_ECONFLICT if it exists and
 * `overwrite` is not set. Time and size are added to `meta`. */
int local_store_save(const local_server_t *server, const tnk__lm_t *lm,
                     int with_optimizer, int overwrite, local_meta_t *meta,
                     tnk__lm_why_t *why);
/* The recipients who can decrypt the files, as age keys. */
enum { LOCAL_MAX_RECIPIENTS = 10 };
typedef struct {
  size_t n; /* 0: the files are not encrypted */
  uint8_t keys[LOCAL_MAX_RECIPIENTS][TNK__AGE_KEY];
} local_recipients_t;
/* Write `lm` in the format of other programs; otherwise as
 * local_store_save(). */
int local_store_export(const local_server_t *server, const tnk__lm_t *lm,
                       const local_recipients_t *to, int overwrite,
                       local_meta_t *meta, tnk__lm_why_t *why);
/* Copy a checkpoint to meta->place, which must not exist, and write `meta`. The
 * files are shared, not copied. Returns TNK_OK, or an error and no checkpoint
 * remains. */
int local_store_copy(const local_server_t *server, const local_place_t *from,
                     local_meta_t *meta);
/* List the files in a checkpoint's directory. Returns TNK_OK or
 * TNK_ENOTFOUND. */
int local_store_files(const char *dir, local_listing_t *out);
int local_store_remove(const local_server_t *server,
                       const local_place_t *place);
/* Record the expiry of a checkpoint; 0: never. Call it on the loop. */
void local_store_expires(local_server_t *server, int64_t ms);
/* Read the metadata of a checkpoint. An expired checkpoint is removed and
 * counts as missing: TNK_ENOTFOUND. Call it on the loop. */
int local_meta_read(const local_server_t *server, const local_place_t *place,
                    local_meta_t *out);
/* Read the creation time and size; both are 0 for a missing checkpoint. May be
 * called on any thread. */
void local_meta_peek(const local_server_t *server, const local_place_t *place,
                     int64_t *time_ms, int64_t *n_bytes);
int local_meta_write(const local_server_t *server, const local_meta_t *meta);
/* Read the metadata of the checkpoint that the path of a call names; returns 0
 * if answered. The caller frees it. */
int local_need_checkpoint(local_call_t *call, local_meta_t *meta);
/* Write the metadata into a directory, which may still have its temporary
 * name. */
int local_meta_write_to(const tnk_allocator_t *alloc, const char *dir,
                        const local_meta_t *meta, tnk__lm_why_t *why);
void local_meta_free(const local_server_t *server, local_meta_t *meta);

/* ---- data.c ---- */

/* Open the directory of all checkpoints: the configured one, created and
 * locked, or a temporary one. Returns TNK_OK, or an error and a message that
 * names the directory. */
int local_data_open(local_server_t *server, tnk__lm_why_t *why);
/* Write the model's tokenizer into the configured directory, if any. */
int local_model_dir_open(local_server_t *server, tnk__lm_why_t *why);
/* Unlock the directory, or remove a temporary one. */
void local_data_close(local_server_t *server);

#endif
