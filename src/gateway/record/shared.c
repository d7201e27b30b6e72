/* SPDX-License-Identifier: MIT */
#include "gateway/record/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/record/entry.h"
#include "gateway/record/map.h"
#include "gateway/record/resp.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/number.h"
#include "lib/io/net/net.h"
#include "tnk/error.h"

enum {
  TICK_MS = 50,
  POLL_MS = 100,
  SILENCE_MS = 5000, /* without a reply that is due, the connection is lost */
  BACKOFF_MS = 100,
  MAX_BACKOFF_MS = 5000,
  PATIENCE_MS = 30000,
  LOAD_MS = 60000, /* while the server loads its own file */
  FLUSH_MS = 5000, /* for the remaining lines, while closing */
  MAX_COUNT = 128, /* entries of a reply */
  MAX_ARGS = 10,
  MAX_LINE = 32 << 20,
  MAX_PENDING = 128 << 20,
  MAX_REPLY = 192 << 20
};

#define LAYOUT "1"

typedef enum {
  OF_AUTH = 1,
  OF_SET,
  OF_LAYOUT,
  OF_VOCABULARY,
  OF_WRITER,
  OF_WRITERS,
  OF_READ,
  OF_ADD
} kind_t;

/* A line that is not known to be in the store. */
typedef struct {
  tnk__list_t link;
  uint64_t n;
  size_t len;
  char data[]; /* the whole command */
} entry_t;

typedef struct {
  tnk__gw_node_t node; /* by its number */
  uint64_t n;          /* count of its lines that were read */
} writer_t;

struct tnk__gw_shared {
  tnk__gw_shared_options_t options;
  tnk_allocator_t alloc;
  tnk_logger_t logger;
  tnk__gw_where_t where;
  char keys[4][TNK__GW_MAX_NAME + 24]; /* layout, vocabulary, writers, lines */
  uv_loop_t *loop;
  tnk__context_t context; /* of the streams */
  tnk__net_t *net;
  uv_timer_t timer;
  size_t n_open;        /* the timer, the context and connections */
  tnk__gw_resp_t *resp; /* NULL: none */
  uint64_t now_ms;
  uint64_t next_ms;  /* when to connect */
  uint64_t heard_ms; /* when a reply came, or the first one became due */
  uint64_t polled_ms;
  uint64_t backoff_ms;
  tnk__buf_t due; /* kinds of the replies that are due, from n_heard on */
  size_t n_heard;
  int is_greeted; /* this connection may read and append */
  int is_current; /* and has read all that was there */
  int is_reading;
  int wants_read;              /* once more */
  uint64_t n_begun;            /* count of reads up to the end of the stream */
  uint64_t n_read;             /* the last one that is complete */
  uint64_t count;              /* entries to ask for */
  char last[TNK__GW_ENTRY_ID]; /* id of the last entry that was read */
  tnk__gw_map_t writers;
  uint64_t writer;
  uint64_t n_writers; /* there were at least so many; of a reader */
  uint64_t n_added;
  uint64_t n_safe;
  tnk__list_t pending;
  size_t n_pending; /* bytes */
  tnk__list_t waiters;
  tnk__list_t syncers;
  int err;       /* once set, nothing works any more */
  int code;      /* of `why` */
  int is_busy;   /* the server is loading its own file */
  char why[512]; /* "": nothing is wrong */
  int is_loaded; /* the log may say what is wrong */
  int is_closing;
  uint64_t close_ms;
  void (*closed)(void *user);
  void *closed_user;
};

/* ---- Those who wait ---- */

/* Call those whose wait has ended. They are moved to a list of their own first,
 * because a callback may wait again. */
static void wake(tnk__gw_shared_t *shared, tnk__list_t *list, uint64_t upto,
                 int all_err) {
  uint64_t patience = shared->options.patience_ms;
  tnk__list_t waiters;
  tnk__list_t *node;

  tnk__list_move(&waiters, list);
  while ((node = tnk__list_pop(&waiters)) != NULL) {
    tnk__gw_waiter_t *waiter = tnk__container_of(node, tnk__gw_waiter_t, link);

    if (waiter->upto <= upto)
      waiter->done(waiter, TNK_OK);
    else if (all_err != TNK_OK)
      waiter->done(waiter, all_err);
    else if (shared->now_ms - waiter->since_ms >= patience)
      waiter->done(waiter, TNK_ECONN);
    else
      tnk__list_append(list, node);
  }
}

static void wake_all(tnk__gw_shared_t *shared, int err) {
  wake(shared, &shared->waiters, shared->n_safe, err);
  wake(shared, &shared->syncers, shared->n_read, err);
}

static void drop_entry(tnk__gw_shared_t *shared, entry_t *entry) {
  tnk__list_remove(&entry->link);
  shared->n_pending -= entry->len;
  tnk__free(&shared->alloc, entry);
}

/* The store has the lines up to this count. */
static void confirm(tnk__gw_shared_t *shared, uint64_t n) {
  while (!tnk__list_empty(&shared->pending)) {
    entry_t *entry =
        tnk__container_of(tnk__list_first(&shared->pending), entry_t, link);

    if (entry->n > n)
      break;
    drop_entry(shared, entry);
  }
  if (n > shared->n_safe)
    shared->n_safe = n;
}

/* ---- The connection ---- */

static void end_connection(tnk__gw_shared_t *shared) {
  if (shared->resp != NULL)
    tnk__gw_resp_close(shared->resp);
  shared->resp = NULL;
  shared->is_greeted = shared->is_current = shared->is_reading = 0;
  tnk__buf_clear(&shared->due);
  shared->n_heard = 0;
}

/* Try again later. `why` has no secrets. */
static void lose(tnk__gw_shared_t *shared, int code, const char *why) {
  char now[sizeof(shared->why)];

  (void)snprintf(now, sizeof(now), "%s: %s", shared->where.shown, why);
  /* The log has each reason once. */
  if (shared->is_loaded && strcmp(now, shared->why) != 0)
    tnk__log(&shared->logger, TNK_LOG_WARN, "gateway", "%s", now);
  memcpy(shared->why, now, sizeof(now));
  shared->code = code;
  end_connection(shared);
  shared->next_ms = shared->now_ms + shared->backoff_ms;
  shared->backoff_ms = shared->backoff_ms * 2 < MAX_BACKOFF_MS
                           ? shared->backoff_ms * 2
                           : MAX_BACKOFF_MS;
}

/* The lines cannot be used. */
static void give_up(tnk__gw_shared_t *shared, int err, const char *why) {
  lose(shared, err, why);
  shared->err = err;
  wake_all(shared, err);
}

static int send_bytes(tnk__gw_shared_t *shared, kind_t kind, const void *data,
                      size_t n) {
  if (shared->n_heard == shared->due.len) {
    shared->heard_ms = shared->now_ms;
    tnk__buf_clear(&shared->due);
    shared->n_heard = 0;
  }
  if (tnk__buf_byte(&shared->due, (uint8_t)kind) == TNK_OK &&
      tnk__gw_resp_send(shared->resp, data, n) == TNK_OK)
    return 0;
  lose(shared, TNK_ENOMEM, "out of memory");
  return -1;
}

/* `args` ends with NULL. */
static int command(tnk__gw_shared_t *shared, kind_t kind,
                   const char *const *args) {
  const char *argv[MAX_ARGS];
  size_t lens[MAX_ARGS];
  int n = 0;
  char *text = NULL;
  long long len;
  int err;

  for (; args[n] != NULL; n++) {
    argv[n] = args[n];
    lens[n] = strlen(args[n]);
  }
  len = redisFormatCommandArgv(&text, n, argv, lens);
  if (len < 0) {
    lose(shared, TNK_ENOMEM, "out of memory");
    return -1;
  }
  err = send_bytes(shared, kind, text, (size_t)len);
  redisFreeCommand(text);
  return err;
}

#define COMMAND(shared, kind, ...)                                             \
  command(shared, kind, (const char *const[]){__VA_ARGS__, NULL})

static void begin_read(tnk__gw_shared_t *shared) {
  char count[24];

  shared->is_reading = 1;
  shared->polled_ms = shared->now_ms;
  (void)snprintf(count, sizeof(count), "%" PRIu64, shared->count);
  (void)COMMAND(shared, OF_READ, "XREAD", "COUNT", count, "STREAMS",
                shared->keys[3], shared->last);
}

static void begin_reads(tnk__gw_shared_t *shared) {
  shared->n_begun++;
  shared->wants_read = 0;
  begin_read(shared);
}

/* Send the lines that waited for the connection. */
static void send_pending(tnk__gw_shared_t *shared) {
  TNK__LIST_FOREACH (node, &shared->pending) {
    entry_t *entry = tnk__container_of(node, entry_t, link);

    if (send_bytes(shared, OF_ADD, entry->data, entry->len) != 0)
      return;
  }
}

/* ---- Greeting ---- */

static void on_open(void *user) {
  tnk__gw_shared_t *shared = user;
  const tnk__gw_where_t *where = &shared->where;
  char vocabulary[24];
  int err = 0;

  shared->heard_ms = shared->now_ms;
  if (where->user[0] != '\0')
    err = COMMAND(shared, OF_AUTH, "AUTH", where->user, where->password);
  else if (where->password[0] != '\0')
    err = COMMAND(shared, OF_AUTH, "AUTH", where->password);
  if (err == 0 && !shared->options.is_read_only)
    err = COMMAND(shared, OF_SET, "SETNX", shared->keys[0], LAYOUT);
  if (err == 0)
    err = COMMAND(shared, OF_LAYOUT, "GET", shared->keys[0]);
  (void)snprintf(vocabulary, sizeof(vocabulary), "%" PRIu64,
                 shared->options.vocabulary);
  if (err == 0 && shared->options.vocabulary != 0)
    err = COMMAND(shared, OF_SET, "SETNX", shared->keys[1], vocabulary);
  if (err == 0)
    err = COMMAND(shared, OF_VOCABULARY, "GET", shared->keys[1]);
  if (err == 0 && (shared->writer != 0 || shared->options.is_read_only))
    err = COMMAND(shared, OF_WRITERS, "GET", shared->keys[2]);
  else if (err == 0)
    err = COMMAND(shared, OF_WRITER, "INCR", shared->keys[2]);
  if (err != 0)
    return;
  shared->is_greeted = 1;
  begin_reads(shared);
}

static int has_lost(tnk__gw_shared_t *shared) {
  give_up(shared, TNK_EFILE, "the server has lost the record");
  return -1;
}

static int take_layout(tnk__gw_shared_t *shared, const redisReply *reply) {
  if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, LAYOUT) == 0)
    return 0;
  if (reply->type == REDIS_REPLY_NIL && shared->is_loaded)
    return has_lost(shared);
  lose(shared, TNK_EFILE,
       reply->type == REDIS_REPLY_NIL
           ? "there is no such record"
           : "the record has another layout, of another version of this "
             "program");
  return -1;
}

static int take_vocabulary(tnk__gw_shared_t *shared, const redisReply *reply) {
  char own[24];

  (void)snprintf(own, sizeof(own), "%" PRIu64, shared->options.vocabulary);
  if (shared->options.vocabulary == 0 ||
      (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, own) == 0))
    return 0;
  lose(shared, TNK_EFILE,
       "its tokens are of another vocabulary; another model needs a record of "
       "another name");
  return -1;
}

static int take_writer(tnk__gw_shared_t *shared, const redisReply *reply) {
  if (reply->type != REDIS_REPLY_INTEGER || reply->integer <= 0) {
    lose(shared, TNK_EFILE, "the server sends an unexpected reply");
    return -1;
  }
  shared->writer = (uint64_t)reply->integer;
  return 0;
}

/* If the server has lost its data, another writer may get the same number. A
 * reader would take its lines for ones that it has read. */
static int take_writers(tnk__gw_shared_t *shared, const redisReply *reply) {
  uint64_t n = 0;

  if (reply->type == REDIS_REPLY_STRING &&
      tnk__text_u64(reply->str, UINT64_MAX, &n) != TNK_OK)
    return has_lost(shared);
  if (n < shared->writer || n < shared->n_writers)
    return has_lost(shared);
  if (shared->options.is_read_only)
    shared->n_writers = n;
  return 0;
}

/* ---- Replies ---- */

static int malformed(tnk__gw_shared_t *shared) {
  give_up(shared, TNK_EFILE, "an entry of the record is malformed");
  return -1;
}

/* Returns 1 if the line is new, 0 if it was read before, -1 without memory. */
static int is_new(tnk__gw_shared_t *shared, const tnk__gw_entry_line_t *read) {
  tnk__gw_node_t *node = tnk__gw_map_find(&shared->writers, read->writer);
  writer_t *writer;

  if (node == NULL) {
    writer = tnk__calloc(&shared->alloc, 1, sizeof(*writer));
    if (writer == NULL)
      return -1;
    if (tnk__gw_map_add(&shared->writers, &writer->node, read->writer) !=
        TNK_OK) {
      tnk__free(&shared->alloc, writer);
      return -1;
    }
  } else {
    writer = tnk__container_of(node, writer_t, node);
  }
  if (read->n <= writer->n)
    return 0;
  writer->n = read->n;
  return 1;
}

static int take_entry(tnk__gw_shared_t *shared, const redisReply *entry) {
  tnk__gw_entry_line_t read;
  int is_own;
  int err;

  if (tnk__gw_entry_read(entry, &read) != 0)
    return malformed(shared);
  err = is_new(shared, &read);
  if (err < 0) {
    lose(shared, TNK_ENOMEM, "out of memory");
    return -1;
  }
  memcpy(shared->last, read.id, strlen(read.id) + 1);
  is_own = shared->writer != 0 && read.writer == shared->writer;
  if (is_own)
    confirm(shared, read.n < shared->n_added ? read.n : shared->n_added);
  if (err == 0 || shared->is_closing)
    return 0;
  err = shared->options.on_line(shared->options.user, read.line, read.n_line,
                                is_own);
  if (err == TNK_OK)
    return 0;
  give_up(shared, err,
          err == TNK_ENOMEM ? "out of memory" : "a line of it is malformed");
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
    begin_read(shared);
    return shared->resp != NULL ? 0 : -1;
  }
  shared->is_reading = 0;
  shared->count = MAX_COUNT;
  shared->n_read = shared->n_begun;
  if (!shared->is_current) {
    if (shared->is_loaded && shared->why[0] != '\0')
      tnk__log(&shared->logger, TNK_LOG_WARN, "gateway",
               "%s: the store answers again", shared->where.shown);
    shared->is_current = 1;
    shared->backoff_ms = BACKOFF_MS;
    shared->why[0] = '\0';
    shared->code = TNK_OK;
    send_pending(shared);
  }
  if (shared->wants_read && shared->resp != NULL)
    begin_reads(shared);
  wake_all(shared, TNK_OK);
  return 0;
}

/* The text of an error can have parts of the command, which may be secret. Its
 * code has not. */
static void take_error(tnk__gw_shared_t *shared, kind_t kind,
                       const char *text) {
  char why[128];
  size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

  if (kind == OF_AUTH || text[n] != ' ' || n > 20)
    (void)snprintf(why, sizeof(why), "%s",
                   kind == OF_AUTH ? "the user or the password was rejected"
                                   : "the server reports an error");
  else
    (void)snprintf(why, sizeof(why), "the server reports the error %.*s",
                   (int)n, text);
  shared->is_busy = strncmp(text, "LOADING ", 8) == 0;
  lose(shared, TNK_EFILE, why);
}

/* The store has the oldest line that waits. */
static int take_added(tnk__gw_shared_t *shared, const redisReply *reply) {
  if (reply->type != REDIS_REPLY_STRING || tnk__list_empty(&shared->pending)) {
    lose(shared, TNK_EFILE, "the server sends an unexpected reply");
    return -1;
  }
  confirm(
      shared,
      tnk__container_of(tnk__list_first(&shared->pending), entry_t, link)->n);
  wake(shared, &shared->waiters, shared->n_safe, TNK_OK);
  return 0;
}

static int on_reply(void *user, const redisReply *reply) {
  tnk__gw_shared_t *shared = user;
  kind_t kind;

  if (shared->n_heard == shared->due.len) {
    lose(shared, TNK_EFILE, "the server sends an unexpected reply");
    return -1;
  }
  kind = (kind_t)shared->due.data[shared->n_heard++];
  shared->heard_ms = shared->now_ms;
  if (reply->type == REDIS_REPLY_ERROR) {
    take_error(shared, kind, reply->str);
    return -1;
  }
  switch (kind) {
  case OF_LAYOUT:
    return take_layout(shared, reply);
  case OF_VOCABULARY:
    return take_vocabulary(shared, reply);
  case OF_WRITER:
    return take_writer(shared, reply);
  case OF_WRITERS:
    return take_writers(shared, reply);
  case OF_READ:
    return take_entries(shared, reply);
  case OF_ADD:
    return take_added(shared, reply);
  case OF_AUTH:
  case OF_SET:
    break;
  }
  return 0;
}

static void on_lost(void *user, int code, const char *why) {
  tnk__gw_shared_t *shared = user;

  /* Fewer entries may fit. */
  if (code == TNK_ETOOBIG)
    shared->count = shared->count > 4 ? shared->count / 4 : 1;
  lose(shared, code, why);
}

/* ---- Time ---- */

static void free_shared(tnk__gw_shared_t *shared);

static void release(tnk__gw_shared_t *shared) {
  if (--shared->n_open == 0 && shared->is_closing)
    free_shared(shared);
}

static void on_resp_closed(void *user) {
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
                                          .on_open = on_open,
                                          .on_reply = on_reply,
                                          .on_lost = on_lost,
                                          .on_closed = on_resp_closed,
                                          .user = shared};
  int err = tnk__gw_resp_open(&shared->resp, &options);

  shared->heard_ms = shared->now_ms;
  shared->is_busy = 0;
  if (err == TNK_OK)
    shared->n_open++;
  else
    lose(shared, err, tnk_strerror(err));
}

static void end(tnk__gw_shared_t *shared);

void tnk__gw_shared_tick(tnk__gw_shared_t *shared, uint64_t now_ms) {
  int is_due;
  uint64_t passed_ms = now_ms - shared->now_ms;

  shared->now_ms = now_ms;
  if (shared->options.has_no_timer)
    tnk__context_advance(&shared->context, passed_ms);
  is_due = shared->resp != NULL && tnk__gw_resp_is_open(shared->resp) &&
           shared->n_heard < shared->due.len;
  if (shared->err != TNK_OK)
    ;
  else if (shared->resp == NULL && now_ms >= shared->next_ms)
    connect_now(shared);
  else if (is_due && now_ms - shared->heard_ms >= SILENCE_MS)
    lose(shared, TNK_ECONN, "the server does not answer");
  else if (shared->is_current && !shared->is_reading &&
           now_ms - shared->polled_ms >= POLL_MS)
    begin_reads(shared);
  wake_all(shared, shared->err);
  if (shared->is_closing && (tnk__list_empty(&shared->pending) ||
                             now_ms - shared->close_ms >= FLUSH_MS))
    end(shared);
}

static void on_timer(uv_timer_t *timer) {
  tnk__gw_shared_tick(timer->data, uv_now(timer->loop));
}

/* ---- Opening and closing ---- */

int tnk__gw_shared_new(tnk__gw_shared_t **out,
                       const tnk__gw_shared_options_t *options) {
  static const char *const names[] = {"layout", "vocabulary", "writers",
                                      "lines"};
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
  for (size_t i = 0; i < 4; i++)
    (void)snprintf(shared->keys[i], sizeof(shared->keys[i]), "tnk:{%s}:%s",
                   shared->where.name, names[i]);
  shared->backoff_ms = BACKOFF_MS;
  shared->count = MAX_COUNT;
  (void)snprintf(shared->last, sizeof(shared->last), "0-0");
  tnk__buf_init(&shared->due, &shared->alloc, SIZE_MAX);
  tnk__gw_map_init(&shared->writers, &shared->alloc);
  tnk__list_init(&shared->pending);
  tnk__list_init(&shared->waiters);
  tnk__list_init(&shared->syncers);
  return TNK_OK;
}

static void on_context_ended(void *user) {
  release(user);
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
  end_connection(shared);
  tnk__net_unref(shared->net);
  shared->net = NULL;
  if (shared->context.uv != NULL)
    tnk__context_end(&shared->context, on_context_ended, shared);
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
  shared->backoff_ms = BACKOFF_MS;
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

  wake_all(shared, TNK_ECLOSED);
  TNK__LIST_FOREACH_SAFE (node, next, &shared->pending) {
    drop_entry(shared, tnk__container_of(node, entry_t, link));
  }
  for (size_t i = 0; i < shared->writers.n_buckets; i++)
    for (tnk__gw_node_t *node = shared->writers.buckets[i], *next; node != NULL;
         node = next) {
      next = node->next;
      tnk__free(&alloc, tnk__container_of(node, writer_t, node));
    }
  tnk__gw_map_deinit(&shared->writers);
  tnk__buf_deinit(&shared->due);
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
  shared->close_ms = shared->now_ms;
  if (shared->loop == NULL) {
    free_shared(shared);
    return;
  }
  if (tnk__list_empty(&shared->pending) || shared->err != TNK_OK)
    end(shared);
}

/* ---- Lines ---- */

/* The command that appends a line. NULL: out of memory. */
static entry_t *new_entry(const tnk__gw_shared_t *shared, const void *line,
                          size_t n) {
  char writer[24], count[24];
  const char *argv[] = {"XADD", shared->keys[3], "*", "w", writer,
                        "n",    count,           "l", line};
  size_t lens[9];
  entry_t *entry = NULL;
  char *text = NULL;
  long long len;

  (void)snprintf(writer, sizeof(writer), "%" PRIu64, shared->writer);
  (void)snprintf(count, sizeof(count), "%" PRIu64, shared->n_added + 1);
  for (size_t i = 0; i < 8; i++)
    lens[i] = strlen(argv[i]);
  lens[8] = n;
  len = redisFormatCommandArgv(&text, 9, argv, lens);
  if (len < 0)
    return NULL;
  entry = tnk__malloc(&shared->alloc, sizeof(*entry) + (size_t)len);
  if (entry != NULL) {
    entry->n = shared->n_added + 1;
    entry->len = (size_t)len;
    memcpy(entry->data, text, (size_t)len);
  }
  redisFreeCommand(text);
  return entry;
}

int tnk__gw_shared_add(tnk__gw_shared_t *shared, const void *line, size_t n) {
  entry_t *entry;

  if (shared->err != TNK_OK || shared->is_closing)
    return shared->err != TNK_OK ? shared->err : TNK_ECLOSED;
  if (n > MAX_LINE || shared->n_pending + n > MAX_PENDING)
    return TNK_ETOOBIG;
  entry = new_entry(shared, line, n);
  if (entry == NULL)
    return TNK_ENOMEM;
  tnk__list_append(&shared->pending, &entry->link);
  shared->n_pending += entry->len;
  shared->n_added++;
  if (shared->is_current)
    (void)send_bytes(shared, OF_ADD, entry->data, entry->len);
  return TNK_OK;
}

static int begin_wait(tnk__gw_shared_t *shared, tnk__list_t *list,
                      tnk__gw_waiter_t *waiter, uint64_t upto) {
  tnk__list_init(&waiter->link);
  if (shared->err != TNK_OK || shared->is_closing)
    return shared->err != TNK_OK ? shared->err : TNK_ECLOSED;
  waiter->upto = upto;
  waiter->since_ms = shared->now_ms;
  tnk__list_append(list, &waiter->link);
  return 0;
}

int tnk__gw_shared_wait(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter) {
  if (shared->n_safe < shared->n_added)
    return begin_wait(shared, &shared->waiters, waiter, shared->n_added);
  tnk__list_init(&waiter->link);
  return 1;
}

void tnk__gw_shared_hurry(tnk__gw_shared_t *shared) {
  if (shared->is_current && !shared->is_reading)
    begin_reads(shared);
  else
    shared->wants_read = 1;
}

int tnk__gw_shared_sync(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter) {
  int err = begin_wait(shared, &shared->syncers, waiter, shared->n_begun + 1);

  if (err == 0)
    tnk__gw_shared_hurry(shared);
  return err;
}

const char *tnk__gw_shared_why(const tnk__gw_shared_t *shared) {
  if (shared->why[0] != '\0')
    return shared->why;
  return shared->is_current ? NULL : "the shared record is being opened";
}

int tnk__gw_shared_error(const tnk__gw_shared_t *shared) {
  return shared->err;
}
