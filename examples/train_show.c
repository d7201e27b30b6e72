#include "train_show.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { BAR = 30 };

static double seconds_since(uint64_t started_ns) {
  return (double)(uv_hrtime() - started_ns) / 1e9;
}

void train_show_begin(train_show_t *show, unsigned steps, int json) {
  memset(show, 0, sizeof(*show));
  show->json = json;
  show->is_terminal = !json && isatty(STDOUT_FILENO);
  show->steps = steps;
  show->started_ns = uv_hrtime();
}

void train_show_training(train_show_t *show) {
  show->training_ns = uv_hrtime();
}

void train_show_step(train_show_t *show, unsigned done, double loss,
                     size_t tokens) {
  const double seconds = seconds_since(show->training_ns);
  const double rate = (double)tokens * done / seconds;
  const double left = seconds / done * (show->steps - done);
  const int filled = (int)(BAR * done / show->steps);

  if (done == 1)
    show->first_loss = loss;
  show->last_loss = loss;
  if (show->json)
    printf("{\"step\":%u,\"steps\":%u,\"loss\":%.6f,\"tokens_per_s\":%.1f,"
           "\"seconds_left\":%.1f}\n",
           done, show->steps, loss, rate, left);
  else if (show->is_terminal)
    printf("\r[%.*s%*s] %u/%u  loss %.3f  %.0f tokens/s  %.0f s left \033[K",
           filled, "##############################", BAR - filled, "", done,
           show->steps, loss, rate, left);
  else
    printf("step %u/%u  loss %.3f  %.0f tokens/s  %.0f s left\n", done,
           show->steps, loss, rate, left);
  if (show->is_terminal && done == show->steps)
    putchar('\n');
  fflush(stdout);
}

/* One byte of a text, as it is if it is safe to print. */
static void put_byte(int byte, int json) {
  if (json && (byte == '"' || byte == '\\'))
    printf("\\%c", byte);
  else if (byte >= ' ' && byte < 127)
    putchar(byte);
  else if (json)
    printf("\\u%04x", (unsigned)byte & 0xff);
  else
    putchar(byte == '\n' ? '\n' : '.');
}

void train_show_sample(const train_show_t *show, const char *when,
                       const char *prompt, const int32_t *tokens, size_t n) {
  size_t i;

  printf(show->json ? "{\"sample\":\"%s\",\"text\":\"" : "\n--- %s training:\n",
         when);
  for (i = 0; prompt[i] != '\0'; i++)
    put_byte((unsigned char)prompt[i], show->json);
  for (i = 0; i < n; i++)
    put_byte(tokens[i] >= 0 && tokens[i] < 256 ? tokens[i] : '?', show->json);
  printf(show->json ? "\"}\n" : "\n---\n\n");
  fflush(stdout);
}

void train_show_saved(const train_show_t *show, const char *path) {
  fputs(show->json ? "{\"checkpoint\":\"" : "saved ", stdout);
  for (; path != NULL && *path != '\0'; path++)
    put_byte((unsigned char)*path, show->json);
  puts(show->json ? "\"}" : "");
}

static unsigned long long count(uint64_t n) {
  return n;
}

void train_show_end(const train_show_t *show, const tnk_totals_t *used) {
  const double seconds = seconds_since(show->started_ns);

  if (!show->json)
    printf("used: %llu tokens of training, %llu of prompts, %llu sampled; "
           "%llu requests\n",
           count(used->n_trained_tokens), count(used->n_prompt_tokens),
           count(used->n_sampled_tokens), count(used->n_requests));
  printf(show->json ? "{\"loss_first\":%.4f,\"loss_last\":%.4f,\"steps\":%u,"
                      "\"seconds\":%.1f"
                    : "loss_first=%.4f loss_last=%.4f steps=%u seconds=%.1f\n",
         show->first_loss, show->last_loss, show->steps, seconds);
  if (show->json)
    printf(",\"tokens\":{\"trained\":%llu,\"prompt\":%llu,\"sampled\":%llu},"
           "\"requests\":%llu}\n",
           count(used->n_trained_tokens), count(used->n_prompt_tokens),
           count(used->n_sampled_tokens), count(used->n_requests));
}
