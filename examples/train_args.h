#ifndef EXAMPLES_TRAIN_ARGS_H
#define EXAMPLES_TRAIN_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum { TRAIN_MAX_BATCH = 1024 };

/* The command line of train_text. */
typedef struct {
  unsigned steps;
  unsigned rank;
  unsigned batch;  /* examples a step */
  unsigned length; /* tokens an example */
  double learning_rate;
  int json;
  const char *model; /* NULL: the first that the server offers */
  const char *file;
} train_args_t;

/* Fill in defaults, then read the command line. Returns -1 to go on, or the
 * exit code after --help or after telling what is wrong. */
int train_args_read(train_args_t *args, int argc, char **argv);

/* A text, a token a byte, and what to predict at each of them: the next one. */
typedef struct {
  int32_t *tokens;
  int64_t *targets;
  float *weights; /* 1 for each */
  size_t size;    /* of all three */
} train_text_t;

/* Read a file. Returns 0, or -1 after telling what is wrong, also when it
 * holds fewer than `least` bytes. */
int train_text_read(train_text_t *text, const char *file, size_t least);
void train_text_free(train_text_t *text);

#endif
