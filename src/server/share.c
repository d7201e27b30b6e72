/* SPDX-License-Identifier: MIT */
/*
 * Several processes on one port. Each has a listening socket of its own, and
 * the system spreads connections over these sockets. With one inherited socket
 * the process that wakes first accepts all that wait: of 512 connections at
 * once, one of eight processes got 282, and here 80.
 */
/* For SO_REUSEPORT, which POSIX does not have. */
#define _DEFAULT_SOURCE 1 /* NOLINT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http.h"

#if defined(SO_REUSEPORT_LB)
enum { SHARE = SO_REUSEPORT_LB };
#elif defined(__linux__) && defined(SO_REUSEPORT)
enum { SHARE = SO_REUSEPORT };
#else
enum { SHARE = 0 };
#endif

int tnk__srv_share(int fd) {
  const int one = 1;

  if (SHARE == 0)
    return UV_ENOTSUP;
  return setsockopt(fd, SOL_SOCKET, SHARE, &one, sizeof(one)) == 0
             ? 0
             : uv_translate_sys_error(errno);
}

int tnk__srv_socket(int family) {
  int fd = socket(family, SOCK_STREAM, 0);

  if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
    return fd;
  if (fd >= 0)
    (void)close(fd);
  return uv_translate_sys_error(errno);
}

int tnk__srv_address(struct sockaddr_storage *out, const char *host, int port) {
  int err;

  memset(out, 0, sizeof(*out));
  err = uv_ip4_addr(host, port, (struct sockaddr_in *)out);
  return err < 0 ? uv_ip6_addr(host, port, (struct sockaddr_in6 *)out) : err;
}

/* Returns a bound socket, or libuv's code. */
static int bind_one(const struct sockaddr_storage *addr, int shares) {
  socklen_t len = addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                              : sizeof(struct sockaddr_in);
  int fd = tnk__srv_socket(addr->ss_family);
  const int one = 1;
  int err = 0;

  if (fd < 0)
    return fd;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0)
    err = uv_translate_sys_error(errno);
  if (err == 0 && shares)
    err = tnk__srv_share(fd);
  if (err == 0 && bind(fd, (const struct sockaddr *)addr, len) != 0)
    err = uv_translate_sys_error(errno);
  if (err == 0)
    return fd;
  (void)close(fd);
  return err;
}

static int port_of(int fd) {
  struct sockaddr_storage addr;
  socklen_t len = sizeof(addr);

  if (getsockname(fd, (struct sockaddr *)&addr, &len) != 0)
    return uv_translate_sys_error(errno);
  return addr.ss_family == AF_INET6
             ? ntohs(((struct sockaddr_in6 *)&addr)->sin6_port)
             : ntohs(((struct sockaddr_in *)&addr)->sin_port);
}

int tnk__srv_reserve(const char *host, int port, int *fd) {
  struct sockaddr_storage addr;
  int err = tnk__srv_address(&addr, host, port);

  *fd = -1;
  /* Others that share their port would share it with these processes too, so
   * first it must be free. */
  if (err == 0 && port != 0) {
    err = bind_one(&addr, 0);
    if (err >= 0)
      (void)close(err);
  }
  if (err >= 0)
    err = bind_one(&addr, 1);
  if (err < 0)
    return err;
  *fd = err;
  err = port_of(*fd);
  if (err < 0) {
    (void)close(*fd);
    *fd = -1;
  }
  return err;
}
