/* SPDX-License-Identifier: MIT */
#include "gateway/store/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/store/entry.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "tnk/error.h"

enum {
  TICK_MS = 50,
  POLL_MS = 100,
  SILENCE_MS = 5000, /* without a byte while a reply is due */
  SLOW_MS = 60000,   /* without a whole reply */
  PATIENCE_MS = 30000,
  LOAD_MS = 60000, /* while the server loads its own file */
  FLUSH_MS = 5000, /* for the remaining lines, while closing */
  MAX_LINE = 32 << 20,
  MAX_PENDING = 128 << 20,
  MAX_REPLY = 192 << 20
};

/* ---- Replies ---- */

static int malformed(tnk__gw_shared_t *shared) {
  tnk__gw_shared_give_up(shared, TNK_EFILE,
                         "an entry of the record is malformed");
  return -1;
}

static int take_entry(tnk__gw_shared_t *shared, const redisReply *entry) {
  const tnk__gw_unsafe_t *first;
  tnk__gw_entry_line_t read;
  int is_own;
  int err;

  if (tnk__gw_entry_read(entry, &read) != 0)
    return malformed(shared);
  err = tnk__gw_writers_take(&shared->writers, read.writer, read.n);
  if (err < 0) {
    tnk__gw_shared_lose(shared, TNK_ENOMEM, "out of memory");
    return -1;
  }
  memcpy(shared->last, read.id, strlen(read.id) + 1);
  is_own = shared->writer != 0 && read.writer == shared->writer;
  /* Another process has the number of this one. */
  if (is_own && read.n > shared->queue.n_added)
    return tnk__gw_shared_has_lost(shared);
  /* An earlier line that has no reply yet may have been refused. */
  first = tnk__gw_queue_first(&shared->queue);
  if (is_own && first != NULL && first->n == read.n)
    tnk__gw_shared_confirm(shared, read.n);
  if (err == 0 || shared->is_closing)
    return 0;
  err = shared->options.on_line(shared->options.user, read.line, read.n_line,
                                read.id, is_own);
  if (err == TNK_OK)
    return 0;
  tnk__gw_shared_give_up(shared, err,
                         err == TNK_ENOMEM ? "out of memory"
                                           : "a line of it is malformed");
  return -1;
}

static int take_entries(tnk__gw_shared_t *shared, const redisReply *reply) {
  size_t n;
  struct redisReply *const *entries = tnk__gw_entries(reply, &n);

  if (entries == NULL && n > 0)
    return malformed(shared);
  for (size_t i = 0; i < n; i++)
    if (take_entry(shared, entries[i]) != 0)
      return -1;
  if (n >= shared->count) {
    tnk__gw_shared_read(shared);
    return shared->resp != NULL ? 0 : -1;
  }
  shared->is_reading = 0;
  shared->count = TNK__GW_MAX_COUNT;
  shared->n_read = shared->n_begun;
  if (!shared->is_current) {
    shared->is_current = 1;
    tnk__gw_shared_recover(shared);
    tnk__gw_shared_keep(
        shared); /* a full server may then have space for the lines */
    if (shared->resp != NULL)
      tnk__gw_shared_send_queue(shared);
  }
  if (shared->wants_read && shared->resp != NULL)
    tnk__gw_shared_read_all(shared);
  tnk__gw_shared_wake(shared, TNK_OK);
  return 0;
}

/* What Valkey and Redis reply to a value that is longer than
 * proto-max-bulk-len. Then they close the connection. */
static const char too_long[] = "ERR Protocol error: invalid bulk length";

static void take_error(tnk__gw_shared_t *shared, const tnk__gw_tag_t *tag,
                       const char *text) {
  const int is_busy = strncmp(text, "LOADING ", 8) == 0;
  const tnk__gw_unsafe_t *first = tnk__gw_queue_first(&shared->queue);
  char why[128];

  if (tag->kind == TNK__GW_OF_ADD && first != NULL && first->n == tag->n &&
      strcmp(text, too_long) == 0) {
    tnk__gw_shared_refuse_first(shared, "the server refuses its length");
    return;
  }
  if (tag->kind == TNK__GW_OF_AUTH && !is_busy)
    (void)snprintf(why, sizeof(why), "the user or the password was rejected");
  else
    tnk__gw_error_text(text, why, sizeof(why));
  tnk__gw_shared_lose(shared, TNK_EFILE, why);
  shared->is_busy = is_busy;
}

/* The store has a line, or has refused it because of its session. A line that
 * was read meanwhile is not in the queue any more. */
static int take_added(tnk__gw_shared_t *shared, const redisReply *reply,
                      uint64_t n) {
  const tnk__gw_unsafe_t *first = tnk__gw_queue_first(&shared->queue);
  int is_refused = reply->type == REDIS_REPLY_NIL;

  shared->queue.n_sent--;
  if (first != NULL && first->n > n)
    first = NULL;
  if (reply->type == REDIS_REPLY_INTEGER && reply->integer <= 0) {
    tnk__gw_shared_lose(shared, TNK_EFILE,
                        reply->integer < 0
                            ? "the server does not know this process any more"
                            : "the server lacks an earlier line");
    return -1;
  }
  if ((first != NULL && first->n < n) ||
      (is_refused ? first != NULL && first->session[0] == '\0'
                  : reply->type != REDIS_REPLY_INTEGER || reply->integer != 1))
    return tnk__gw_shared_unexpected(shared);
  if (is_refused && first != NULL && !shared->is_closing &&
      shared->options.on_refused != NULL &&
      shared->options.on_refused(shared->options.user, first->session) !=
          TNK_OK) {
    tnk__gw_shared_lose(shared, TNK_ENOMEM, "out of memory");
    return -1;
  }
  tnk__gw_shared_confirm(shared, n);
  if (shared->is_refused) {
    tnk__gw_shared_recover(shared);
    tnk__gw_shared_wake(shared, TNK_OK);
  } else {
    tnk__gw_shared_wake_list(shared, &shared->waiters, shared->queue.n_safe,
                             TNK_OK);
  }
  if (shared->resp != NULL)
    tnk__gw_shared_send_queue(shared);
  return shared->resp != NULL ? 0 : -1;
}

/* Nothing is removed while the server refuses it. The lines do not depend on
 * it. */
static int take_kept(tnk__gw_shared_t *shared, const redisReply *reply) {
  const char *why = shared->keeper.why;
  int taken = tnk__gw_keeper_take(&shared->keeper, reply);

  if (taken < 0)
    return tnk__gw_shared_unexpected(shared);
  if (taken > 0)
    tnk__log(&shared->logger, TNK_LOG_WARN, "gateway", "%s: %s%s",
             shared->where.shown,
             why[0] != '\0' ? "no sessions can be removed: "
                            : "sessions can be removed again",
             why);
  return 0;
}

static int on_reply(void *user, const tnk__gw_tag_t *tag,
                    const redisReply *reply) {
  tnk__gw_shared_t *shared = user;

  if (tag == NULL)
    return tnk__gw_shared_unexpected(shared);
  shared->heard_ms = shared->replied_ms = shared->now_ms;
  if (reply->type == REDIS_REPLY_ERROR && tag->kind != TNK__GW_OF_KEEP &&
      tag->kind != TNK__GW_OF_STREAM) {
    take_error(shared, tag, reply->str);
    return -1;
  }
  switch ((tnk__gw_kind_t)tag->kind) {
  case TNK__GW_OF_READ:
    return take_entries(shared, reply);
  case TNK__GW_OF_ADD:
    return take_added(shared, reply, tag->n);
  case TNK__GW_OF_KEEP:
    return take_kept(shared, reply);
  case TNK__GW_OF_AUTH:
  case TNK__GW_OF_SET:
  case TNK__GW_OF_LAYOUT:
  case TNK__GW_OF_VOCABULARY:
  case TNK__GW_OF_CLAIM:
  case TNK__GW_OF_BORN:
  case TNK__GW_OF_WRITERS:
  case TNK__GW_OF_FORGOTTEN:
  case TNK__GW_OF_STREAM:
  case TNK__GW_OF_SCRIPT:
    break;
  }
  return tnk__gw_shared_take_greeting(shared, (tnk__gw_kind_t)tag->kind, reply);
}

/* Fewer entries may fit, or come in time. */
static void read_fewer(tnk__gw_shared_t *shared) {
  shared->count = shared->count > 4 ? shared->count / 4 : 1;
}

static void on_lost(void *user, int code, const char *why) {
  tnk__gw_shared_t *shared = user;

  if (code == TNK_ETOOBIG)
    read_fewer(shared);
  if (tnk__gw_shared_was_closed_at(shared, code))
    tnk__gw_shared_refuse_first(shared, why);
  else
    tnk__gw_shared_lose(shared, code, why);
}

/* ---- Time ---- */

static void free_shared(tnk__gw_shared_t *shared);

static void release(tnk__gw_shared_t *shared) {
  if (--shared->n_open == 0 && shared->is_closing)
    free_shared(shared);
}

static void on_closed(void *user) {
  release(user);
}

static void connect_now(tnk__gw_shared_t *shared) {
  const tnk__gw_resp_options_t options = {.net = shared->net,
                                          .alloc = &shared->alloc,
                                          .host = shared->where.host,
                                          .port = shared->where.port,
                                          .is_tls = shared->where.is_tls,
                                          .connect_ms = SILENCE_MS,
                                          .max_reply =
                                              shared->options.max_reply,
                                          .on_open = tnk__gw_shared_greet,
                                          .on_reply = on_reply,
                                          .on_lost = on_lost,
                                          .on_closed = on_closed,
                                          .user = shared};
  int err = tnk__gw_resp_open(&shared->resp, &options);

  shared->heard_ms = shared->replied_ms = shared->now_ms;
  shared->n_moved = 0;
  if (err == TNK_OK)
    shared->n_open++;
  else
    tnk__gw_shared_lose(shared, err, tnk_strerror(err));
}

static void end(tnk__gw_shared_t *shared);

/* End the connection if a reply that is due does not come. Bytes that have come
 * since the last call count as of that time. */
static void watch(tnk__gw_shared_t *shared, uint64_t last_ms) {
  uint64_t n_moved = tnk__gw_resp_n_moved(shared->resp);
  const char *why = NULL;

  if (n_moved != shared->n_moved && last_ms > shared->heard_ms)
    shared->heard_ms = last_ms;
  shared->n_moved = n_moved;
  if (shared->now_ms - shared->heard_ms >= SILENCE_MS)
    why = "the server does not answer";
  else if (shared->now_ms - shared->replied_ms >= SLOW_MS)
    why = "the server is too slow";
  if (why == NULL)
    return;
  if (shared->is_reading)
    read_fewer(shared);
  tnk__gw_shared_lose(shared, TNK_ECONN, why);
}

void tnk__gw_shared_tick(tnk__gw_shared_t *shared, uint64_t now_ms) {
  uint64_t passed_ms = now_ms - shared->now_ms;

  shared->now_ms = now_ms;
  if (shared->options.has_no_timer)
    tnk__context_advance(&shared->context, passed_ms);
  if (shared->resp != NULL && tnk__gw_resp_is_open(shared->resp) &&
      tnk__gw_resp_n_due(shared->resp) > 0)
    watch(shared, now_ms - passed_ms);
  else if (shared->err == TNK_OK && shared->resp == NULL &&
           now_ms >= shared->next_ms)
    connect_now(shared);
  if (shared->is_current && !shared->is_reading &&
      now_ms - shared->polled_ms >= POLL_MS)
    tnk__gw_shared_read_all(shared);
  tnk__gw_shared_keep(shared);
  if (shared->is_refused && shared->err == TNK_OK)
    tnk__gw_shared_recover(shared);
  tnk__gw_shared_wake(shared, shared->err);
  if (shared->is_closing && (tnk__gw_queue_first(&shared->queue) == NULL ||
                             now_ms - shared->close_ms >= FLUSH_MS))
    end(shared);
}

static void on_timer(uv_timer_t *timer) {
  tnk__gw_shared_tick(timer->data, uv_now(timer->loop));
}

/* A caller may not have run the loop for long. */
static void look_at_clock(tnk__gw_shared_t *shared) {
  if (shared->loop == NULL || shared->options.has_no_timer)
    return;
  uv_update_time(shared->loop);
  shared->now_ms = uv_now(shared->loop);
}

/* ---- Opening and closing ---- */

static int make_token(char out[TNK__GW_TOKEN]) {
  unsigned char bytes[(TNK__GW_TOKEN - 1) / 2];

  if (uv_random(NULL, NULL, bytes, sizeof(bytes), 0, NULL) != 0)
    return TNK_ESYSTEM;
  for (size_t i = 0; i < sizeof(bytes); i++)
    (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return TNK_OK;
}

int tnk__gw_shared_new(tnk__gw_shared_t **out,
                       const tnk__gw_shared_options_t *options) {
  static const char *const names[] = {"layout", "vocabulary", "writers",
                                      "lines",  "forgotten",  "born"};
  tnk__gw_shared_t *shared = tnk__calloc(options->alloc, 1, sizeof(*shared));

  *out = shared;
  if (shared == NULL)
    return TNK_ENOMEM;
  shared->options = *options;
  shared->alloc = *options->alloc;
  shared->where = *options->where;
  if (options->logger != NULL)
    shared->logger = *options->logger;
  if (options->patience_ms == 0)
    shared->options.patience_ms = PATIENCE_MS;
  if (options->max_reply == 0)
    shared->options.max_reply = MAX_REPLY;
  (void)snprintf(shared->base, sizeof(shared->base),
                 "tnk:{%s}:", shared->where.name);
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    (void)snprintf(shared->keys[i], sizeof(shared->keys[i]), "%s%s",
                   shared->base, names[i]);
  shared->backoff_ms = TNK__GW_BACKOFF_MS;
  tnk__gw_keeper_init(&shared->keeper);
  shared->count = TNK__GW_MAX_COUNT;
  (void)snprintf(shared->last, sizeof(shared->last), "0-0");
  tnk__gw_writers_init(&shared->writers, &shared->alloc);
  /* A mark is not numbered, so it would be appended twice. */
  tnk__gw_queue_init(&shared->queue, &shared->alloc,
                     options->is_read_only ? 0 : TNK__GW_MAX_KEPT);
  tnk__list_init(&shared->waiters);
  tnk__list_init(&shared->syncers);
  tnk__list_init(&shared->writing);
  return make_token(shared->token);
}

/* The streams and their clock. */
static int open_net(tnk__gw_shared_t *shared, uv_loop_t *loop) {
  const tnk__gw_shared_options_t *o = &shared->options;
  int err;

  if (tnk__context_init(&shared->context, loop, &shared->alloc, NULL) != 0) {
    shared->context.uv = NULL;
    return TNK_ESYSTEM;
  }
  tnk__context_start(&shared->context);
  if (o->has_no_timer)
    tnk__context_fake_clock(&shared->context, 0);
  shared->n_open++;
  err = tnk__net_new(&shared->net, &shared->context, o->ca_file);
  if (err == TNK_OK && o->cert_file != NULL)
    err = tnk__net_identify(shared->net, o->cert_file, o->key_file);
  return err;
}

static void on_timer_closed(uv_handle_t *handle) {
  release(handle->data);
}

/* Close everything; release() then frees it. */
static void end(tnk__gw_shared_t *shared) {
  if (uv_is_closing((uv_handle_t *)&shared->timer))
    return;
  tnk__gw_shared_cut(shared);
  tnk__net_unref(shared->net);
  shared->net = NULL;
  if (shared->context.uv != NULL)
    tnk__context_end(&shared->context, on_closed, shared);
  uv_close((uv_handle_t *)&shared->timer, on_timer_closed);
}

int tnk__gw_shared_begin(tnk__gw_shared_t *shared, uv_loop_t *loop) {
  int err;

  if (uv_timer_init(loop, &shared->timer) != 0)
    return TNK_ESYSTEM;
  shared->loop = loop;
  shared->timer.data = shared;
  shared->n_open++;
  err = open_net(shared, loop);
  if (err != TNK_OK)
    return err;
  uv_update_time(loop);
  shared->now_ms = shared->next_ms =
      shared->options.has_no_timer ? 0 : uv_now(loop);
  if (!shared->options.has_no_timer)
    (void)uv_timer_start(&shared->timer, on_timer, 0, TICK_MS);
  return TNK_OK;
}

int tnk__gw_shared_load(tnk__gw_shared_t *shared, char *why, size_t n_why) {
  uv_loop_t loop;
  uint64_t began_ms;
  int err;

  if (uv_loop_init(&loop) != 0)
    return TNK_ESYSTEM;
  err = tnk__gw_shared_begin(shared, &loop);
  began_ms = uv_now(&loop);
  while (err == TNK_OK && !shared->is_current &&
         (shared->why[0] == '\0' ||
          (shared->is_busy && uv_now(&loop) - began_ms < LOAD_MS)))
    (void)uv_run(&loop, UV_RUN_ONCE);
  if (err == TNK_OK)
    err = shared->is_current ? TNK_OK : shared->code;
  if (shared->loop != NULL)
    end(shared);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&loop);
  shared->loop = NULL;
  shared->backoff_ms = TNK__GW_BACKOFF_MS;
  shared->is_loaded = err == TNK_OK;
  if (err != TNK_OK && n_why > 0)
    (void)snprintf(why, n_why, "%s", shared->why);
  return err;
}

uint64_t tnk__gw_shared_writer(const tnk__gw_shared_t *shared) {
  return shared->writer;
}

static void free_shared(tnk__gw_shared_t *shared) {
  tnk_allocator_t alloc = shared->alloc;
  void (*closed)(void *) = shared->closed;
  void *user = shared->closed_user;

  tnk__gw_shared_wake(shared, TNK_ECLOSED);
  tnk__gw_queue_deinit(&shared->queue);
  tnk__gw_writers_deinit(&shared->writers);
  tnk__wipe(&shared->where, sizeof(shared->where));
  tnk__free(&alloc, shared);
  if (closed != NULL)
    closed(user);
}

void tnk__gw_shared_close(tnk__gw_shared_t *shared, void (*closed)(void *user),
                          void *user) {
  shared->closed = closed;
  shared->closed_user = user;
  shared->is_closing = 1;
  look_at_clock(shared);
  shared->close_ms = shared->now_ms;
  if (shared->loop == NULL) {
    free_shared(shared);
    return;
  }
  if (tnk__gw_queue_first(&shared->queue) == NULL || shared->err != TNK_OK)
    end(shared);
}

/* ---- Lines ---- */

/* Keep a formatted command until the store has done it. Frees `text`. */
static int add_command(tnk__gw_shared_t *shared, const tnk__gw_about_t *about,
                       char *text, long long len) {
  int err = TNK_ENOMEM;

  if (len >= 0)
    err = tnk__gw_queue_add(&shared->queue, about, text, (size_t)len);
  redisFreeCommand(text);
  if (err == TNK_OK)
    tnk__gw_shared_send_queue(shared);
  return err;
}

static int may_add(const tnk__gw_shared_t *shared, size_t n) {
  if (shared->err != TNK_OK || shared->is_closing)
    return shared->err != TNK_OK ? shared->err : TNK_ECLOSED;
  return n > MAX_LINE ? TNK_ETOOBIG : TNK_OK;
}

int tnk__gw_shared_add(tnk__gw_shared_t *shared, const tnk__gw_about_t *about,
                       const void *line, size_t n) {
  char writer[24], count[24];
  const tnk__gw_script_line_t what = {
      shared->base, about, writer, shared->token, count, line, n};
  char *text;
  long long len;
  int err = may_add(shared, n);

  if (err == TNK_OK && shared->queue.n_bytes + n > MAX_PENDING)
    err = TNK_ETOOBIG;
  if (err != TNK_OK)
    return err;
  (void)snprintf(writer, sizeof(writer), "%" PRIu64, shared->writer);
  (void)snprintf(count, sizeof(count), "%" PRIu64, shared->queue.n_added + 1);
  len = tnk__gw_script_line(&text, &what);
  return add_command(shared, about, text, len);
}

int tnk__gw_shared_mark(tnk__gw_shared_t *shared, const char *session,
                        const char *changed, const void *line, size_t n) {
  char count[24];
  const tnk__gw_script_mark_t what = {shared->base, session,       line, n,
                                      changed,      shared->token, count};
  const tnk__gw_about_t about = {.session = session};
  char *text;
  long long len;
  int err = may_add(shared, n);

  if (err == TNK_OK && !shared->options.is_read_only)
    err = TNK_EINVAL;
  if (err != TNK_OK)
    return err;
  (void)snprintf(count, sizeof(count), "%" PRIu64, shared->queue.n_added + 1);
  len = tnk__gw_script_mark(&text, &what);
  return add_command(shared, &about, text, len);
}

static int begin_wait(tnk__gw_shared_t *shared, tnk__list_t *list,
                      tnk__gw_waiter_t *waiter, uint64_t upto) {
  tnk__list_init(&waiter->link);
  if (shared->err != TNK_OK || shared->is_closing)
    return shared->err != TNK_OK ? shared->err : TNK_ECLOSED;
  waiter->upto = upto;
  look_at_clock(shared);
  waiter->since_ms = shared->now_ms;
  tnk__list_append(list, &waiter->link);
  return 0;
}

int tnk__gw_shared_wait(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter) {
  if (shared->queue.n_safe < shared->queue.n_added)
    return begin_wait(shared, &shared->waiters, waiter, shared->queue.n_added);
  tnk__list_init(&waiter->link);
  return 1;
}

void tnk__gw_shared_hurry(tnk__gw_shared_t *shared) {
  if (shared->is_current && !shared->is_reading)
    tnk__gw_shared_read_all(shared);
  else
    shared->wants_read = 1;
}

int tnk__gw_shared_sync(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter,
                        int is_writing) {
  int err = begin_wait(shared, is_writing ? &shared->writing : &shared->syncers,
                       waiter, shared->n_begun + 1);

  if (err == 0)
    tnk__gw_shared_hurry(shared);
  return err;
}

const char *tnk__gw_shared_why(const tnk__gw_shared_t *shared) {
  if (shared->why[0] != '\0')
    return shared->why;
  return shared->is_current ? NULL : "the shared record is being opened";
}

uint64_t tnk__gw_shared_n_older(const tnk__gw_shared_t *shared) {
  return shared->n_older;
}

int tnk__gw_shared_error(const tnk__gw_shared_t *shared) {
  return shared->err;
}
