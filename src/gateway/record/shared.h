/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_SHARED_H
#define TNK_GATEWAY_RECORD_SHARED_H

#include "gateway/record/journal.h"
#include "gateway/record/where.h"

/*
 * The lines of a record in Valkey or Redis, where several gateways append them.
 * Each gateway reads all lines in the same order. With NAME as in the address:
 *
 *   tnk:{NAME}:layout      "1"
 *   tnk:{NAME}:vocabulary  hash of the vocabulary
 *   tnk:{NAME}:writers     how many writers there were; the next one is its
 *                          number
 *   tnk:{NAME}:lines       a stream; an entry has the fields
 *                          w (writer), n (count of its lines, from 1), l (line)
 *
 * A line of which no reply came is sent again on the next connection, unless it
 * is found in the stream then. A line that is there twice is read once, by its
 * writer and count.
 *
 * If the store has lost its data, its next writer could get the number of this
 * one. Then nothing works any more.
 *
 * While the store fails, lines wait in memory and the connection is tried again
 * with growing pauses. Messages have the address without its password, and of
 * the replies of the store only the code.
 */
typedef struct tnk__gw_shared tnk__gw_shared_t;

typedef struct {
  const tnk_allocator_t *alloc;
  const tnk__gw_where_t *where; /* copied */
  uint64_t vocabulary;          /* 0 accepts any */
  /* For an address with TLS: files in PEM. The names must stay valid until
   * tnk__gw_shared_begin() returns. NULL: SSL_CERT_FILE, else the system's
   * certificates; no client certificate. */
  const char *ca_file;
  const char *cert_file;
  const char *key_file;
  int is_read_only;
  uint64_t patience_ms; /* of those who wait; 0: 30,000 */
  size_t max_reply;     /* bytes; 0: 192 MiB */
  /* Gets a warning when the store fails after it was read, and when it is back.
   * Copied. NULL: no log. */
  const tnk_logger_t *logger;
  int has_no_timer; /* tests call tnk__gw_shared_tick() */
  /* Called with each line. `is_own`: this object wrote it. Returns TNK_OK, or a
   * code that ends everything. */
  int (*on_line)(void *user, const char *line, size_t n, int is_own);
  void *user;
} tnk__gw_shared_options_t;

/* Returns TNK_OK or TNK_ENOMEM. TNK_ENOTSUP: this build has no hiredis. */
int tnk__gw_shared_new(tnk__gw_shared_t **out,
                       const tnk__gw_shared_options_t *options);
/* Read the lines that exist, and get a number as a writer. Blocks, with a loop
 * of its own. Returns TNK_OK, or a code with a sentence in `why`: TNK_EDNS,
 * TNK_ECONN, TNK_ETIMEDOUT, TNK_ECERT, TNK_ETLS, TNK_EFILE, TNK_ETOOBIG,
 * TNK_ENOMEM or TNK_ESYSTEM. */
int tnk__gw_shared_load(tnk__gw_shared_t *shared, char *why, size_t n_why);
/* Connect on this loop and stay connected. Returns TNK_OK, TNK_ENOMEM or
 * TNK_ESYSTEM. */
int tnk__gw_shared_begin(tnk__gw_shared_t *shared, uv_loop_t *loop);
/* Do what is due: connect, poll, and end waits. A timer calls this. Times only
 * pass here. */
void tnk__gw_shared_tick(tnk__gw_shared_t *shared, uint64_t now_ms);
/* The number of this writer. 0: none yet. */
uint64_t tnk__gw_shared_writer(const tnk__gw_shared_t *shared);

/* Append a line. Returns TNK_OK, TNK_ENOMEM, TNK_ETOOBIG (the line has more
 * than 32 MiB, or too many lines wait), or TNK_EFILE after a malformed line. */
int tnk__gw_shared_add(tnk__gw_shared_t *shared, const void *line, size_t n);
/* Wait until the store has all lines so far. Returns 1 if it has, 0 if `done`
 * will be called, or a negative code. `done` gets TNK_ECONN if patience
 * ends. */
int tnk__gw_shared_wait(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter);
/* Wait until all lines are read that other gateways have appended so far. The
 * same results, but never 1. */
int tnk__gw_shared_sync(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter);
/* Read the lines so far now, instead of with the next poll. */
void tnk__gw_shared_hurry(tnk__gw_shared_t *shared);
/* Why the store is not usable now, or NULL. */
const char *tnk__gw_shared_why(const tnk__gw_shared_t *shared);
/* Returns TNK_OK, or a code after which nothing works any more. */
int tnk__gw_shared_error(const tnk__gw_shared_t *shared);
/* Send the remaining lines, for a few seconds at most, then close and free.
 * Waiters get TNK_ECLOSED. `closed` runs from the loop, or at once without
 * one. */
void tnk__gw_shared_close(tnk__gw_shared_t *shared, void (*closed)(void *user),
                          void *user);

#endif
