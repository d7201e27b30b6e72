/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_PORT_H
#define TNK_TEST_SUPPORT_PORT_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Keep a port while nobody listens on it. A bound socket that does not listen
 * refuses connections, and the system gives its port to no other program: a
 * test that runs at the same time could otherwise answer in place of a server
 * that is away. Returns a socket to listen on later, or to close; -1 if the
 * port cannot be had.
 */
static inline int port_hold(uint16_t port) {
  const struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(port),
                                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const int yes = 1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd >= 0 &&
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

/*
 * Bound what the connections of a listener hold for a server that does not
 * read. A system may let their buffers grow by itself, on some machines to more
 * than the largest request of a test.
 */
static inline int port_bound(int listener) {
  const int n = 128 * 1024;

  return setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &n, sizeof(n));
}

/* Stop keeping it. 0: nothing is kept. */
static inline void port_release(int *fd) {
  if (*fd > 0)
    close(*fd);
  *fd = 0;
}

#endif
