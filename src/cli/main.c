#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/lint.h"
#include "cli/local.h"
#include "cli/nearest.h"
#include "cli/tokens.h"
#include "tnk/bindings.h"
#include "tnk/version.h"

static void print_help(FILE *to) {
  fprintf(to, "usage: tnk COMMAND [switches]\n\n"
              "  tnk local       serve the Tinker API on this machine\n"
              "  tnk lint FILE   check training data, without sending it\n"
#ifdef CLI_TOKENIZERS
              "  tnk tokenize    text to token ids\n"
              "  tnk detokenize  token ids to text\n"
#endif
              "  tnk version     print the version\n\n"
              "tnk COMMAND --help, or tnk help COMMAND, tells more.\n");
}

static int print_version(int argc, char *const *argv) {
  int is_help = argc > 0 &&
                (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);

  if (is_help) {
    printf("usage: tnk version\n\nPrints the version.\n");
    return 0;
  }
  if (argc > 0) {
    fprintf(stderr,
            "tnk version: it takes no argument, such as \"%s\"\n"
            "Try tnk version --help.\n",
            argv[0]);
    return 2;
  }
  printf("tnk %s (%s%s)\n", TNK_VERSION_STRING,
         tnk_http2_version() != NULL ? "HTTP/2 with nghttp2 "
                                     : "without HTTP/2",
         tnk_http2_version() != NULL ? tnk_http2_version() : "");
  return 0;
}

typedef struct {
  const char *name;
  int (*run)(int argc, char *const *argv);
} command_t;

static const command_t commands[] = {
    {"local", cli_local},       {"lint", cli_lint},
#ifdef CLI_TOKENIZERS
    {"tokenize", cli_tokenize}, {"detokenize", cli_detokenize},
#endif
    {"version", print_version},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(*commands) };

static const char *name_of(size_t i) {
  return commands[i].name;
}

static int run_command(const char *name, int argc, char *const *argv) {
  const char *meant = cli_nearest(name, name_of, N_COMMANDS);

  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i].name, name) == 0)
      return commands[i].run(argc, argv);
  fprintf(stderr, "tnk: there is no command \"%s\"", name);
  if (meant != NULL)
    fprintf(stderr, ", did you mean \"%s\"?", meant);
  fprintf(stderr, "\nTry tnk --help.\n");
  return 2;
}

static int is_help(const char *word) {
  return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
         strcmp(word, "help") == 0;
}

static int run(int argc, char **argv) {
  static char help[] = "--help";
  char *const only_help[] = {help};

  if (argc < 2) {
    /* Nothing was asked for, so that this is a mistake and not an answer. */
    print_help(stderr);
    return 2;
  }
  if (strcmp(argv[1], "--version") == 0)
    return print_version(argc - 2, argv + 2);
  if (!is_help(argv[1]))
    return run_command(argv[1], argc - 2, argv + 2);
  if (argc > 2 && !is_help(argv[2]))
    return run_command(argv[2], 1, only_help);
  print_help(stdout);
  return 0;
}

/* A file that is opened where a standard one is missing would get what we
 * print. libuv aborts when it meets one there. */
static int fill_standard_files(void) {
  int fd;

  do
    fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd < 0)
    return -1;
  close(fd);
  return 0;
}

int main(int argc, char **argv) {
  int status;

  if (fill_standard_files() != 0)
    return 1;
  status = run(argc, argv);
  /* A disk may be full; nobody may take what is cut for the whole. */
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  fprintf(stderr, "tnk: cannot write the output\n");
  return status != 0 ? status : 1;
}
