#include "tools/common/base/exit.h"

#include <stddef.h>

#include "tnk/error.h"

typedef struct {
  int status;
  const char *text;
} row_t;

static const row_t rows[] = {
    {CLI_EXIT_OK, "Done."},
    {CLI_EXIT_FAILED, "Failed, or partly failed."},
    {CLI_EXIT_USAGE, "The command line is wrong. Nothing was done."},
    {CLI_EXIT_AUTH,
     "No credential, or it was rejected or is not permitted to do this."},
    {CLI_EXIT_NOT_FOUND, "Not found on the service or the model hub."},
    {CLI_EXIT_NETWORK,
     "The service or the model hub could not be reached in time."},
    {CLI_EXIT_FILE, "A file, the input or the output could not be read or "
                    "written."},
    {CLI_EXIT_INTERRUPT, "Ended by Ctrl-C (SIGINT)."},
    {CLI_EXIT_PIPE, "The reader of the output has closed the pipe."},
    {CLI_EXIT_TERMINATE, "Ended by SIGTERM."},
};

const char *cli_exit_text(unsigned i, int *status) {
  if (i >= sizeof(rows) / sizeof(*rows))
    return NULL;
  *status = rows[i].status;
  return rows[i].text;
}

int cli_exit_of(int err) {
  switch (err) {
  case TNK_OK:
    return CLI_EXIT_OK;
  case TNK_EINVAL: /* invalid command-line arguments */
    return CLI_EXIT_USAGE;
  case TNK_ECREDENTIAL:
  case TNK_EAUTH:
    return CLI_EXIT_AUTH;
  case TNK_ENOTFOUND:
    return CLI_EXIT_NOT_FOUND;
  case TNK_EDNS:
  case TNK_ECONN:
  case TNK_EPROXY:
  case TNK_ETLS:
  case TNK_ECERT:
  case TNK_ETIMEDOUT:
    return CLI_EXIT_NETWORK;
  case TNK_EFILE:
    return CLI_EXIT_FILE;
  default:
    return CLI_EXIT_FAILED;
  }
}
