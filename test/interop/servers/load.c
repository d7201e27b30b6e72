/* SPDX-License-Identifier: MIT */
/*
 * Samples and training steps at once, and what became of them.
 *
 *   load [--samples N] [--in-flight N] [--steps N] [--depth N]
 *
 * TINKER_BASE_URL and TINKER_API_KEY say where the server is. Prints a line
 * when its clients are made, and in the end one line of JSON.
 */
#include <tnk/script.h>

#include <string.h>

typedef struct {
  long n_samples;
  long in_flight;
  long n_steps;
  long depth; /* of these, so many are under way */
  long n_begun;
  long n_started;
  long n_settled;
  long n_stepped;
  long n_failed;
  uint64_t step_ns; /* when the one under way began */
  uint64_t most_step_ns;
  char text[512]; /* of the first failure */
  tnk_sampling_t *sampling;
  tnk_training_t *training;
} load_t;

static void note(load_t *load, tnk_promise_t *promise, int status) {
  if (status != TNK_OK && load->n_failed++ == 0)
    snprintf(load->text, sizeof(load->text), "%s", tnk_promise_text(promise));
}

/* ---- Samples ---- */

static void on_sample(tnk_promise_t *promise, int status, void *user);

static void start_sample(load_t *load) {
  static const int32_t tokens[] = {72, 101, 108, 108, 111};
  const tnk_model_input_t prompt = {.tokens = tokens, .n_tokens = 5};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.max_tokens = 8;
  params.seed = load->n_started++;
  tnk_then(tnk_sampling_sample(load->sampling, &prompt, &params, NULL),
           on_sample, load);
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  load_t *load = user;

  load->n_settled++;
  note(load, promise, status);
  if (load->n_started < load->n_samples)
    start_sample(load);
}

/* ---- Steps: a pass and an optimizer step ---- */

static void start_step(load_t *load);

static void on_pass(tnk_promise_t *promise, int status, void *user) {
  note(user, promise, status);
}

static void on_step(tnk_promise_t *promise, int status, void *user) {
  load_t *load = user;
  const uint64_t took = uv_hrtime() - load->step_ns;

  if (took > load->most_step_ns)
    load->most_step_ns = took;
  note(load, promise, status);
  load->n_stepped++;
  if (load->n_begun < load->n_steps)
    start_step(load);
}

static void start_step(load_t *load) {
  static const int32_t tokens[] = {72, 101, 108, 108};
  static const int64_t targets[] = {101, 108, 108, 111};
  const tnk_datum_t datum = {.input = {.tokens = tokens, .n_tokens = 4},
                             .targets = targets};

  load->n_begun++;
  load->step_ns = uv_hrtime();
  tnk_then(tnk_training_forward_backward(load->training, &datum, 1, NULL),
           on_pass, load);
  tnk_then(tnk_training_optim_step(load->training, NULL), on_step, load);
}

/* A proxy that restarts refuses connections, so that the service looks as if it
 * had been restarted. It was not, so training goes on with its weights. */
static void on_queue_state(const char *client, tnk_queue_state_t state,
                           const char *reason, void *user) {
  load_t *load = user;

  (void)client;
  (void)reason;
  if (state == TNK_QUEUE_MEMORY_LOST && load->training != NULL)
    (void)tnk_training_go_on(load->training);
}

/* ---- Life ---- */

static int read_args(load_t *load, int argc, char **argv) {
  const struct {
    const char *name;
    long *value;
  } options[] = {{"--samples", &load->n_samples},
                 {"--in-flight", &load->in_flight},
                 {"--steps", &load->n_steps},
                 {"--depth", &load->depth}};
  const size_t n = sizeof(options) / sizeof(options[0]);

  for (int i = 1; i < argc; i += 2) {
    size_t k = 0;
    while (k < n && strcmp(argv[i], options[k].name) != 0)
      k++;
    if (k == n || i + 1 == argc)
      return 0;
    *options[k].value = strtol(argv[i + 1], NULL, 10);
  }
  return 1;
}

static void print_string(const char *text) {
  putchar('"');
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\')
      putchar('\\');
    putchar((unsigned char)*text < ' ' ? ' ' : *text);
  }
  putchar('"');
}

static void print_result(const load_t *load, const tnk_service_t *service,
                         uint64_t began_ns) {
  tnk_stats_t stats = TNK_STATS_INIT;

  tnk_service_stats(&stats, service);
  printf("{\"samples\":%ld,\"steps\":%ld,\"failed\":%ld,\"wall_s\":%.2f,"
         "\"most_step_s\":%.2f,\"connections\":%u,\"retries\":%llu,"
         "\"resubmits\":%llu,\"double_settles\":%llu,\"text\":",
         load->n_settled, load->n_stepped, load->n_failed,
         (double)(uv_hrtime() - began_ns) / 1e9,
         (double)load->most_step_ns / 1e9, stats.max_connections,
         (unsigned long long)stats.n_retries,
         (unsigned long long)stats.n_resubmits,
         (unsigned long long)stats.n_double_settles);
  print_string(load->text);
  printf("}\n");
}

int main(int argc, char **argv) {
  static load_t load = {.n_samples = 100, .in_flight = 100, .depth = 1};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  tnk_service_t *service;
  uint64_t began_ns;

  if (!read_args(&load, argc, argv)) {
    fprintf(stderr, "usage: load [--samples N] [--in-flight N] [--steps N] "
                    "[--depth N]\n");
    return 2;
  }
  options.on_queue_state = on_queue_state;
  options.queue_state_user = &load;
  service = tnk_must_open(&options);
  lora.base_model = sampling.base_model = "tnk/byte-lm";
  load.sampling =
      tnk_must_sampling(tnk_service_create_sampling(service, &sampling));
  load.training = tnk_must_training(tnk_service_create_lora(service, &lora));
  printf("ready\n");
  fflush(stdout);
  began_ns = uv_hrtime();
  while (load.n_begun < load.depth && load.n_begun < load.n_steps)
    start_step(&load);
  while (load.n_started < load.in_flight && load.n_started < load.n_samples)
    start_sample(&load);
  while (load.n_settled < load.n_samples || load.n_stepped < load.n_steps)
    uv_run(uv_default_loop(), UV_RUN_ONCE);
  print_result(&load, service, began_ns);
  return tnk_must_close(service);
}
