#ifndef TNK_TOOLS_LOCAL_STORE_STORE_H
#define TNK_TOOLS_LOCAL_STORE_STORE_H

#include "lib/files/age/key.h"
#include "tools/local/call/call.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/store/files.h"

/*
 * Checkpoints on the disk, a directory each:
 *
 *   <data>/<run id, ':' as '_'>/<kind>/<name>/ the model's files + meta.json
 *
 * A save writes into a directory with a temporary name and renames it, so one
 * that is there is complete. Unnamed ones for sampling are kind "ephemeral" and
 * go with their sampler.
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
  tnk__lm_config_t config; /* what was saved; of older ones the rank alone */
  char *metadata;          /* JSON, or NULL; owned */
  char *project;           /* NULL: the first one; owned */
} local_meta_t;

/* What is known about a checkpoint, in a file beside its own. */
#define LOCAL_META "meta.json"

/* The files of a checkpoint, by name. */
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
/* Whether a name has only letters, digits, '-' and '_', with dots between them
 * unless `strict`. */
int local_name_ok(const char *name, int strict);
/* Parse "tinker://run/kind/name"; a path of two parts means sampler weights,
 * as SkyRL writes them. 0 when it is no such path. */
int local_place_parse(local_place_t *place, const char *path);
/* Whether an id of a run is one: letters, digits, '-', '_' and colons, so that
 * no part of it leads out of the directory. */
int local_run_ok(const char *run);
/* Make one out of a run and "weights/name". */
int local_place_make(local_place_t *place, const char *run, const char *kind,
                     const char *name);
/* Note an event about a checkpoint. */
void local_place_note(const local_server_t *server, const char *event,
                      const local_place_t *place);
/* Write a path as text; `out` has at least LOCAL_PATH bytes. */
enum { LOCAL_PATH = 512 };
void local_place_text(const local_place_t *place, char *out);
/* Write the name of its directory; `out` has LOCAL_FILE bytes. */
int local_place_dir(const local_server_t *server, const local_place_t *place,
                    char *out);

/* Whether it exists, and its time is not over. This and all that follow block
 * on the disk. */
int local_place_exists(const local_server_t *server,
                       const local_place_t *place);
/* Write a checkpoint of `lm`. TNK_ECONFLICT when there is one and not
 * `overwrite`. `meta` is completed with time and size. */
int local_store_save(const local_server_t *server, const tnk__lm_t *lm,
                     int with_optimizer, int overwrite, local_meta_t *meta,
                     tnk__lm_why_t *why);
/* Who may read files, by keys of age. */
enum { LOCAL_MAX_RECIPIENTS = 10 };
typedef struct {
  size_t n; /* 0: everybody, they are not encrypted */
  uint8_t keys[LOCAL_MAX_RECIPIENTS][TNK__AGE_KEY];
} local_recipients_t;
/* Write what other programs load of `lm`, as local_store_save() does else. */
int local_store_export(const local_server_t *server, const tnk__lm_t *lm,
                       const local_recipients_t *to, int overwrite,
                       local_meta_t *meta, tnk__lm_why_t *why);
/* Copy one to meta->place, where none is, and write `meta` beside it. The files
 * are shared, not copied. TNK_OK, or a code and then there is none. */
int local_store_copy(const local_server_t *server, const local_place_t *from,
                     local_meta_t *meta);
/* List the files in a checkpoint's directory. TNK_OK or TNK_ENOTFOUND. */
int local_store_files(const char *dir, local_listing_t *out);
int local_store_remove(const local_server_t *server,
                       const local_place_t *place);
/* Remember that a checkpoint expires then; 0: never. On the loop. */
void local_store_expires(local_server_t *server, int64_t ms);
/* Read what is known about a checkpoint. One whose time is over is removed, and
 * is not there: TNK_ENOTFOUND. On the loop. */
int local_meta_read(const local_server_t *server, const local_place_t *place,
                    local_meta_t *out);
/* Read since when it is there and how large it is, both 0 where nothing is. On
 * any thread. */
void local_meta_peek(const local_server_t *server, const local_place_t *place,
                     int64_t *time_ms, int64_t *n_bytes);
int local_meta_write(const local_server_t *server, const local_meta_t *meta);
/* What is known about the checkpoint that the path of a call names; 0 when
 * answered. Free it. */
int local_need_checkpoint(local_call_t *call, local_meta_t *meta);
/* Write it into a directory that may not be its own yet. */
int local_meta_write_to(const tnk_allocator_t *alloc, const char *dir,
                        const local_meta_t *meta, tnk__lm_why_t *why);
void local_meta_free(const local_server_t *server, local_meta_t *meta);

/* ---- data.c ---- */

/* Open the directory of all checkpoints: the one of the options, made and
 * locked, or a temporary one. TNK_OK; else a code and a sentence that names
 * it. */
int local_data_open(local_server_t *server, tnk__lm_why_t *why);
/* Write the model's tokenizer into the directory that the options name for it,
 * if they do. */
int local_model_dir_open(local_server_t *server, tnk__lm_why_t *why);
/* Unlock it, or remove what is temporary. */
void local_data_close(local_server_t *server);

#endif
