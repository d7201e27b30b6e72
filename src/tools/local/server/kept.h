#ifndef TNK_TOOLS_LOCAL_SERVER_KEPT_H
#define TNK_TOOLS_LOCAL_SERVER_KEPT_H

#include "tools/local/store/store.h"

/* Looking for runs among them is quadratic in them. */
enum { LOCAL_MAX_KEPT = 20000 };

/* What is known about checkpoints on the disk, newest first. */
typedef struct {
  const local_server_t *server;
  local_meta_t *metas;
  size_t n;
  size_t cap;
  int err;
} local_kept_t;

/* All checkpoints, or those of one run. Free it. */
local_kept_t local_kept_read(const local_server_t *server, const char *run);
void local_kept_free(local_kept_t *list);
/* The project of a checkpoint, which is the first one for those in none. */
const char *local_meta_project(const local_meta_t *meta);
int local_kept_is_of(const local_meta_t *meta, const local_session_t *session);
/* Put the checkpoints of a session's runs into a project. TNK_OK, or the code
 * of the first that could not be written. */
int local_kept_move(const local_session_t *session, const char *project);
/* Remove what has expired, if anything can have. */
void local_kept_sweep(local_server_t *server);

#endif
