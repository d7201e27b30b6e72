/* SPDX-License-Identifier: MIT */
/* The options of `tnk local`. */
#include "tools/tnk/serve/args.h"

#include <stdio.h>
#include <string.h>

#include "server/http.h"
#include "tools/common/frame/cli.h"

enum { MAX_FLAGS = 64, HOUR_MS = 3600000 };

/* The options as given. Missing numbers and choices are -1. */
static struct {
  const char *host, *tls_cert, *tls_key, *api_key, *data, *model_dir, *model;
  const char *tokenizer;
  const char *faults, *fault_log, *sample_log, *stub_answers;
  int64_t port, tokens, link_life, latency_ms, hold_ms, session_timeout_ms,
      metadata_from;
  int64_t max_chunk, max_chunk_bytes, max_body, max_connections, max_streams;
  int64_t max_pending, threads, vocab, stub_spread_ms, stub_cut_ms;
  int64_t drain_s;
  int sequence, members, archive, full;
  int json_results, stub, fault_control, exit_with_stdin, verbose;
  tnk_pair_t flags[MAX_FLAGS];
  char names[MAX_FLAGS][256]; /* names of flags, without '=' and value */
  char numbers[2][24];        /* values of flags that are also options */
  size_t n_flags;
} given = {.port = -1,
           .tokens = -1,
           .link_life = -1,
           .latency_ms = -1,
           .hold_ms = -1,
           .session_timeout_ms = -1,
           .metadata_from = -1,
           .max_chunk = -1,
           .max_chunk_bytes = -1,
           .max_body = -1,
           .max_connections = -1,
           .max_streams = -1,
           .max_pending = -1,
           .threads = -1,
           .vocab = -1,
           .stub_spread_ms = -1,
           .stub_cut_ms = -1,
           .drain_s = 30,
           .sequence = -1,
           .members = -1,
           .archive = -1,
           .full = -1};

/* name=value; a name without a value means true. */
static int set_flag(const cli_option_t *option, const char *value, char *why,
                    size_t n_why) {
  size_t n = given.n_flags;
  size_t n_name = strcspn(value, "=");

  (void)option;
  /* Two places are reserved for flags that are also options. */
  if (n == MAX_FLAGS - 2 || n_name == 0 || n_name >= sizeof(given.names[0])) {
    snprintf(why, n_why, "must be NAME=VALUE, at most 62 times");
    return -1;
  }
  /* The name is copied, because argv must not be changed. */
  memcpy(given.names[n], value, n_name);
  given.names[n][n_name] = '\0';
  given.flags[n] = (tnk_pair_t){
      given.names[n], value[n_name] == '=' ? value + n_name + 1 : "true"};
  given.n_flags = n + 1;
  return 0;
}

static int set_faults(const cli_option_t *option, const char *value, char *why,
                      size_t n_why) {
  /* Parsed here only to report errors with the other arguments; the server
   * parses the string again. Static, because it is large. */
  static local_fault_spec_t spec;
  char reason[480];

  (void)option;
  given.faults = value;
  if (local_fault_spec_read(&spec, value, reason, sizeof(reason)) == 0)
    return 0;
  snprintf(why, n_why, "is invalid: %s", reason);
  return -1;
}

static const char *const sequences[] = {[LOCAL_BUFFERED] = "buffered",
                                        [LOCAL_LENIENT] = "lenient",
                                        [LOCAL_STRICT] = "strict",
                                        NULL};
static const char *const members[] = {
    [LOCAL_MEMBERS_ANY] = "any", [LOCAL_MEMBERS_STRICT] = "strict", NULL};
static const char *const archives[] = {[LOCAL_ARCHIVE_REDIRECT] = "redirect",
                                       [LOCAL_ARCHIVE_JSON] = "json",
                                       [LOCAL_ARCHIVE_NONE] = "none",
                                       NULL};
static const char *const fulls[] = {[TNK__SRV_FULL_WAIT] = "wait",
                                    [TNK__SRV_FULL_CLOSE] = "close",
                                    [TNK__SRV_FULL_RESET] = "reset",
                                    [TNK__SRV_FULL_503] = "503",
                                    NULL};

enum { MAX_SIZE_BITS = 58 };
#define MAX_SIZE ((int64_t)1 << MAX_SIZE_BITS)

const cli_option_t cli_local_options[] = {
    {.name = "port",
     .value = "N",
     .number = &given.port,
     .max = 65535,
     .help = "Port to listen on. 0 selects a free one (0)."},
    {.name = "host",
     .value = "ADDRESS",
     .text = &given.host,
     .help = "Numeric address, or localhost (127.0.0.1). An address that "
             "is not loopback needs --api-key."},
    {.name = "tls-cert",
     .value = "FILE",
     .text = &given.tls_cert,
     .offer = CLI_OFFER_FILES,
     .help = "Serve https with this certificate and its chain, in PEM or "
             "DER. TLS 1.2; with Mbed TLS 3.6 also TLS 1.3. Clients "
             "trust a self-signed certificate with SSL_CERT_FILE=FILE."},
    {.name = "tls-key",
     .value = "FILE",
     .text = &given.tls_key,
     .offer = CLI_OFFER_FILES,
     .help = "The certificate's key, without passphrase."},
    {.name = "api-key",
     .value = "KEY",
     .text = &given.api_key,
     .help = "Reject requests with another X-API-Key. Clients expect a "
             "key that begins with \"tml-\"."},
    {.name = "tokens",
     .value = "SECONDS",
     .number = &given.tokens,
     .max = 31536000,
     .help = "Clients must exchange the key for tokens that expire after "
             "this time. 0: no tokens (0)."},
    {.name = "data",
     .value = "DIR",
     .text = &given.data,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Keep checkpoints, usage and the audit log in this "
             "directory. Without it they are deleted at the end."},
    {.name = "model-dir",
     .value = "DIR",
     .text = &given.model_dir,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Write the model's tokenizer to this directory, and name "
             "the model after it, so that clients can load the tokenizer "
             "by the model's name."},
#ifdef CLI_TOKENIZERS
    {.name = "tokenizer",
     .value = "PATH",
     .text = &given.tokenizer,
     .offer = CLI_OFFER_FILES,
     .help = "Use this tokenizer's token ids, as with --vocab, and name "
             "the model after its directory. A directory with "
             "tokenizer.json, tiktoken.model or a SentencePiece model, "
             "or one of these files."},
#endif
    {.name = "model",
     .value = "NAME",
     .text = &given.model,
     .help = "Name of the base model, such as Qwen/Qwen3-8B, for "
             "programs that accept only known models."},
    {.name = "link-life",
     .value = "SECONDS",
     .number = &given.link_life,
     .min = 1,
     .max = 604800,
     .help = "Links to files of external weights expire after this time "
             "(900)."},
    {.name = "archive",
     .value = "MODE",
     .choice = &given.archive,
     .choices = archives,
     .help = "How the archive call of clients up to 0.25 is answered: "
             "redirect (default), json, or none."},
    {.name = "sequence",
     .value = "MODE",
     .choice = &given.sequence,
     .choices = sequences,
     .help = "Which kind of server to imitate for sequence numbers, "
             "repeated requests, failures and polls: buffered (default), "
             "lenient or strict (see below)."},
    {.name = "members",
     .value = "MODE",
     .choice = &given.members,
     .choices = members,
     .help = "Members of requests that protocol 0.25 does not have: any "
             "(default) accepts them, strict answers 422."},
    {.name = "latency-ms",
     .value = "N",
     .number = &given.latency_ms,
     .max = HOUR_MS,
     .help = "Minimum time between a request and its result (0)."},
    {.name = "hold-ms",
     .value = "N",
     .number = &given.hold_ms,
     .max = HOUR_MS,
     .help = "How long a poll without a result is held (20000)."},
    {.name = "session-timeout-ms",
     .value = "N",
     .number = &given.session_timeout_ms,
     .max = UINT32_MAX,
     .help = "End a session after this time without a heartbeat. Clients "
             "send one every 10000 ms. 0: never (300000)."},
    {.name = "json-results",
     .flag = &given.json_results,
     .help = "Never answer with protobuf."},
    {.name = "metadata-from",
     .value = "BYTES",
     .number = &given.metadata_from,
     .max = MAX_SIZE,
     .help = "Send the size of larger results before the results. 0: "
             "never (0)."},
    {.name = "max-chunk",
     .value = "N",
     .number = &given.max_chunk,
     .max = MAX_SIZE,
     .help = "Clients send at most N examples per request."},
    {.name = "max-chunk-bytes",
     .value = "N",
     .number = &given.max_chunk_bytes,
     .max = MAX_SIZE,
     .help = "Clients send at most N bytes per request."},
    {.name = "flag",
     .value = "NAME=VALUE",
     .set = set_flag,
     .help = "Add a member to client/config or client/dynamic_config, "
             "such as proto_compress_fwdbwd (=true). May be repeated."},
    {.name = "max-body",
     .value = "BYTES",
     .number = &given.max_body,
     .max = MAX_SIZE,
     .help = "Maximum size of a request (268435456)."},
    {.name = "max-connections",
     .value = "N",
     .number = &given.max_connections,
     .min = 1,
     .max = MAX_SIZE,
     .help = "Maximum number of connections, within the limit of open "
             "files (4096; with --stub 65536)."},
    {.name = "full",
     .value = "MODE",
     .choice = &given.full,
     .choices = fulls,
     .help = "What happens to further connections: wait (default) until "
             "another one ends, close or reset at once, or 503 to their "
             "first request."},
    {.name = "max-streams",
     .value = "N",
     .number = &given.max_streams,
     .min = 1,
     .max = 65535,
     .help = "Maximum number of concurrent requests on an HTTP/2 "
             "connection (128)."},
    {.name = "max-pending",
     .value = "N",
     .number = &given.max_pending,
     .max = MAX_SIZE,
     .help = "Maximum number of requests without a result. More get 429 "
             "(16384)."},
    {.name = "threads",
     .value = "N",
     .number = &given.threads,
     .min = 1,
     .max = 8,
     .help = "Number of jobs that run on the thread pool at once, 1 to 8 "
             "(2)."},
    {.name = "vocab",
     .value = "N",
     .number = &given.vocab,
     .min = 258,
     .max = 16777216,
     .help = "Accept token ids from 0 to N-1, for the tokenizer of "
             "another model. The model stays small: ids that differ by a "
             "multiple of 258 get equal probabilities. Stop sequences "
             "must then be ids (258)."},
    {.name = "stub",
     .flag = &given.stub,
     .help = "Send canned answers without a model, to measure clients. "
             "Allows --host, --port, --tls-*, --latency-ms, --flag, "
             "--hold-ms, --max-connections, --full, --max-streams, "
             "--fault*, --sample-log and --drain-s."},
    {.name = "faults",
     .value = "LIST",
     .set = set_faults,
     .help = "Faults to inject, such as "
             "seed=7,mild=5%,goaway/optim_step@3,429=1%:ms=20 (see "
             "below)."},
    {.name = "fault-log",
     .value = "FILE",
     .text = &given.fault_log,
     .offer = CLI_OFFER_FILES,
     .help = "Append a line of JSON for each injected fault."},
    {.name = "fault-control",
     .flag = &given.fault_control,
     .help =
         "Serve GET " LOCAL_FAULTS_PATH ", which lists the faults, and PUT, "
         "which sets them."},
    {.name = "sample-log",
     .value = "FILE",
     .text = &given.sample_log,
     .offer = CLI_OFFER_FILES,
     .help = "Append a line of JSON for each sampled sequence, before "
             "its result can be fetched: request_id, index, weights, "
             "prompt, tokens, logprobs, stop_reason. A result whose line "
             "cannot be written is not sent."},
    {.name = "stub-answers",
     .value = "FILE",
     .text = &given.stub_answers,
     .offer = CLI_OFFER_FILES,
     .help = "Answers of the stub, one per line, used in turn: a string "
             "in JSON, whose bytes are the tokens, or a list of token "
             "ids. max_tokens truncates them. - reads standard input."},
    {.name = "stub-spread-ms",
     .value = "N",
     .number = &given.stub_spread_ms,
     .max = HOUR_MS,
     .help = "Delay each result of the stub by a random time up to N ms."},
    {.name = "stub-cut-ms",
     .value = "N",
     .number = &given.stub_cut_ms,
     .max = HOUR_MS,
     .help = "Close the connection of the first poll for each sample, "
             "and of every other batched poll, after N ms."},
    {.name = "drain-s",
     .value = "N",
     .number = &given.drain_s,
     .max = 86400,
     .help = "Seconds to wait for work in progress after a signal (30). "
             "A second signal ends at once."},
    {.name = "exit-with-stdin",
     .flag = &given.exit_with_stdin,
     .help = "Exit when standard input ends, and so when the parent "
             "process does."},
    {.name = "verbose",
     .letter = 'v',
     .flag = &given.verbose,
     .help = "Log each request to standard error."},
    {.name = NULL}};

/* ---- Combinations ---- */

static int is_given(const cli_option_t *option) {
  return option->number != NULL   ? *option->number >= 0
         : option->choice != NULL ? *option->choice >= 0
         : option->text != NULL   ? *option->text != NULL
         : option->flag != NULL   ? *option->flag
                                  : 0;
}

/* Options that only one of the two servers supports. */
static const char *const model_only[] = {"api-key",
                                         "tokens",
                                         "data",
                                         "model-dir",
                                         "model",
                                         "tokenizer",
                                         "sequence",
                                         "members",
                                         "archive",
                                         "link-life",
                                         "session-timeout-ms",
                                         "json-results",
                                         "metadata-from",
                                         "max-body",
                                         "max-pending",
                                         "threads",
                                         "vocab",
                                         NULL};
static const char *const stub_only[] = {"stub-spread-ms", "stub-cut-ms",
                                        "stub-answers", NULL};

/* The first of them that was given, or NULL. */
static const char *first_given(const char *const *names) {
  for (; *names != NULL; names++)
    for (const cli_option_t *option = cli_local_options; option->name != NULL;
         option++)
      if (strcmp(option->name, *names) == 0 && is_given(option))
        return *names;
  return NULL;
}

/* An option that would be ignored is an error. */
const char *cli_local_check(const cli_t *cli) {
  static char why[80];
  const char *name;

  (void)cli;
  if (given.tls_cert != NULL && given.tls_key == NULL)
    return "--tls-cert needs --tls-key";
  if (given.tls_key != NULL && given.tls_cert == NULL)
    return "--tls-key needs --tls-cert";
  if (given.max_streams >= 0 && !tnk__srv_has_h2())
    return "--max-streams needs HTTP/2, and this tnk was built without nghttp2";
  if (given.tokenizer != NULL && given.model_dir != NULL)
    return "either --tokenizer or --model-dir";
  if (given.tokenizer != NULL && given.vocab >= 0)
    return "either --tokenizer or --vocab";
  name = first_given(given.stub ? model_only : stub_only);
  if (name == NULL)
    return NULL;
  snprintf(why, sizeof(why),
           given.stub ? "--stub does not support --%.40s"
                      : "--%.40s needs --stub",
           name);
  return why;
}

static void add_number_flag(int i, const char *name, int64_t value) {
  if (value < 0)
    return;
  snprintf(given.numbers[i], sizeof(given.numbers[i]), "%lld",
           (long long)value);
  given.flags[given.n_flags++] = (tnk_pair_t){name, given.numbers[i]};
}

static void put_limits(local_options_t *server) {
  if (given.max_body >= 0)
    server->max_body = (size_t)given.max_body;
  if (given.max_connections >= 0)
    server->max_connections = (size_t)given.max_connections;
  if (given.full >= 0)
    server->full = (tnk__srv_full_t)given.full;
  if (given.max_streams >= 0)
    server->max_streams = (uint32_t)given.max_streams;
  if (given.max_pending >= 0)
    server->max_pending = (size_t)given.max_pending;
  if (given.threads >= 0)
    server->n_threads = (unsigned)given.threads;
}

static void put_behavior(local_options_t *server) {
  if (given.tokens >= 0)
    server->token_life_s = (uint64_t)given.tokens;
  if (given.link_life >= 0)
    server->link_life_s = (uint64_t)given.link_life;
  if (given.sequence >= 0)
    server->sequence = (local_sequence_t)given.sequence;
  if (given.archive >= 0)
    server->archive = (local_archive_t)given.archive;
  if (given.members >= 0)
    server->members = (local_members_t)given.members;
  if (given.latency_ms >= 0)
    server->latency_ms = (uint64_t)given.latency_ms;
  if (given.hold_ms >= 0)
    server->hold_ms = (uint64_t)given.hold_ms;
  if (given.session_timeout_ms >= 0)
    server->session_timeout_ms = (uint64_t)given.session_timeout_ms;
  if (given.metadata_from >= 0)
    server->metadata_from = (size_t)given.metadata_from;
  if (given.vocab >= 0)
    server->n_vocab = (int32_t)given.vocab;
  server->json_results = given.json_results;
  server->api_key = given.api_key;
  server->data = given.data;
  server->model_dir = given.model_dir;
  server->model = given.model;
}

void cli_local_args(cli_local_args_t *args) {
  *args = (cli_local_args_t){.server = LOCAL_OPTIONS_INIT,
                             .faults = given.faults,
                             .fault_log = given.fault_log,
                             .sample_log = given.sample_log,
                             .stub_answers = given.stub_answers,
                             .tokenizer = given.tokenizer,
                             .fault_control = given.fault_control,
                             .stub = given.stub,
                             .drain_s = (uint64_t)given.drain_s,
                             .exit_with_stdin = given.exit_with_stdin,
                             .verbose = given.verbose};
  add_number_flag(0, "fwdbwd_max_chunk_len", given.max_chunk);
  add_number_flag(1, "fwdbwd_max_chunk_bytes_count", given.max_chunk_bytes);
  put_limits(&args->server);
  put_behavior(&args->server);
  args->server.flags = given.flags;
  args->server.n_flags = given.n_flags;
  if (given.port >= 0)
    args->server.port = (int)given.port;
  /* The only name that needs no lookup. */
  if (given.host != NULL)
    args->server.host =
        strcmp(given.host, "localhost") == 0 ? "127.0.0.1" : given.host;
  args->server.tls_cert = given.tls_cert;
  args->server.tls_key = given.tls_key;
  if (given.max_connections >= 0)
    args->stub_max_connections = (size_t)given.max_connections;
  if (given.stub_spread_ms >= 0)
    args->stub_spread_ms = (uint64_t)given.stub_spread_ms;
  if (given.stub_cut_ms >= 0)
    args->stub_cut_ms = (uint64_t)given.stub_cut_ms;
}

/* ---- Help ---- */

static const cli_item_t modes[] = {
    {"buffered", "Holds a request until the gap before its number closes. A "
                 "repeated request gets the first answer. A failed request "
                 "uses its number."},
    {"lenient", "Runs requests in the order of their arrival. Rejects a "
                "name that is taken, weights loaded into a used model, and "
                "a model created from a checkpoint in one call: clients "
                "must restore with create_model and load_weights."},
    {"strict", "Runs only the next number; any other fails with 409. A "
               "request cannot be repeated: if its answer was lost, so is "
               "its result, although it ran."},
    {NULL, NULL}};

static const cli_item_t faults[] = {
    {"refuse", "Reset new connections."},
    {"reset:KIND", "Reset the connection before the request is read."},
    {"goaway", "Close the connection before the request; goaway:after "
               "closes it after the answer."},
    {"drop_after_commit",
     "Run the request, and close the connection instead of "
     "answering."},
    {"cut_body:BYTES", "Close the connection after BYTES of the answer."},
    {"slow_body:BYTES", "Send BYTES of the answer per second."},
    {"STATUS", "Answer with this status, 400 to 599. Arguments: after (run "
               "the request first); json, html or empty (the body); ms=N, "
               "s=N, date=N, rfc850=N or asctime=N (when to retry); for "
               "409: expected=N, +N or -N."},
    {"try_again:STATE", "Answer a poll with try_again and this state: active, "
                        "paused_capacity, paused_rate_limit, strange."},
    {"bad_json, bad_proto", "Send an answer that cannot be parsed."},
    {"wrong_type", "Send the answer as text/html."},
    {"other_answer", "Send the answer to another request."},
    {"extra_answer", "Send the answer twice."},
    {"duplicate_header:NAME",
     "Send a header twice: content-type, content-length, "
     "retry-after, date."},
    {"oversized:BYTES", "Announce BYTES and send some of them."},
    {"short_body:BYTES", "Send BYTES fewer than the header announces."},
    {"no_range", "Send a whole file when a part was requested."},
    {"other_range", "Send another part of the file."},
    {"redirect:TO",
     "Redirect the download of a file: origin, same, http, file."},
    {"other_names:KIND",
     "Rename the files of external weights: parent, absolute, "
     "empty, dot, long, other."},
    {"pending", "Report that a trace is not ready."},
    {"mild, all", "mild: a fault that clients survive without an error. all: "
                  "any fault."},
    {NULL, NULL}};

static const cli_item_t variables[] = {
    {"TINKER_BASE_URL",
     "http://127.0.0.1:PORT, the address that the server prints."},
    {"TINKER_API_KEY", "tml-local, or the key of --api-key."},
    {NULL, NULL}};

const cli_section_t cli_local_sections[] = {
    {"Modes of --sequence, each like one kind of server", NULL, modes},
    {"Faults",
     "A fault is NAME[/CALL][=SHARE|@POSITION][:ARGUMENT...]. "
     "Commas separate faults. CALL is a path below /api/v1, the "
     "word files, or the end of the path of a call on a "
     "checkpoint or session, such as archive. SHARE is like 2% "
     "or 0.02, POSITION like 12, 3-5 or 7-. Without them the "
     "fault always happens. A share in percent may also follow "
     "the arguments, as in reset:connection=0.2%. seed=N selects "
     "other requests for the same shares. Over HTTP/2 the stream "
     "is reset with the code of KIND: refused, calm, cancel, "
     "protocol or http_1_1. reset:connection and "
     "drop_after_commit:connection close the whole connection, "
     "with all of its requests.",
     faults},
    {"Clients use it with", NULL, variables},
    {NULL, NULL, NULL}};
