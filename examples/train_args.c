#include "train_args.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 64 << 20 };

static const char usage[] =
    "usage: train_text [OPTION ...] [FILE]\n"
    "\n"
    "Train a LoRA adapter on a text, byte by byte, and sample from it before\n"
    "and after. FILE is /usr/share/common-licenses/GPL-3 by default.\n"
    "\n"
    "  --steps N    optimizer steps (100)\n"
    "  --batch N    examples in a step (8)\n"
    "  --length N   tokens in an example (96)\n"
    "  --rank N     rank of the adapter (16)\n"
    "  --lr X       learning rate (0.005)\n"
    "  --model NAME base model (the first that the server offers)\n"
    "  --json       print one JSON object a line\n"
    "  --help       print this\n"
    "\n"
    "With TINKER_BASE_URL or TINKER_API_KEY set it trains there; token ids\n"
    "are then the bytes of the text as well. Otherwise it starts a server of\n"
    "its own (`tnk local`).\n";

static const struct option flags[] = {
    {"steps", required_argument, NULL, 's'},
    {"batch", required_argument, NULL, 'b'},
    {"length", required_argument, NULL, 'n'},
    {"rank", required_argument, NULL, 'r'},
    {"lr", required_argument, NULL, 'l'},
    {"model", required_argument, NULL, 'm'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* A whole number from 1 to `most`; 0 after telling what is wrong. */
static unsigned read_count(const char *text, unsigned most) {
  char *end;
  long value;

  errno = 0;
  value = strtol(text, &end, 10);
  if (*text != '\0' && *end == '\0' && errno == 0 && value >= 1 &&
      value <= (long)most)
    return (unsigned)value;
  fprintf(stderr, "train_text: %s is not a number from 1 to %u\n", text, most);
  return 0;
}

static double read_rate(const char *text) {
  char *end;
  const double value = strtod(text, &end);

  if (*text != '\0' && *end == '\0' && isfinite(value) && value > 0)
    return value;
  fprintf(stderr, "train_text: %s is not a learning rate\n", text);
  return 0;
}

int train_args_read(train_args_t *args, int argc, char **argv) {
  int ok = 1;
  int flag;

  *args = (train_args_t){.steps = 100,
                         .rank = 16,
                         .batch = 8,
                         .length = 96,
                         .learning_rate = 0.005,
                         .file = "/usr/share/common-licenses/GPL-3"};
  while (ok && (flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
    if (flag == 's')
      ok = (args->steps = read_count(optarg, 100000)) > 0;
    else if (flag == 'b')
      ok = (args->batch = read_count(optarg, TRAIN_MAX_BATCH)) > 0;
    else if (flag == 'n')
      ok = (args->length = read_count(optarg, 4095)) > 0;
    else if (flag == 'r')
      ok = (args->rank = read_count(optarg, 256)) > 0;
    else if (flag == 'l')
      ok = (args->learning_rate = read_rate(optarg)) > 0;
    else if (flag == 'm')
      args->model = optarg;
    else if (flag == 'j')
      args->json = 1;
    else if (flag == 'h')
      return fputs(usage, stdout) < 0;
    else
      ok = 0;
  }
  if (ok && optind < argc)
    args->file = argv[optind++];
  if (ok && optind == argc)
    return -1;
  fprintf(stderr, "Try train_text --help.\n");
  return 2;
}

/* A whole file, to be freed; NULL after telling what is wrong. */
static unsigned char *read_file(const char *file, size_t least, size_t *size) {
  FILE *in = fopen(file, "rb");
  unsigned char *bytes = NULL;
  long end = -1;

  if (in != NULL && fseek(in, 0, SEEK_END) == 0)
    end = ftell(in);
  if (end < 0 || fseek(in, 0, SEEK_SET) != 0) {
    fprintf(stderr, "train_text: cannot read %s: %s\n", file, strerror(errno));
  } else if ((size_t)end < least || end > MAX_TEXT) {
    fprintf(stderr, "train_text: %s has %ld bytes; %zu to %d are needed\n",
            file, end, least, MAX_TEXT);
  } else if ((bytes = malloc((size_t)end)) == NULL ||
             fread(bytes, 1, (size_t)end, in) != (size_t)end) {
    fprintf(stderr, "train_text: cannot read %s\n", file);
    free(bytes);
    bytes = NULL;
  }
  if (in != NULL)
    fclose(in);
  *size = bytes != NULL ? (size_t)end : 0;
  return bytes;
}

int train_text_read(train_text_t *text, const char *file, size_t least) {
  unsigned char *bytes = read_file(file, least, &text->size);

  if (bytes == NULL)
    return -1;
  text->size--; /* The last byte is only predicted. */
  text->tokens = calloc(text->size, sizeof(*text->tokens));
  text->targets = calloc(text->size, sizeof(*text->targets));
  text->weights = calloc(text->size, sizeof(*text->weights));
  for (size_t i = 0; text->tokens != NULL && text->targets != NULL &&
                     text->weights != NULL && i < text->size;
       i++) {
    text->tokens[i] = bytes[i];
    text->targets[i] = bytes[i + 1];
    text->weights[i] = 1;
  }
  free(bytes);
  if (text->tokens != NULL && text->targets != NULL && text->weights != NULL)
    return 0;
  fprintf(stderr, "train_text: %s is too large for the memory\n", file);
  train_text_free(text);
  return -1;
}

void train_text_free(train_text_t *text) {
  free(text->tokens);
  free(text->targets);
  free(text->weights);
}
