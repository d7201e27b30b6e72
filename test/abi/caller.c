/* SPDX-License-Identifier: MIT */
/*
 * Uses every sized struct of the public headers once, with a server, and writes
 * a line "STRUCT CODE" for each. Compiled against headers in which each struct
 * has one member more, `grown`, and with GROWN, every call is made before with
 * that member set, which is a line "STRUCT grown CODE"; see run.py.
 *
 * Each struct ends where its memory ends: a library that takes it for a larger
 * one dies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tnk/chat.h>
#include <tnk/gateway.h>
#include <tnk/tnk.h>
#include <tnk/tokenizers.h>
#include <unistd.h>
#include <uv.h>

static tnk_service_t *service;
static tnk_hub_t *hub;
static tnk_promise_t *last;
static char why[512];

static void *at_the_end(const void *value, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  if (size > page || pages == MAP_FAILED ||
      mprotect(pages + page, page, PROT_NONE) != 0)
    exit(2);
  return memcpy(pages + page - size, value, size);
}

static int settle(tnk_promise_t *promise) {
  int status = tnk_wait(promise);

  tnk_promise_unref(last);
  last = promise;
  snprintf(why, sizeof(why), "%s", tnk_promise_text(promise));
  return status;
}

static void tell(const char *type, const char *when, int status) {
  printf("%s%s %s\n", type, when, tnk_err_name(status));
  if (status != TNK_OK && when[0] == '\0')
    fprintf(stderr, "%s: %s\n", type, why);
}

#define MAKE(type, name, init)                                                 \
  const type name##_init = init;                                               \
  type *name = at_the_end(&name##_init, sizeof(type))
#ifdef GROWN
#define TRY(type, name, call)                                                  \
  do {                                                                         \
    name->grown = name;                                                        \
    tell(#type, " grown", call);                                               \
    name->grown = NULL;                                                        \
    tell(#type, "", call);                                                     \
  } while (0)
/* A library that does not know the member sets it to zero. */
#define TRY_OUT(type, name, call)                                              \
  do {                                                                         \
    name->grown = name;                                                        \
    tell(#type, " grown", call);                                               \
    tell(#type, "", name->grown == NULL ? TNK_OK : TNK_EINVAL);                \
  } while (0)
#else
#define TRY(type, name, call) tell(#type, "", call)
#define TRY_OUT(type, name, call) tell(#type, "", call)
#endif

static const int32_t ids[] = {'a', 'b', 'c'};
static const int64_t targets[] = {'b', 'c', 'd'};
static const tnk_model_input_t prompt = {.tokens = ids, .n_tokens = 3};

/* ---- The service and its clients ---- */

static int open_service(const tnk_service_options_t *options) {
  return tnk_service_open(&service, uv_default_loop(), options, why,
                          sizeof(why));
}

/* The server of the test runs no losses of its clients, and that it is asked at
 * all is what counts. */
static int settle_loss(const tnk_loss_options_t *options) {
  int status = settle(tnk_service_create_loss(service, options));

  return status == TNK_EUNSUPPORTED ? TNK_OK : status;
}

/* The server of the test has no chat; the same. */
static int settle_hosted(const tnk_hosted_request_t *request) {
  int status = settle(tnk_service_hosted(service, request));

  return status == TNK_ENOTFOUND ? TNK_OK : status;
}

static void ask_chat(void) {
  MAKE(tnk_hosted_request_t, hosted, TNK_HOSTED_REQUEST_INIT);

  hosted->body = "{}";
  TRY(tnk_hosted_request_t, hosted, settle_hosted(hosted));
}

static void make_loss(void) {
  static const tnk_loss_argument_t argument = {.name = "logprobs"};
  MAKE(tnk_loss_options_t, loss, TNK_LOSS_OPTIONS_INIT);

  loss->name = "nothing";
  loss->arguments = &argument;
  loss->n_arguments = 1;
  loss->graph = "{\"format\":1,\"nodes\":[{\"op\":\"placeholder\",\"name\":"
                "\"x\",\"target\":\"logprobs\",\"args\":[],\"kwargs\":{}},{"
                "\"op\":\"output\",\"name\":\"output\",\"target\":\"output\","
                "\"args\":[],\"kwargs\":{}}]}";
  TRY(tnk_loss_options_t, loss, settle_loss(loss));
}

static void measure(void) {
  static const float logprobs[] = {-1, -2};
  MAKE(tnk_drift_t, drift, TNK_DRIFT_INIT);

  TRY_OUT(tnk_drift_t, drift, tnk_rl_drift(drift, logprobs, logprobs, NULL, 2));
}

static int make_plan(const tnk_plan_options_t *options) {
  tnk_plan_t *plan;
  int status = tnk_plan_new(&plan, options, why, sizeof(why));

  tnk_plan_free(plan);
  return status;
}

/* A member that the library does not know gives no rate. */
static int find_rate(const tnk_schedule_t *schedule) {
  const double rate = tnk_schedule_rate(schedule, 0);

  return rate == schedule->peak ? TNK_OK : TNK_ENOTSUP;
}

static void plan(void) {
  MAKE(tnk_plan_options_t, options, TNK_PLAN_OPTIONS_INIT);
  MAKE(tnk_schedule_t, schedule, TNK_SCHEDULE_INIT);

  options->n_examples = 9;
  options->n_batch = 2;
  TRY(tnk_plan_options_t, options, make_plan(options));
  schedule->peak = 0.5;
  TRY(tnk_schedule_t, schedule, find_rate(schedule));
}

static tnk_training_t *train(void) {
  const tnk_datum_t datum = {.input = prompt, .targets = targets};
  tnk_training_t *training;
  MAKE(tnk_lora_options_t, lora, TNK_LORA_OPTIONS_INIT);
  MAKE(tnk_pass_options_t, pass, TNK_PASS_OPTIONS_INIT);
  MAKE(tnk_eval_options_t, eval, TNK_EVAL_OPTIONS_INIT);
  MAKE(tnk_optim_t, optim, TNK_OPTIM_INIT);
  MAKE(tnk_training_info_t, info, TNK_TRAINING_INFO_INIT);

  lora->base_model = "tnk/byte-lm";
  lora->rank = 4;
  TRY(tnk_lora_options_t, lora, settle(tnk_service_create_lora(service, lora)));
  training = tnk_promise_training(last);
  pass->loss_fn = "cross_entropy";
  TRY(tnk_pass_options_t, pass,
      settle(tnk_training_forward_backward(training, &datum, 1, pass)));
  TRY(tnk_eval_options_t, eval,
      settle(tnk_training_evaluate(training, &datum, 1, eval)));
  ask_chat();
  make_loss();
  measure();
  plan();
  optim->learning_rate = 0.01;
  TRY(tnk_optim_t, optim, settle(tnk_training_optim_step(training, optim)));
  TRY_OUT(tnk_training_info_t, info, tnk_training_info(info, training));
  return info->lora_rank == 4 ? training : NULL;
}

/* Of what was saved. */
static void copy(const char *path) {
  MAKE(tnk_copy_options_t, copy, TNK_COPY_OPTIONS_INIT);

  copy->path = path;
  copy->project_id = "p";
  TRY(tnk_copy_options_t, copy, settle(tnk_rest_copy_weights(service, copy)));
}

/* An export, to a directory that is removed again. */
static void take_home(tnk_training_t *training) {
  MAKE(tnk_weights_options_t, weights, TNK_WEIGHTS_OPTIONS_INIT);
  char folder[] = "/tmp/tnk-abi-XXXXXX";
  char target[64];
  char path[256];

  if (mkdtemp(folder) == NULL || settle(tnk_training_save_weights_external(
                                     training, "out", NULL)) != TNK_OK)
    return;
  snprintf(path, sizeof(path), "%s", tnk_promise_path(last));
  snprintf(target, sizeof(target), "%s/out", folder);
  weights->force = TNK_YES;
  TRY(tnk_weights_options_t, weights,
      settle(tnk_weights_download(service, path, target, weights)));
  snprintf(path, sizeof(path), "%s/adapter_config.json", target);
  unlink(path);
  snprintf(path, sizeof(path), "%s/adapter_model.safetensors", target);
  unlink(path);
  rmdir(target);
  rmdir(folder);
}

static void save_and_load(tnk_training_t *training) {
  MAKE(tnk_save_options_t, save, TNK_SAVE_OPTIONS_INIT);
  MAKE(tnk_load_options_t, load, TNK_LOAD_OPTIONS_INIT);
  MAKE(tnk_restore_options_t, restore, TNK_RESTORE_OPTIONS_INIT);
  MAKE(tnk_path_t, parts, TNK_PATH_INIT);
  char path[256];

  save->overwrite = TNK_YES;
  TRY(tnk_save_options_t, save,
      settle(tnk_training_save_state(training, "one", save)));
  snprintf(path, sizeof(path), "%s", tnk_promise_path(last));
  TRY_OUT(tnk_path_t, parts, tnk_path_parse(parts, path));
  load->path = path;
  TRY(tnk_load_options_t, load,
      settle(tnk_training_load_state(training, load)));
  copy(path);
  take_home(training);
  restore->path = path;
  TRY(tnk_restore_options_t, restore,
      settle(tnk_service_restore(service, restore)));
}

static tnk_ledger_t *ledger;

/* Of one that is open already the lock goes in the next turn of the loop. */
static int open_ledger(const char *folder,
                       const tnk_ledger_options_t *options) {
  char run[512];
  int status;

  tnk_ledger_close(ledger, NULL, NULL);
  settle(tnk_service_health(service));
  snprintf(run, sizeof(run), "%s/run", folder);
  status = settle(tnk_ledger_open(service, run, options));
  ledger = tnk_promise_ledger(last);
  return status;
}

static void keep_ledger(tnk_training_t *training, const char *folder) {
  MAKE(tnk_ledger_options_t, options, TNK_LEDGER_OPTIONS_INIT);
  MAKE(tnk_ledger_save_t, save, TNK_LEDGER_SAVE_INIT);
  MAKE(tnk_ledger_resume_t, resume, TNK_LEDGER_RESUME_INIT);

  options->run = "abi";
  TRY(tnk_ledger_options_t, options, open_ledger(folder, options));
  save->with_sampler = TNK_YES;
  TRY(tnk_ledger_save_t, save, settle(tnk_ledger_save(ledger, training, save)));
  resume->with_optimizer = TNK_NO;
  TRY(tnk_ledger_resume_t, resume, settle(tnk_ledger_resume(ledger, resume)));
}

static void sample(void) {
  tnk_sampling_t *sampling;
  MAKE(tnk_sampling_options_t, options, TNK_SAMPLING_OPTIONS_INIT);
  MAKE(tnk_sampling_params_t, params, TNK_SAMPLING_PARAMS_INIT);
  MAKE(tnk_sample_options_t, extras, TNK_SAMPLE_OPTIONS_INIT);
  MAKE(tnk_sample_stream_options_t, stream, TNK_SAMPLE_STREAM_OPTIONS_INIT);
  MAKE(tnk_logprobs_options_t, logprobs, TNK_LOGPROBS_OPTIONS_INIT);

  options->base_model = "tnk/byte-lm";
  TRY(tnk_sampling_options_t, options,
      settle(tnk_service_create_sampling(service, options)));
  sampling = tnk_promise_sampling(last);
  params->max_tokens = 2;
  TRY(tnk_sampling_params_t, params,
      settle(tnk_sampling_sample(sampling, &prompt, params, NULL)));
  extras->n_samples = 2;
  TRY(tnk_sample_options_t, extras,
      settle(tnk_sampling_sample(sampling, &prompt, params, extras)));
  stream->silence_ms = 60000;
  TRY(tnk_sample_stream_options_t, stream,
      settle(tnk_sampling_sample_stream(sampling, &prompt, params, stream)));
  logprobs->last_n = 1;
  TRY(tnk_logprobs_options_t, logprobs,
      settle(tnk_sampling_compute_logprobs(sampling, &prompt, logprobs)));
}

static void list(void) {
  MAKE(tnk_list_options_t, list, TNK_LIST_OPTIONS_INIT);
  MAKE(tnk_search_options_t, search, TNK_SEARCH_OPTIONS_INIT);

  list->limit = 1;
  TRY(tnk_list_options_t, list, settle(tnk_rest_list_runs(service, list)));
  search->limit = 1;
  TRY(tnk_search_options_t, search,
      settle(tnk_rest_search_sessions(service, search)));
}

/* ---- Hubs and tokenizers ---- */

static int open_any(void **tokenizer, const char *path,
                    const tnk_pair_t *overrides, size_t n_overrides,
                    const tnk_allocator_t *allocator, char *text, size_t size) {
  (void)path;
  (void)overrides;
  (void)n_overrides;
  (void)allocator;
  (void)text;
  (void)size;
  *tokenizer = &service;
  return TNK_OK;
}

static void close_any(void *tokenizer) {
  (void)tokenizer;
}

static int encode_any(const void *tokenizer, const char *text, size_t n,
                      unsigned flags, tnk_take_ids_cb take, void *user,
                      char *reason, size_t size) {
  (void)tokenizer;
  (void)text;
  (void)flags;
  (void)reason;
  (void)size;
  return take(ids, n, user);
}

static int encode(const tnk_tokenizer_plugin_t *plugin) {
  tnk_prompt_t *made;
  int err = tnk_prompt_from_text(&made, plugin, &service, "ab", 2, 0, NULL, why,
                                 sizeof(why));

  tnk_prompt_free(made);
  return err;
}

/* A rank file: a line with base64 and a rank for each byte. */
static int read_ranks(const tnk_tokenizer_options_t *options) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  tnk_tokenizer_t *tokenizer = NULL;
  tnk_tokenizer_error_t error;
  char lines[4096];
  size_t n = 0;
  int err;

  for (int byte = 0; byte < 256; byte++)
    n += (size_t)snprintf(lines + n, sizeof(lines) - n, "%c%c== %d\n",
                          digits[byte >> 2], digits[(byte & 3) << 4], byte);
  err = tnk_tokenizer_load_memory(&tokenizer, lines, n, options, &error);
  snprintf(why, sizeof(why), "%s", error.text);
  tnk_tokenizer_unref(tokenizer);
  return err;
}

/* ---- Conversations ---- */

static int open_template(tnk_chat_template_t **of,
                         const tnk_chat_template_options_t *options) {
  tnk_chat_error_t error;
  int err;

  tnk_chat_template_unref(*of);
  err = tnk_chat_template_open(of, NULL, 0, options, &error);
  snprintf(why, sizeof(why), "%s", error.text);
  return err;
}

static int write_text(const tnk_chat_template_t *of,
                      const tnk_chat_options_t *options) {
  tnk_chat_t *chat = tnk_chat_new(NULL);
  tnk_chat_error_t error;
  char *text;
  int err;

  tnk_chat_add(chat, "user", "Hi", NULL);
  err = tnk_chat_text(&text, NULL, of, chat, options, &error);
  snprintf(why, sizeof(why), "%s", error.text);
  tnk_chat_free_text(chat, text);
  tnk_chat_free(chat);
  return err;
}

static void converse(void) {
  tnk_chat_template_t *of = NULL;
  MAKE(tnk_chat_template_options_t, how, TNK_CHAT_TEMPLATE_OPTIONS_INIT);
  MAKE(tnk_chat_options_t, options, TNK_CHAT_OPTIONS_INIT);

  TRY(tnk_chat_template_options_t, how, open_template(&of, how));
  options->generation_prompt = TNK_YES;
  TRY(tnk_chat_options_t, options, write_text(of, options));
  tnk_chat_template_unref(of);
}

/* ---- The gateway ---- */

static int open_gateway(tnk_gateway_t **of,
                        const tnk_gateway_options_t *options) {
  tnk_gateway_close(*of, NULL, NULL);
  *of = NULL;
  return tnk_gateway_open(of, uv_default_loop(), service, options, why,
                          sizeof(why));
}

static int create_key(tnk_gateway_t *of,
                      const tnk_gateway_key_options_t *options) {
  char key[TNK_GATEWAY_KEY_SIZE];

  return tnk_gateway_key_create(of, options, key, sizeof(key), NULL, 0);
}

static void use_gateway(void) {
  tnk_gateway_t *of = NULL;
  MAKE(tnk_gateway_key_options_t, limits, TNK_GATEWAY_KEY_OPTIONS_INIT);
  MAKE(tnk_gateway_options_t, options, TNK_GATEWAY_OPTIONS_INIT);
  MAKE(tnk_gateway_stats_t, stats, TNK_GATEWAY_STATS_INIT);

  options->tokenizer.plugin = tnk_chat_bytes_plugin();
  options->key = "key";
  TRY(tnk_gateway_options_t, options, open_gateway(&of, options));
  TRY(tnk_gateway_key_options_t, limits, create_key(of, limits));
  TRY_OUT(tnk_gateway_stats_t, stats, tnk_gateway_stats(stats, of));
  tnk_gateway_close(of, NULL, NULL);
}

/* ---- The exporter ---- */

/* No variable asks for an export, so there is none. */
static int open_otlp(tnk_otlp_t **otlp, const tnk_otlp_options_t *options) {
  return tnk_otlp_open(otlp, uv_default_loop(), options, why, sizeof(why));
}

static void use_otlp(void) {
  tnk_otlp_t *otlp = NULL;
  MAKE(tnk_otlp_options_t, options, TNK_OTLP_OPTIONS_INIT);
  MAKE(tnk_otlp_stats_t, stats, TNK_OTLP_STATS_INIT);

  TRY(tnk_otlp_options_t, options, open_otlp(&otlp, options));
  TRY_OUT(tnk_otlp_stats_t, stats, tnk_otlp_stats(stats, otlp));
  tnk_otlp_close(otlp, NULL, NULL);
}

/* ---- The hub ---- */

static int open_hub(const tnk_hub_options_t *options) {
  return tnk_hub_open(&hub, uv_default_loop(), options, why, sizeof(why));
}

/* Its options are read before it is seen that the hub is offline. */
static int push_offline(const char *folder, const tnk_push_options_t *push) {
  const int status = settle(tnk_hub_push(hub, folder, push));

  return status == TNK_EINVAL && strstr(why, "offline") != NULL ? TNK_OK
                                                                : status;
}

/* `folder` is one that may be written to; a download goes there, and a file of
 * the cache and a tokenizer are found there. */
static void use_hub(const char *folder, const char *url) {
  static const char *const files[] = {"tokenizer.any", NULL};
  char to[512], from[512];
  MAKE(tnk_hub_options_t, options, TNK_HUB_OPTIONS_INIT);
  MAKE(tnk_download_options_t, download, TNK_DOWNLOAD_OPTIONS_INIT);
  MAKE(tnk_hub_file_options_t, file, TNK_HUB_FILE_OPTIONS_INIT);
  MAKE(tnk_push_options_t, push, TNK_PUSH_OPTIONS_INIT);
  MAKE(tnk_tokenizer_plugin_t, plugin, TNK_TOKENIZER_PLUGIN_INIT);
  MAKE(tnk_hub_tokenizer_options_t, which, TNK_HUB_TOKENIZER_OPTIONS_INIT);
  MAKE(tnk_tokenizer_options_t, how, TNK_TOKENIZER_OPTIONS_INIT);

  options->cache_dir = folder;
  options->offline = TNK_YES;
  TRY(tnk_hub_options_t, options, open_hub(options));
  snprintf(to, sizeof(to), "%s/healthz", folder);
  snprintf(from, sizeof(from), "%s/api/v1/healthz", url);
  download->max_bytes = 1000;
  TRY(tnk_download_options_t, download,
      settle(tnk_hub_download(hub, from, to, download)));
  file->revision = "0123456789012345678901234567890123456789";
  TRY(tnk_hub_file_options_t, file,
      settle(tnk_hub_file(hub, "a/b", "tokenizer.any", file)));
  push->checkpoint = "tinker://run/weights/final";
  TRY(tnk_push_options_t, push, push_offline(folder, push));
  plugin->name = "any";
  plugin->main_files = files;
  plugin->open = open_any;
  plugin->close = close_any;
  plugin->encode = encode_any;
  TRY(tnk_tokenizer_plugin_t, plugin, encode(plugin));
  which->directory = folder;
  TRY(tnk_hub_tokenizer_options_t, which,
      settle(tnk_hub_tokenizer(hub, plugin, "a/b", which)));
  how->format = TNK_TOKENIZER_TIKTOKEN;
  TRY(tnk_tokenizer_options_t, how, read_ranks(how));
}

int main(int argc, char **argv) {
  tnk_training_t *training;
  MAKE(tnk_service_options_t, options, TNK_SERVICE_OPTIONS_INIT);
  MAKE(tnk_stats_t, stats, TNK_STATS_INIT);
  MAKE(tnk_totals_t, totals, TNK_TOTALS_INIT);
  MAKE(tnk_budget_t, budget, TNK_BUDGET_INIT);

  if (argc != 3)
    return 2;
  options->base_url = argv[2];
  options->api_key = "tml-local";
  TRY(tnk_service_options_t, options, open_service(options));
  training = train();
  if (training == NULL)
    return 3;
  save_and_load(training);
  keep_ledger(training, argv[1]);
  sample();
  list();
  TRY_OUT(tnk_stats_t, stats, tnk_service_stats(stats, service));
  TRY(tnk_budget_t, budget,
      tnk_service_set_budget(service, budget, why, sizeof(why)));
  TRY_OUT(tnk_totals_t, totals, tnk_service_totals(totals, service));
  converse();
  use_gateway();
  use_otlp();
  use_hub(argv[1], argv[2]);
  tnk_promise_unref(last);
  tnk_hub_close(hub, NULL, NULL);
  tnk_service_close(service, NULL, NULL);
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT) != 0 ? 4 : 0;
}
