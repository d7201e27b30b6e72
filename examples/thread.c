/*
 * A program without a loop: a runtime runs one on a thread of its own, and any
 * thread may ask it for completions and block until they come.
 *
 *   thread PROMPT ...      completes each prompt, all at the same time
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "local_server.h"

enum { MAX_PROMPTS = 64, MAX_PROMPT = 1024, ANSWER_TOKENS = 40 };

/* Used on the runtime's thread only. */
static tnk_service_t *service;
static tnk_promise_t *sampler;

/* One prompt on its way: filled in by the asking thread, answered by the
 * runtime's. The semaphore hands it over and back. */
typedef struct {
  tnk_runtime_t *runtime;
  uv_thread_t thread;
  uv_sem_t answered;
  const char *prompt;
  char answer[ANSWER_TOKENS + 1];
  char why[256]; /* Empty when all went well. */
} question_t;

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  question_t *question = user;
  const int32_t *tokens;
  size_t n = 0;

  tokens = tnk_samples_tokens(tnk_promise_samples(promise), 0, &n);
  for (size_t i = 0; i < n && i < ANSWER_TOKENS; i++)
    question->answer[i] =
        (char)(tokens[i] >= ' ' && tokens[i] < 127 ? tokens[i] : '.');
  if (status != TNK_OK)
    snprintf(question->why, sizeof(question->why), "%s",
             tnk_promise_text(promise));
  uv_sem_post(&question->answered);
}

/* The sampling client is there, or never will be. */
static void on_sampler(tnk_promise_t *promise, int status, void *user) {
  question_t *question = user;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  int32_t tokens[MAX_PROMPT];
  const size_t n = strlen(question->prompt);
  const tnk_model_input_t prompt = {.tokens = tokens, .n_tokens = n};

  if (status != TNK_OK) {
    on_sample(promise, status, user);
    return;
  }
  for (size_t i = 0; i < n; i++)
    tokens[i] = (unsigned char)question->prompt[i];
  params.max_tokens = ANSWER_TOKENS;
  tnk_then(tnk_sampling_sample(tnk_promise_sampling(promise), &prompt, &params,
                               NULL),
           on_sample, question);
}

/* Runs on the runtime's thread: from here on it is like any other program on
 * a loop. The first question opens the service, which all share. */
static void ask(uv_loop_t *loop, void *user) {
  question_t *question = user;
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  if (service == NULL) {
    if (tnk_service_open(&service, loop, NULL, question->why,
                         sizeof(question->why)) != TNK_OK) {
      uv_sem_post(&question->answered);
      return;
    }
    options.base_model = "tnk/byte-lm";
    sampler = tnk_service_create_sampling(service, &options);
  }
  tnk_then(tnk_promise_ref(sampler), on_sampler, question);
}

static void forget_sampler(uv_loop_t *loop, void *user) {
  (void)loop;
  (void)user;
  tnk_promise_unref(sampler);
}

/* A thread of the program: it asks and waits, as if the call blocked. */
static void ask_and_wait(void *user) {
  question_t *question = user;

  if (tnk_runtime_post(question->runtime, ask, question) != TNK_OK)
    snprintf(question->why, sizeof(question->why), "out of memory");
  else
    uv_sem_wait(&question->answered);
}

int main(int argc, char **argv) {
  static question_t questions[MAX_PROMPTS];
  const int n = argc - 1;
  tnk_runtime_t *runtime;
  int failed = 0;

  if (n < 1 || n > MAX_PROMPTS) {
    fprintf(stderr, "usage: thread PROMPT ...   (at most %d)\n", MAX_PROMPTS);
    return 2;
  }
  for (int i = 0; i < n; i++) {
    if (strlen(argv[i + 1]) < MAX_PROMPT)
      continue;
    fprintf(stderr, "thread: a prompt has %d bytes or more\n", MAX_PROMPT);
    return 2;
  }
  if (local_server_unless_set() != 0)
    return 1;
  if (tnk_runtime_start(&runtime) != TNK_OK) {
    fprintf(stderr, "thread: cannot start a runtime\n");
    return 1;
  }
  for (int i = 0; i < n; i++) {
    questions[i].runtime = runtime;
    questions[i].prompt = argv[i + 1];
    if (uv_sem_init(&questions[i].answered, 0) != 0 ||
        uv_thread_create(&questions[i].thread, ask_and_wait, &questions[i]))
      abort();
  }
  for (int i = 0; i < n; i++) {
    uv_thread_join(&questions[i].thread);
    uv_sem_destroy(&questions[i].answered);
    failed |= questions[i].why[0] != '\0';
    printf("%s|%s%s\n", questions[i].prompt, questions[i].answer,
           questions[i].why);
  }
  tnk_runtime_post(runtime, forget_sampler, NULL);
  tnk_runtime_stop(runtime); /* Closes the service as well. */
  return failed;
}
