#ifndef TNK_TOOLS_LOCAL_SERVER_KEPT_H
#define TNK_TOOLS_LOCAL_SERVER_KEPT_H

#include "tools/local/store/store.h"

/* Searching for runs takes quadratic time in this number. */
enum { LOCAL_MAX_KEPT = 20000 };

/* The checkpoints on the disk with their metadata, newest first. */
typedef struct {
  const local_server_t *server;
  local_meta_t *metas;
  size_t n;
  size_t cap;
  int err;
} local_kept_t;

/* Read all checkpoints, or those in one run. The caller frees the list. */
local_kept_t local_kept_read(const local_server_t *server, const char *run);
void local_kept_free(local_kept_t *list);
/* The project of a checkpoint; the first project by default. */
const char *local_meta_project(const local_meta_t *meta);
int local_kept_is_of(const local_meta_t *meta, const local_session_t *session);
/* Move the checkpoints of a session's runs to a project. Returns TNK_OK, or the
 * first write error. */
int local_kept_move(const local_session_t *session, const char *project);
/* Remove expired checkpoints, if any can have expired. */
void local_kept_sweep(local_server_t *server);

#endif
