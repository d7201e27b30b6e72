/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_ABORT_H
#define TNK_TEST_SUPPORT_ABORT_H

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

/* In a process of its own: fn(user) must die of SIGABRT, and say so first. */
static inline void test_expect_abort(void (*fn)(void *user), void *user,
                                     const char *says) {
  char text[512] = "";
  size_t n = 0;
  ssize_t got;
  int ends[2];
  int status;
  pid_t pid;

  CHECK_INT(pipe(ends), 0);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    fn(user);
    _exit(0);
  }
  close(ends[1]);
  while ((got = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
    n += (size_t)got;
  close(ends[0]);
  CHECK_INT(waitpid(pid, &status, 0), pid);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT ||
      strstr(text, says) == NULL)
    test_fail(__FILE__, __LINE__, "status %d, expected \"%s\" in \"%s\"",
              status, says, text);
}

#endif
