/* SPDX-License-Identifier: MIT */
/* Lines that are too long for the server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/store/state.h"
#include "lib/base/log.h"
#include "tnk/error.h"

enum {
  MIN_LONG = 1 << 20, /* bytes of a command that any server takes */
  MAX_CLOSED = 3      /* connections that end at a line */
};

int tnk__gw_shared_was_closed_at(const tnk__gw_shared_t *shared, int code) {
  tnk__gw_unsafe_t *first = tnk__gw_queue_first(&shared->queue);

  if (code != TNK_ECONN || shared->queue.n_sent == 0 || first == NULL ||
      first->len <= MIN_LONG)
    return 0;
  return ++first->n_closed >= MAX_CLOSED;
}

/* The request of a turn has failed. This happens once, also if there is no
 * memory for the other line then. */
static void fail_turn(tnk__gw_shared_t *shared, tnk__gw_unsafe_t *first) {
  const uint64_t turn = first->number;

  if (first->is != TNK__GW_IS_TURN)
    return;
  first->is = TNK__GW_IS_NOTE;
  first->number = 0;
  if (!shared->is_closing && shared->options.on_too_long != NULL)
    first->number = shared->options.on_too_long(shared->options.user, turn);
}

/* Put a short line in the place of the first one. Returns TNK_OK or
 * TNK_ENOMEM. */
static int replace_first(tnk__gw_shared_t *shared) {
  tnk__gw_unsafe_t *first = tnk__gw_queue_first(&shared->queue);
  const tnk__gw_about_t about = {first->session[0] != '\0' ? first->session
                                                           : NULL,
                                 first->is, first->number};
  char writer[24], n[24], line[96];
  tnk__gw_script_line_t what = {shared->base, &about, writer, shared->token, n,
                                line,         0};
  int err = TNK_ENOMEM;
  char *text;
  long long len;

  (void)snprintf(writer, sizeof(writer), "%" PRIu64, shared->writer);
  (void)snprintf(n, sizeof(n), "%" PRIu64, first->n);
  /* The record shows that the request has failed. */
  if (first->is == TNK__GW_IS_NOTE && first->number != 0)
    (void)snprintf(line, sizeof(line),
                   "{\"type\":\"failed\",\"number\":%" PRIu64
                   ",\"why\":\"%s\"}",
                   first->number, tnk_err_name(TNK_ETOOBIG));
  else
    (void)snprintf(line, sizeof(line),
                   "{\"type\":\"ended\",\"number\":%" PRIu64 "}",
                   first->number);
  what.n_line = strlen(line);
  len = tnk__gw_script_line(&text, &what);
  if (len >= 0)
    err =
        tnk__gw_queue_replace_first(&shared->queue, &about, text, (size_t)len);
  redisFreeCommand(text);
  return err;
}

void tnk__gw_shared_refuse_first(tnk__gw_shared_t *shared, const char *why) {
  const int was_refused = shared->is_refused;
  tnk__gw_unsafe_t *first = tnk__gw_queue_first(&shared->queue);

  if (shared->options.is_read_only) {
    tnk__gw_shared_give_up(shared, TNK_ETOOBIG,
                           "a mark is too long for the server");
    return;
  }
  tnk__log(&shared->logger, TNK_LOG_WARN, "gateway",
           "%s: a line of about %zu bytes is too long for the server, and its "
           "request fails: %s",
           shared->where.shown, first->len, why);
  tnk__gw_shared_lose(shared, TNK_ETOOBIG, why);
  /* The server takes other lines. */
  shared->is_refused = was_refused;
  fail_turn(shared, first);
  if (replace_first(shared) != TNK_OK)
    first->n_closed = MAX_CLOSED;
}
