#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/lint.h"
#include "cli/local.h"
#include "cli/tokens.h"
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
              "tnk COMMAND --help tells more.\n");
}

static int is_one_of(const char *word, const char *a, const char *b) {
  return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static int run(int argc, char **argv) {
  if (argc < 2) {
    /* Nothing was asked for, so that this is a mistake and not an answer. */
    print_help(stderr);
    return 2;
  }
  if (strcmp(argv[1], "local") == 0)
    return cli_local(argc - 2, argv + 2);
  if (strcmp(argv[1], "lint") == 0)
    return cli_lint(argc - 2, argv + 2);
#ifdef CLI_TOKENIZERS
  if (strcmp(argv[1], "tokenize") == 0)
    return cli_tokenize(argc - 2, argv + 2);
  if (strcmp(argv[1], "detokenize") == 0)
    return cli_detokenize(argc - 2, argv + 2);
#endif
  if (is_one_of(argv[1], "version", "--version")) {
    printf("tnk %s\n", TNK_VERSION_STRING);
    return 0;
  }
  if (is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
    print_help(stdout);
    return 0;
  }
  fprintf(stderr, "tnk: there is no command \"%s\"\nTry tnk --help.\n",
          argv[1]);
  return 2;
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
