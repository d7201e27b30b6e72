#ifndef EXAMPLES_TRAIN_ARGS_H
#define EXAMPLES_TRAIN_ARGS_H

#include <stddef.h>

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

/* A whole file, to be freed. Returns NULL after telling what is wrong, also
 * when it holds fewer than `least` bytes. */
unsigned char *train_text_read(const char *file, size_t least, size_t *size);

#endif
