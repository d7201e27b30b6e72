/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_METRICS_H
#define TNK_TOOLS_TNK_LEARN_METRICS_H

#include <stdint.h>

/* The file metrics.jsonl, one line per step as tnk_numbers_append() writes it.
 * All functions return TNK_OK, TNK_EFILE with errno set, or TNK_ENOMEM. */

/* Remove the lines after step `n_steps`, and an incomplete last line, because
 * the run continues there. A missing file has no lines. */
int learn_metrics_rewind(const char *path, uint64_t n_steps);
/* Find the last step that has a complete line; 0 if there is none. Returns
 * TNK_OK, TNK_ENOMEM, or TNK_EFILE with the cause in errno. */
int learn_metrics_last(const char *path, uint64_t *n_steps);
/* Write the file to the disk. Call it before a save: after a loss of power the
 * lines up to the save must exist. */
int learn_metrics_sync(const char *path);

#endif
