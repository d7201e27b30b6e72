/* SPDX-License-Identifier: MIT */
/* For renameat2. */
#define _GNU_SOURCE
#include "lib/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#ifndef __linux__
#include <sys/sysctl.h>
#endif

tnk__system_time_t tnk__system_modified(const struct stat *file) {
#ifdef __APPLE__
  const struct timespec *at = &file->st_mtimespec;
#else
  const struct timespec *at = &file->st_mtim;
#endif

  return (tnk__system_time_t){(int64_t)at->tv_sec, (uint32_t)at->tv_nsec};
}

int tnk__system_exchange(const char *a, const char *b) {
#if defined(RENAME_EXCHANGE)
  return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0 ? 0 : -errno;
#elif defined(RENAME_SWAP)
  return renamex_np(a, b, RENAME_SWAP) == 0 ? 0 : -errno;
#else
  (void)a;
  (void)b;
  return -ENOSYS;
#endif
}

int tnk__system_sync(int fd) {
#ifdef __APPLE__
  return fsync(fd) == 0 ? 0 : -errno;
#else
  return fdatasync(fd) == 0 ? 0 : -errno;
#endif
}

void tnk__system_start(char out[TNK__SYSTEM_START]) {
#if defined(__linux__)
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd >= 0 ? read(fd, out, TNK__SYSTEM_START - 1) : 0;

  out[n > 0 ? n : 0] = '\0';
  out[strcspn(out, "\n")] = '\0';
  if (fd >= 0)
    (void)close(fd);
#else
  /* The time of the start. Setting the clock moves it, which is safe. */
  struct timeval at;
  size_t n = sizeof(at);

  out[0] = '\0';
  if (sysctlbyname("kern.boottime", &at, &n, NULL, 0) == 0)
    (void)snprintf(out, TNK__SYSTEM_START, "%lld.%06ld", (long long)at.tv_sec,
                   (long)at.tv_usec);
#endif
}

/* A failure is harmless: the bounds of the layers above remain. */
static void tune(int fd, int option, unsigned value) {
  const int given = (int)value;

  (void)setsockopt(fd, IPPROTO_TCP, option, &given, sizeof(given));
}

void tnk__system_tcp_lost_after(int fd, unsigned lost_ms) {
#if defined(TCP_USER_TIMEOUT) /* Linux */
  tune(fd, TCP_USER_TIMEOUT, lost_ms);
#elif defined(TCP_RXT_CONNDROPTIME) /* macOS; in seconds */
  tune(fd, TCP_RXT_CONNDROPTIME, (lost_ms + 999) / 1000);
#else
  (void)fd;
  (void)lost_ms;
#endif
}

void tnk__system_tcp_probe(int fd, unsigned idle_ms, unsigned lost_ms) {
#if defined(TCP_KEEPINTVL) && defined(TCP_KEEPCNT)
  const unsigned n = lost_ms > idle_ms ? (lost_ms - idle_ms) / 1000 : 0;

  tune(fd, TCP_KEEPINTVL, 1);
  tune(fd, TCP_KEEPCNT, n > 0 ? n : 1);
#else
  (void)fd;
  (void)idle_ms;
  (void)lost_ms;
#endif
}

void tnk__system_tcp_unsent(int fd, unsigned bytes) {
#ifdef TCP_NOTSENT_LOWAT
  tune(fd, TCP_NOTSENT_LOWAT, bytes);
#else
  (void)fd;
  (void)bytes;
#endif
}
