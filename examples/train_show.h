#ifndef EXAMPLES_TRAIN_SHOW_H
#define EXAMPLES_TRAIN_SHOW_H

#include <stddef.h>
#include <stdint.h>
#include <tnk/usage.h>

/* How train_text tells what it does: a bar on a terminal, lines in a pipe,
 * JSON lines for machines. */
typedef struct {
  int json;
  int is_terminal;
  unsigned steps;
  uint64_t started_ns;
  uint64_t training_ns; /* when the first step began */
  double first_loss;
  double last_loss;
} train_show_t;

void train_show_begin(train_show_t *show, unsigned steps, int json);
/* The first step begins: rates count from here. */
void train_show_training(train_show_t *show);
/* `done` steps of the training have been taken, `tokens` tokens a step. */
void train_show_step(train_show_t *show, unsigned done, double loss,
                     size_t tokens);
/* A text as sampled: what cannot be printed is shown as a dot. */
void train_show_sample(const train_show_t *show, const char *when,
                       const char *prompt, const int32_t *tokens, size_t n);
void train_show_saved(const train_show_t *show, const char *path);
/* The end, with what was used. */
void train_show_end(const train_show_t *show, const tnk_totals_t *used);

#endif
