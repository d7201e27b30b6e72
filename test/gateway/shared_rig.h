/* SPDX-License-Identifier: MIT */
#ifndef TEST_GATEWAY_SHARED_RIG_H
#define TEST_GATEWAY_SHARED_RIG_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "gateway/store/shared.h"
#include "lib/base/alloc.h"
#include "support/test.h"
#include "tnk/error.h"

/* A shared record, and a server in the same loop that fails in many ways. The
 * clock is the test's. */

enum { MAX_CONNS = 64, MAX_STORED = 16 };

typedef enum {
  REPLY, /* sends `text` instead of a reply */
  CUT,   /* sends it, then closes */
  LOST,  /* does as it is asked, and closes without a reply */
  SILENT
} manner_t;

typedef struct {
  const char *name;
  const char *command; /* the one that it fails at */
  manner_t manner;
  const char *text;
  const char *why; /* part of what is said */
} row_t;

typedef struct {
  uv_tcp_t listener;
  uv_tcp_t conns[MAX_CONNS];
  redisReader *readers[MAX_CONNS];
  size_t n_conns;
  size_t n_closed;
  int port;
  const row_t *bad;
  size_t n_bad;
  int is_held; /* replies wait */
  char held[65536];
  size_t n_held;
  char *stored[MAX_STORED][3]; /* writer, count, line */
  size_t n_stored;
  int has_lost;          /* its data: it knows no writers any more */
  const char *removed;   /* session whose lines it refuses; or NULL */
  const char *forgotten; /* or NULL */
  char owner[40];        /* token of writer 1, "": none */
  char born[40];         /* of the record */
  uint64_t last;         /* count of the last line of writer 1 */
  uint64_t n_refused;    /* the last line that it has refused */
  size_t n_marks;
  char count[8];             /* of entries that the last command asked for */
  size_t n_mark_bytes;       /* of the longest mark */
  int has_flushed;           /* its scripts */
  int ill;                   /* see ill_t */
  uint64_t ill_at;           /* the line at which it is ill */
  size_t n_ill;              /* how often it was */
  char *late[MAX_STORED][5]; /* commands that it does after the next read */
  size_t n_late;
  size_t max_line;   /* longer ones are refused; 0: none */
  int says_too_long; /* with a reply, before it closes */
  size_t n_too_long;
  char rank[24]; /* of the last removal of sessions */
  size_t n_removals;
  int next_rank;
  char scratch[65536];
} mock_t;

typedef struct {
  uv_loop_t loop;
  mock_t mock;
  tnk__gw_shared_t *shared;
  uint64_t now_ms;
  char lines[MAX_STORED][64];
  int own[MAX_STORED];
  size_t n_lines;
  int n_closed;
  char refused[16]; /* session of the last line that was refused */
  size_t n_refused;
  uint64_t long_turn;    /* the last one whose line was too long */
  uint64_t long_request; /* what is returned then */
  size_t n_long;
  char logged[512]; /* last line of the log */
  size_t n_logged;
  char older[512]; /* what it says about an older copy */
  size_t n_older;
} rig_t;

typedef struct {
  tnk__gw_waiter_t waiter;
  int n_done;
  int err;
} wait_t;

static rig_t rig;

static const char sha[] = "0123456789abcdef0123456789abcdef01234567";

static inline void on_done(tnk__gw_waiter_t *waiter, int err) {
  wait_t *wait = (wait_t *)(void *)((char *)waiter - offsetof(wait_t, waiter));

  wait->n_done++;
  wait->err = err;
}

/* ---- The server ---- */

typedef struct {
  uv_write_t write;
  char data[];
} sent_t;

static inline void on_sent(uv_write_t *write, int status) {
  (void)status;
  free(write->data);
}

static inline void send_text(uv_stream_t *stream, const char *text, size_t n) {
  sent_t *sent = malloc(sizeof(*sent) + n);
  uv_buf_t buf;

  CHECK(sent != NULL);
  memcpy(sent->data, text, n);
  sent->write.data = sent;
  buf = uv_buf_init(sent->data, (unsigned)n);
  if (uv_write(&sent->write, stream, &buf, 1, on_sent) != 0)
    free(sent);
}

static inline void on_conn_closed(uv_handle_t *handle) {
  (void)handle;
  rig.mock.n_closed++;
}

static inline void drop_conn(uv_stream_t *stream) {
  if (!uv_is_closing((uv_handle_t *)stream))
    uv_close((uv_handle_t *)stream, on_conn_closed);
}

static inline void reply(uv_stream_t *stream, const char *text) {
  mock_t *mock = &rig.mock;
  size_t n = strlen(text);

  if (!mock->is_held) {
    send_text(stream, text, n);
    return;
  }
  CHECK(mock->n_held + n < sizeof(mock->held));
  memcpy(mock->held + mock->n_held, text, n);
  mock->n_held += n;
}

/* The words of a line after its keys. */
enum { WRITER = 11, COUNT, LINE, SESSION, IS, REQUEST, TOKEN, FIRST, N_WORDS };

static inline void store_line(const char *writer, const char *n,
                              const char *line) {
  mock_t *mock = &rig.mock;

  CHECK(mock->n_stored < MAX_STORED);
  mock->stored[mock->n_stored][0] = strdup(writer);
  mock->stored[mock->n_stored][1] = strdup(n);
  mock->stored[mock->n_stored++][2] = strdup(line);
}

/* What the script does with the n-th line of writer 1. */
static inline const char *append(const char *count, const char *line,
                                 const char *session, const char *first) {
  mock_t *mock = &rig.mock;
  uint64_t n = strtoull(count, NULL, 10);
  int is_new = n > mock->last;

  if (n > mock->last + 1 && strcmp(first, "1") != 0)
    return ":0\r\n";
  if (is_new)
    mock->last = n;
  if (mock->removed != NULL && strcmp(session, mock->removed) == 0)
    return "$-1\r\n";
  if (is_new)
    store_line("1", count, line);
  return ":1\r\n";
}

static inline const char *obey_script(const redisReply *command) {
  mock_t *mock = &rig.mock;
  size_t n = 0;

  CHECK_STR(command->element[1]->str, sha);
  if (mock->has_flushed)
    return "-NOSCRIPT No matching script\r\n";
  if (command->elements == N_WORDS) {
    CHECK_STR(command->element[WRITER]->str, "1");
    if (strcmp(command->element[TOKEN]->str, mock->owner) != 0)
      return ":-1\r\n";
    return append(command->element[COUNT]->str, command->element[LINE]->str,
                  command->element[SESSION]->str, command->element[FIRST]->str);
  }
  CHECK_INT(command->elements, 14);
  if (strtoull(command->element[12]->str, NULL, 10) <= mock->n_marks)
    return ":1\r\n"; /* it was made before */
  for (size_t i = 0; i < command->elements; i++)
    n += (size_t)command->element[i]->len;
  mock->n_mark_bytes = n > mock->n_mark_bytes ? n : mock->n_mark_bytes;
  mock->n_marks++;
  return ":1\r\n";
}

/* The script that removes sessions. */
static inline void evaluate(const redisReply *command, char *out, size_t n) {
  mock_t *mock = &rig.mock;

  CHECK_INT(command->elements, 19);
  snprintf(mock->rank, sizeof(mock->rank), "%s", command->element[13]->str);
  mock->n_removals++;
  snprintf(out, n, ":%d\r\n", mock->next_rank);
}

/* What the script does that gives a process its number, which is 1. */
static inline void take_claim(const redisReply *command, char *out, size_t n) {
  mock_t *mock = &rig.mock;
  const char *writer = command->element[7]->str;
  const char *token = command->element[8]->str;
  int is_new = strcmp(writer, "0") == 0;

  CHECK_INT(command->elements, 10);
  CHECK_INT(strlen(token), 32);
  if (mock->born[0] == '\0' && is_new)
    snprintf(mock->born, sizeof(mock->born), "%s", token);
  if (mock->owner[0] == '\0' && !mock->has_lost)
    snprintf(mock->owner, sizeof(mock->owner), "%s", token);
  if (mock->has_lost ||
      (!is_new && strcmp(command->element[9]->str, mock->born) != 0) ||
      strcmp(mock->owner, token) != 0)
    snprintf(out, n, "*3\r\n:0\r\n$1\r\n0\r\n$0\r\n\r\n");
  else
    snprintf(out, n, "*3\r\n:1\r\n$%d\r\n%" PRIu64 "\r\n$%zu\r\n%s\r\n",
             snprintf(NULL, 0, "%" PRIu64, mock->last), mock->last,
             strlen(mock->born), mock->born);
}

/* The entries after an id, which is their position. */
static inline void list(const char *after, char *out, size_t n) {
  const mock_t *mock = &rig.mock;
  size_t first = (size_t)strtoul(after, NULL, 10);
  size_t len;

  if (first == mock->n_stored) {
    snprintf(out, n, "*-1\r\n");
    return;
  }
  len = (size_t)snprintf(out, n, "*1\r\n*2\r\n$1\r\nx\r\n*%zu\r\n",
                         mock->n_stored - first);
  for (size_t i = first; i < mock->n_stored; i++) {
    char id[32];

    snprintf(id, sizeof(id), "%zu-0", i + 1);
    len += (size_t)snprintf(
        out + len, n - len,
        "*2\r\n$%zu\r\n%s\r\n*6\r\n$1\r\nw\r\n$%zu\r\n%s\r\n$1\r\nn\r\n$%zu\r\n"
        "%s\r\n$1\r\nl\r\n$%zu\r\n%s\r\n",
        strlen(id), id, strlen(mock->stored[i][0]), mock->stored[i][0],
        strlen(mock->stored[i][1]), mock->stored[i][1],
        strlen(mock->stored[i][2]), mock->stored[i][2]);
  }
}

static inline void obey(const redisReply *command, char *out, size_t n) {
  const char *name = command->element[0]->str;

  if (strcmp(name, "EVAL") == 0 && command->elements == 10)
    take_claim(command, out, n);
  else if (strcmp(name, "EVAL") == 0)
    evaluate(command, out, n);
  else if (strcmp(name, "EVALSHA") == 0)
    snprintf(out, n, "%s", obey_script(command));
  else if (strcmp(name, "SCRIPT") == 0)
    snprintf(out, n, "$40\r\n%s\r\n", sha), rig.mock.has_flushed = 0;
  else if (strcmp(name, "GET") == 0 &&
           strstr(command->element[1]->str, ":forgotten") != NULL)
    snprintf(out, n, rig.mock.forgotten != NULL ? "$%zu\r\n%s\r\n" : "$-1\r\n",
             rig.mock.forgotten != NULL ? strlen(rig.mock.forgotten) : 0,
             rig.mock.forgotten);
  else if (strcmp(name, "GET") == 0 &&
           strstr(command->element[1]->str, ":born") != NULL)
    snprintf(out, n, rig.mock.born[0] != '\0' ? "$%zu\r\n%s\r\n" : "$-1\r\n",
             strlen(rig.mock.born), rig.mock.born);
  else if (strcmp(name, "GET") == 0)
    snprintf(out, n, "$1\r\n%s\r\n",
             strstr(command->element[1]->str, ":vocabulary") != NULL ? "7"
                                                                     : "2");
  else if (strcmp(name, "XINFO") == 0 && rig.mock.n_stored == 0)
    snprintf(out, n, "-ERR no such key\r\n");
  else if (strcmp(name, "XINFO") == 0)
    snprintf(out, n,
             "*4\r\n$6\r\nlength\r\n:1\r\n$17\r\nlast-generated-id\r\n$%d\r\n%"
             "zu-0\r\n",
             snprintf(NULL, 0, "%zu-0", rig.mock.n_stored), rig.mock.n_stored);
  else if (strcmp(name, "XREAD") == 0) {
    snprintf(rig.mock.count, sizeof(rig.mock.count), "%s",
             command->element[2]->str);
    list(command->element[5]->str, out, n);
  } else if (strcmp(name, "AUTH") == 0)
    snprintf(out, n, "+OK\r\n");
  else
    snprintf(out, n, ":1\r\n");
}

/* ---- A store that is ill at a line ---- */

typedef enum {
  WELL,
  FULL,          /* refuses all lines */
  FULL_FOR_LONG, /* refuses the long one */
  READ_ONLY,
  SLOW,
  FLUSHED, /* has no scripts any more */
  ENDS_BEFORE,
  ENDS_AFTER, /* does it, but sends no reply */
  STARTS_ANEW,
  IS_LATE,  /* silent; does what it was sent after the next connection has read
             */
  IS_OLDER, /* becomes a copy of itself that has less */
  ALMOST_FULL, /* refuses every second line, once */
  N_ILLS
} ill_t;

static const char *const ill_names[] = {
    "well",        "full",         "full for long lines", "read-only",
    "slow",        "flushed",      "ends before",         "ends after",
    "starts anew", "does it late", "is an older copy",    "almost full"};

/* What it was sent before, now that the sender is gone. */
static inline void do_late(void) {
  mock_t *mock = &rig.mock;

  for (size_t i = 0; i < mock->n_late; i++) {
    char **words = mock->late[i];

    (void)append(words[0], words[1], words[2], words[3]);
    for (int k = 0; k < 4; k++)
      free(words[k]);
  }
  mock->n_late = 0;
}

/* Become a copy that lacks the latest lines. */
static inline void be_older(size_t n) {
  mock_t *mock = &rig.mock;

  for (; n > 0 && mock->n_stored > 0; n--, mock->n_stored--)
    for (int k = 0; k < 3; k++)
      free(mock->stored[mock->n_stored - 1][k]);
  mock->last = mock->n_stored;
}

/* Heals after some time, so that the line is also refused again. */
static inline void count_ill(size_t most) {
  if (++rig.mock.n_ill >= most)
    rig.mock.ill = WELL;
}

static inline int is_ill_at(const redisReply *command) {
  uint64_t n;

  if (rig.mock.ill == WELL || command->elements != N_WORDS)
    return 0;
  n = strtoull(command->element[COUNT]->str, NULL, 10);
  if (rig.mock.ill == FULL || rig.mock.ill == READ_ONLY ||
      rig.mock.ill == IS_LATE)
    return n >= rig.mock.ill_at;
  if (rig.mock.ill == ALMOST_FULL)
    return n % 2 == 0 && n > rig.mock.n_refused;
  return n == rig.mock.ill_at;
}

/* Returns whether the command is done with. */
static inline int be_ill(uv_stream_t *stream, const redisReply *command) {
  mock_t *mock = &rig.mock;

  switch ((ill_t)mock->ill) {
  case FULL:
  case FULL_FOR_LONG:
    reply(stream, "-OOM command not allowed\r\n");
    count_ill(8);
    return 1;
  case ALMOST_FULL:
    reply(stream, "-OOM command not allowed\r\n");
    mock->n_refused = strtoull(command->element[COUNT]->str, NULL, 10);
    mock->n_ill++;
    return 1;
  case READ_ONLY:
    reply(stream, "-READONLY You can't write\r\n");
    count_ill(8);
    return 1;
  case SLOW:
    mock->is_held = 1;
    count_ill(1);
    return 0;
  case FLUSHED:
    mock->has_flushed = 1;
    count_ill(1);
    return 0;
  case STARTS_ANEW:
    mock->has_flushed = 1;
    drop_conn(stream);
    count_ill(1);
    return 1;
  case ENDS_BEFORE:
    drop_conn(stream);
    count_ill(2);
    return 1;
  case ENDS_AFTER:
    (void)obey_script(command);
    drop_conn(stream);
    count_ill(2);
    return 1;
  case IS_LATE:
    for (int k = 0; k < 3; k++)
      mock->late[mock->n_late][k] = strdup(command->element[COUNT + k]->str);
    mock->late[mock->n_late++][3] = strdup(command->element[FIRST]->str);
    return 1;
  case IS_OLDER:
    be_older(1);
    drop_conn(stream);
    count_ill(1);
    return 1;
  case WELL:
  case N_ILLS:
    break;
  }
  return 0;
}

static inline int is_too_long(const redisReply *command) {
  return rig.mock.max_line > 0 && command->elements == N_WORDS &&
         (size_t)command->element[LINE]->len > rig.mock.max_line;
}

static inline void take_command(uv_stream_t *stream,
                                const redisReply *command) {
  const row_t *bad = rig.mock.bad;
  char out[16384];

  CHECK_INT(command->type, REDIS_REPLY_ARRAY);
  if (is_too_long(command)) {
    rig.mock.n_too_long++;
    if (rig.mock.says_too_long)
      reply(stream, "-ERR Protocol error: invalid bulk length\r\n");
    drop_conn(stream);
    return;
  }
  if (is_ill_at(command) && be_ill(stream, command))
    return;
  if (bad == NULL || strcmp(bad->command, command->element[0]->str) != 0) {
    obey(command, out, sizeof(out));
    reply(stream, out);
    if (rig.mock.ill == WELL && strcmp(command->element[0]->str, "XREAD") == 0)
      do_late();
    return;
  }
  rig.mock.n_bad++;
  if (bad->manner == LOST)
    obey(command, out, sizeof(out));
  else if (bad->manner != SILENT)
    reply(stream, bad->text);
  if (bad->manner == CUT || bad->manner == LOST)
    drop_conn(stream);
}

static inline void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  (void)handle, (void)hint;
  *buf = uv_buf_init(rig.mock.scratch, sizeof(rig.mock.scratch));
}

static inline void on_read(uv_stream_t *stream, ssize_t n,
                           const uv_buf_t *buf) {
  redisReader *reader = stream->data;
  void *command = NULL;

  if (n < 0) {
    drop_conn(stream);
    return;
  }
  CHECK_INT(redisReaderFeed(reader, buf->base, (size_t)n), REDIS_OK);
  while (!uv_is_closing((uv_handle_t *)stream) &&
         redisReaderGetReply(reader, &command) == REDIS_OK && command != NULL) {
    take_command(stream, command);
    freeReplyObject(command);
  }
}

static inline void on_conn(uv_stream_t *listener, int status) {
  mock_t *mock = &rig.mock;
  uv_tcp_t *conn = &mock->conns[mock->n_conns];

  CHECK_INT(status, 0);
  CHECK(mock->n_conns < MAX_CONNS);
  mock->readers[mock->n_conns] = conn->data = redisReaderCreate();
  CHECK_INT(uv_tcp_init(&rig.loop, conn), 0);
  conn->data = mock->readers[mock->n_conns++];
  CHECK_INT(uv_accept(listener, (uv_stream_t *)conn), 0);
  CHECK_INT(uv_tcp_nodelay(conn, 1), 0);
  CHECK_INT(uv_read_start((uv_stream_t *)conn, on_alloc, on_read), 0);
}

static inline void mock_open(void) {
  struct sockaddr_in at;
  struct sockaddr_storage own;
  int n = sizeof(own);

  CHECK_INT(uv_tcp_init(&rig.loop, &rig.mock.listener), 0);
  uv_ip4_addr("127.0.0.1", 0, &at);
  CHECK_INT(uv_tcp_bind(&rig.mock.listener, (struct sockaddr *)&at, 0), 0);
  CHECK_INT(uv_listen((uv_stream_t *)&rig.mock.listener, 8, on_conn), 0);
  CHECK_INT(uv_tcp_getsockname(&rig.mock.listener, (struct sockaddr *)&own, &n),
            0);
  rig.mock.port = ntohs(((struct sockaddr_in *)(void *)&own)->sin_port);
}

/* ---- The record ---- */

static inline int on_line(void *user, const char *line, size_t n,
                          const char *id, int is_own) {
  (void)user, (void)id;
  CHECK(rig.n_lines < MAX_STORED && n < sizeof(rig.lines[0]));
  memcpy(rig.lines[rig.n_lines], line, n);
  rig.lines[rig.n_lines][n] = '\0';
  rig.own[rig.n_lines++] = is_own;
  return strcmp(rig.lines[rig.n_lines - 1], "bad") == 0 ? TNK_EFILE : TNK_OK;
}

static inline void tick(uint64_t ms) {
  rig.now_ms += ms;
  tnk__gw_shared_tick(rig.shared, rig.now_ms);
}

#define SPIN(cond)                                                             \
  while (!(cond))                                                              \
  uv_run(&rig.loop, UV_RUN_NOWAIT)

static inline void add_about(const char *session, const char *line) {
  const tnk__gw_about_t about = {session, TNK__GW_IS_CHANGE, 1};

  CHECK_INT(tnk__gw_shared_add(rig.shared, &about, line, strlen(line)), TNK_OK);
}

static inline void add(const char *line) {
  add_about(NULL, line);
}

static inline int on_refused(void *user, const char *session) {
  (void)user;
  snprintf(rig.refused, sizeof(rig.refused), "%s", session);
  rig.n_refused++;
  return test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK;
}

static inline uint64_t on_too_long(void *user, uint64_t turn) {
  (void)user;
  rig.long_turn = turn;
  rig.n_long++;
  return rig.long_request;
}

static inline void
begin_wait(int (*begin)(tnk__gw_shared_t *, tnk__gw_waiter_t *), wait_t *wait) {
  *wait = (wait_t){.waiter.done = on_done};
  CHECK_INT(begin(rig.shared, &wait->waiter), 0);
}

static inline void begin_sync(wait_t *wait, int is_writing) {
  *wait = (wait_t){.waiter.done = on_done};
  CHECK_INT(tnk__gw_shared_sync(rig.shared, &wait->waiter, is_writing), 0);
}

static inline void on_log(tnk_log_level_t level, const char *subject,
                          const char *message, size_t length, void *user) {
  (void)level, (void)subject, (void)length, (void)user;
  snprintf(rig.logged, sizeof(rig.logged), "%s", message);
  rig.n_logged++;
  if (strstr(message, "older copy") == NULL)
    return;
  snprintf(rig.older, sizeof(rig.older), "%s", message);
  rig.n_older++;
}

static inline void rig_open_as(const tnk__gw_keep_t *keep, int is_read_only) {
  static const tnk_logger_t logger = {.level = TNK_LOG_WARN, .write = on_log};
  char url[128];
  tnk__gw_where_t where;
  const tnk__gw_shared_options_t options = {.keep = *keep,
                                            .on_refused = on_refused,
                                            .on_too_long = on_too_long,
                                            .is_read_only = is_read_only,
                                            .logger = &logger,
                                            .alloc = test_allocator(),
                                            .where = &where,
                                            .vocabulary = 7,
                                            .max_reply = 4096,
                                            .has_no_timer = 1,
                                            .on_line = on_line};
  wait_t sync;

  memset(&rig, 0, sizeof(rig));
  CHECK_INT(uv_loop_init(&rig.loop), 0);
  mock_open();
  snprintf(url, sizeof(url), "valkey://me:canary@127.0.0.1:%d/x",
           rig.mock.port);
  CHECK(tnk__gw_where_read(url, &where) == NULL);
  CHECK_INT(tnk__gw_shared_new(&rig.shared, &options), TNK_OK);
  CHECK_INT(tnk__gw_shared_begin(rig.shared, &rig.loop), TNK_OK);
  begin_sync(&sync, 0);
  tick(0);
  SPIN(sync.n_done);
  CHECK_INT(sync.err, TNK_OK);
  CHECK_INT(tnk__gw_shared_writer(rig.shared), !is_read_only);
}

static inline void rig_open_with(const tnk__gw_keep_t *keep) {
  rig_open_as(keep, 0);
}

static inline void rig_open(void) {
  const tnk__gw_keep_t keep = {0};

  rig_open_with(&keep);
}

static inline void on_closed(void *user) {
  (void)user;
  rig.n_closed++;
}

/* Wait for the record to close. */
static inline void end_rig(void) {
  SPIN(rig.n_closed);
  SPIN(rig.mock.n_closed == rig.mock.n_conns);
  uv_close((uv_handle_t *)&rig.mock.listener, NULL);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&rig.loop), 0);
  for (size_t i = 0; i < rig.mock.n_conns; i++)
    redisReaderFree(rig.mock.readers[i]);
  for (size_t i = 0; i < rig.mock.n_stored; i++)
    for (int k = 0; k < 3; k++)
      free(rig.mock.stored[i][k]);
}

static inline void check_why(const char *part) {
  const char *why = tnk__gw_shared_why(rig.shared);

  CHECK(why != NULL);
  if (strstr(why, part) == NULL || strstr(why, "canary") != NULL)
    test_fail(__FILE__, __LINE__, "it says: %s", why);
}

/* A line that waits, and whether its turn may be answered. */
typedef struct {
  wait_t wait;
  int is_safe;
} answer_t;

static inline void wait_again(answer_t *answer) {
  int waits;

  answer->wait = (wait_t){.waiter.done = on_done};
  waits = tnk__gw_shared_wait(rig.shared, &answer->wait.waiter);
  CHECK(waits >= 0);
  answer->is_safe = waits == 1;
}

static inline size_t stored(const char *line) {
  size_t n = 0;

  for (size_t i = 0; i < rig.mock.n_stored; i++)
    n += strcmp(rig.mock.stored[i][2], line) == 0;
  return n;
}

static inline void rig_close(void) {
  tnk__gw_shared_close(rig.shared, on_closed, NULL);
  end_rig();
}

#endif
