#ifndef TNK_LIB_FILES_PUSH_LARGE_H
#define TNK_LIB_FILES_PUSH_LARGE_H

#include <jansson.h>

#include "lib/files/push/ask.h"
#include "lib/files/push/folder.h"
#include "lib/files/push/source.h"

#define TNK__LARGE_MAX_PARTS 10000
#define TNK__LARGE_MAX_HEADERS 8

/* Where it is. */
typedef enum {
  TNK__LARGE_SENDING,    /* all of the file, or a part of it */
  TNK__LARGE_COMPLETING, /* all parts have come: the store joins them */
  TNK__LARGE_VERIFYING   /* the hub looks at what has come */
} tnk__large_state_t;

/*
 * A large file on its way to the store of a hub, by the protocol of git-lfs: at
 * once, or in parts where the hub says so. What the hub says is borrowed until
 * it is done.
 */
typedef struct tnk__large {
  /* The owner's. `error` is borrowed, NULL after a success. */
  void (*done)(struct tnk__large *large, tnk__error_t *error);
  /* More was read; may be NULL, and may cancel and free it. */
  void (*on_progress)(struct tnk__large *large, uint64_t n_bytes);
  const tnk__push_file_t *file;
  /* Private. */
  tnk__hub_t *hub;
  tnk__large_state_t state;
  tnk__ask_t ask;
  tnk__source_t *source;
  const json_t *upload;
  const json_t *verify; /* or NULL */
  uint64_t part_size;   /* 0: all at once */
  uint32_t n_parts;
  uint32_t part;
  tnk__buf_t parts; /* what the store said of them, as JSON */
  tnk__buf_t body;
  tnk_pair_t headers[TNK__LARGE_MAX_HEADERS];
  size_t n_headers;
} tnk__large_t;

void tnk__large_init(tnk__large_t *large, tnk__hub_t *hub);
/* Start with what the hub says of the file. TNK_OK; TNK_EPROTO (it makes no
 * sense), TNK_ENOMEM ..., and nothing is called. */
int tnk__large_start(tnk__large_t *large, const tnk__folder_t *folder,
                     const tnk__push_file_t *file, const json_t *actions);
/* Cancel it; legal in every state. Allocates nothing. */
void tnk__large_cancel(tnk__large_t *large);
/* Write what it waits for, as the end of a sentence. */
void tnk__large_explain(const tnk__large_t *large, tnk__text_t *out);

#endif
