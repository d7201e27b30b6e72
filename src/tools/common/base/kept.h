/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_BASE_KEPT_H
#define TNK_TOOLS_COMMON_BASE_KEPT_H

#include <stddef.h>

/*
 * A folder that a later command can resume from. It belongs to this user, is in
 * TMPDIR or /tmp, and is locked while it is used. If the lock or the name is
 * taken by another process, a temporary folder is used instead.
 */
typedef struct {
  char path[1024];
  int lock;     /* descriptor; -1: the folder is temporary */
  int is_found; /* an earlier command has left it for the same purpose */
} cli_kept_t;

/* Open the folder for the purpose `about`; files of another purpose are
 * removed. Returns 0, or -1 with the reason in `why`. */
int cli_kept_open(cli_kept_t *kept, const char *about, char *why, size_t n_why);
/* Returns whether the folder can stay after it is closed. */
int cli_kept_may_stay(const cli_kept_t *kept);
/* Close it. Its contents are removed unless `stays` is set. Returns 0, or -1 if
 * the removal failed. */
int cli_kept_close(cli_kept_t *kept, int stays);

#endif
