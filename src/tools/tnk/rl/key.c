/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "tools/tnk/keys/admin.h"
#include "tools/tnk/rl/args.h"

enum { N_RANDOM = 24 };

static int make(char **out, const cli_t *cli) {
  unsigned char random[N_RANDOM];
  char *text = calloc(2 * N_RANDOM + 1, 1);
  const int err = uv_random(NULL, NULL, random, sizeof(random), 0, NULL);

  if (err != 0 || text == NULL) {
    free(text);
    return cli_fail(cli, CLI_EXIT_FAILED, "no random numbers: %s",
                    uv_strerror(err != 0 ? err : UV_ENOMEM));
  }
  for (size_t i = 0; i < N_RANDOM; i++)
    snprintf(text + 2 * i, 3, "%02x", random[i]);
  tnk__wipe(random, sizeof(random));
  *out = text;
  return CLI_EXIT_OK;
}

static int write_all(int fd, const char *key) {
  char line[2 * N_RANDOM + 2];
  const int n = snprintf(line, sizeof(line), "%s\n", key);
  const ssize_t written = write(fd, line, (size_t)n);
  int failed = written != n || fsync(fd) != 0;

  tnk__wipe(line, sizeof(line));
  failed |= close(fd) != 0;
  return failed ? -1 : 0;
}

/* Read the key of the run, or make it. Only this user can read it. */
static int keep(char **out, const cli_t *cli, const char *path) {
  const cli_admin_t from = {.file = path};
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int status;

  if (fd < 0 && errno == EEXIST)
    return cli_admin_read(cli, &from, out);
  if (fd < 0)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  status = make(out, cli);
  if (status != CLI_EXIT_OK) {
    (void)close(fd);
  } else if (write_all(fd, *out) != 0) {
    status = cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    cli_admin_free(*out);
    *out = NULL;
  }
  if (status != CLI_EXIT_OK)
    (void)unlink(path);
  return status;
}

int rl_admin_key(char **out, const learn_folder_t *folder) {
  const cli_admin_t from = {.key = rl_args.admin_key,
                            .file = rl_args.admin_file};
  char *path;
  int status;

  if (rl_args.url == NULL)
    return make(out, folder->cli);
  status = cli_admin_read(folder->cli, &from, out);
  if (status != CLI_EXIT_OK || *out != NULL)
    return status;
  path = learn_folder_file(folder, "admin.key");
  status = path != NULL
               ? keep(out, folder->cli, path)
               : cli_fail(folder->cli, CLI_EXIT_FAILED, "out of memory");
  free(path);
  return status;
}
