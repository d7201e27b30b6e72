#ifndef TNK_LIB_POLICY_BOUNDS_H
#define TNK_LIB_POLICY_BOUNDS_H

/*
 * Every time bound which guarantees that nothing hangs, whatever the peer does.
 *
 * The rule: each state in which only the peer can move us has an owner and a
 * bound. When the bound passes, the owner ends the state with an error that the
 * layer above retries within limits of its own.
 *
 * Each line names what waits, who ends it, and after which time:
 *
 * - Name, TCP, tunnel, TLS handshake: net, after CONNECT_MS in all.
 * - First SETTINGS of HTTP/2: lib/io/http/conn_h2, after CONNECT_MS again.
 * - An exchange without a slot (QUEUED): it follows the exchanges that have the
 *   slots, each of which ends by the lines below.
 * - An exchange without a connection (WAITING), because connections are full,
 *   no streams or connections are allowed, or no descriptor is left:
 *   lib/io/http/silence, after timeout_ms without progress of others to its
 *   origin.
 * - A request that goes out, with a zero window, a server that does not read,
 *   or fewer streams allowed: lib/io/http/silence, after timeout_ms without a
 *   byte sent, or when it is too slow (MIN_BYTES_PER_S).
 * - The head of a response, dripping or after endless 1xx: lib/io/http/silence,
 *   after timeout_ms from the last byte sent.
 * - The body of a response: lib/io/http/silence, after timeout_ms without a
 *   byte, or when it is too slow. A streamed body may be slow.
 * - A streamed body that is paused: no bound, because the caller can resume it.
 * - A request that was not run (421, REFUSED_STREAM, GOAWAY): lib/io/http/pool
 *   repeats it 3 times; then it is the caller's.
 * - A connection after GOAWAY: its exchanges, by the lines above.
 * - A connection of HTTP/2 in use on which nothing is received:
 *   lib/io/http/conn_h2, after PING_AFTER_MS and PONG_MS.
 * - A connection that loses packets: lib/io/net/tcp, after LOST_MS. A peer that
 *   does not read: lib/io/net/tcp, after LOST_WRITING_MS.
 * - An unused connection, also one that allows no streams: lib/io/http/conn,
 *   after UNUSED_MS.
 * - A canceled stream: lib/io/http/conn_h2 resets it, RESETS of them in
 *   RESETS_MS.
 * - A connection that is not served: lib/io/http/mute, after UNSERVED_MS or
 *   UNSERVED_LONG_MS.
 * - Refused connections: lib/policy/ceiling tries again after PAUSE_MS, doubled
 *   up to MAX_PAUSE_MS.
 * - A long poll that waits for its turn: lib/io/http/pool, TURN_MS each, as
 *   WAITING.
 *
 * Above http, each attempt ends by these rows. Then lib/policy/retry decides:
 * at most max_retries repeats, or for TNK__RETRY_PATIENCE_MS from the first
 * failure (lib/policy/retry.h). The pace of polls is in lib/policy/poll.h,
 * pauses without credit in lib/policy/billing.h, the longest delay that a
 * server may ask for in lib/policy/retry_after.h, and when an outage is
 * reported in lib/policy/outage.h.
 */

/* Name, TCP, tunnel and TLS together, unless the caller gives another value. */
#define TNK__CONNECT_MS 5000
/* Between two addresses of one name. */
#define TNK__NEXT_ADDRESS_MS 250

/* What the caller's timeout_ms and poll_timeout_ms are by default. */
#define TNK__TIMEOUT_MS 60000
#define TNK__POLL_TIMEOUT_MS 45000
/* A request that goes out is looked at so often in its timeout_ms, as nobody
 * reports its progress. */
#define TNK__LOOKS 4
/* Less than this, on average over this time, is too slow. It does not hold for
 * streamed bodies. */
#define TNK__MIN_BYTES_PER_S 1024
#define TNK__SLOW_MS 60000

/* An unused connection closes after this time by default. */
#define TNK__UNUSED_MS 60000

/* HTTP/2: after PING_AFTER_MS without a byte while a request is under way, a
 * PING; PONG_MS later the connection is dead. Together that is what a dead
 * connection costs over HTTP/1.1, where TCP finds it out. */
#define TNK__PING_AFTER_MS 10000
#define TNK__PONG_MS 5000
/* HTTP/2: resets of streams at once, and as many again in this time. */
#define TNK__RESETS 50
#define TNK__RESETS_MS 30000

/* TCP: data without an acknowledgment, or no answer to keep-alive probes, which
 * begin after KEEPALIVE_S. A peer that acknowledges and does not read, as one
 * that computes may, has longer. */
#define TNK__KEEPALIVE_S 10
#define TNK__LOST_MS 15000
#define TNK__LOST_WRITING_MS 30000

/* Connections of an origin count as working when a byte has come on one of them
 * in this time. Heartbeats and PINGs bring one in 10 s. Only while others work
 * does the failure of a new one mean that no more are granted. */
#define TNK__WORKING_MS 15000

/* A connection that was accepted and is not served: a sample waits so long on
 * it, all else LONG; AGAIN is the time between two looks. */
#define TNK__UNSERVED_MS 3000
#define TNK__UNSERVED_LONG_MS 10000
#define TNK__UNSERVED_AGAIN_MS 1000

/* Where connections are refused: the pause before one more is tried, doubled
 * with each refusal; how often those that wait are looked after; and how long a
 * poll holds its connection while others wait. */
#define TNK__PAUSE_MS 1000
#define TNK__MAX_PAUSE_MS 30000
#define TNK__WAITING_LOOK_MS 1000
#define TNK__TURN_MS 5000

#endif
