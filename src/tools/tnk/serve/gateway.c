/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "gateway/record/atif.h"
#include "gateway/record/datum.h"
#include "gateway/store/where.h"
#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "tnk/gateway.h"
#include "tnk/otlp.h"
#include "tnk/sampling.h"
#include "tools/common/base/limits.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/keys/admin.h"
#include "tools/tnk/serve/follow.h"
#include "tools/tnk/ask/input.h"
#include "tools/tnk/serve/words.h"
#include "tools/tnk/serve/workers.h"

/* ---- The gateway ---- */

/* The scripts of a store compute with numbers that are exact up to this. */
#define CLI_MAX_KEEP (INT64_C(1) << 52)

/*
 * tnk gateway: runs the server of src/gateway with a service, a tokenizer and a
 * template, until a signal.
 */

static struct {
  cli_words_args_t words;
  const char *checkpoint, *host, *key, *record, *name;
  const char *datums, *atif, *tls_cert, *tls_key, *admin_key, *admin_file;
  const char *prices, *formats;
  const char *record_ca, *record_cert, *record_key;
  const char *client_ca, *client_crl;
  int64_t port, max_tokens, linger_s, drain_s, format_attempts, repeat_s;
  int64_t workers, quiet_s, keep_sessions, keep_age_s;
  int only_rewarded, follows, exit_with_stdin, syncs, keeps_controls;
  int keeps_unexported, has_no_marks, client_optional;
  const char *state;
} args = {.max_tokens = 1024, .drain_s = 30, .repeat_s = 30, .quiet_s = -1};

static const cli_option_t options[] = {
    {.name = "model",
     .letter = 'm',
     .value = "NAME",
     .text = &args.words.model,
     .help = "Sample from this base model; with --checkpoint, the one it was "
             "trained from, for its tokenizer and template."},
    {.name = "checkpoint",
     .value = "PATH",
     .text = &args.checkpoint,
     .help = "Sample from these weights, tinker://..."},
    {.name = "port",
     .value = "N",
     .number = &args.port,
     .max = 65535,
     .help = "Port to listen on; 0 selects a free one (0)."},
    {.name = "host",
     .value = "ADDRESS",
     .text = &args.host,
     .help = "Numeric address (127.0.0.1). An address that is not loopback "
             "needs --key or --admin-key."},
    {.name = "key",
     .value = "KEY",
     .text = &args.key,
     .help = "Key with which agents sample. They may append :SESSION. "
             "Default: TNK_GATEWAY_KEY, else none."},
    {.name = "admin-key",
     .value = "KEY",
     .text = &args.admin_key,
     .help = "Key for /tnk/: rewards, weights, the record. Without it and with "
             "--key, /tnk/ is refused. Default: TNK_GATEWAY_ADMIN_KEY, else "
             "none."},
    {.name = "admin-key-file",
     .value = "FILE",
     .text = &args.admin_file,
     .offer = CLI_OFFER_FILES,
     .help = "Read that key from the first line of this file, so that it is in "
             "no list of processes."},
    {.name = "tls-cert",
     .value = "FILE",
     .text = &args.tls_cert,
     .offer = CLI_OFFER_FILES,
     .help = "Serve https with this certificate, in PEM or DER."},
    {.name = "tls-key",
     .value = "FILE",
     .text = &args.tls_key,
     .offer = CLI_OFFER_FILES,
     .help = "The certificate's key, without passphrase."},
    {.name = "client-ca",
     .value = "FILE",
     .text = &args.client_ca,
     .offer = CLI_OFFER_FILES,
     .help = "With --tls-cert: serve only clients that have a certificate of "
             "an authority in this file, in PEM. A key can be bound to a "
             "certificate: see tnk gateway keys create --certificate."},
    {.name = "client-crl",
     .value = "FILE",
     .text = &args.client_crl,
     .offer = CLI_OFFER_FILES,
     .help = "With --client-ca: refuse the certificates that these revocation "
             "lists name, in PEM. The file is read at the start."},
    {.name = "client-optional",
     .flag = &args.client_optional,
     .help = "With --client-ca: serve clients without a certificate too, "
             "except with keys that are bound to one. An invalid certificate "
             "is still refused."},
    {.name = "record",
     .value = "FILE",
     .text = &args.record,
     .offer = CLI_OFFER_FILES,
     .help = "Record each turn in this file before it is answered. If the file "
             "exists, recording continues in it. valkey://HOST/NAME shares the "
             "record with other gateways, valkeys:// with TLS."},
    {.name = "record-ca",
     .value = "FILE",
     .text = &args.record_ca,
     .offer = CLI_OFFER_FILES,
     .help = "For valkeys://: trust the certificates in this file, in PEM. "
             "Default: SSL_CERT_FILE, else those of the system."},
    {.name = "record-cert",
     .value = "FILE",
     .text = &args.record_cert,
     .offer = CLI_OFFER_FILES,
     .help = "For valkeys://: the client certificate, in PEM, if the server "
             "wants one."},
    {.name = "record-key",
     .value = "FILE",
     .text = &args.record_key,
     .offer = CLI_OFFER_FILES,
     .help = "The key of --record-cert, without passphrase."},
    {.name = "keep-sessions",
     .value = "N",
     .number = &args.keep_sessions,
     .min = 1,
     .max = CLI_MAX_KEEP,
     .help = "With a shared record: remove sessions from it beyond the N most "
             "recently used ones. Sessions with requests in progress stay."},
    {.name = "keep-age-s",
     .value = "N",
     .number = &args.keep_age_s,
     .min = 1,
     .max = CLI_MAX_KEEP / 1000,
     .help = "With a shared record: remove sessions from it that were not used "
             "for so many seconds."},
    {.name = "keep-unexported",
     .flag = &args.keeps_unexported,
     .help = "With a shared record: remove a session from it only after "
             "--datums has printed all of it. Without --keep-sessions and "
             "--keep-age-s, remove it as soon as that is done."},
    {.name = "workers",
     .value = "N",
     .number = &args.workers,
     .min = 1,
     .max = CLI_MAX_WORKERS,
     .help = "Serve with so many processes on one port, and start a process "
             "again when it ends. More than one need a shared record."},
    {.name = "sync",
     .flag = &args.syncs,
     .help = "With --record: sync each turn to disk before it is answered. "
             "This protects it from a power failure, but each answer waits for "
             "the disk."},
    {.name = "keep-control-tokens",
     .flag = &args.keeps_controls,
     .help = "Interpret control tokens in user messages and tool results. By "
             "default they are plain text."},
    {.name = "name",
     .value = "NAME",
     .text = &args.name,
     .help = "Name of the model for clients."},
    CLI_WORDS_OPTIONS(args.words),
    {.name = "max-tokens",
     .value = "N",
     .number = &args.max_tokens,
     .min = 1,
     .max = INT32_MAX,
     .help = "Default for clients that set none (1024)."},
    {.name = "prices",
     .value = "PROMPT,SAMPLED[,CACHED]",
     .text = &args.prices,
     .help = "USD per million tokens, such as 0.13,0.4,0.03, for keys of "
             "sessions with max_usd. Without CACHED, prompt tokens that were "
             "cache hits cost as much as others."},
    {.name = "linger-s",
     .value = "N",
     .number = &args.linger_s,
     .max = 86400,
     .help = "Seconds after a signal in which requests are served as before, "
             "while /readyz returns 503, so that load balancers send no more "
             "(0)."},
    {.name = "formats",
     .value = "WHAT",
     .text = &args.formats,
     .help = "If a client asks for JSON or a schema: \"hint\" asks the model "
             "for it (default), \"retry\" also samples again if the answer "
             "does not fit, \"refuse\" rejects the request."},
    {.name = "format-attempts",
     .value = "N",
     .number = &args.format_attempts,
     .min = 1,
     .max = 16,
     .help = "With --formats retry: samples for one answer, at most (3)."},
    {.name = "repeat-s",
     .value = "N",
     .number = &args.repeat_s,
     .max = 86400,
     .help = "Seconds for which a sample goes on after its client has "
             "disconnected, so that the client gets it if it repeats the "
             "request (30); 0 cancels it at once."},
    {.name = "drain-s",
     .value = "N",
     .number = &args.drain_s,
     .max = 86400,
     .help = "Seconds to wait for requests in progress after that (30). A "
             "second signal ends at once."},
    {.name = "exit-with-stdin",
     .flag = &args.exit_with_stdin,
     .help =
         "Exit when standard input ends, and so when the parent process does."},
    {.name = "datums",
     .value = "FILE",
     .text = &args.datums,
     .offer = CLI_OFFER_FILES,
     .help =
         "Do not serve. Print the record in FILE, or in valkey://HOST/NAME, "
         "as examples that tnk lint reads."},
    {.name = "atif",
     .value = "FILE",
     .text = &args.atif,
     .offer = CLI_OFFER_FILES,
     .help = "Do not serve. Print the record in FILE as trajectories of Harbor "
             "(ATIF), one a line."},
    {.name = "rewarded",
     .flag = &args.only_rewarded,
     .help = "With --datums or --atif: only those with a reward."},
    {.name = "follow",
     .flag = &args.follows,
     .help = "With --datums: do not end. Print the examples of each session "
             "once, when it has ended."},
    {.name = "quiet-s",
     .value = "N",
     .number = &args.quiet_s,
     .max = 604800,
     .help = "With --follow: a session has ended when no turn and no reward "
             "was recorded for so many seconds (60)."},
    {.name = "state",
     .value = "FILE",
     .text = &args.state,
     .offer = CLI_OFFER_FILES,
     .help = "With --follow: keep what was printed in this file, and do not "
             "print it again after a restart. Default: a shared record has "
             "marks for that, and a file has none."},
    {.name = "no-marks",
     .flag = &args.has_no_marks,
     .help = "With --datums and a shared record: do not mark the examples as "
             "exported. With --follow, also print those that are marked."},
    {.name = NULL}};

/* Read --formats. Returns 0 or -1. */
static int read_formats(tnk_gateway_formats_t *out) {
  static const char *const names[] = {[TNK_GATEWAY_FORMATS_HINT] = "hint",
                                      [TNK_GATEWAY_FORMATS_RETRY] = "retry",
                                      [TNK_GATEWAY_FORMATS_REFUSE] = "refuse"};

  *out = TNK_GATEWAY_FORMATS_HINT;
  for (size_t i = 0; args.formats != NULL; i++) {
    if (i == sizeof(names) / sizeof(*names))
      return -1;
    *out = (tnk_gateway_formats_t)i;
    if (strcmp(args.formats, names[i]) == 0)
      break;
  }
  return 0;
}

static const char *check_datums(void) {
  if (args.follows && args.datums == NULL)
    return "--follow needs --datums";
  if (args.quiet_s >= 0 && !args.follows)
    return "--quiet-s needs --follow";
  if (args.state != NULL && !args.follows)
    return "--state needs --follow";
  if (args.has_no_marks &&
      (args.datums == NULL || !tnk__gw_is_where(args.datums)))
    return "--no-marks needs --datums valkey://HOST/NAME";
  return args.datums != NULL && args.atif != NULL
             ? "--datums and --atif exclude each other"
             : NULL;
}

static const char *check_formats(void) {
  tnk_gateway_formats_t formats;

  if (read_formats(&formats) != 0)
    return "--formats takes hint, retry or refuse";
  return args.format_attempts > 0 && formats != TNK_GATEWAY_FORMATS_RETRY
             ? "--format-attempts needs --formats retry"
             : NULL;
}

static const char *check_store(void) {
  const char *record = args.datums != NULL ? args.datums
                       : args.atif != NULL ? args.atif
                                           : args.record;

  if ((args.record_cert == NULL) != (args.record_key == NULL))
    return "--record-cert and --record-key need each other";
  if ((args.record_ca != NULL || args.record_cert != NULL) &&
      (record == NULL || !tnk__gw_is_secure_where(record)))
    return "--record-ca and --record-cert need a record at valkeys://";
  return NULL;
}

static const char *check_keep(void) {
  int is_shared = args.record != NULL && tnk__gw_is_where(args.record);

  return !is_shared && (args.keep_sessions > 0 || args.keep_age_s > 0 ||
                        args.keeps_unexported)
             ? "--keep-sessions, --keep-age-s and --keep-unexported need a "
               "shared record: --record valkey://HOST/NAME"
             : NULL;
}

static const char *check(const cli_t *cli) {
  const char *wrong = check_store();

  (void)cli;
  if (wrong == NULL)
    wrong = check_datums();
  if (wrong != NULL)
    return wrong;
  if (args.datums != NULL || args.atif != NULL)
    return args.words.model != NULL || args.checkpoint != NULL
               ? "--datums and --atif do not start a gateway: omit --model and "
                 "--checkpoint"
               : NULL;
  if (args.words.model == NULL)
    return "--model is missing";
  if (args.only_rewarded)
    return "--rewarded needs --datums or --atif";
  if (args.workers > 1 &&
      (args.record == NULL || !tnk__gw_is_where(args.record)))
    return args.record == NULL
               ? "--workers needs a record that processes can share: --record "
                 "valkey://HOST/NAME"
               : "--workers cannot share a file, which has one writer: use "
                 "--record valkey://HOST/NAME";
  if (args.syncs && args.record == NULL)
    return "--sync needs --record";
  if (args.admin_key != NULL && args.admin_file != NULL)
    return "--admin-key and --admin-key-file exclude each other";
  if ((args.tls_cert == NULL) != (args.tls_key == NULL))
    return "--tls-cert and --tls-key need each other";
  if (args.client_ca != NULL && args.tls_cert == NULL)
    return "--client-ca needs --tls-cert";
  if ((args.client_crl != NULL || args.client_optional) &&
      args.client_ca == NULL)
    return "--client-crl and --client-optional need --client-ca";
  wrong = cli_words_check(&args.words);
  if (wrong == NULL)
    wrong = check_keep();
  return wrong != NULL ? wrong : check_formats();
}

/* ---- The gateway: records ---- */

static int put_line(void *user, const char *line, size_t n) {
  (void)user;
  return fwrite(line, 1, n, stdout) == n ? TNK_OK : TNK_EFILE;
}

static int print_record(const cli_t *cli) {
  const tnk__gw_datum_options_t how = {.only_rewarded = args.only_rewarded};
  const char *path = args.datums != NULL ? args.datums : args.atif;
  char why[512] = "";
  const tnk__gw_record_options_t what = {.alloc = tnk__allocator_default(),
                                         .path = path,
                                         .max_turns = SIZE_MAX,
                                         .max_memory = SIZE_MAX,
                                         .ca_file = args.record_ca,
                                         .cert_file = args.record_cert,
                                         .key_file = args.record_key,
                                         .why = why,
                                         .n_why = sizeof(why)};
  tnk__gw_record_t *record;
  int err = tnk__gw_record_open(&record, &what);

  if (err != TNK_OK)
    return cli_fail(cli, CLI_EXIT_FILE, "%s",
                    why[0] != '\0' ? why : tnk_strerror(err));
  err = args.datums != NULL ? tnk__gw_datums(record, NULL, &how, put_line, NULL)
                            : tnk__gw_atif(record, &how, put_line, NULL);
  tnk__gw_record_close(record, NULL, NULL);
  if (err == TNK_OK && fflush(stdout) == 0)
    return CLI_EXIT_OK;
  return cli_fail(cli, CLI_EXIT_FILE, "%s: %s",
                  tnk__gw_is_where(path) ? "the shared record" : path,
                  tnk_strerror(err != TNK_OK ? err : TNK_EFILE));
}

/* ---- The gateway: serving ---- */

typedef struct {
  const cli_t *cli;
  cli_ask_t ask;
  tnk_gateway_t *gateway;
  tnk_otlp_t *otlp; /* NULL: the environment asks for no export */
  tnk_observer_t observers[2];
  tnk_observers_t all;
  cli_words_t words;
  cli_input_t input;
  const cli_worker_t *worker; /* NULL: it is the only process */
  uv_pipe_t stop;             /* at its end when the parent says so */
  int has_stop;
  uv_timer_t timer; /* limit for what happens after a signal */
  int has_timer;
  int is_late;
  int has_ended; /* the input has ended */
  int is_ending; /* a signal or the end of the input has come */
  int is_closed;
} work_t;

/* Returns 0, or -1 if the option is malformed. The gateway checks the range. */
static int read_prices(tnk_gateway_options_t *o) {
  double *const prices[] = {&o->usd_prompt, &o->usd_sampled, &o->usd_cached};
  const char *at = args.prices;

  for (size_t i = 0; at != NULL && i < 3; i++) {
    char *end;

    *prices[i] = strtod(at, &end);
    if (end == at || (*end != ',' && *end != '\0'))
      return -1;
    if (*end == '\0')
      return i == 0 ? -1 : 0;
    at = end + 1;
  }
  return at == NULL ? 0 : -1;
}

static int open_gateway(work_t *work, const char *admin_key) {
  const char *key = args.key != NULL ? args.key : getenv("TNK_GATEWAY_KEY");
  tnk_gateway_options_t o = {
      .size = sizeof(o),
      .host = args.host,
      .key = key,
      .admin_key = admin_key,
      .model = args.name,
      .record = args.record,
      .record_ca_file = args.record_ca,
      .record_cert_file = args.record_cert,
      .record_key_file = args.record_key,
      .port = work->worker != NULL ? work->worker->port : (int32_t)args.port,
      .worker = work->worker != NULL ? work->worker->label : NULL,
      .share_port = work->worker != NULL ? TNK_YES : TNK_NO,
      .max_tokens = (int32_t)args.max_tokens,
      .tls_cert = args.tls_cert,
      .tls_key = args.tls_key,
      .client_ca_file = args.client_ca,
      .client_crl_file = args.client_crl,
      .client_optional = args.client_optional ? TNK_YES : TNK_NO,
      .record_sync = args.syncs ? TNK_YES : TNK_NO,
      .keep_sessions = (uint64_t)args.keep_sessions,
      .keep_age_ms = (uint64_t)args.keep_age_s * 1000,
      .keep_unexported = args.keeps_unexported ? TNK_YES : TNK_NO,
      .keep_control_tokens = args.keeps_controls ? TNK_YES : TNK_NO,
      .otlp = work->otlp};
  const tnk_logger_t logger = cli_ask_logger(&work->ask);
  char why[512] = "";
  int err;

  cli_words_give(&work->words, &o);
  (void)read_formats(&o.formats); /* check() has tested it */
  o.max_attempts = (uint32_t)args.format_attempts;
  o.repeat_ms = args.repeat_s > 0 ? (uint32_t)args.repeat_s * 1000 : 1;
  if (read_prices(&o) != 0)
    return cli_fail(work->cli, CLI_EXIT_USAGE,
                    "--prices takes two or three numbers, such as 0.13,0.4");
  o.logger = &logger;
  err = tnk_gateway_open(&work->gateway, &work->ask.loop, work->ask.service, &o,
                         why, sizeof(why));
  return err == TNK_OK
             ? CLI_EXIT_OK
             : cli_fail(work->cli,
                        err == TNK_EFILE ? CLI_EXIT_FILE : CLI_EXIT_FAILED,
                        "cannot serve: %s", why);
}

static int open_with_keys(work_t *work) {
  const cli_admin_t from = {args.admin_key, args.admin_file};
  char *admin_key = NULL;
  int status = cli_admin_read(work->cli, &from, &admin_key);

  if (status == CLI_EXIT_OK)
    status = open_gateway(work, admin_key);
  cli_admin_free(admin_key);
  return status;
}

static void on_input_end(void *user) {
  work_t *work = user;

  work->has_ended = 1;
  cli_input_close(&work->input);
}

static int serve(work_t *work) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *promise;
  int status;

  what.model_path = args.checkpoint;
  what.base_model = args.checkpoint == NULL ? args.words.model : NULL;
  promise = tnk_gateway_use(work->gateway, &what);
  status = cli_ask_wait(&work->ask, promise) == TNK_OK
               ? CLI_EXIT_OK
               : cli_ask_failed(&work->ask, promise);
  tnk_promise_unref(promise);
  if (status != CLI_EXIT_OK)
    return status;
  if (work->worker != NULL)
    cli_worker_is_ready(work->worker, tnk_gateway_address(work->gateway));
  else
    printf("%s%s%s\n", work->cli->json ? "{\"url\": \"" : "listening on ",
           tnk_gateway_address(work->gateway), work->cli->json ? "\"}" : "");
  /* The parent process waits for this line, possibly through a pipe. */
  if (fflush(stdout) != 0)
    return CLI_EXIT_FILE;
  if (args.exit_with_stdin && work->worker == NULL &&
      !cli_input_watch(&work->input, &work->ask.loop, on_input_end, work))
    work->has_ended = 1;
  while (!cli_ask_is_over(&work->ask) && !work->has_ended)
    uv_run(&work->ask.loop, UV_RUN_ONCE);
  /* The signal was a normal request to end. */
  work->is_ending = 1;
  work->ask.signal_number = 0;
  return CLI_EXIT_OK;
}

static void on_late(uv_timer_t *timer) {
  ((work_t *)timer->data)->is_late = 1;
}

static void start_timer(work_t *work, int64_t s) {
  work->is_late = 0;
  uv_update_time(&work->ask.loop);
  uv_timer_start(&work->timer, on_late, (uint64_t)s * 1000, 0);
}

static void on_timer_closed(uv_handle_t *handle) {
  ((work_t *)handle->data)->has_timer = 0;
}

/* Tell load balancers, then finish pending requests. A second signal has its
 * usual effect. */
static void drain(work_t *work) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;

  uv_timer_init(&work->ask.loop, &work->timer);
  work->timer.data = work;
  work->has_timer = 1;
  tnk_gateway_leave(work->gateway);
  start_timer(work, args.linger_s);
  while (args.linger_s > 0 && !work->is_late)
    uv_run(&work->ask.loop, UV_RUN_ONCE);
  start_timer(work, args.drain_s);
  tnk_gateway_drain(work->gateway);
  while (!work->is_late && tnk_gateway_stats(&stats, work->gateway) == TNK_OK &&
         stats.n_connections > 0)
    uv_run(&work->ask.loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&work->timer, on_timer_closed);
  while (work->has_timer)
    uv_run(&work->ask.loop, UV_RUN_ONCE);
}

static void on_closed(void *user) {
  ((work_t *)user)->is_closed = 1;
}

static void close_gateway(work_t *work) {
  cli_input_close(&work->input);
  if (work->gateway == NULL)
    return;
  tnk_gateway_close(work->gateway, on_closed, work);
  while (!work->is_closed)
    uv_run(&work->ask.loop, UV_RUN_ONCE);
}

static void on_stop_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  static char ignored[16];

  (void)handle, (void)hint;
  *buf = uv_buf_init(ignored, sizeof(ignored));
}

/* The parent wants the worker to end, or has died. A signal does what is needed
 * in each state, unless the worker has got one before. */
static void on_stop(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  work_t *work = stream->data;

  (void)buf;
  if (n >= 0)
    return;
  uv_close((uv_handle_t *)stream, NULL);
  work->has_stop = 0;
  if (!cli_ask_is_over(&work->ask) && !work->is_ending)
    (void)raise(SIGTERM);
}

static int open_stop(work_t *work) {
  if (work->worker == NULL)
    return CLI_EXIT_OK;
  work->ask.log_name = work->worker->log_name;
  if (uv_pipe_init(&work->ask.loop, &work->stop, 0) != 0 ||
      uv_pipe_open(&work->stop, work->worker->stop_fd) != 0)
    return cli_fail(work->cli, CLI_EXIT_FAILED, "no pipe to the parent");
  work->has_stop = 1;
  work->stop.data = work;
  (void)uv_read_start((uv_stream_t *)&work->stop, on_stop_alloc, on_stop);
  uv_unref((uv_handle_t *)&work->stop);
  return CLI_EXIT_OK;
}

/* The exporter is closed after the service, which it observes. */
static void close_otlp(void *user) {
  work_t *work = user;

  tnk_otlp_close(work->otlp, NULL, NULL);
  work->otlp = NULL;
}

static int open_otlp(work_t *work, tnk_service_options_t *service) {
  const tnk_logger_t logger = cli_ask_logger(&work->ask);
  tnk_otlp_options_t o = TNK_OTLP_OPTIONS_INIT;
  char why[512] = "";
  int err;

  o.service_name = "tnk-gateway";
  o.service_version = tnk_version();
  o.logger = &logger;
  err = tnk_otlp_open(&work->otlp, &work->ask.loop, &o, why, sizeof(why));
  if (err != TNK_OK)
    return cli_fail(work->cli,
                    err == TNK_EINVAL ? CLI_EXIT_USAGE : CLI_EXIT_FAILED,
                    "cannot export to OpenTelemetry: %s", why);
  if (work->otlp == NULL)
    return CLI_EXIT_OK;
  work->ask.on_closed = close_otlp;
  work->ask.user = work;
  work->observers[0] = (tnk_observer_t){tnk_otlp_event, work->otlp};
  work->observers[1] =
      (tnk_observer_t){work->cli->verbose ? cli_ask_event : NULL, &work->ask};
  work->all = (tnk_observers_t){work->observers, 2};
  service->observer = tnk_observe_each;
  service->observer_user = &work->all;
  return CLI_EXIT_OK;
}

/* `worker` is NULL in a process that serves alone. */
static int run_one(cli_t *cli, const cli_worker_t *worker) {
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  static work_t work;
  int status;

  work.cli = cli;
  work.worker = worker;
  /* Each agent uses a connection. */
  cli_raise_file_limit();
  /* A service that was restarted knows no sampler of before. */
  service.recovery = TNK_YES;
  status = cli_ask_begin(&work.ask, cli);
  if (status == CLI_EXIT_OK)
    status = open_stop(&work);
  if (status == CLI_EXIT_OK)
    status = open_otlp(&work, &service);
  if (status == CLI_EXIT_OK)
    status = cli_ask_serve(&work.ask, &service);
  if (status == CLI_EXIT_OK)
    status = cli_words_open(&work.words, cli, &args.words);
  if (status == CLI_EXIT_OK)
    status = open_with_keys(&work);
  if (status == CLI_EXIT_OK)
    status = serve(&work);
  if (status == CLI_EXIT_OK)
    drain(&work);
  close_gateway(&work);
  if (work.has_stop)
    uv_close((uv_handle_t *)&work.stop, NULL);
  status = cli_ask_close(&work.ask, status);
  cli_words_close(&work.words);
  return status;
}

/* How long a worker may take to export what is queued, when it ends. */
static int64_t flush_s(void) {
  static const char *const endpoints[] = {
      "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
      "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"};
  const char *text = getenv("OTEL_BSP_EXPORT_TIMEOUT");
  uint64_t ms = 30000;

  for (size_t i = 0; i < sizeof(endpoints) / sizeof(*endpoints); i++) {
    const char *url = getenv(endpoints[i]);

    if (url == NULL || url[0] == '\0')
      continue;
    /* The worker reports a wrong value. */
    if (text != NULL)
      (void)tnk__text_u64(text, INT32_MAX, &ms);
    return (int64_t)(ms + 999) / 1000;
  }
  return 0;
}

static int run(cli_t *cli) {
  const cli_workers_t how = {.n = args.workers,
                             .host = args.host,
                             .port = args.port,
                             .end_s = args.linger_s + args.drain_s + flush_s(),
                             .watches_stdin = args.exit_with_stdin,
                             .run = run_one};
  const cli_follow_t follow = {
      .path = args.datums,
      .ca_file = args.record_ca,
      .cert_file = args.record_cert,
      .key_file = args.record_key,
      .only_rewarded = args.only_rewarded,
      .has_no_marks = args.has_no_marks,
      .state = args.state,
      .quiet_ms = (uint64_t)(args.quiet_s >= 0 ? args.quiet_s : 60) * 1000};

  if (args.follows)
    return cli_follow_run(cli, &follow);
  if (args.datums != NULL && tnk__gw_is_where(args.datums))
    return cli_datums_run(cli, &follow);
  if (args.datums != NULL || args.atif != NULL)
    return print_record(cli);
  return args.workers > 0 ? cli_workers_run(cli, &how) : run_one(cli, NULL);
}

static const cli_item_t endpoints[] = {
    {"POST /v1/chat/completions", "As OpenAI's, streamed or not."},
    {"POST /v1/completions", "Completes a string or token ids."},
    {"POST /v1/responses", "As OpenAI's: items and functions."},
    {"POST /v1/messages", "As Anthropic's."},
    {"GET /v1/models", "The one model. GET /v1/models/NAME too."},
    {"GET /healthz", "200, or 503 if a restart is needed: the record cannot be "
                     "written, or the service has ended the session. /health "
                     "is the same. These and /readyz need no key."},
    {"GET /readyz", "200 if requests can be served; 503 without weights, after "
                    "a signal, and when /healthz has 503."},
    {"GET /metrics", "Metrics for Prometheus. Needs the admin key, if there is "
                     "a key."},
    {"/tnk/...", "The following ones need the admin key, if there is a key."},
    {"POST /tnk/reward",
     "{\"id\": ID, \"reward\": 1}: sets the reward of an answer; without an "
     "id, of the latest one of the session."},
    {"GET /tnk/datums", "The record, as --datums prints it; with ?rewarded=1 "
                        "only examples with a reward."},
    {"POST /tnk/sessions",
     "{\"session\": NAME, \"max_tokens\": N, ...}: creates a key for one "
     "session, as tnk gateway keys does. GET lists the keys, DELETE "
     "/tnk/sessions/ID revokes one, and "
     "POST /tnk/sessions/ID/rotate replaces its secret."},
    {"POST /tnk/sampler",
     "{\"model_path\": PATH}: uses these weights for new requests."},
    {NULL, NULL}};

static const cli_item_t variables[] = {
    {"OTEL_EXPORTER_OTLP_ENDPOINT",
     "URL of a collector of OpenTelemetry, such as http://127.0.0.1:4318, to "
     "which traces and metrics are exported. Default: no export. "
     "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and _METRICS_ENDPOINT set one alone, "
     "with the whole path."},
    {"OTEL_EXPORTER_OTLP_HEADERS",
     "Headers of these requests, such as api-key=SECRET,name=value. They are "
     "never logged."},
    {"OTEL_EXPORTER_OTLP_COMPRESSION",
     "gzip, or none (default). _TIMEOUT and _CERTIFICATE are read too, and "
     "_PROTOCOL must be http/protobuf."},
    {"OTEL_SERVICE_NAME",
     "Name of the service in the data (tnk-gateway). OTEL_RESOURCE_ATTRIBUTES "
     "adds attributes."},
    {"OTEL_TRACES_SAMPLER",
     "Which traces are exported: parentbased_always_on (default), always_off, "
     "traceidratio and so on, with OTEL_TRACES_SAMPLER_ARG."},
    {"OTEL_METRIC_EXPORT_INTERVAL",
     "Milliseconds between two exports of metrics (60000). OTEL_BSP_* sets the "
     "queue of spans. OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none and "
     "OTEL_METRICS_EXPORTER=none switch exports off."},
    {NULL, NULL}};

static const cli_section_t sections[] = {
    {"Environment", NULL, variables},
    {"Endpoints",
     "A session is named by the prefix /s/NAME of each path, by the header "
     "X-Tnk-Session, or by :NAME at the end of the key.",
     endpoints},
    {NULL, NULL, NULL}};

static const cli_item_t examples[] = {
    {"tnk gateway --model tnk/byte-lm --record agent.jsonl",
     "serve and record, with TINKER_BASE_URL set to a tnk local"},
    {"tnk gateway keys create --url http://127.0.0.1:8001 --session run-7",
     "create a key for one run of an agent"},
    {"tnk gateway --datums agent.jsonl --rewarded >data.jsonl",
     "print the recorded turns as training data"},
    {"tnk gateway --datums valkey://127.0.0.1/run-7 --follow --rewarded",
     "print them while gateways record, session by session"},
    {NULL, NULL}};

static const cli_command_t *const commands[] = {&cli_gateway_keys, NULL};

const cli_command_t cli_gateway = {
    .name = "gateway",
    .brief = "serve a model to agents, and record each token",
    .about = "Serve a model with the APIs of OpenAI and Anthropic. Each "
             "sampled token is recorded with its logprob. The next turn of a "
             "conversation continues from the sampled tokens. Prints the "
             "address when it listens. After Ctrl-C or SIGTERM it accepts no "
             "more requests, finishes those in progress, and exits with status "
             "0. The key of the service is never sent to clients.",
    .options = options,
    .sections = sections,
    .examples = examples,
    .failed = "It could not serve.",
    .is_server = 1,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run,
    .commands = commands,
};
