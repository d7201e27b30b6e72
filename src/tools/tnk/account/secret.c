#include "tools/tnk/account/secret.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

/* Number of empty lines that are accepted. */
enum { MAX_EMPTY = 3 };
/* The codes of special keys, which the terminal does not process in this
 * mode. */
enum { CTRL_C = 3, CTRL_D = 4, BACKSPACE = 8, CTRL_U = 21, DELETE = 127 };

static int is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void trim(cli_secret_t *secret, size_t n) {
  size_t first = 0;

  while (n > 0 && is_blank(secret->text[n - 1]))
    n--;
  while (first < n && is_blank(secret->text[first]))
    first++;
  memmove(secret->text, secret->text + first, n - first);
  secret->text[n - first] = '\0';
}

/* Read byte by byte, so that the rest of the input stays available to other
 * programs. */
cli_secret_end_t cli_secret_read(cli_secret_t *secret) {
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

/* ---- A terminal ---- */

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

static cli_secret_end_t type_line(cli_secret_t *secret, const before_t *before,
                                  int *signal) {
  size_t n = 0;

  for (;;) {
    char c;
    int got = next(before, &c);

    if (got == -2 || (got == 1 && c == CTRL_C)) {
      *signal = got == 1 ? SIGINT : caught;
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

static cli_secret_end_t type_some(cli_secret_t *secret, const char *prompt,
                                  const before_t *before, int *signal) {
  cli_secret_end_t how = CLI_SECRET_READ;

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

cli_secret_end_t cli_secret_type(cli_secret_t *secret, const char *prompt,
                                 int *signal) {
  before_t before;
  cli_secret_end_t how;
  int reason;

  if (begin(&before) != 0)
    return CLI_SECRET_FAILED;
  how = type_some(secret, prompt, &before, signal);
  reason = errno;
  end(&before);
  errno = reason;
  return how;
}
