/* SPDX-License-Identifier: MIT */
#include "tools/tnk/keys/admin.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tools/common/base/input.h"

static int read_file(const cli_t *cli, const char *path, char **out) {
  char why[512];
  size_t n;

  *out = cli_read_file(path, &n, why, sizeof(why));
  if (*out == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  (*out)[strcspn(*out, "\r\n")] = '\0';
  if ((*out)[0] != '\0')
    return CLI_EXIT_OK;
  free(*out);
  *out = NULL;
  return cli_fail(cli, CLI_EXIT_FILE, "%s: the first line has no key", path);
}

int cli_admin_read(const cli_t *cli, const cli_admin_t *from, char **out) {
  const char *text =
      from->key != NULL ? from->key : getenv("TNK_GATEWAY_ADMIN_KEY");

  if (from->file != NULL)
    return read_file(cli, from->file, out);
  *out = text != NULL ? strdup(text) : NULL;
  return text == NULL || *out != NULL
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

void cli_admin_free(char *key) {
  if (key != NULL)
    tnk__wipe(key, strlen(key));
  free(key);
}
