/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_BOUNDS_H
#define TNK_LIB_POLICY_BOUNDS_H

/*
 * Every time bound. Together they guarantee that nothing hangs, whatever the
 * peer does.
 *
 * The rule: each state that only the peer can end has an owner and a bound.
 * When the bound passes, the owner ends the state with an error. The layer
 * above retries within its own limits.
 *
 * Each entry names the state, its owner and the bound:
 *
 * - Name, TCP, tunnel, TLS handshake: net, after CONNECT_MS in all.
 * - First SETTINGS of HTTP/2: lib/io/http/conn_h2, after CONNECT_MS again.
 * - An exchange without a slot (QUEUED): it follows the exchanges that have the
 *   slots, each of which ends by the entries below.
 * - An exchange without a connection (WAITING), because connections are full,
 *   no streams or connections are allowed, or no descriptor is left:
 *   lib/io/http/silence, after timeout_ms without progress of other exchanges
 *   with its origin.
 * - A request that is being sent, with a zero window, a server that does not
 *   read, or fewer streams allowed: lib/io/http/silence, after timeout_ms
 *   without a byte sent, or when it is too slow (MIN_BYTES_PER_S).
 * - The head of a response, dripping or after endless 1xx: lib/io/http/silence,
 *   after timeout_ms from the last byte sent.
 * - The body of a response: lib/io/http/silence, after timeout_ms without a
 *   byte, or when it is too slow. A streamed body may be slow.
 * - A streamed body that is paused: no bound, because the caller can resume it.
 * - A request that was not run (421, REFUSED_STREAM, GOAWAY): lib/io/http/pool
 *   repeats it 3 times; then the caller decides.
 * - A connection after GOAWAY: its exchanges, by the entries above.
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
 * Above http, each attempt ends by one of these bounds. Then lib/policy/retry
 * decides whether to retry: at most max_retries times, or for
 * TNK__RETRY_PATIENCE_MS from the first failure (lib/policy/retry.h). Other
 * limits are in lib/policy/poll.h (pace of polls), lib/policy/billing.h (pauses
 * without credit), lib/policy/retry_after.h (longest delay that a server may
 * ask for) and lib/policy/queue_state.h (when an outage is reported).
 */

/* Name, TCP, tunnel and TLS together, unless the caller sets another value. */
#define TNK__CONNECT_MS 5000
/* Delay between attempts on two addresses of one name. */
#define TNK__NEXT_ADDRESS_MS 250

/* Defaults of the caller's timeout_ms and poll_timeout_ms. */
#define TNK__TIMEOUT_MS 60000
#define TNK__POLL_TIMEOUT_MS 45000
/* Number of checks of an outgoing request's progress within its timeout_ms. The
 * transport does not report progress. */
#define TNK__LOOKS 4
/* A transfer is too slow below this average rate over this time. Streamed
 * bodies are exempt. */
#define TNK__MIN_BYTES_PER_S 1024
#define TNK__SLOW_MS 60000

/* An unused connection closes after this time by default. */
#define TNK__UNUSED_MS 60000

/* HTTP/2: a PING is sent after PING_AFTER_MS without a byte while a request is
 * active. Without a reply in PONG_MS the connection is dead. The sum equals
 * LOST_MS, the time in which TCP detects a dead HTTP/1.1 connection. */
#define TNK__PING_AFTER_MS 10000
#define TNK__PONG_MS 5000
/* HTTP/2: RESETS streams may be reset at once, and as many again every
 * RESETS_MS. */
#define TNK__RESETS 50
#define TNK__RESETS_MS 30000

/* TCP: the connection is lost after LOST_MS with unacknowledged data or
 * unanswered keep-alive probes, which begin after KEEPALIVE_S. A peer that
 * acknowledges but does not read, for example because it is computing, gets
 * LOST_WRITING_MS. */
#define TNK__KEEPALIVE_S 10
#define TNK__LOST_MS 15000
#define TNK__LOST_WRITING_MS 30000

/* The connections of an origin count as working if one of them received a byte
 * within this time. Heartbeats and PINGs bring one in 10 s. Only
 * if others work does a failed new connection mean that their number is
 * limited. */
#define TNK__WORKING_MS 15000

/* Time that a request waits on a connection that was accepted but is not
 * served: UNSERVED_MS for a sample, LONG for all others. AGAIN is the time
 * between two checks. */
#define TNK__UNSERVED_MS 3000
#define TNK__UNSERVED_LONG_MS 10000
#define TNK__UNSERVED_AGAIN_MS 1000

/* Where connections are refused: the pause before another one is tried, doubled
 * with each refusal; the interval at which waiting exchanges are checked; and
 * how long a poll keeps its connection while other exchanges wait. */
#define TNK__PAUSE_MS 1000
#define TNK__MAX_PAUSE_MS 30000
#define TNK__WAITING_LOOK_MS 1000
#define TNK__TURN_MS 5000

#endif
