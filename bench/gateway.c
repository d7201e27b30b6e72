/* SPDX-License-Identifier: MIT */
/*
 * Conversations with a gateway, each in a session of its own, from plain HTTP
 * connections; or, to compare, the two requests of a sample to the server
 * behind it.
 *
 *   bench_gateway HOST PORT [--connections N] [--conversations N] [--turns N]
 *                 [--length N] [--rate N] [--stream 1] [--direct 1]
 *
 * Each connection goes through one conversation after the other; with --rate so
 * many requests a second are begun, evenly spread, each on the next connection,
 * and else each as soon as there is an answer to the one before. Messages have
 * so many bytes. The server must answer with the text that
 * `bench_gateway --answer LENGTH` prints.
 *
 * Prints one line of JSON: delays are from the moment at which a request was
 * written to the first and to the last byte of its answer.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "measure.h"

enum { MAX_BODY = 1 << 20, MAX_TURNS = 64 };

typedef struct {
  uv_tcp_t tcp;
  uv_connect_t connecting;
  uv_write_t writing;
  char *sent;
  char got[64 * 1024]; /* the beginning of an answer */
  size_t n_got;        /* all bytes of it, also those that are not kept */
  size_t n_expected;   /* 0: not known yet */
  uint64_t begin_ns, first_ns;
  long conversation;
  long turn;
  int is_busy;
  int is_fetch; /* of the two requests of a sample the second one */
} line_t;

static struct {
  long n_lines, n_conversations, n_turns, length, rate, is_stream, is_direct;
  long n_begun;    /* conversations */
  long n_expected; /* requests, in all */
  long n_sent, n_done, n_failed, n_late;
  line_t *lines;
  double *first_ms, *last_ms;
  char *bodies[MAX_TURNS];
  uint64_t from_ns;
  uv_timer_t clock;
  size_t next; /* line */
  struct sockaddr_in address;
} bench = {.n_lines = 64, .n_conversations = 100, .n_turns = 10, .length = 38};

/* ---- Texts ---- */

/* Words, of so many bytes in all. */
static void put_words(char *out, size_t n, size_t seed) {
  static const char words[] =
      "the model draws a token and the gateway keeps it as it was ";

  for (size_t i = 0; i < n; i++)
    out[i] = words[(i + seed) % (sizeof(words) - 1)];
  if (n > 0) {
    out[0] = 'A';
    out[n - 1] = '.';
  }
  out[n] = '\0';
}

/* Append to a text of MAX_BODY bytes; what does not fit is a mistake here. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t *n,
                                                      const char *format, ...) {
  va_list args;
  int n_more;

  va_start(args, format);
  n_more = vsnprintf(text + *n, MAX_BODY - *n, format, args);
  va_end(args);
  if (n_more < 0 || (size_t)n_more >= MAX_BODY - *n)
    exit(1);
  *n += (size_t)n_more;
}

static char *new_text(void) {
  char *text = malloc(MAX_BODY);

  if (text == NULL)
    exit(1);
  return text;
}

/* The body of each turn: the whole conversation so far. */
static void make_bodies(void) {
  const size_t length = (size_t)bench.length;
  char *words = new_text();

  for (long turn = 0; turn < bench.n_turns; turn++) {
    char *body = new_text();
    size_t n = 0;

    add(body, &n, "{\"model\":\"m\",\"max_tokens\":%ld,%s\"messages\":[",
        bench.length + 8, bench.is_stream ? "\"stream\":true," : "");
    for (long i = 0; i <= turn; i++) {
      put_words(words, length, (size_t)i * 7);
      add(body, &n, "%s{\"role\":\"user\",\"content\":\"%s\"}",
          i > 0 ? "," : "", words);
      put_words(words, length, 0);
      if (i < turn)
        add(body, &n, ",{\"role\":\"assistant\",\"content\":\"%s\"}", words);
    }
    add(body, &n, "]}");
    bench.bodies[turn] = body;
  }
  free(words);
}

/* What a gateway sends for such a turn. */
static void make_direct_bodies(void) {
  const long n_tokens = bench.length + 8;

  for (long turn = 0; turn < bench.n_turns; turn++) {
    const long n_prompt = (turn * 2 + 1) * (bench.length + 10);
    char *body = new_text();
    size_t n = 0;

    add(body, &n, "{\"num_samples\":1,\"prompt\":{\"chunks\":[{\"tokens\":[");
    for (long i = 0; i < n_prompt; i++)
      add(body, &n, "%s%ld", i > 0 ? "," : "", 32 + i % 90);
    add(body, &n,
        "],\"type\":\"encoded_text\"}]},\"max_tokens\":%ld,"
        "\"request_id\":\"S:0:1:%ld:1\"}",
        n_tokens, n_tokens);
    bench.bodies[turn] = body;
  }
}

/* The bytes of a request are in `sent`; returns how many. */
static size_t make_request(line_t *line) {
  const char *body = bench.bodies[line->turn];
  char path[80];
  size_t n = 0;

  if (!bench.is_direct)
    (void)snprintf(path, sizeof(path), "/s/c%ld/v1/chat/completions",
                   line->conversation);
  else
    (void)snprintf(path, sizeof(path), "/api/v1/%s",
                   line->is_fetch ? "retrieve_future" : "asample");
  add(line->sent, &n,
      "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
      "Content-Type: application/json\r\nX-API-Key: tml-bench\r\n"
      "Content-Length: %zu\r\n\r\n%s",
      path, strlen(body), body);
  return n;
}

/* ---- Requests ---- */

static void begin(line_t *line);

static void give_up(const char *what, const char *more) {
  fprintf(stderr, "bench_gateway: %s%s\n", what, more);
  exit(1);
}

static void on_written(uv_write_t *request, int status) {
  (void)request;
  if (status != 0)
    give_up("write: ", uv_strerror(status));
}

static void send_request(line_t *line) {
  uv_buf_t buf = uv_buf_init(line->sent, 0);

  buf.len = make_request(line);
  line->n_got = line->n_expected = 0;
  line->first_ns = 0;
  if (uv_write(&line->writing, (uv_stream_t *)&line->tcp, &buf, 1,
               on_written) != 0)
    give_up("a connection is gone", "");
}

static void on_answer(line_t *line) {
  uint64_t now = uv_hrtime();

  if (line->n_got < 12 || memcmp(line->got + 9, "200", 3) != 0) {
    if (bench.n_failed++ == 0)
      fprintf(stderr, "%.*s\n", (int)line->n_got, line->got);
  } else if (bench.is_direct && !line->is_fetch) {
    line->is_fetch = 1;
    send_request(line);
    return;
  }
  bench.first_ms[bench.n_done] =
      (double)(line->first_ns - line->begin_ns) / 1e6;
  bench.last_ms[bench.n_done++] = (double)(now - line->begin_ns) / 1e6;
  line->is_busy = 0;
  line->is_fetch = 0;
  if (++line->turn == bench.n_turns)
    line->turn = 0;
  if (bench.n_done == bench.n_expected)
    uv_stop(uv_default_loop());
  else if (bench.rate == 0)
    begin(line);
}

/* Where the answer ends: by its length, or at the last chunk. */
static int is_whole(line_t *line, size_t n_kept) {
  static const char last[] = "\r\n0\r\n\r\n";
  const char *body, *length;

  line->got[n_kept] = '\0';
  body = strstr(line->got, "\r\n\r\n");
  if (line->n_expected == 0 && body != NULL) {
    length = strstr(line->got, "ontent-Length:");
    if (length == NULL)
      length = strstr(line->got, "ontent-length:");
    if (length != NULL && length < body)
      line->n_expected = (size_t)(body - line->got) + 4 +
                         strtoul(length + strlen("ontent-length:"), NULL, 10);
  }
  if (line->n_expected > 0)
    return line->n_got >= line->n_expected;
  return body != NULL && line->n_got == n_kept && n_kept >= sizeof(last) &&
         memcmp(line->got + n_kept - (sizeof(last) - 1), last,
                sizeof(last) - 1) == 0;
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  line_t *line = handle->data;
  static char rest[64 * 1024];
  size_t size = sizeof(line->got) - 1;

  (void)suggested;
  *buf = line->n_got < size ? uv_buf_init(line->got + line->n_got,
                                          (unsigned)(size - line->n_got))
                            : uv_buf_init(rest, sizeof(rest));
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  line_t *line = stream->data;
  size_t size = sizeof(line->got) - 1;

  (void)buf;
  if (n < 0)
    give_up("read: ", uv_strerror((int)n));
  if (n > 0 && line->first_ns == 0)
    line->first_ns = uv_hrtime();
  line->n_got += (size_t)n;
  if (is_whole(line, line->n_got < size ? line->n_got : size))
    on_answer(line);
}

static void begin(line_t *line) {
  if (line->turn == 0) {
    if (bench.n_begun == bench.n_conversations)
      return;
    line->conversation = bench.n_begun++;
  }
  line->is_busy = 1;
  line->begin_ns = uv_hrtime();
  bench.n_sent++;
  send_request(line);
}

/* Those whose time has come. A connection that still waits is passed over. */
static void on_clock(uv_timer_t *timer) {
  double due = (double)(uv_hrtime() - bench.from_ns) / 1e9 * (double)bench.rate;

  (void)timer;
  while (bench.n_sent < bench.n_expected && (double)bench.n_sent < due) {
    line_t *line = &bench.lines[bench.next];

    bench.next = (bench.next + 1) % (size_t)bench.n_lines;
    if (!line->is_busy)
      begin(line);
    else if (++bench.n_late > bench.n_lines)
      return;
  }
}

/* ---- Life ---- */

static void on_connected(uv_connect_t *request, int status) {
  line_t *line = request->data;

  if (status != 0)
    give_up("connect: ", uv_strerror(status));
  uv_tcp_nodelay(&line->tcp, 1);
  uv_read_start((uv_stream_t *)&line->tcp, on_room, on_bytes);
  bench.next++;
}

static void connect_all(uv_loop_t *loop) {
  for (long i = 0; i < bench.n_lines; i++) {
    line_t *line = &bench.lines[i];

    line->sent = new_text();
    if (uv_tcp_init(loop, &line->tcp) != 0)
      give_up("no socket", "");
    line->tcp.data = line->connecting.data = line;
    if (uv_tcp_connect(&line->connecting, &line->tcp,
                       (const struct sockaddr *)&bench.address,
                       on_connected) != 0)
      give_up("no connection", "");
  }
  while (bench.next < (size_t)bench.n_lines)
    uv_run(loop, UV_RUN_ONCE);
  bench.next = 0;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;

  return (x > y) - (x < y);
}

static void print_delays(const char *name, double *delays) {
  size_t n = (size_t)bench.n_done;

  qsort(delays, n, sizeof(*delays), compare);
  printf(",\"%s_p50_ms\":%.4f,\"%s_p99_ms\":%.4f", name, delays[n / 2], name,
         delays[(n * 99 + 99) / 100 - 1]);
}

static int read_args(int argc, char **argv) {
  static const struct {
    const char *name;
    long *value;
  } options[] = {
      {"--connections", &bench.n_lines},
      {"--conversations", &bench.n_conversations},
      {"--turns", &bench.n_turns},
      {"--length", &bench.length},
      {"--rate", &bench.rate},
      {"--stream", &bench.is_stream},
      {"--direct", &bench.is_direct},
  };
  size_t k;

  if (argc < 3 ||
      uv_ip4_addr(argv[1], (int)strtol(argv[2], NULL, 10), &bench.address) != 0)
    return 0;
  for (int i = 3; i + 1 < argc; i += 2) {
    for (k = 0; k < sizeof(options) / sizeof(options[0]); k++)
      if (strcmp(argv[i], options[k].name) == 0)
        break;
    if (k == sizeof(options) / sizeof(options[0]))
      return 0;
    *options[k].value = strtol(argv[i + 1], NULL, 10);
  }
  return argc % 2 == 1 && bench.n_lines > 0 && bench.n_conversations > 0 &&
         bench.n_turns > 0 && bench.n_turns <= MAX_TURNS && bench.length > 2 &&
         bench.length * bench.n_turns < MAX_BODY / 32;
}

static void run(uv_loop_t *loop) {
  bench.from_ns = uv_hrtime();
  if (bench.rate > 0) {
    uv_timer_init(loop, &bench.clock);
    uv_timer_start(&bench.clock, on_clock, 0, 1);
  }
  for (long i = 0; bench.rate == 0 && i < bench.n_lines; i++)
    begin(&bench.lines[i]);
  uv_run(loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv) {
  uv_loop_t *loop = uv_default_loop();
  double from_s;

  if (argc == 3 && strcmp(argv[1], "--answer") == 0) {
    char *words = new_text();

    put_words(words, strtoul(argv[2], NULL, 10) % (MAX_BODY / 2), 0);
    printf("\"%s\"\n", words);
    free(words);
    return 0;
  }
  if (!read_args(argc, argv)) {
    fprintf(stderr, "usage: bench_gateway HOST PORT [--connections N] "
                    "[--conversations N] [--turns N] [--length N] [--rate N] "
                    "[--stream 1] [--direct 1]\n");
    return 2;
  }
  bench.n_expected = bench.n_conversations * bench.n_turns;
  bench.lines = calloc((size_t)bench.n_lines, sizeof(*bench.lines));
  bench.first_ms = calloc((size_t)bench.n_expected, sizeof(double));
  bench.last_ms = calloc((size_t)bench.n_expected, sizeof(double));
  if (bench.lines == NULL || bench.first_ms == NULL || bench.last_ms == NULL)
    give_up("no memory", "");
  if (bench.is_direct)
    make_direct_bodies();
  else
    make_bodies();
  connect_all(loop);
  from_s = measure_cpu_s();
  run(loop);
  printf("{\"requests\":%ld,\"failed\":%ld,\"late\":%ld,\"body\":%zu,"
         "\"wall_s\":%.3f,\"cpu_s\":%.3f",
         bench.n_done, bench.n_failed, bench.n_late,
         strlen(bench.bodies[bench.n_turns - 1]),
         (double)(uv_hrtime() - bench.from_ns) / 1e9, measure_cpu_s() - from_s);
  print_delays("first", bench.first_ms);
  print_delays("last", bench.last_ms);
  printf("}\n");
  return bench.n_failed > 0;
}
