/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_LINES_H
#define TNK_TOOLS_TNK_REPORT_LINES_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The longest line that is read. */
enum { REPORT_MAX_LINE = 1 << 20 };

/* The result of reading a file of lines. */
typedef struct {
  size_t n_lines;   /* whole lines, with those below */
  size_t n_bad;     /* lines that are not JSON objects, or too long */
  size_t first_bad; /* number of the first one, from 1 */
  int is_cut;       /* the last line has no end, because it is being written */
} report_lines_t;

/* Called for each line. The object is freed after the call. Returns TNK_OK,
 * TNK_EPROTO to count the line as bad, or another error to end the reading. */
typedef int (*report_line_cb)(const json_t *object, void *user);

/*
 * Read a file with a JSON object in each line, in memory for one line. Bad
 * lines and an incomplete last line are skipped. Empty lines are ignored.
 *
 * Returns TNK_OK; TNK_EFILE with errno set; TNK_ENOMEM; or the error of the
 * callback.
 */
int report_lines_read(report_lines_t *lines, const char *path,
                      report_line_cb on_line, void *user);

/* The end of the lines that were read, and a digest of everything before it. A
 * file that was cut back and has grown again has another digest. */
typedef struct {
  uint64_t n_bytes;
  uint64_t digest;
} report_place_t;

/* Check whether a file still has everything up to a place. Returns TNK_OK, or
 * TNK_EFILE with errno set. */
int report_lines_check(const char *path, const report_place_t *place,
                       int *is_same);
/* Read the lines behind a place, as above. The place is moved behind each line
 * before the callback is called for it. */
int report_lines_continue(const char *path, report_place_t *place,
                          report_line_cb on_line, void *user);

#endif
