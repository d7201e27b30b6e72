/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_PUSH_LARGE_H
#define TNK_LIB_FILES_PUSH_LARGE_H

#include <jansson.h>

#include "lib/files/push/ask.h"
#include "lib/files/push/folder.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/work.h"

/*
 * A range of a file as a request body. The thread pool reads one block ahead,
 * so memory is bounded and the loop never waits for a disk. Content in memory
 * does not need the pool.
 */
typedef struct tnk__source tnk__source_t;

#define TNK__LARGE_MAX_HEADERS 8

/* The state of an upload. */
typedef enum {
  TNK__LARGE_SENDING,    /* the whole file, or a part */
  TNK__LARGE_COMPLETING, /* all parts were sent: the store joins them */
  TNK__LARGE_VERIFYING   /* the hub checks the upload */
} tnk__large_state_t;

/*
 * Uploads a large file to the store of a hub with the git-lfs protocol: at
 * once, or in parts if the hub requests that. The hub's answer is borrowed
 * until the upload ends.
 */
typedef struct tnk__large {
  /* Set by the owner. `error` is borrowed and is NULL after a success. */
  void (*done)(struct tnk__large *large, tnk__error_t *error);
  /* More was read; may be NULL. It may cancel and free the upload. */
  void (*on_progress)(struct tnk__large *large, uint64_t n_bytes);
  const tnk__push_file_t *file;
  /* Private. */
  tnk__hub_t *hub;
  tnk__large_state_t state;
  tnk__ask_t ask;
  tnk__source_t *source;
  const json_t *upload;
  const json_t *verify; /* or NULL */
  uint64_t part_size;   /* 0: no parts */
  uint32_t n_parts;
  uint32_t part;
  tnk__buf_t parts; /* the store's answers for the parts, as JSON */
  tnk__buf_t body;
  tnk_pair_t headers[TNK__LARGE_MAX_HEADERS];
  size_t n_headers;
} tnk__large_t;

void tnk__large_init(tnk__large_t *large, tnk__hub_t *hub);
/* Start with the hub's answer for the file. Returns TNK_OK, TNK_EPROTO
 * (malformed answer), TNK_ENOMEM or another error. After an error no callback
 * is called. */
int tnk__large_start(tnk__large_t *large, const tnk__folder_t *folder,
                     const tnk__push_file_t *file, const json_t *actions);
/* Cancel it; allowed in every state. Allocates nothing. */
void tnk__large_cancel(tnk__large_t *large);
/* Describe the current step, as the end of a sentence. */
void tnk__large_explain(const tnk__large_t *large, tnk__text_t *out);

#endif
