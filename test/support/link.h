/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_LINK_H
#define TNK_TEST_SUPPORT_LINK_H

#include <stdint.h>
#include <uv.h>

#include "lib/io/loop/context.h"

/*
 * A wire between a client and a server of this machine. Who connects to its
 * port reaches the server's, by way of a delay, a rate, a queue in front of
 * that rate, and whatever befalls it. It lies between sockets, so it knows
 * bytes and connections and nothing of what they mean.
 *
 *   test_link_t *link = test_link_open(&uv, mock_port(mock));
 *   test_link_tell(link, "delay 75");
 *   test_link_tell(link, "limit 50 refuse");
 *   test_link_tell(link, "@5000 pause");
 *   ... test_link_url(link) ...
 *   test_link_close(link);              the loop must run once more
 *
 * What it can be told, each at once or, after "@MS", that many milliseconds
 * from now:
 *
 *   delay MS        one way; a connection is made after a round trip
 *   rate KBIT       of each direction, in 1,000 bits a second; 0: no bound
 *   queue BYTES     that wait for the rate in each direction (65,536); who
 *                   finds it full waits outside, and all take turns
 *   loss PERMILLE   of the pieces of 4 KiB are lost and sent again, for which
 *                   their connection stands still for two round trips, and at
 *                   least for 200 ms
 *   limit N HOW     connections at a time (0: no bound); a further one is met
 *                   with "wait", "refuse", "close", "reset", or "503"
 *   pause, go       nothing passes, in either direction; and again
 *   reset, cut      end all connections: as a crash does, or in order
 *   away, back      all connections end as in a crash and further ones are
 *                   refused; and no longer
 *   silence         all connections are dead, and nobody is told
 *   deaf            the same, and the system confirms no byte of them either,
 *                   so that the sender's system sees it as on a broken wire;
 *                   Linux only
 *
 * The system's buffers are before and behind it: a sender may be ahead by what
 * they hold. A connection is made by the system at once, so while one that is
 * new ought to be on its way the link only keeps its bytes back.
 *
 * Time is that of `clock`, which is the link's own: a test makes it a fake one
 * and lets it go on together with the client's. The link's handles do not keep
 * uv_run() going.
 */
typedef struct test_link test_link_t;

typedef struct {
  size_t n_connections; /* that were let through */
  size_t n_open;        /* of these, now */
  size_t n_most_open;
  size_t n_turned_away; /* by the limit; not counted with "refuse" and "wait" */
  size_t n_lost;        /* pieces */
  uint64_t n_bytes[2];  /* that went through: to the server, to the client */
  size_t most_queued[2];
} test_link_counts_t;

test_link_t *test_link_open(uv_loop_t *uv, uint16_t target_port);
void test_link_close(test_link_t *link);
tnk__context_t *test_link_clock(test_link_t *link);
uint16_t test_link_port(const test_link_t *link);
/* "http://127.0.0.1:PORT" */
const char *test_link_url(const test_link_t *link);
/* 0; -1 when it is none of the words above, and nothing was done. */
int test_link_tell(test_link_t *link, const char *words);
const test_link_counts_t *test_link_counts(const test_link_t *link);
/* 1 when a socket of the link's loop has bytes that it could not hand to the
 * system, and the link reads from the other end and finds nothing there: the
 * system is about to bring some. */
int test_link_is_awaited(const test_link_t *link);

#endif
