/* SPDX-License-Identifier: MIT */
#include "lib/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/test.h"

static void write_file(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

  CHECK(fd >= 0);
  CHECK_INT(write(fd, text, strlen(text)), (int)strlen(text));
  CHECK_INT(tnk__system_sync(fd), 0);
  CHECK_INT(close(fd), 0);
}

static int is_there(const char *folder, const char *name) {
  char path[256];

  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

TEST(system_exchanges_two_folders) {
  char base[] = "test-system-XXXXXX";
  char a[64], b[64], file[80];
  int err;

  CHECK(mkdtemp(base) != NULL);
  snprintf(a, sizeof(a), "%s/a", base);
  snprintf(b, sizeof(b), "%s/b", base);
  CHECK_INT(mkdir(a, 0700), 0);
  CHECK_INT(mkdir(b, 0700), 0);
  snprintf(file, sizeof(file), "%s/x", a);
  write_file(file, "x");
  err = tnk__system_exchange(a, b);
  /* A file system may lack it, but Linux and its C libraries do not. */
#ifdef __linux__
  CHECK(err != -ENOSYS);
#endif
  CHECK_INT(is_there(b, "x"), err == 0);
  CHECK_INT(is_there(a, "x"), err != 0);
  snprintf(file, sizeof(file), "%s/x", err == 0 ? b : a);
  CHECK_INT(unlink(file), 0);
  CHECK_INT(rmdir(a), 0);
  CHECK_INT(tnk__system_exchange(a, b) < 0, 1);
  CHECK_INT(rmdir(b), 0);
  CHECK_INT(rmdir(base), 0);
}

TEST(system_tells_when_a_file_was_modified) {
  char path[] = "test-system-XXXXXX";
  const int fd = mkstemp(path);
  const struct timespec times[] = {{7, 8}, {1234567890, 123456789}};
  struct stat file;
  tnk__system_time_t at;

  CHECK(fd >= 0);
  CHECK_INT(futimens(fd, times), 0);
  CHECK_INT(fstat(fd, &file), 0);
  at = tnk__system_modified(&file);
  CHECK_INT(at.s, 1234567890);
  /* A file system may have coarser times. */
  CHECK(at.ns == 123456789 || at.ns % 100 == 0);
  CHECK_INT(close(fd), 0);
  CHECK_INT(unlink(path), 0);
  CHECK_INT(tnk__system_sync(-1), -EBADF);
}

static int option_of(int fd, int option) {
  socklen_t n = sizeof(int);
  int value = -1;

  CHECK_INT(getsockopt(fd, IPPROTO_TCP, option, &value, &n), 0);
  return value;
}

/* 15 seconds after the last sign of a peer: 10 without probes and 5 with one
 * each. */
TEST(system_limits_how_long_tcp_waits) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);

  CHECK(fd >= 0);
  tnk__system_tcp_probe(fd, 10000, 15000);
  CHECK_INT(option_of(fd, TCP_KEEPINTVL), 1);
  CHECK_INT(option_of(fd, TCP_KEEPCNT), 5);
  tnk__system_tcp_probe(fd, 10000, 10000);
  CHECK_INT(option_of(fd, TCP_KEEPCNT), 1);
#ifdef TCP_USER_TIMEOUT
  tnk__system_tcp_lost_after(fd, 15000);
  CHECK_INT(option_of(fd, TCP_USER_TIMEOUT), 15000);
#endif
  CHECK_INT(close(fd), 0);
}

TEST(system_tells_its_start) {
  char a[TNK__SYSTEM_START];
  char b[TNK__SYSTEM_START];

  tnk__system_start(a);
  tnk__system_start(b);
  CHECK(strlen(a) >= 10);
  CHECK(strpbrk(a, " \t\n") == NULL);
  CHECK_STR(a, b);
}
