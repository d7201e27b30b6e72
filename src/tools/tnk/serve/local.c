/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "tools/common/base/input.h"
#include "tools/common/frame/cli.h"
#include "tools/tnk/serve/args.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/input.h"
#ifdef CLI_TOKENIZERS
#include "tools/tnk/text/tokenizer.h"
#endif
#include "tnk/error.h"
#include "tools/local/base/drain.h"
#include "tools/local/lm/lm.h"
#include "tools/local/stub/stub.h"

/*
 * The process listens, then serves until a signal or the end of its input. Then
 * it finishes pending requests, for at most drain_s. A second signal ends that
 * early. At the end it closes everything and returns, so that nothing is left
 * in the temporary directory.
 */

/* Interval between checks whether draining is complete. */
enum { TICK_MS = 20 };

typedef struct {
  uv_loop_t loop;
  uv_signal_t interrupt;
  uv_signal_t terminate;
  uv_signal_t hang_up;
  uv_timer_t drain;     /* checks whether draining is complete */
  uint64_t drain_s;     /* limit for draining; 0: no draining */
  uint64_t deadline_ms; /* 0: not draining */
  cli_input_t input;
  local_server_t *server;
  local_stub_t *stub;
  /* Both servers borrow them. */
  local_faults_t *faults;
  local_drawn_t *sample_log;
  local_stub_answers_t answers;
  char *folder; /* directory of the given tokenizer; or NULL */
} run_t;

static void end(run_t *run) {
  /* The server is already closing, after a second signal or the end of the
   * input. */
  if (uv_is_closing((uv_handle_t *)&run->interrupt))
    return;
  uv_close((uv_handle_t *)&run->interrupt, NULL);
  uv_close((uv_handle_t *)&run->terminate, NULL);
  uv_close((uv_handle_t *)&run->hang_up, NULL);
  uv_close((uv_handle_t *)&run->drain, NULL);
  cli_input_close(&run->input);
  if (run->server != NULL)
    local_server_close(run->server, NULL, NULL);
  if (run->stub != NULL)
    local_stub_close(run->stub);
}

static int is_drained(const run_t *run) {
  return run->server != NULL ? local_server_is_drained(run->server)
                             : local_stub_is_drained(run->stub);
}

static void on_drain_tick(uv_timer_t *timer) {
  run_t *run = timer->data;

  if (uv_now(&run->loop) >= run->deadline_ms || is_drained(run))
    end(run);
}

static void drain(run_t *run, uint64_t absence_ms) {
  const int serves = run->server != NULL || run->stub != NULL;

  if (run->deadline_ms > 0 || run->drain_s == 0 || !serves) {
    end(run);
    return;
  }
  run->deadline_ms = uv_now(&run->loop) + run->drain_s * 1000;
  if (run->server != NULL)
    local_server_drain(run->server, absence_ms);
  else
    local_stub_drain(run->stub, absence_ms);
  uv_timer_start(&run->drain, on_drain_tick, 0, TICK_MS);
}

static void on_signal(uv_signal_t *signal, int number) {
  (void)number;
  drain(signal->data, LOCAL_FETCH_MS);
}

/* If the parent is gone, its connections are too, and draining ends at once. */
static void on_input_end(void *user) {
  run_t *run = user;

  cli_input_close(&run->input);
  if (run->deadline_ms == 0)
    drain(run, 0);
}

/* Thousands of held polls need thousands of connections. The limit of open
 * files, minus the ones that are not connections. */
static void fit_file_limit(local_options_t *options) {
  enum { OTHERS = 24, FEWEST = 4 };
  struct rlimit limit;
  size_t most;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return;
  most = limit.rlim_cur > OTHERS + FEWEST ? (size_t)limit.rlim_cur - OTHERS
                                          : FEWEST;
  if (options->max_connections > most)
    options->max_connections = most;
}

static void print_request(void *user, const local_seen_t *seen) {
  char line[1024];
  tnk__text_t text;

  (void)user;
  if (seen->status == 0)
    return;
  /* Paths are decoded, so %1b could send control characters to a terminal. */
  tnk__text_init(&text, line, sizeof(line));
  tnk__text_printf(&text, "%llu %s %s seq=%lld %d %s",
                   (unsigned long long)seen->n, seen->method, seen->path,
                   (long long)seen->seq_id, seen->status, seen->version);
  fprintf(stderr, "%s\n", line);
}

static int open_stub(run_t *run, const cli_local_args_t *args, char *why,
                     size_t n_why) {
  /* Within the limit of open files. */
  size_t most =
      args->stub_max_connections > 0 ? args->server.max_connections : 0;
  const local_stub_options_t options = {
      .host = args->server.host,
      .port = args->server.port,
      .tls_cert = args->server.tls_cert,
      .tls_key = args->server.tls_key,
      .max_conns = most,
      .full = args->server.full,
      .max_streams = args->server.max_streams,
      .latency_ms = args->server.latency_ms,
      .spread_ms = args->stub_spread_ms,
      .hold_ms = args->server.hold_ms,
      .cut_ms = args->stub_cut_ms,
      .flags = args->server.flags,
      .n_flags = args->server.n_flags,
      .faults = run->faults,
      .answers = args->stub_answers != NULL ? &run->answers : NULL,
      .sample_log = run->sample_log,
      .why = why,
      .n_why = n_why};
  int err = local_stub_open(&run->stub, &run->loop, &options);

  if (err != 0 && why[0] == '\0')
    snprintf(why, n_why, "%s",
             err == TNK_ENOMEM ? tnk_strerror(err) : uv_strerror(err));
  return err;
}

/* The specification was checked with the other arguments. Returns the exit
 * status.
 */
static int plan_faults(const cli_t *cli, run_t *run, cli_local_args_t *args) {
  int err;

  if (args->faults == NULL && args->fault_log == NULL && !args->fault_control)
    return CLI_EXIT_OK;
  run->faults = local_faults_new(tnk__allocator_default());
  if (run->faults == NULL ||
      local_faults_set(run->faults, args->faults, NULL, 0) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (args->fault_control)
    local_faults_open_control(run->faults);
  args->server.faults = run->faults;
  if (args->fault_log == NULL)
    return CLI_EXIT_OK;
  err = local_faults_log_to(run->faults, args->fault_log);
  return err == 0 ? CLI_EXIT_OK
                  : cli_fail(cli, CLI_EXIT_FILE, "cannot write to %s: %s",
                             args->fault_log, uv_strerror(err));
}

/* Open the log of samples, and read the canned answers. Returns the exit
 * status. */
static int plan_samples(const cli_t *cli, run_t *run, cli_local_args_t *args) {
  char why[256] = "";
  size_t n;
  char *text;
  int err = TNK_OK;

  if (args->sample_log != NULL)
    err = local_drawn_open(&run->sample_log, args->sample_log,
                           tnk__allocator_default());
  args->server.sample_log = run->sample_log;
  if (err != TNK_OK)
    return cli_fail(cli, CLI_EXIT_FILE, "cannot write to %s: %s",
                    args->sample_log,
                    err == TNK_ENOMEM ? tnk_strerror(err) : uv_strerror(err));
  if (args->stub_answers == NULL)
    return CLI_EXIT_OK;
  text = cli_read_file(args->stub_answers, &n, why, sizeof(why));
  if (text == NULL)
    return cli_fail(cli, CLI_EXIT_FILE, "%s", why);
  err =
      local_stub_answers_read(&run->answers, text, n, tnk__allocator_default(),
                              NULL, NULL, why, sizeof(why));
  free(text);
  return err == TNK_OK
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FILE, "%s: %s", args->stub_answers,
                        err == TNK_ENOMEM ? tnk_strerror(err) : why);
}

#ifdef CLI_TOKENIZERS
/* The directory of a file, or the directory itself; the caller frees it. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  uv_fs_t req;
  int is_folder;

  is_folder =
      uv_fs_stat(NULL, &req, path, NULL) == 0 && S_ISDIR(req.statbuf.st_mode);
  uv_fs_req_cleanup(&req);
  if (is_folder)
    return strdup(path);
  if (slash == NULL)
    return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Give the model the ids of that tokenizer. Set the name of its directory,
 * where clients look for it. Returns the exit status. */
static int plan_tokenizer(const cli_t *cli, run_t *run,
                          cli_local_args_t *args) {
  cli_tokenizer_t which = {.path = args->tokenizer};
  tnk_tokenizer_t *tok;
  char why[512] = "";
  size_t n = 0;
  int status;

  if (args->tokenizer == NULL)
    return CLI_EXIT_OK;
  run->folder = folder_of(args->tokenizer);
  if (run->folder == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  which.path = run->folder;
  tok = cli_tokenizer_open(cli, &which, &status, why, sizeof(why));
  if (tok == NULL)
    return cli_fail(cli, status, "%s", why);
  n = tnk_tokenizer_vocab_size(tok);
  tnk_tokenizer_unref(tok);
  if (n > TNK__LM_MAX_VOCAB)
    return cli_fail(cli, CLI_EXIT_FILE, "%s has more than %d token ids",
                    args->tokenizer, (int)TNK__LM_MAX_VOCAB);
  args->server.model_dir = run->folder;
  args->server.has_tokenizer = 1;
  /* The vocabulary is never smaller than the default. */
  args->server.n_vocab = n > TNK__LM_VOCAB ? (int32_t)n : TNK__LM_VOCAB;
  return CLI_EXIT_OK;
}
#endif

static void print_address(const cli_t *cli, const run_t *run,
                          const cli_local_args_t *args, const char *host) {
  int is_ip6 = strchr(host, ':') != NULL;

  printf("%shttp%s://%s%s%s:%u%s\n",
         cli->json ? "{\"url\": \"" : "listening on ",
         args->server.tls_cert != NULL ? "s" : "", is_ip6 ? "[" : "", host,
         is_ip6 ? "]" : "",
         args->stub ? (unsigned)local_stub_port(run->stub)
                    : (unsigned)local_server_port(run->server),
         cli->json ? "\"}" : "");
}

static int serve(const cli_t *cli, run_t *run, cli_local_args_t *args) {
  const char *host =
      args->server.host != NULL ? args->server.host : "127.0.0.1";
  char why[256] = "";
  int status = plan_faults(cli, run, args);

  if (status == CLI_EXIT_OK)
    status = plan_samples(cli, run, args);
#ifdef CLI_TOKENIZERS
  if (status == CLI_EXIT_OK)
    status = plan_tokenizer(cli, run, args);
#endif
  if (status != CLI_EXIT_OK)
    return status;
  args->server.why = why;
  args->server.n_why = sizeof(why);
  if (args->verbose)
    args->server.on_request = print_request;
  if ((args->stub
           ? open_stub(run, args, why, sizeof(why))
           : local_server_open(&run->server, &run->loop, &args->server)) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "cannot serve on %s port %d: %s",
                    host, args->server.port, why);
  print_address(cli, run, args, host);
  /* The parent process waits for this line, possibly through a pipe. */
  if (fflush(stdout) != 0)
    return CLI_EXIT_FILE;
  if (args->exit_with_stdin &&
      !cli_input_watch(&run->input, &run->loop, on_input_end, run))
    end(run);
  return CLI_EXIT_OK;
}

static int run_local(cli_t *cli) {
  static cli_local_args_t args;
  static run_t run;
  int status;

  cli_local_args(&args);
  fit_file_limit(&args.server);
  if (uv_loop_init(&run.loop) != 0)
    return cli_fail(cli, CLI_EXIT_FAILED, "cannot create an event loop");
  /* Before the server opens, because a signal during its opening would leave
   * its directory behind. */
  uv_signal_init(&run.loop, &run.interrupt);
  uv_signal_init(&run.loop, &run.terminate);
  uv_signal_init(&run.loop, &run.hang_up);
  uv_timer_init(&run.loop, &run.drain);
  run.drain.data = &run;
  run.drain_s = args.drain_s;
  run.interrupt.data = run.terminate.data = run.hang_up.data = &run;
  uv_signal_start(&run.interrupt, on_signal, SIGINT);
  uv_signal_start(&run.terminate, on_signal, SIGTERM);
  uv_signal_start(&run.hang_up, on_signal, SIGHUP);
  status = serve(cli, &run, &args);
  if (status != CLI_EXIT_OK)
    end(&run);
  uv_run(&run.loop, UV_RUN_DEFAULT);
  uv_loop_close(&run.loop);
  /* Both servers borrow them until the loop has ended. */
  local_faults_free(run.faults);
  local_drawn_close(run.sample_log);
  local_stub_answers_free(&run.answers);
  free(run.folder);
  return status;
}

const cli_command_t cli_local = {
    .name = "local",
    .brief = "serve the Tinker API on this machine",
    .about =
        "Serve the Tinker API on this machine with a small byte-level model "
        "that really trains. Prints the address when it listens. After Ctrl-C "
        "or SIGTERM it accepts no more work, lets clients fetch the results of "
        "the work in progress, and exits with status 0. A client that stays "
        "away for more than 5 s during this time loses its result. HTTP/1.1 "
        "and HTTP/2 use the same port. HTTP/2 needs a tnk that was built with "
        "nghttp2 (see tnk version). Over TLS the client chooses the version; "
        "without TLS its first bytes select it.",
    .options = cli_local_options,
    .sections = cli_local_sections,
    .failed = "The server could not start.",
    .is_server = 1,
    .has = CLI_HAS_JSON,
    .check = cli_local_check,
    .run = run_local,
};
