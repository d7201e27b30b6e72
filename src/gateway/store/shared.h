/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_SHARED_H
#define TNK_GATEWAY_STORE_SHARED_H

#include <uv.h>

#include "gateway/base/wait.h"
#include "gateway/store/about.h"
#include "gateway/store/where.h"
#include "tnk/common.h"

/*
 * The lines of a record in Valkey or Redis, where several gateways append them.
 * Each gateway reads all lines in the same order. With NAME as in the address:
 *
 *   tnk:{NAME}:layout      "2"
 *   tnk:{NAME}:vocabulary  hash of the vocabulary
 *   tnk:{NAME}:born        token of the first writer. A record that was lost
 *                          and begun anew has another one
 *   tnk:{NAME}:writers     how many numbers of writers were given
 *   tnk:{NAME}:owners      by writer: token of its process
 *   tnk:{NAME}:counts      by writer: count of its lines so far
 *   tnk:{NAME}:lines       a stream; an entry has the fields
 *                          w (writer), n (count of its lines, from 1), l
 *                          (line). Scripts of the server write as writer 0.
 *   tnk:{NAME}:of:S        ids of the lines of a session, in order
 *   tnk:{NAME}:open:S      its requests in progress: number, by time in ms
 *   tnk:{NAME}:sessions    the sessions, by the time of their last use in ms
 *   tnk:{NAME}:changed     by session: id of its last turn or reward
 *   tnk:{NAME}:exported    by session: the last one that was exported
 *   tnk:{NAME}:marks:T     how many marks the process with token T has made;
 *                          kept for a day
 *   tnk:{NAME}:removed     the sessions that were removed, by time in ms
 *   tnk:{NAME}:forgotten   time in ms of the latest of these that was forgotten
 *
 * A session is removed by a script (script.h), which deletes its lines and
 * appends a line of type "removed". From then on the server refuses lines of
 * this session. So no session is ever there in part. After a day its name is
 * forgotten.
 *
 * Lines are sent without waiting for the replies. The script that appends a
 * line checks that it has the one before, so a line cannot overtake one that
 * was refused.
 *
 * The number in `counts` is behind if the store has become an older copy of
 * itself. Each process learns that when it connects, and appends its latest
 * lines again, which it keeps for this purpose. If it does not have all of
 * them, it says that the next one may be appended although lines are missing.
 * The log says how many. Lines of processes that have ended are lost.
 *
 * A line of which no reply came is sent again on the next connection, unless it
 * is found in the stream then. The script appends it once. A line that is there
 * twice, of an earlier version, is read once, by its writer and count.
 *
 * The number of a writer is drawn between 2^20 and 2^21. An older copy may not
 * know a process that is running or has ended. A process that joins draws
 * another number than that one has, but for a chance of one in a million. So
 * the running process keeps its number and continues. Its lines are counted
 * with the same number as before, so no reader takes them twice. The lines of
 * the one that has ended do not mix with those of the new one.
 *
 * Each process has a random token, and each line is refused if the number of
 * its writer belongs to another process. If the record is missing or another
 * one, or if the number belongs to another process, nothing works any more. The
 * same is true if sessions were removed and forgotten while this process did
 * not read.
 *
 * The server may not take a line because it is longer than its
 * proto-max-bulk-len, which is at least 1 MiB. The server says so, or closes
 * the connection. Such a line is replaced by a short one when it was refused,
 * or when three connections were closed at it. Its request fails. Others
 * continue.
 *
 * While the store fails, lines wait in memory and the connection is tried again
 * with growing pauses. A store that has refused a line gets one line, until it
 * takes it. An error of the script that removes sessions is logged, and the
 * script is run again later. Messages have the address without its password,
 * and of the replies of the store only the code.
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
  int has_no_timer;    /* tests call tnk__gw_shared_tick() */
  tnk__gw_keep_t keep; /* this object removes the other sessions */
  /* Called with each line and its id. `is_own`: this object wrote it. Returns
   * TNK_OK, or a code that ends everything. */
  int (*on_line)(void *user, const char *line, size_t n, const char *id,
                 int is_own);
  /* The server has refused a line, because its session was removed. Called
   * before those who wait for the line. Returns TNK_OK, or TNK_ENOMEM: then the
   * line is sent again. Not called after tnk__gw_shared_close(). May be NULL.
   */
  int (*on_refused)(void *user, const char *session);
  /* The server cannot take the line of a turn, because it is too long. Another
   * line takes its place. Called before those who wait for the line. Returns
   * the number of the turn's request, or 0. Not called after
   * tnk__gw_shared_close(). May be NULL. */
  uint64_t (*on_too_long)(void *user, uint64_t turn);
  void *user;
} tnk__gw_shared_options_t;

/* Returns TNK_OK, TNK_ENOMEM, or TNK_ESYSTEM if the system has no random bytes.
 * TNK_ENOTSUP: this build has no hiredis. */
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

/* Append a line. `about` may be NULL. Returns TNK_OK, TNK_ENOMEM, TNK_ETOOBIG
 * (the line has more than 32 MiB, or too many lines wait), or TNK_EFILE after a
 * malformed line. */
int tnk__gw_shared_add(tnk__gw_shared_t *shared, const tnk__gw_about_t *about,
                       const void *line, size_t n);
/* Append a line that says what was exported of a session; no line if `n` is 0.
 * `changed`: id of the last turn or reward, if all of it was exported, else "".
 * Any number of marks may wait. The same results, but TNK_EINVAL unless the
 * record is only read. */
int tnk__gw_shared_mark(tnk__gw_shared_t *shared, const char *session,
                        const char *changed, const void *line, size_t n);
/* Wait until the store has all lines so far. Returns 1 if it has, 0 if `done`
 * will be called, or a negative code. `done` gets TNK_ECONN if patience
 * ends. */
int tnk__gw_shared_wait(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter);
/* Wait until all lines are read that other gateways have appended so far, and,
 * if `is_writing`, while the store refuses lines. The same results, but never
 * 1. */
int tnk__gw_shared_sync(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter,
                        int is_writing);
/* Read the lines so far now, instead of with the next poll. */
void tnk__gw_shared_hurry(tnk__gw_shared_t *shared);
/* Why the store is not usable now, or NULL. */
const char *tnk__gw_shared_why(const tnk__gw_shared_t *shared);
/* How often the store has come back as an older copy of itself. */
uint64_t tnk__gw_shared_n_older(const tnk__gw_shared_t *shared);
/* Returns TNK_OK, or a code after which nothing works any more. */
int tnk__gw_shared_error(const tnk__gw_shared_t *shared);
/* Send the remaining lines, for a few seconds at most, then close and free.
 * Waiters get TNK_ECLOSED. `closed` runs from the loop, or at once without
 * one. */
void tnk__gw_shared_close(tnk__gw_shared_t *shared, void (*closed)(void *user),
                          void *user);

#endif
