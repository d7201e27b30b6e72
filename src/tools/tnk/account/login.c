/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "tnk/rest.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/account/account.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"

/* ---- Secrets ---- */

/* A key as it was entered, with the line end. The caller must wipe it. */
typedef struct {
  char text[TNK__MAX_CREDENTIAL + 2];
} secret_t;

/* The end of the input. */
typedef enum {
  CLI_SECRET_READ = 0,
  CLI_SECRET_NONE,   /* the input ended without a line */
  CLI_SECRET_LONG,   /* longer than any key */
  CLI_SECRET_FAILED, /* see errno */
  CLI_SECRET_SIGNAL  /* see *signal */
} secret_end_t;

/* Number of empty lines that are accepted. */
enum { MAX_EMPTY = 3 };
/* The codes of special keys, which the terminal does not process in this
 * mode. */
enum { CTRL_C = 3, CTRL_D = 4, BACKSPACE = 8, CTRL_U = 21, DELETE = 127 };

static int is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void trim(secret_t *secret, size_t n) {
  size_t first = 0;

  while (n > 0 && is_blank(secret->text[n - 1]))
    n--;
  while (first < n && is_blank(secret->text[first]))
    first++;
  memmove(secret->text, secret->text + first, n - first);
  secret->text[n - first] = '\0';
}

/* Read the first line of the standard input, trimmed. Read byte by byte, so
 * that the rest of the input stays available to other programs. */
static secret_end_t secret_read(secret_t *secret) {
  size_t n = 0;
  char c = '\0';

  while (c != '\n') {
    ssize_t got = read(STDIN_FILENO, &c, 1);

    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return CLI_SECRET_FAILED;
    if (got == 0 && n == 0)
      return CLI_SECRET_NONE;
    if (got == 0)
      break;
    if (n == sizeof(secret->text) - 1)
      return CLI_SECRET_LONG;
    secret->text[n++] = c;
  }
  trim(secret, n);
  return CLI_SECRET_READ;
}

/* ---- Secrets: a terminal ---- */

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { N_SIGNALS = sizeof(numbers) / sizeof(*numbers) };

static volatile sig_atomic_t caught;

static void on_signal(int number) {
  caught = number;
}

/* The settings to restore at the end. */
typedef struct {
  struct termios terminal;
  struct sigaction actions[N_SIGNALS];
  sigset_t mask;
} before_t;

static void end(const before_t *before) {
  (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before->terminal);
  for (size_t i = 0; i < N_SIGNALS; i++)
    sigaction(numbers[i], &before->actions[i], NULL);
  sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

/* The signals are blocked except during the wait. So none can arrive between
 * the check of `caught` and the wait. */
static int begin(before_t *before) {
  struct sigaction action;
  struct termios terminal;
  sigset_t mask;

  if (tcgetattr(STDIN_FILENO, &before->terminal) != 0)
    return -1;
  caught = 0;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  sigemptyset(&mask);
  for (size_t i = 0; i < N_SIGNALS; i++)
    sigaddset(&mask, numbers[i]);
  sigprocmask(SIG_BLOCK, &mask, &before->mask);
  for (size_t i = 0; i < N_SIGNALS; i++)
    sigaction(numbers[i], &action, &before->actions[i]);
  terminal = before->terminal;
  terminal.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | ISIG | IEXTEN);
  terminal.c_cc[VMIN] = 1;
  terminal.c_cc[VTIME] = 0;
  /* TCSAFLUSH drops earlier input, because it was typed with echo. */
  if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal) == 0)
    return 0;
  end(before);
  return -1;
}

/* Returns one byte; 0 at the end of the input, -1 with errno, -2 on a
 * signal. */
static int next(const before_t *before, char *c) {
  for (;;) {
    fd_set set;
    int n;

    FD_ZERO(&set);
    FD_SET(STDIN_FILENO, &set);
    n = pselect(STDIN_FILENO + 1, &set, NULL, NULL, NULL, &before->mask);
    if (caught != 0)
      return -2;
    if (n > 0)
      n = (int)read(STDIN_FILENO, c, 1);
    if (n >= 0 || errno != EINTR)
      return n;
  }
}

static secret_end_t type_line(secret_t *secret, const before_t *before,
                              int *signal) {
  size_t n = 0;

  for (;;) {
    char c;
    int got = next(before, &c);

    if (got == -2 || (got == 1 && c == CTRL_C)) {
      *signal = got == 1 ? SIGINT : (int)caught;
      return CLI_SECRET_SIGNAL;
    }
    if (got < 0)
      return CLI_SECRET_FAILED;
    if (got == 0 || (c == CTRL_D && n == 0))
      return CLI_SECRET_NONE;
    if (c == '\r' || c == '\n' || c == CTRL_D)
      break;
    if (c == BACKSPACE || c == DELETE)
      n -= n > 0;
    else if (c == CTRL_U)
      n = 0;
    else if (n == sizeof(secret->text) - 1)
      return CLI_SECRET_LONG;
    else
      secret->text[n++] = c;
  }
  trim(secret, n);
  return CLI_SECRET_READ;
}

static secret_end_t type_some(secret_t *secret, const char *prompt,
                              const before_t *before, int *signal) {
  secret_end_t how = CLI_SECRET_READ;

  secret->text[0] = '\0';
  for (int i = 0;
       i < MAX_EMPTY && how == CLI_SECRET_READ && secret->text[0] == '\0';
       i++) {
    fputs(prompt, stderr);
    how = type_line(secret, before, signal);
    fputc('\n', stderr);
  }
  return how == CLI_SECRET_READ && secret->text[0] == '\0' ? CLI_SECRET_NONE
                                                           : how;
}

/* Prompt for a line on the terminal that is the standard input, without echo.
 * The prompt is repeated after an empty line. The terminal is restored in every
 * case. */
static secret_end_t secret_type(secret_t *secret, const char *prompt,
                                int *signal) {
  before_t before;
  secret_end_t how;
  int reason;

  if (begin(&before) != 0)
    return CLI_SECRET_FAILED;
  how = type_some(secret, prompt, &before, signal);
  reason = errno;
  end(&before);
  errno = reason;
  return how;
}

/* ---- Login ---- */

/* tnk auth login. */

enum { VERIFY_MS = 30000 };

static int from_pipe;

static const cli_option_t options[] = {
    {.name = "key-stdin",
     .flag = &from_pipe,
     .help = "Read the key from the first line of standard input."},
    {.name = NULL}};

/* ---- Login: the key ---- */

static int is_from_pipe(const cli_t *cli) {
  return from_pipe || cli->n_words > 0;
}

static const char *check(const cli_t *cli) {
  if (cli->n_words > 0 && strcmp(cli->words[0], "-") != 0)
    return "other users can see a key on the command line: use --key-stdin, "
           "and write the key to standard input";
  if (is_from_pipe(cli))
    return NULL;
  if (cli->json)
    return "--json needs --key-stdin";
  return isatty(STDIN_FILENO) ? NULL
                              : "standard input is not a terminal: use "
                                "--key-stdin to read the key "
                                "from it";
}

/* The console suggests this name for the key. */
static void host_name(char *out, size_t n) {
  char name[256] = "";

  if (gethostname(name, sizeof(name) - 1) != 0)
    name[0] = '\0';
  name[strcspn(name, ".")] = '\0';
  if (name[0] == '\0' ||
      strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                   "0123456789-_") != strlen(name))
    snprintf(name, sizeof(name), "unknown");
  snprintf(out, n, "%.100s", name);
}

static void explain(const cli_account_t *account) {
  char host[128];

  host_name(host, sizeof(host));
  if (cli_account_is_hosted(account))
    fprintf(stderr,
            "Create a key at " CLI_CONSOLE
            "?new_key=true&key_name=tinker-cli-%s\nand paste it here.\n",
            host);
  else
    fprintf(stderr, "A key for %s:\n", account->url.text);
}

static int refuse_input(const cli_t *cli, secret_end_t how, int signal) {
  switch (how) {
  case CLI_SECRET_SIGNAL:
    return cli_report(cli, &(cli_problem_t){.status = 128 + signal,
                                            .message = "interrupted"});
  case CLI_SECRET_LONG:
    return cli_fail(cli, CLI_EXIT_FAILED, "the input is too long for a key");
  case CLI_SECRET_FAILED:
    return cli_fail(cli, CLI_EXIT_FILE, "cannot read the key: %s",
                    strerror(errno));
  default:
    return cli_fail(cli, CLI_EXIT_FAILED, "no key was given");
  }
}

static int type_key(const cli_account_t *account, secret_t *secret) {
  secret_end_t how;
  int signal = 0;

  explain(account);
  how = secret_type(secret, "API key (not shown): ", &signal);
  return how == CLI_SECRET_READ ? CLI_EXIT_OK
                                : refuse_input(account->cli, how, signal);
}

static int get_key(const cli_account_t *account, secret_t *secret) {
  secret_end_t how;

  if (!account->url.is_tls && !tnk__url_is_loopback(&account->url))
    cli_note(account->cli, "The key will go to %s in clear text.",
             account->url.text);
  if (!is_from_pipe(account->cli))
    return type_key(account, secret);
  how = secret_read(secret);
  if (how == CLI_SECRET_READ && secret->text[0] == '\0')
    how = CLI_SECRET_NONE;
  return how == CLI_SECRET_READ ? CLI_EXIT_OK
                                : refuse_input(account->cli, how, 0);
}

/* ---- Login: storing ---- */

typedef struct {
  const cli_account_t *account;
  tnk__stored_key_t record;
} login_t;

/* An existing key for the server is not replaced. The user must remove it
 * first. A default key without a server belongs to the hosted service.
 */
static int refuse_second(const cli_account_t *account, const json_t *store) {
  tnk__stored_key_t key;
  char message[400];

  if (tnk__credentials_find(&key, store, &account->url) != TNK__STORED_FOUND ||
      (key.base_url == NULL && !cli_account_is_hosted(account)))
    return CLI_EXIT_OK;
  snprintf(message, sizeof(message), "a key for %.150s is stored: \"%.100s\"",
           account->url.text, key.name);
  return cli_report(account->cli,
                    &(cli_problem_t){.status = CLI_EXIT_FAILED,
                                     .message = message,
                                     .hint = "tnk auth logout removes it."});
}

static int add(json_t *store, void *user) {
  const login_t *login = user;
  const cli_t *cli = login->account->cli;
  int status = refuse_second(login->account, store);

  if (status != CLI_EXIT_OK)
    return status;
  return tnk__credentials_add(store, &login->record) == TNK_OK
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

static int print(const cli_account_t *account, const char *id,
                 const tnk_api_key_t *key) {
  cli_json_t json;

  if (account->cli->json) {
    cli_json_begin(&json);
    tnk__json_put_text(&json.w, "base_url", account->url.text);
    tnk__json_put_text(&json.w, "key_id", id);
    tnk__json_put_text(&json.w, "key_name", key->name);
    tnk__json_put_text(&json.w, "organization", key->organization);
    tnk__json_put_text(&json.w, "email", key->email);
    return cli_json_end(&json, account->cli);
  }
  cli_account_say("Logged in to %s with the key \"%s\".", account->url.text,
                  key->name);
  if (key->email != NULL || key->organization != NULL)
    cli_account_say(
        "Its owner is %s (%s).", key->email != NULL ? key->email : "unknown",
        key->organization != NULL ? key->organization : "no organization");
  return CLI_EXIT_OK;
}

static int store_key(const cli_account_t *account, const char *text,
                     const tnk_api_key_t *key) {
  login_t login = {.account = account};
  json_t *details = NULL;
  char id[32];
  int status;

  snprintf(id, sizeof(id), "%" PRId64, key->id);
  if (key->details != NULL)
    details = json_loads(key->details, 0, NULL);
  login.record = (tnk__stored_key_t){.id = id,
                                     .key = text,
                                     .name = key->name,
                                     .note = key->note,
                                     .base_url = account->url.text,
                                     .details = details};
  status = cli_store_change(account->cli, add, &login);
  json_decref(details);
  if (status != CLI_EXIT_OK)
    return status;
  cli_account_tell_override(account);
  return print(account, id, key);
}

/* ---- Login: the command ---- */

/* Only the entered key may be verified. The output of a credential command must
 * not replace an invalid key. */
static int verify_and_store(const cli_account_t *account, const char *text) {
  tnk_service_options_t service = TNK_SERVICE_OPTIONS_INIT;
  tnk_promise_t *promise;
  cli_ask_t ask;
  int status;

  unsetenv("TINKER_CREDENTIAL_CMD");
  service.api_key = text;
  service.base_url = account->url.text;
  service.timeout_ms = VERIFY_MS;
  service.max_retries = UINT32_MAX;
  status = cli_ask_open(&ask, account->cli, &service);
  if (status == CLI_EXIT_OK) {
    promise = tnk_rest_get_api_key(ask.service);
    status = cli_ask_wait(&ask, promise) == TNK_OK
                 ? store_key(account, text,
                             tnk_page_api_key(tnk_promise_page(promise), 0))
                 : cli_ask_failed(&ask, promise);
    tnk_promise_unref(promise);
  }
  return cli_ask_close(&ask, status);
}

static int login(const cli_account_t *account) {
  secret_t secret;
  int status = refuse_second(account, account->store);

  if (status != CLI_EXIT_OK)
    return status;
  status = get_key(account, &secret);
  if (status == CLI_EXIT_OK)
    status = verify_and_store(account, secret.text);
  tnk__wipe(&secret, sizeof(secret));
  return status;
}

static int run(cli_t *cli) {
  cli_account_t account;
  int status = cli_account_open(&account, cli);

  if (status == CLI_EXIT_OK)
    status = login(&account);
  cli_account_close(&account);
  return status;
}

const cli_command_t cli_auth_login = {
    .name = "login",
    .brief = "verify a key and store it",
    .about = "Ask for a key without showing it, verify it with the service, "
             "and store it in ~/.tinker/credentials.json. The key is bound to "
             "the URL of the service and is not sent to others. You can store "
             "keys of several services; the Python client uses the first one.",
    .words = "[-]",
    .options = options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .check = check,
    .run = run,
};
