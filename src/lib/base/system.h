/* SPDX-License-Identifier: MIT */
#ifndef LIB_BASE_SYSTEM_H
#define LIB_BASE_SYSTEM_H

#include <stdint.h>
#include <sys/stat.h>

/*
 * What each system names differently or lacks. No other file asks which system
 * it is compiled for.
 */

/* When a file was last modified. Seconds and nanoseconds. */
typedef struct {
  int64_t s;
  uint32_t ns;
} tnk__system_time_t;

tnk__system_time_t tnk__system_modified(const struct stat *file);

/* Exchange two names in one step, even if both are folders. Returns 0 or
 * -errno. -ENOSYS, -EINVAL and -ENOTSUP: the system or the file system cannot
 * do that. */
int tnk__system_exchange(const char *a, const char *b);

/* Write the contents of a file to the disk. The times in its inode need not
 * follow. Returns 0 or -errno. */
int tnk__system_sync(int fd);

/* Write a string without spaces that changes with each start of the system, or
 * "" if the system has none. */
enum { TNK__SYSTEM_START = 64 };
void tnk__system_start(char out[TNK__SYSTEM_START]);

/* Let TCP end the connection after lost_ms with unacknowledged data. Where the
 * system has no such limit, only unanswered keep-alive probes end it. */
void tnk__system_tcp_lost_after(int fd, unsigned lost_ms);

/* Let TCP end an idle connection lost_ms after the last sign of the peer.
 * Probes begin after idle_ms, which keep-alive must already have. */
void tnk__system_tcp_probe(int fd, unsigned idle_ms, unsigned lost_ms);

/* Report a socket as writable only if fewer bytes than this wait in the system.
 */
void tnk__system_tcp_unsent(int fd, unsigned bytes);

#endif
