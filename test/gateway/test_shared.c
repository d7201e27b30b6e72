/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "gateway/record/shared.h"
#include "support/test.h"
#include "tnk/error.h"

/* A shared record against a server that fails in many ways. The clock is the
 * test's. */

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
  int has_lost; /* its data: it knows no writers any more */
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
} rig_t;

typedef struct {
  tnk__gw_waiter_t waiter;
  int n_done;
  int err;
} wait_t;

static rig_t rig;

static void on_done(tnk__gw_waiter_t *waiter, int err) {
  wait_t *wait = (wait_t *)(void *)((char *)waiter - offsetof(wait_t, waiter));

  wait->n_done++;
  wait->err = err;
}

/* ---- The server ---- */

typedef struct {
  uv_write_t write;
  char data[];
} sent_t;

static void on_sent(uv_write_t *write, int status) {
  (void)status;
  free(write->data);
}

static void send_text(uv_stream_t *stream, const char *text, size_t n) {
  sent_t *sent = malloc(sizeof(*sent) + n);
  uv_buf_t buf;

  CHECK(sent != NULL);
  memcpy(sent->data, text, n);
  sent->write.data = sent;
  buf = uv_buf_init(sent->data, (unsigned)n);
  if (uv_write(&sent->write, stream, &buf, 1, on_sent) != 0)
    free(sent);
}

static void on_conn_closed(uv_handle_t *handle) {
  (void)handle;
  rig.mock.n_closed++;
}

static void drop_conn(uv_stream_t *stream) {
  if (!uv_is_closing((uv_handle_t *)stream))
    uv_close((uv_handle_t *)stream, on_conn_closed);
}

static void reply(uv_stream_t *stream, const char *text) {
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

static void store(const redisReply *command) {
  mock_t *mock = &rig.mock;

  CHECK_INT(command->elements, 9);
  CHECK(mock->n_stored < MAX_STORED);
  for (int i = 0; i < 3; i++)
    mock->stored[mock->n_stored][i] = strdup(command->element[4 + 2 * i]->str);
  mock->n_stored++;
}

/* The entries after an id, which is their position. */
static void list(const char *after, char *out, size_t n) {
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

static void obey(const redisReply *command, char *out, size_t n) {
  const char *name = command->element[0]->str;

  if (rig.mock.has_lost && strstr(command->element[1]->str, ":writers") != NULL)
    snprintf(out, n, "$-1\r\n");
  else if (strcmp(name, "GET") == 0)
    snprintf(out, n, "$1\r\n%s\r\n",
             strstr(command->element[1]->str, ":vocabulary") != NULL ? "7"
                                                                     : "1");
  else if (strcmp(name, "XREAD") == 0)
    list(command->element[5]->str, out, n);
  else if (strcmp(name, "AUTH") == 0)
    snprintf(out, n, "+OK\r\n");
  else
    snprintf(out, n, "%s",
             strcmp(name, "XADD") == 0 ? "$3\r\n1-0\r\n" : ":1\r\n");
  if (strcmp(name, "XADD") == 0)
    store(command);
}

static void take_command(uv_stream_t *stream, const redisReply *command) {
  const row_t *bad = rig.mock.bad;
  char out[16384];

  CHECK_INT(command->type, REDIS_REPLY_ARRAY);
  if (bad == NULL || strcmp(bad->command, command->element[0]->str) != 0) {
    obey(command, out, sizeof(out));
    reply(stream, out);
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

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  (void)handle, (void)hint;
  *buf = uv_buf_init(rig.mock.scratch, sizeof(rig.mock.scratch));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
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

static void on_conn(uv_stream_t *listener, int status) {
  mock_t *mock = &rig.mock;
  uv_tcp_t *conn = &mock->conns[mock->n_conns];

  CHECK_INT(status, 0);
  CHECK(mock->n_conns < MAX_CONNS);
  mock->readers[mock->n_conns] = conn->data = redisReaderCreate();
  CHECK_INT(uv_tcp_init(&rig.loop, conn), 0);
  conn->data = mock->readers[mock->n_conns++];
  CHECK_INT(uv_accept(listener, (uv_stream_t *)conn), 0);
  CHECK_INT(uv_read_start((uv_stream_t *)conn, on_alloc, on_read), 0);
}

static void mock_open(void) {
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

static int on_line(void *user, const char *line, size_t n, int is_own) {
  (void)user;
  CHECK(rig.n_lines < MAX_STORED && n < sizeof(rig.lines[0]));
  memcpy(rig.lines[rig.n_lines], line, n);
  rig.lines[rig.n_lines][n] = '\0';
  rig.own[rig.n_lines++] = is_own;
  return strcmp(rig.lines[rig.n_lines - 1], "bad") == 0 ? TNK_EFILE : TNK_OK;
}

static void tick(uint64_t ms) {
  rig.now_ms += ms;
  tnk__gw_shared_tick(rig.shared, rig.now_ms);
}

#define SPIN(cond)                                                             \
  while (!(cond))                                                              \
  uv_run(&rig.loop, UV_RUN_NOWAIT)

static void add(const char *line) {
  CHECK_INT(tnk__gw_shared_add(rig.shared, line, strlen(line)), TNK_OK);
}

static void begin_wait(int (*begin)(tnk__gw_shared_t *, tnk__gw_waiter_t *),
                       wait_t *wait) {
  *wait = (wait_t){.waiter.done = on_done};
  CHECK_INT(begin(rig.shared, &wait->waiter), 0);
}

static void rig_open(void) {
  char url[128];
  tnk__gw_where_t where;
  const tnk__gw_shared_options_t options = {.alloc = test_allocator(),
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
  begin_wait(tnk__gw_shared_sync, &sync);
  tick(0);
  SPIN(sync.n_done);
  CHECK_INT(sync.err, TNK_OK);
  CHECK_INT(tnk__gw_shared_writer(rig.shared), 1);
}

static void on_closed(void *user) {
  (void)user;
  rig.n_closed++;
}

static void rig_close(void) {
  tnk__gw_shared_close(rig.shared, on_closed, NULL);
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

/* ---- A server that fails ---- */

static char too_long[8192];

static const row_t rows[] = {
    {"closes before a reply", "XADD", CUT, "", "was closed"},
    {"closes within a reply", "XADD", CUT, "$3\r\n1", "was closed"},
    {"loses a reply", "XADD", LOST, "", "was closed"},
    {"does not reply", "XADD", SILENT, "", "does not answer"},
    {"is a replica", "XADD", REPLY, "-READONLY You can't write\r\n",
     "READONLY"},
    {"is full", "XADD", REPLY, "-OOM command not allowed\r\n", "OOM"},
    {"is too old", "XADD", REPLY, "-ERR unknown command 'XADD'\r\n",
     "the error ERR"},
    {"has no disk", "XADD", REPLY, "-MISCONF Errors writing\r\n", "MISCONF"},
    {"sends garbage", "XADD", REPLY, "HTTP/1.1 400 Bad Request\r\n",
     "not of Valkey"},
    {"sends another reply", "XADD", REPLY, "+OK\r\n", "unexpected reply"},
    {"loads its file", "GET", REPLY, "-LOADING the dataset\r\n", "LOADING"},
    {"does not greet", "GET", SILENT, "", "does not answer"},
    {"has another layout", "GET", REPLY, "$1\r\n2\r\n", "another layout"},
    {"needs a password", "SETNX", REPLY, "-NOAUTH needed\r\n", "NOAUTH"},
    {"tells the password", "AUTH", REPLY,
     "-ERR unknown command, with args beginning with: 'canary'\r\n",
     "was rejected"},
    {"tells it in a code", "SETNX", REPLY, "-canary canary\r\n",
     "reports an error"},
    {"holds another type", "XREAD", REPLY, "-WRONGTYPE Operation\r\n",
     "WRONGTYPE"},
    {"sends too long a reply", "XREAD", REPLY, too_long, "too long"},
    {"is silent when it is read", "XREAD", SILENT, "", "does not answer"},
};

static void check_why(const char *part) {
  const char *why = tnk__gw_shared_why(rig.shared);

  CHECK(why != NULL);
  if (strstr(why, part) == NULL || strstr(why, "canary") != NULL)
    test_fail(__FILE__, __LINE__, "it says: %s", why);
}

/* Let the server fail once more, and wait for the end of that connection. */
static void fail_once(const row_t *row) {
  size_t n_bad = rig.mock.n_bad;

  SPIN(rig.mock.n_bad > n_bad);
  if (row->manner == SILENT)
    tick(5000);
  SPIN(rig.mock.n_closed == rig.mock.n_conns);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  check_why(row->why);
}

static void try_row(const row_t *row) {
  wait_t wait, sync, again;

  rig_open();
  /* The next connection fails. */
  rig.mock.bad = row;
  drop_conn((uv_stream_t *)&rig.mock.conns[0]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  begin_wait(tnk__gw_shared_sync, &sync);
  tick(100);
  fail_once(row);
  if (row->manner != LOST)
    CHECK_INT(wait.n_done, 0);
  CHECK(sync.n_done == 0 || strcmp(row->command, "XADD") == 0);
  /* Nobody waits for longer than this. */
  tick(30000);
  CHECK_INT(wait.n_done, 1);
  CHECK_INT(sync.n_done, 1);
  CHECK_INT(wait.err, TNK_ECONN);
  if (row->manner == LOST) {
    /* The line is found in the stream, so it is not sent again. */
    SPIN(tnk__gw_shared_why(rig.shared) == NULL);
    begin_wait(tnk__gw_shared_sync, &again);
    SPIN(again.n_done || rig.mock.n_stored > 1);
  } else {
    fail_once(row);
    rig.mock.bad = NULL;
    begin_wait(tnk__gw_shared_wait, &again);
    tick(5000);
    SPIN(again.n_done);
    CHECK_INT(again.err, TNK_OK);
    CHECK(tnk__gw_shared_why(rig.shared) == NULL);
  }
  CHECK_INT(rig.mock.n_stored, 1);
  CHECK_STR(rig.mock.stored[0][2], "one");
  rig_close();
}

TEST(a_failing_server_holds_what_waits_for_it) {
  memset(too_long, 'x', sizeof(too_long) - 1);
  memcpy(too_long, "$100000\r\n", 9);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    test_context(rows[i].name);
    try_row(&rows[i]);
  }
}

TEST(a_slow_server_is_waited_for) {
  wait_t wait, sync;

  rig_open();
  rig.mock.is_held = 1;
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  SPIN(rig.mock.n_stored == 1);
  tick(2000);
  begin_wait(tnk__gw_shared_sync, &sync);
  CHECK_INT(wait.n_done, 0);
  rig.mock.is_held = 0;
  send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held, rig.mock.n_held);
  SPIN(wait.n_done && sync.n_done);
  CHECK_INT(wait.err, TNK_OK);
  CHECK_INT(sync.err, TNK_OK);
  CHECK_INT(rig.mock.n_conns, 1);
  rig_close();
}

TEST(a_reply_without_a_command_ends_the_connection) {
  rig_open();
  send_text((uv_stream_t *)&rig.mock.conns[0], "$3\r\n1-0\r\n", 9);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  check_why("unexpected reply");
  rig_close();
}

/* ---- Lines ---- */

static void store_line(const char *writer, const char *n, const char *line) {
  mock_t *mock = &rig.mock;

  mock->stored[mock->n_stored][0] = strdup(writer);
  mock->stored[mock->n_stored][1] = strdup(n);
  mock->stored[mock->n_stored++][2] = strdup(line);
}

TEST(lines_of_all_writers_are_read_once_and_in_order) {
  wait_t sync;

  rig_open();
  store_line("2", "1", "a");
  store_line("3", "1", "b");
  store_line("2", "1", "a");
  store_line("2", "2", "c");
  add("own");
  begin_wait(tnk__gw_shared_sync, &sync);
  SPIN(sync.n_done);
  CHECK_INT(rig.n_lines, 4);
  CHECK_STR(rig.lines[0], "a");
  CHECK_STR(rig.lines[1], "b");
  CHECK_STR(rig.lines[2], "c");
  CHECK_STR(rig.lines[3], "own");
  CHECK(rig.own[3] && !rig.own[2]);
  rig_close();
}

static void check_ended(void) {
  wait_t wait = {.waiter.done = on_done};

  CHECK_INT(tnk__gw_shared_error(rig.shared), TNK_EFILE);
  CHECK_INT(tnk__gw_shared_add(rig.shared, "x", 1), TNK_EFILE);
  CHECK_INT(tnk__gw_shared_sync(rig.shared, &wait.waiter), TNK_EFILE);
  CHECK(tnk__gw_shared_why(rig.shared) != NULL);
}

TEST(malformed_entries_end_the_record) {
  static const char *const all[][3] = {
      {"2", "x", "a"}, {"", "1", "a"}, {"-2", "1", "a"}, {"2", "1", "bad"}};

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    wait_t sync;

    rig_open();
    store_line(all[i][0], all[i][1], all[i][2]);
    begin_wait(tnk__gw_shared_sync, &sync);
    SPIN(sync.n_done);
    CHECK_INT(sync.err, TNK_EFILE);
    check_ended();
    rig_close();
  }
}

/* Another writer would get the number of this one. */
TEST(a_server_that_has_lost_its_data_is_not_used) {
  wait_t wait;

  rig_open();
  rig.mock.has_lost = 1;
  drop_conn((uv_stream_t *)&rig.mock.conns[0]);
  SPIN(tnk__gw_shared_why(rig.shared) != NULL);
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  tick(100);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_EFILE);
  check_why("has lost the record");
  check_ended();
  tick(60000);
  CHECK_INT(rig.mock.n_conns, 2);
  CHECK_INT(rig.mock.n_stored, 0);
  rig_close();
}

/* Closing sends what is left. */
TEST(closing_waits_for_the_last_lines) {
  wait_t wait;

  rig_open();
  rig.mock.is_held = 1;
  add("one");
  begin_wait(tnk__gw_shared_wait, &wait);
  tnk__gw_shared_close(rig.shared, on_closed, NULL);
  SPIN(rig.mock.n_stored == 1);
  tick(100);
  CHECK_INT(rig.n_closed, 0);
  rig.mock.is_held = 0;
  send_text((uv_stream_t *)&rig.mock.conns[0], rig.mock.held, rig.mock.n_held);
  SPIN(wait.n_done);
  CHECK_INT(wait.err, TNK_OK);
  tick(100);
  SPIN(rig.n_closed);
  rig.n_closed = 0;
  rig.shared = NULL;
  SPIN(rig.mock.n_closed == rig.mock.n_conns);
  uv_close((uv_handle_t *)&rig.mock.listener, NULL);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&rig.loop), 0);
  redisReaderFree(rig.mock.readers[0]);
  for (int k = 0; k < 3; k++)
    free(rig.mock.stored[0][k]);
}

TEST(too_long_lines_are_refused) {
  static char line[(32 << 20) + 1];

  rig_open();
  CHECK_INT(tnk__gw_shared_add(rig.shared, line, sizeof(line)), TNK_ETOOBIG);
  rig_close();
}

/* Without memory a line is refused, or it is written later. */
TEST(memory_may_end_at_any_time) {
  for (long n = 0; n < 32; n++) {
    wait_t wait = {.n_done = 1, .err = TNK_ECONN};
    int err;

    rig_open();
    test_alloc_fail_at(n);
    err = tnk__gw_shared_add(rig.shared, "one", 3);
    CHECK(err == TNK_OK || err == TNK_ENOMEM);
    drop_conn((uv_stream_t *)&rig.mock.conns[0]);
    SPIN(tnk__gw_shared_why(rig.shared) != NULL);
    while (err == TNK_OK && wait.err != TNK_OK) {
      if (wait.n_done) {
        wait = (wait_t){.waiter.done = on_done, .err = TNK_ECONN};
        if (tnk__gw_shared_wait(rig.shared, &wait.waiter) == 1)
          wait.err = TNK_OK;
      }
      tick(1);
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    test_alloc_fail_at(-1);
    CHECK_INT(rig.mock.n_stored, err == TNK_OK);
    rig_close();
  }
}

TEST(memory_may_end_while_it_opens) {
  tnk__gw_where_t where;
  const tnk__gw_shared_options_t options = {.alloc = test_allocator(),
                                            .where = &where,
                                            .ca_file = "ca.pem",
                                            .cert_file = "cert.pem",
                                            .key_file = "key.pem",
                                            .on_line = on_line};
  int did_fail = 1;

  CHECK(tnk__gw_where_read("valkeys://127.0.0.1:1/x", &where) == NULL);
  for (long n = 0; did_fail; n++) {
    int err;

    memset(&rig, 0, sizeof(rig));
    CHECK_INT(uv_loop_init(&rig.loop), 0);
    test_alloc_fail_at(n);
    err = tnk__gw_shared_new(&rig.shared, &options);
    if (err == TNK_OK)
      err = tnk__gw_shared_begin(rig.shared, &rig.loop);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
    if (rig.shared != NULL) {
      tnk__gw_shared_close(rig.shared, on_closed, NULL);
      uv_run(&rig.loop, UV_RUN_DEFAULT);
      CHECK_INT(rig.n_closed, 1);
    }
    CHECK_INT(uv_loop_close(&rig.loop), 0);
  }
}

/* ---- Addresses ---- */

TEST(addresses_are_read_and_shown_without_secrets) {
  static const struct {
    const char *text, *shown, *user, *password;
  } all[] = {
      {"valkey://h/n", "valkey://h:6379/n", "", ""},
      {"redis://10.0.0.1:7/a.b-c_D", "valkey://10.0.0.1:7/a.b-c_D", "", ""},
      {"valkey://[::1]:65535/n", "valkey://[::1]:65535/n", "", ""},
      {"valkey://[::1]/n", "valkey://[::1]:6379/n", "", ""},
      {"valkey://:p%2f%40@h/n", "valkey://h:6379/n", "", "p/@"},
      {"valkey://u:p:q@h:1/n", "valkey://h:1/n", "u", "p:q"},
      {"valkey://u:p@q@h:1/n", "valkey://h:1/n", "u", "p@q"},
      {"valkeys://h/n", "valkeys://h:6379/n", "", ""},
      {"rediss://u:p@[::1]:7/n", "valkeys://[::1]:7/n", "u", "p"},
      {"valkeys://h", NULL, "", ""},
      {"rediss://u:canary%2@h/n", NULL, "", ""},
      {"valkey://h", NULL, "", ""},
      {"valkey://h/", NULL, "", ""},
      {"valkey://h/a/b", NULL, "", ""},
      {"valkey://h/a{b}", NULL, "", ""},
      {"valkey:///n", NULL, "", ""},
      {"valkey://h:/n", NULL, "", ""},
      {"valkey://h:0/n", NULL, "", ""},
      {"valkey://h:65536/n", NULL, "", ""},
      {"valkey://h:12345678/n", NULL, "", ""},
      {"valkey://[::1/n", NULL, "", ""},
      {"valkey://[::1]x/n", NULL, "", ""},
      {"valkey://h h/n", NULL, "", ""},
      {"valkey://canary@h/n", NULL, "", ""},
      {"valkey://u:@h/n", NULL, "", ""},
      {"valkey://u:canary%2@h/n", NULL, "", ""},
      {"valkey://u:canary%@h/n", NULL, "", ""},
      {"valkey://u:canary%zz@h/n", NULL, "", ""},
      {"valkey://u:canary%00@h/n", NULL, "", ""},
  };

  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    tnk__gw_where_t where;
    const char *wrong = tnk__gw_where_read(all[i].text, &where);

    test_context(all[i].text);
    CHECK(tnk__gw_is_where(all[i].text));
    CHECK_INT(tnk__gw_is_secure_where(all[i].text),
              strncmp(all[i].text, "valkeys:", 8) == 0 ||
                  strncmp(all[i].text, "rediss:", 7) == 0);
    if (all[i].shown == NULL) {
      CHECK(wrong != NULL && strstr(wrong, "canary") == NULL);
      continue;
    }
    CHECK(wrong == NULL);
    CHECK_STR(where.shown, all[i].shown);
    CHECK_STR(where.user, all[i].user);
    CHECK_STR(where.password, all[i].password);
  }
  CHECK(!tnk__gw_is_where("valkey"));
  CHECK(!tnk__gw_is_where("dir/valkey://x"));
}
