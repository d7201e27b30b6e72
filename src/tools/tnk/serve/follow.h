/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SERVE_FOLLOW_H
#define TNK_TOOLS_TNK_SERVE_FOLLOW_H
#include <stdint.h>

#include "tools/common/frame/cli.h"

/* tnk gateway --datums --follow. */
typedef struct {
  const char *path; /* a file, or the address of a shared record */
  const char *ca_file, *cert_file, *key_file; /* of an address with TLS */
  int only_rewarded;
  int has_no_marks;  /* a shared record gets none, and its marks are ignored */
  const char *state; /* file with what was printed; or NULL: the marks */
  uint64_t quiet_ms;
} cli_follow_t;

/* Print examples until a signal, until the reader of the output closes it, or
 * until the record cannot be read any more. Returns the exit status. */
int cli_follow_run(const cli_t *cli, const cli_follow_t *follow);
/* Print the examples that the record has now, and mark them. */
int cli_datums_run(const cli_t *cli, const cli_follow_t *what);

#endif
