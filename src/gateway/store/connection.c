/* SPDX-License-Identifier: MIT */
#include "gateway/store/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/log.h"
#include "tnk/error.h"

enum {
  MAX_BACKOFF_MS = 5000,
  RELAPSE_MS = 60000, /* it has to be well for longer if it fails so soon */
  HOLD_MS = 1000,
  MAX_HOLD_MS = 8000,
  WINDOW = 1024, /* commands of the queue that have no reply yet */
  MAX_ARGS = 10
};

/* ---- Those who wait ---- */

/* Call those whose wait has ended. */
void tnk__gw_shared_wake_list(tnk__gw_shared_t *shared, tnk__list_t *list,
                              uint64_t upto, int all_err) {
  const uint64_t patience = shared->options.patience_ms;

  tnk__gw_wake(list, upto,
               shared->now_ms >= patience ? shared->now_ms - patience + 1 : 0,
               all_err);
}

void tnk__gw_shared_wake(tnk__gw_shared_t *shared, int err) {
  tnk__gw_shared_wake_list(shared, &shared->waiters, shared->queue.n_safe, err);
  tnk__gw_shared_wake_list(shared, &shared->syncers, shared->n_read, err);
  tnk__gw_shared_wake_list(shared, &shared->writing,
                           shared->is_refused ? 0 : shared->n_read, err);
}

/* ---- A store that fails at lines ---- */

/* A store that is almost full takes some lines and refuses others. So it gets
 * few lines at a time until it takes them all. If it fails again soon after it
 * was well, it has to be well for some time. */
static void begin_refusal(tnk__gw_shared_t *shared) {
  if (!shared->is_refused) {
    if (!shared->has_recovered ||
        shared->now_ms - shared->recovered_ms >= RELAPSE_MS)
      shared->hold_ms = 0;
    else if (shared->hold_ms == 0)
      shared->hold_ms = HOLD_MS;
    else if (shared->hold_ms < MAX_HOLD_MS)
      shared->hold_ms *= 2;
  }
  shared->is_refused = 1;
  shared->window = 1;
  shared->has_taken = 0;
}

void tnk__gw_shared_confirm(tnk__gw_shared_t *shared, uint64_t n) {
  tnk__gw_queue_confirm(&shared->queue, n);
  if (n > shared->n_stored)
    shared->n_stored = n;
  if (!shared->is_refused)
    return;
  if (!shared->has_taken)
    shared->taken_ms = shared->now_ms;
  shared->has_taken = 1;
  if (shared->window < WINDOW)
    shared->window++; /* so it doubles with each round of replies */
}

void tnk__gw_shared_recover(tnk__gw_shared_t *shared) {
  if (shared->is_refused &&
      (!shared->has_taken || !shared->is_current ||
       shared->now_ms - shared->taken_ms < shared->hold_ms ||
       (shared->window < WINDOW &&
        tnk__gw_queue_first(&shared->queue) != NULL)))
    return;
  if (shared->is_refused) {
    shared->has_recovered = 1;
    shared->recovered_ms = shared->now_ms;
  }
  if (shared->is_loaded && shared->why[0] != '\0')
    tnk__log(&shared->logger, TNK_LOG_WARN, "gateway",
             "%s: the store answers again", shared->where.shown);
  shared->is_refused = 0;
  shared->backoff_ms = TNK__GW_BACKOFF_MS;
  shared->why[0] = '\0';
  shared->code = TNK_OK;
}

/* ---- The connection ---- */

void tnk__gw_shared_cut(tnk__gw_shared_t *shared) {
  if (shared->resp != NULL)
    tnk__gw_resp_close(shared->resp);
  shared->resp = NULL;
  shared->is_current = shared->is_reading = 0;
  tnk__gw_keeper_stop(&shared->keeper);
  shared->has_script = shared->asks_script = 0;
  /* The store may have failed at the line that has no reply. */
  if (shared->queue.n_sent > 0)
    begin_refusal(shared);
  tnk__gw_queue_rewind(&shared->queue);
}

/* Try again later. `why` has no secrets. */
void tnk__gw_shared_lose(tnk__gw_shared_t *shared, int code, const char *why) {
  char now[sizeof(shared->why)];

  (void)snprintf(now, sizeof(now), "%s: %s", shared->where.shown, why);
  /* The log has each reason once. */
  if (shared->is_loaded && strcmp(now, shared->why) != 0)
    tnk__log(&shared->logger, TNK_LOG_WARN, "gateway", "%s", now);
  memcpy(shared->why, now, sizeof(now));
  shared->code = code;
  shared->is_busy = 0;
  tnk__gw_shared_cut(shared);
  shared->next_ms = shared->now_ms + shared->backoff_ms;
  shared->backoff_ms = shared->backoff_ms * 2 < MAX_BACKOFF_MS
                           ? shared->backoff_ms * 2
                           : MAX_BACKOFF_MS;
}

/* The lines cannot be used. */
void tnk__gw_shared_give_up(tnk__gw_shared_t *shared, int err,
                            const char *why) {
  tnk__gw_shared_lose(shared, err, why);
  shared->err = err;
  tnk__gw_shared_wake(shared, err);
}

int tnk__gw_shared_has_lost(tnk__gw_shared_t *shared) {
  tnk__gw_shared_give_up(shared, TNK_EFILE, "the server has lost the record");
  return -1;
}

int tnk__gw_shared_unexpected(tnk__gw_shared_t *shared) {
  tnk__gw_shared_lose(shared, TNK_EFILE,
                      "the server sends an unexpected reply");
  return -1;
}

/* `n` is the number of the line, for TNK__GW_OF_ADD. */
static int send_bytes(tnk__gw_shared_t *shared, tnk__gw_kind_t kind, uint64_t n,
                      const void *data, size_t len) {
  const tnk__gw_tag_t tag = {(int)kind, n};

  if (tnk__gw_resp_n_due(shared->resp) == 0)
    shared->heard_ms = shared->replied_ms = shared->now_ms;
  if (tnk__gw_resp_send(shared->resp, &tag, data, len) == TNK_OK)
    return 0;
  tnk__gw_shared_lose(shared, TNK_ENOMEM, "out of memory");
  return -1;
}

/* Send a formatted command, and free it. */
int tnk__gw_shared_send_text(tnk__gw_shared_t *shared, tnk__gw_kind_t kind,
                             char *text, long long len) {
  int err = -1;

  if (len < 0)
    tnk__gw_shared_lose(shared, TNK_ENOMEM, "out of memory");
  else
    err = send_bytes(shared, kind, 0, text, (size_t)len);
  redisFreeCommand(text);
  return err;
}

/* `args` ends with NULL. */
int tnk__gw_shared_command(tnk__gw_shared_t *shared, tnk__gw_kind_t kind,
                           const char *const *args) {
  const char *argv[MAX_ARGS];
  size_t lens[MAX_ARGS];
  int n = 0;
  char *text = NULL;
  long long len;

  for (; args[n] != NULL; n++) {
    argv[n] = args[n];
    lens[n] = strlen(args[n]);
  }
  len = redisFormatCommandArgv(&text, n, argv, lens);
  return tnk__gw_shared_send_text(shared, kind, text, len);
}

void tnk__gw_shared_read(tnk__gw_shared_t *shared) {
  char count[24];

  shared->is_reading = 1;
  shared->polled_ms = shared->now_ms;
  (void)snprintf(count, sizeof(count), "%" PRIu64, shared->count);
  (void)TNK__GW_COMMAND(shared, TNK__GW_OF_READ, "XREAD", "COUNT", count,
                        "STREAMS", shared->keys[3], shared->last);
}

void tnk__gw_shared_read_all(tnk__gw_shared_t *shared) {
  shared->n_begun++;
  shared->wants_read = 0;
  tnk__gw_shared_read(shared);
}

/* Let the server remove sessions. It looks at some of them at a time, so that
 * others need not wait for it. */
void tnk__gw_shared_keep(tnk__gw_shared_t *shared) {
  const tnk__gw_keep_t *how = &shared->options.keep;
  char *text;
  long long len;

  if (!shared->is_current || shared->is_closing ||
      !tnk__gw_keeper_is_due(&shared->keeper, how, shared->now_ms))
    return;
  len = tnk__gw_keeper_begin(&shared->keeper, &text, shared->base, how,
                             shared->now_ms);
  (void)tnk__gw_shared_send_text(shared, TNK__GW_OF_KEEP, text, len);
}

int tnk__gw_shared_load_script(tnk__gw_shared_t *shared) {
  char *text;
  long long len = tnk__gw_script_load(&text, shared->options.is_read_only);

  shared->asks_script = 1;
  return tnk__gw_shared_send_text(shared, TNK__GW_OF_SCRIPT, text, len);
}

/* Send the lines in the queue. One line is enough to see whether the store
 * still refuses them. A reader needs a script for marks only. */
void tnk__gw_shared_send_queue(tnk__gw_shared_t *shared) {
  const size_t window = shared->is_refused ? shared->window : WINDOW;
  tnk__gw_queue_t *queue = &shared->queue;
  tnk__gw_unsafe_t *one;

  if (!shared->is_current || tnk__gw_queue_first(queue) == NULL)
    return;
  if (!shared->has_script) {
    if (!shared->asks_script)
      (void)tnk__gw_shared_load_script(shared);
    return;
  }
  while ((one = tnk__gw_queue_send(queue, window)) != NULL) {
    tnk__gw_script_sign(one->data, shared->sha);
    if (!shared->options.is_read_only)
      tnk__gw_script_set_first(one->data, one->len,
                               one == tnk__gw_queue_first(queue) &&
                                   one->n > shared->n_stored + 1);
    if (send_bytes(shared, TNK__GW_OF_ADD, one->n, one->data, one->len) != 0)
      return;
  }
}
