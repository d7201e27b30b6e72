/*
 * The switches of `tnk local`. The table of them is the parser and the help, so
 * that neither can know one that the other does not.
 */
#include "cli/args.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/nearest.h"
#include "local/http/http.h"
#include "tnk/error.h"

typedef struct {
  cli_local_args_t *args;
  const char *name;
  const char *value;
  char *why;
  size_t n_why;
} parse_t;

static int refuse(const parse_t *p, const char *what) {
  snprintf(p->why, p->n_why, "%s: \"%s\" %s", p->name,
           p->value != NULL ? p->value : "", what);
  return -1;
}

static int number_from(const parse_t *p, uint64_t min, uint64_t max,
                       uint64_t *out) {
  char what[64];
  uint64_t value;

  if (tnk__text_u64(p->value, max, &value) == TNK_OK && value >= min) {
    *out = value;
    return 0;
  }
  snprintf(what, sizeof(what), "is not a number from %llu to %llu",
           (unsigned long long)min, (unsigned long long)max);
  return refuse(p, what);
}

static int number(const parse_t *p, uint64_t max, uint64_t *out) {
  return number_from(p, 0, max, out);
}

static int size(const parse_t *p, size_t *out) {
  uint64_t value;

  if (number(p, SIZE_MAX / 16, &value) != 0)
    return -1;
  *out = (size_t)value;
  return 0;
}

/* name=value, or a name alone for true. */
static int add_flag(const parse_t *p, const char *name, size_t n_name,
                    const char *value) {
  cli_local_args_t *args = p->args;
  size_t n = args->server.n_flags;

  if (n == CLI_MAX_FLAGS || n_name == 0 || n_name >= sizeof(args->values[0]))
    return refuse(p, "is not a flag, or there are too many");
  /* A copy, because the name ends at a '=' in argv, which stays as it is. */
  memcpy(args->values[n], name, n_name);
  args->values[n][n_name] = '\0';
  args->flags[n] = (tnk_pair_t){args->values[n], value};
  args->server.flags = args->flags;
  args->server.n_flags = n + 1;
  return 0;
}

static int set_flag(const parse_t *p) {
  size_t n = strcspn(p->value, "=");

  return add_flag(p, p->value, n,
                  p->value[n] == '=' ? p->value + n + 1 : "true");
}

static int set_port(const parse_t *p) {
  uint64_t port;

  if (number(p, 65535, &port) != 0)
    return -1;
  p->args->server.port = (int)port;
  return 0;
}

static int set_host(const parse_t *p) {
  /* The one name that needs no look-up. */
  p->args->server.host =
      strcmp(p->value, "localhost") == 0 ? "127.0.0.1" : p->value;
  return 0;
}

static int set_key(const parse_t *p) {
  p->args->server.api_key = p->value;
  return p->value[0] != '\0' ? 0 : refuse(p, "is empty");
}

static int set_tokens(const parse_t *p) {
  return number(p, 31536000, &p->args->server.token_life_s);
}

static int set_link_life(const parse_t *p) {
  return number_from(p, 1, 604800, &p->args->server.link_life_s);
}

static int set_data(const parse_t *p) {
  p->args->server.data = p->value;
  return p->value[0] != '\0' ? 0 : refuse(p, "is empty");
}

static int set_model_dir(const parse_t *p) {
  p->args->server.model_dir = p->value;
  return p->value[0] != '\0' ? 0 : refuse(p, "is empty");
}

static int set_latency(const parse_t *p) {
  return number(p, 3600000, &p->args->server.latency_ms);
}

static int set_hold(const parse_t *p) {
  return number(p, 3600000, &p->args->server.hold_ms);
}

static int set_timeout(const parse_t *p) {
  return number(p, UINT32_MAX, &p->args->server.session_timeout_ms);
}

static int set_sequence(const parse_t *p) {
  if (strcmp(p->value, "buffered") == 0)
    p->args->server.sequence = LOCAL_BUFFERED;
  else if (strcmp(p->value, "lenient") == 0)
    p->args->server.sequence = LOCAL_LENIENT;
  else if (strcmp(p->value, "strict") == 0)
    p->args->server.sequence = LOCAL_STRICT;
  else
    return refuse(p, "is neither buffered, lenient nor strict");
  return 0;
}

static int set_members(const parse_t *p) {
  if (strcmp(p->value, "any") == 0)
    p->args->server.members = LOCAL_MEMBERS_ANY;
  else if (strcmp(p->value, "strict") == 0)
    p->args->server.members = LOCAL_MEMBERS_STRICT;
  else
    return refuse(p, "is neither any nor strict");
  return 0;
}

static int set_threads(const parse_t *p) {
  uint64_t n;

  if (number_from(p, 1, 8, &n) != 0)
    return -1;
  p->args->server.n_threads = (unsigned)n;
  return 0;
}

static int set_metadata(const parse_t *p) {
  return size(p, &p->args->server.metadata_from);
}

static int set_max_body(const parse_t *p) {
  return size(p, &p->args->server.max_body);
}

static int set_max_connections(const parse_t *p) {
  uint64_t n;

  if (number_from(p, 1, SIZE_MAX / 16, &n) != 0)
    return -1;
  p->args->server.max_connections = (size_t)n;
  p->args->stub_max_connections = (size_t)n;
  return 0;
}

static int set_full(const parse_t *p) {
  static const char *const modes[] = {[LOCAL_FULL_WAIT] = "wait",
                                      [LOCAL_FULL_CLOSE] = "close",
                                      [LOCAL_FULL_RESET] = "reset",
                                      [LOCAL_FULL_503] = "503"};

  for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
    if (strcmp(p->value, modes[i]) == 0) {
      p->args->server.full = (local_full_t)i;
      return 0;
    }
  return refuse(p, "is neither wait, close, reset nor 503");
}

static int set_max_streams(const parse_t *p) {
  uint64_t n;

  if (!local_http_has_h2())
    return refuse(p, "is of HTTP/2, and this tnk was built without nghttp2");
  if (number_from(p, 1, 65535, &n) != 0)
    return -1;
  p->args->server.max_streams = (uint32_t)n;
  return 0;
}

static int set_tls_cert(const parse_t *p) {
  p->args->server.tls_cert = p->value;
  return p->value[0] != '\0' ? 0 : refuse(p, "is empty");
}

static int set_tls_key(const parse_t *p) {
  p->args->server.tls_key = p->value;
  return p->value[0] != '\0' ? 0 : refuse(p, "is empty");
}

static int set_max_pending(const parse_t *p) {
  return size(p, &p->args->server.max_pending);
}

static int set_max_chunk(const parse_t *p) {
  static const char name[] = "fwdbwd_max_chunk_len";
  size_t n;

  return size(p, &n) != 0 ? -1 : add_flag(p, name, sizeof(name) - 1, p->value);
}

static int set_max_chunk_bytes(const parse_t *p) {
  static const char name[] = "fwdbwd_max_chunk_bytes_count";
  size_t n;

  return size(p, &n) != 0 ? -1 : add_flag(p, name, sizeof(name) - 1, p->value);
}

static int set_json(const parse_t *p) {
  p->args->server.json_results = 1;
  return 0;
}

static int set_stdin(const parse_t *p) {
  p->args->exit_with_stdin = 1;
  return 0;
}

static int set_stub(const parse_t *p) {
  p->args->stub = 1;
  return 0;
}

static int set_faults(const parse_t *p) {
  /* Read here only to be refused with the other arguments; the server reads the
   * text again. It is large for a stack. */
  static local_fault_spec_t spec;
  char why[480];

  p->args->faults = p->value;
  if (local_fault_spec_read(&spec, p->value, why, sizeof(why)) == 0)
    return 0;
  snprintf(p->why, p->n_why, "%s: %s", p->name, why);
  return -1;
}

static int set_fault_log(const parse_t *p) {
  p->args->fault_log = p->value;
  return p->value[0] != '\0' ? 0 : refuse(p, "is empty");
}

static int set_fault_control(const parse_t *p) {
  p->args->fault_control = 1;
  return 0;
}

static int set_spread(const parse_t *p) {
  return number(p, 3600000, &p->args->stub_spread_ms);
}

static int set_cut(const parse_t *p) {
  return number(p, 3600000, &p->args->stub_cut_ms);
}

static int set_verbose(const parse_t *p) {
  p->args->verbose = 1;
  return 0;
}

static int set_help(const parse_t *p) {
  p->args->help = 1;
  return 0;
}

/* Which of the two servers knows a switch. */
typedef enum { MODEL_ONLY = 0, BOTH, STUB_ONLY } of_t;

typedef struct {
  const char *name;
  const char *value; /* its name in the help; NULL: the switch has none */
  int (*set)(const parse_t *p);
  const char *help;
  of_t of;
} switch_t;

static const switch_t switches[] = {
    {"--port", "N", set_port, "port to listen on; 0 takes a free one (0)",
     BOTH},
    {"--host", "ADDRESS", set_host,
     "numeric address, or localhost (127.0.0.1); others than\n"
     "loopback ones need --api-key",
     BOTH},
    {"--tls-cert", "FILE", set_tls_cert,
     "serve https with this certificate, in PEM or DER, and\n"
     "what leads to its authority; TLS 1.2 and, built with\n"
     "Mbed TLS 3.6, 1.3. Clients find it trustworthy by\n"
     "SSL_CERT_FILE=FILE if it has signed itself",
     BOTH},
    {"--tls-key", "FILE", set_tls_key,
     "the certificate's key, without passphrase", BOTH},
    {"--api-key", "KEY", set_key,
     "refuse requests whose X-API-Key is another; clients\n"
     "want it to begin with \"tml-\"",
     MODEL_ONLY},
    {"--tokens", "SECONDS", set_tokens,
     "clients must exchange the key for tokens, which live\n"
     "so long; 0 not (0)",
     MODEL_ONLY},
    {"--data", "DIR", set_data,
     "keep checkpoints here; without it they go at the end", MODEL_ONLY},
    {"--model-dir", "DIR", set_model_dir,
     "write the model's tokenizer here, and give the model\n"
     "this directory's name, which clients that load the\n"
     "tokenizer of a model by its name can then do",
     MODEL_ONLY},
    {"--link-life", "SECONDS", set_link_life,
     "how long links to files of external weights are good\n"
     "(900)",
     MODEL_ONLY},
    {"--sequence", "MODE", set_sequence,
     "the kind of server to resemble, in what it makes of\n"
     "numbers, repeats, failures and polls: buffered\n"
     "(default), lenient or strict (below)",
     MODEL_ONLY},
    {"--members", "MODE", set_members,
     "members that protocol 0.25 did not have: any (default)\n"
     "takes them, strict answers 422, as a server of that\n"
     "age does that reads its requests strictly",
     MODEL_ONLY},
    {"--latency-ms", "N", set_latency, "results appear no earlier (0)", BOTH},
    {"--hold-ms", "N", set_hold,
     "how long a poll without a result is held (20000)", BOTH},
    {"--session-timeout-ms", "N", set_timeout,
     "end sessions without a heartbeat for so long; clients\n"
     "send one every 10000, so that less ends those that\n"
     "live; 0 never (300000)",
     MODEL_ONLY},
    {"--json-results", NULL, set_json, "never answer with protobuf",
     MODEL_ONLY},
    {"--metadata-from", "BYTES", set_metadata,
     "tell the size of larger results first; 0 never (0)", MODEL_ONLY},
    {"--max-chunk", "N", set_max_chunk,
     "clients put at most N examples in a "
     "request",
     BOTH},
    {"--max-chunk-bytes", "N", set_max_chunk_bytes, "and at most N bytes",
     BOTH},
    {"--flag", "NAME=VALUE", set_flag,
     "a member of client/config or client/dynamic_config,\n"
     "such as proto_compress_fwdbwd (=true); may be repeated",
     BOTH},
    {"--max-body", "BYTES", set_max_body, "of a request (268435456)",
     MODEL_ONLY},
    {"--max-connections", "N", set_max_connections,
     "at a time, as far as the system's limit of open files\n"
     "allows (4096; of --stub 65536)",
     BOTH},
    {"--full", "MODE", set_full,
     "connections beyond them wait (default) until another\n"
     "one ends, or are refused as at the edge of a network:\n"
     "close or reset as soon as they are made, or 503 to\n"
     "their first request",
     BOTH},
    {"--max-streams", "N", set_max_streams,
     "requests at a time on a connection of HTTP/2 (128)", BOTH},
    {"--max-pending", "N", set_max_pending,
     "requests without a result; more get 429 (16384)", MODEL_ONLY},
    {"--threads", "N", set_threads, "jobs on the thread pool, 1 to 8 (2)",
     MODEL_ONLY},
    {"--stub", NULL, set_stub,
     "canned answers and no model, for measuring clients;\n"
     "takes --host, --port, --tls-*, --latency-ms, --flag,\n"
     "--hold-ms, --max-connections, --full, --max-streams,\n"
     "--fault*",
     BOTH},
    {"--faults", "LIST", set_faults,
     "what goes wrong, such as\n"
     "seed=7,mild=5%,drop_after_commit/optim_step@3,\n"
     "429=1%:ms=20 (below)",
     BOTH},
    {"--fault-log", "FILE", set_fault_log,
     "a line of JSON for each injected fault, appended", BOTH},
    {"--fault-control", NULL, set_fault_control,
     "GET " LOCAL_FAULTS_PATH " lists faults, PUT sets them", BOTH},
    {"--stub-spread-ms", "N", set_spread, "its results come up to N ms later",
     STUB_ONLY},
    {"--stub-cut-ms", "N", set_cut,
     "it breaks the connection of the first poll for each\n"
     "sample, and of every other batched one, after N ms",
     STUB_ONLY},
    {"--exit-with-stdin", NULL, set_stdin,
     "end when the standard input does, so with the parent", BOTH},
    {"--verbose", NULL, set_verbose, "a line for each request on stderr", BOTH},
    {"--help", NULL, set_help, "this text", BOTH},
};

enum { N_SWITCHES = sizeof(switches) / sizeof(*switches) };

static const switch_t *find(const char *name, size_t n) {
  for (size_t i = 0; i < N_SWITCHES; i++)
    if (strlen(switches[i].name) == n && memcmp(switches[i].name, name, n) == 0)
      return &switches[i];
  return NULL;
}

/* The value of argv[*i], which may be in the same argument. 0 or -1. */
static int take_value(parse_t *p, const switch_t *sw, int argc,
                      char *const *argv, int *i) {
  const char *equals = strchr(argv[*i], '=');

  p->name = sw->name;
  if (sw->value == NULL) {
    if (equals == NULL)
      return 0;
    p->value = equals + 1;
    return refuse(p, "is given, but the switch takes no value");
  }
  /* A value may hold more of them: --flag=name=value. */
  if (equals != NULL) {
    p->value = equals + 1;
    return 0;
  }
  if (*i + 1 < argc) {
    p->value = argv[++*i];
    return 0;
  }
  snprintf(p->why, p->n_why, "%s needs a value: %s %s", sw->name, sw->name,
           sw->value);
  return -1;
}

static const char *name_of(size_t i) {
  return switches[i].name;
}

static int refuse_unknown(const char *arg, char *why, size_t n_why) {
  const char *meant = cli_nearest(arg, name_of, N_SWITCHES);

  if (arg[0] != '-')
    snprintf(why, n_why, "it takes no argument, such as \"%s\"", arg);
  else if (meant != NULL)
    snprintf(why, n_why, "there is no switch \"%s\", did you mean \"%s\"?", arg,
             meant);
  else
    snprintf(why, n_why, "there is no switch \"%s\"", arg);
  return -1;
}

/* A switch that would be ignored is a mistake. */
static int check_together(const cli_local_args_t *args, const int *given,
                          char *why, size_t n_why) {
  if (!args->help &&
      (args->server.tls_cert == NULL) != (args->server.tls_key == NULL)) {
    snprintf(why, n_why, "%s",
             args->server.tls_key == NULL ? "--tls-cert needs --tls-key"
                                          : "--tls-key needs --tls-cert");
    return -1;
  }
  for (size_t i = 0; i < N_SWITCHES; i++) {
    if (!given[i] || args->help || switches[i].of == BOTH ||
        (switches[i].of == STUB_ONLY) == args->stub)
      continue;
    snprintf(why, n_why,
             args->stub ? "--stub has no use for %s" : "%s needs --stub",
             switches[i].name);
    return -1;
  }
  return 0;
}

int cli_parse_local(cli_local_args_t *args, int argc, char *const *argv,
                    char *why, size_t n_why) {
  int given[N_SWITCHES] = {0};

  *args = (cli_local_args_t){.server = LOCAL_OPTIONS_INIT};
  for (int i = 0; i < argc; i++) {
    const switch_t *sw = strcmp(argv[i], "-h") == 0
                             ? find("--help", 6)
                             : find(argv[i], strcspn(argv[i], "="));
    parse_t p = {.args = args, .why = why, .n_why = n_why};

    if (sw == NULL)
      return refuse_unknown(argv[i], why, n_why);
    given[sw - switches] = 1;
    if (take_value(&p, sw, argc, argv, &i) != 0 || sw->set(&p) != 0)
      return -1;
  }
  return check_together(args, given, why, n_why);
}

static void print_help_of(const switch_t *sw) {
  char head[40];
  const char *text = sw->help;

  snprintf(head, sizeof(head), "%s%s%s", sw->name, sw->value != NULL ? " " : "",
           sw->value != NULL ? sw->value : "");
  printf("  %-24s", head);
  for (;;) {
    size_t n = strcspn(text, "\n");

    printf("%.*s\n", (int)n, text);
    if (text[n] == '\0')
      return;
    text += n + 1;
    printf("  %-24s", "");
  }
}

static void print_sequence_help(void) {
  static const char text[] =
      "\nEach mode of --sequence resembles one kind of server:\n"
      "  buffered  holds a request until the gap before its number closes; a "
      "repeat\n"
      "            gets the first answer, a failure uses its number up\n"
      "  lenient   runs requests as they come; refuses a name that is taken, "
      "weights\n"
      "            that are loaded into a used model, and a model made from a\n"
      "            checkpoint in one call, so that clients must restore with\n"
      "            create_model and load_weights\n"
      "  strict    runs only the very next number, any other fails with 409; a "
      "request\n"
      "            whose answer was lost cannot be repeated, by any client: "
      "its\n"
      "            result is gone, though it was run\n";

  fputs(text, stdout);
}

static void print_fault_help(void) {
  static const char text[] =
      "\nA fault is NAME[/CALL][=SHARE|@POSITION][:ARGUMENT...], several are "
      "separated\nby commas. CALL is a path below /api/v1, SHARE is like 2% "
      "or 0.02, POSITION\nlike 12, 3-5 or 7-; without either it happens "
      "always. Names:\n"
      "  refuse                   reset connections when they are made\n"
      "  reset:KIND               reset before the request is read\n"
      "  goaway                   hang up before it; goaway:after behind the "
      "answer\n"
      "  drop_after_commit        serve it, but hang up instead of answering\n"
      "  cut_body:BYTES           hang up after so much of the answer\n"
      "  slow_body:BYTES          so many a second\n"
      "  STATUS                   400 to 599; arguments: after (serve it "
      "first);\n"
      "                           json, html or empty; ms=N, s=N, date=N, "
      "rfc850=N\n"
      "                           or asctime=N, when to come back; 409 takes\n"
      "                           expected=N, +N or -N\n"
      "  try_again:STATE          active, paused_capacity, paused_rate_limit, "
      "strange\n"
      "  bad_json, bad_proto      an answer that cannot be read\n"
      "  wrong_type               called text/html\n"
      "  other_answer             that of another request\n"
      "  extra_answer             the right one, twice\n"
      "  duplicate_header:NAME    content-type, content-length, retry-after, "
      "date\n"
      "  oversized:BYTES          announced, and some of it sent\n"
      "  mild, all                any of those a client survives unnoticed; "
      "any\n"
      "seed=N makes another choice of the same shares. Over HTTP/2 the stream "
      "is\nreset, with the code of KIND: refused, calm, cancel, protocol or "
      "http_1_1.\nreset:connection and drop_after_commit:connection take its "
      "neighbours along.\n";

  fputs(text, stdout);
}

void cli_print_local_help(void) {
  printf("usage: tnk local [switches]\n\n"
         "Serve the Tinker API on this machine with a small byte-level model "
         "that\nreally trains. Prints the address when it listens; Ctrl-C "
         "ends it.\n\n");
  for (size_t i = 0; i < N_SWITCHES; i++)
    print_help_of(&switches[i]);
  print_sequence_help();
  print_fault_help();
  printf("\n%s\n",
         local_http_has_h2()
             ? "HTTP/1.1 and HTTP/2 are spoken on the same port: over TLS as "
               "the client\nwants it, else as its first bytes tell."
             : "This tnk was built without nghttp2, and speaks HTTP/1.1 only.");
  printf("\nTo use it:\n"
         "  export TINKER_BASE_URL=http://127.0.0.1:PORT "
         "TINKER_API_KEY=tml-local\n");
}
