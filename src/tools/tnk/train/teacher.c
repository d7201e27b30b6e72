/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/teacher.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/tnk/learn/sampler.h"
#include "tools/tnk/text/chats.h"
#include "tools/tnk/train/args.h"

enum { MAX_PATH = 4096, MAX_TRIES = 10, FEW_TOKENS = 8 };

/* Write a path. Returns whether it fits. */
static int join(char out[MAX_PATH], const char *folder, const char *name) {
  return (size_t)snprintf(out, MAX_PATH, "%s/%s", folder, name) < MAX_PATH;
}

static int is_path(const char *name) {
  return strncmp(name, "tinker://", 9) == 0;
}

static int is_folder(const char *name) {
  struct stat about;

  return stat(name, &about) == 0 && S_ISDIR(about.st_mode);
}

const char *train_teacher_model(const train_teacher_t *teacher) {
  if (teacher != NULL && teacher->client != NULL)
    return tnk_sampling_base_model(teacher->client);
  return is_path(train_args.teacher) || is_folder(train_args.teacher)
             ? NULL
             : train_args.teacher;
}

/* ---- The folder of a run ---- */

/* The last sampler weights of the ledger; NULL: none. */
static char *last_weights(FILE *file) {
  char *found = NULL;
  char *line = NULL;
  size_t room = 0;
  ssize_t n;

  while ((n = getline(&line, &room, file)) > 0) {
    json_t *json = NULL;
    const char *path = tnk__json_parse_object(&json, line, (size_t)n) == TNK_OK
                           ? tnk__json_str(json, "sampler_path")
                           : NULL;

    if (path != NULL) {
      free(found);
      found = strdup(path);
    }
    json_decref(json);
  }
  free(line);
  return found;
}

/* The folder of weights below that of the local server, such as
 * session-1_train_0/sampler_weights/save-1. Returns whether it fits. */
static int folder_of(char out[MAX_PATH], const char *path) {
  const char *rest = strncmp(path, "tinker://", 9) == 0 ? path + 9 : path;
  const size_t n = strlen(rest);

  if (n >= MAX_PATH || strstr(rest, "..") != NULL)
    return 0;
  memcpy(out, rest, n + 1);
  for (size_t i = 0; out[i] != '\0' && out[i] != '/'; i++)
    if (out[i] == ':')
      out[i] = '_';
  return 1;
}

/* Make a folder and its parents below `served`. */
static void make_folders(char *path) {
  for (char *at = path + 1; *at != '\0'; at++)
    if (*at == '/') {
      *at = '\0';
      (void)mkdir(path, 0777);
      *at = '/';
    }
  (void)mkdir(path, 0777);
}

/* The copy appears with its whole contents. */
static int copy_file(const char *from, const char *to) {
  char name[MAX_PATH], bytes[8192];
  FILE *in, *out;
  size_t n;
  int is_ok = 1;

  if ((size_t)snprintf(name, sizeof(name), "%s.new", to) >= sizeof(name))
    return 0;
  in = fopen(from, "rb");
  out = in != NULL ? fopen(name, "wb") : NULL;
  while (out != NULL && is_ok && (n = fread(bytes, 1, sizeof(bytes), in)) > 0)
    is_ok = fwrite(bytes, 1, n, out) == n;
  is_ok = out != NULL && is_ok && !ferror(in);
  if (in != NULL)
    fclose(in);
  if (out != NULL)
    is_ok = (fclose(out) == 0) && is_ok;
  return is_ok && rename(name, to) == 0;
}

/* Copy the files. The server knows weights by their description, which comes
 * last. Returns whether all were copied; errno has the cause. */
static int copy_files(const char *from, const char *to) {
  static const char description[] = "meta.json";
  char source[MAX_PATH], target[MAX_PATH];
  DIR *dir = opendir(from);
  const struct dirent *entry;
  int is_ok = dir != NULL;

  while (is_ok && (entry = readdir(dir)) != NULL)
    if (entry->d_name[0] != '.' && strcmp(entry->d_name, description) != 0)
      is_ok = join(source, from, entry->d_name) &&
              join(target, to, entry->d_name) && copy_file(source, target);
  if (dir != NULL)
    closedir(dir);
  return is_ok && join(source, from, description) &&
         join(target, to, description) && copy_file(source, target);
}

/* Copy the weights from the local server of the teacher's run to that of this
 * run, unless an earlier process has. */
static int bring(const train_teacher_t *teacher, const cli_t *cli,
                 const char *served) {
  char weights[MAX_PATH], from[MAX_PATH], to[MAX_PATH], mark[MAX_PATH];

  errno = ENAMETOOLONG;
  if (folder_of(weights, teacher->path) && join(to, served, weights) &&
      join(mark, to, "meta.json")) {
    if (access(mark, F_OK) == 0)
      return CLI_EXIT_OK;
    make_folders(to);
    if (join(mark, teacher->name, "served") && join(from, mark, weights) &&
        copy_files(from, to))
      return CLI_EXIT_OK;
  }
  return cli_fail(cli, CLI_EXIT_FILE,
                  "--teacher %s: its weights %s cannot be copied: %s",
                  teacher->name, teacher->path, strerror(errno));
}

int train_teacher_find(train_teacher_t *teacher, const cli_t *cli,
                       const char *served) {
  char ledger[MAX_PATH];
  FILE *file;

  *teacher = (train_teacher_t){.name = train_args.teacher};
  if (is_path(teacher->name)) {
    teacher->path = strdup(teacher->name);
    return teacher->path != NULL
               ? CLI_EXIT_OK
               : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  }
  if (!is_folder(teacher->name) ||
      !join(ledger, teacher->name, "checkpoints.jsonl"))
    return CLI_EXIT_OK;
  file = fopen(ledger, "re");
  if (file != NULL) {
    teacher->path = last_weights(file);
    fclose(file);
  }
  if (teacher->path == NULL)
    return cli_fail(cli, CLI_EXIT_FILE,
                    "--teacher %s: this folder has no sampler weights. A run "
                    "saves them after its last step",
                    teacher->name);
  return served != NULL ? bring(teacher, cli, served) : CLI_EXIT_OK;
}

/* ---- The client ---- */

int train_teacher_create(train_teacher_t *teacher, cli_ask_t *ask) {
  tnk_sampling_options_t what = TNK_SAMPLING_OPTIONS_INIT;
  int result = LEARN_LOST;

  if (teacher->path != NULL)
    what.model_path = teacher->path;
  else
    what.base_model = teacher->name;
  for (size_t i = 0; i < MAX_TRIES && result == LEARN_LOST; i++) {
    tnk_promise_t *created = tnk_service_create_sampling(ask->service, &what);
    const int err = cli_ask_wait(ask, created);

    result = CLI_EXIT_OK;
    if (err == TNK_OK)
      teacher->client = tnk_promise_sampling(created);
    else if (err == TNK_ESESSION && i + 1 < MAX_TRIES)
      result = LEARN_LOST;
    else if (teacher->path == NULL)
      result = cli_ask_model_failed(ask, created, teacher->name);
    else
      result = cli_ask_failed_with_hint(
          ask, created,
          "--teacher is the name of a base model, a path of sampler weights, "
          "or the folder of a run.");
    tnk_promise_unref(created);
  }
  return result;
}

tnk_promise_t *train_teacher_score(const train_teacher_t *teacher,
                                   const int32_t *ids, size_t n) {
  const tnk_model_input_t input = {.tokens = ids, .n_tokens = n};

  return tnk_sampling_compute_logprobs(teacher->client, &input, NULL);
}

/* The service refuses token ids that the model does not have. */
static int refused(const train_teacher_t *teacher, const cli_ask_t *ask,
                   const tnk_promise_t *scored) {
  return cli_fail(
      ask->cli, CLI_EXIT_FAILED,
      "--teacher %s cannot score the tokens of %s: %s. Both must have the same "
      "tokenizer, and the tokens must fit into its context",
      teacher->name, train_args.model, tnk_promise_error(scored)->text);
}

const float *train_teacher_logprobs(const train_teacher_t *teacher,
                                    cli_ask_t *ask, tnk_promise_t *scored,
                                    size_t first, size_t n, int *status) {
  size_t n_found = 0;
  const float *logprobs;

  *status = CLI_EXIT_OK;
  if (cli_ask_wait(ask, scored) == TNK_EREQUEST)
    *status = refused(teacher, ask, scored);
  else
    *status = learn_await_limited(ask, scored);
  if (*status != CLI_EXIT_OK)
    return NULL;
  logprobs = tnk_promise_logprobs(scored, &n_found);
  for (size_t t = first; n_found == n && t < n; t++)
    if (!isfinite(logprobs[t]))
      n_found = 0;
  if (n_found == n)
    return logprobs;
  *status = cli_fail(ask->cli, CLI_EXIT_FAILED,
                     "--teacher %s: the service has not returned a logprob for "
                     "each token",
                     teacher->name);
  return NULL;
}

/* A text is likelier than chance to a model that reads its tokens. A few tokens
 * prove nothing. Returns the exit status. */
static int compare_with_chance(const train_teacher_t *teacher,
                               const cli_ask_t *ask, const float *logprobs,
                               size_t n, size_t n_vocab) {
  const double chance = -log((double)n_vocab);
  double sum = 0;

  for (size_t t = 1; t < n; t++)
    sum += (double)logprobs[t];
  if (n <= FEW_TOKENS || sum / (double)(n - 1) >= chance - 1)
    return CLI_EXIT_OK;
  return cli_fail(ask->cli, CLI_EXIT_FAILED,
                  "to --teacher %s the tokens of a prompt are less likely than "
                  "random ones (logprob %.1f, not %.1f). It must have the "
                  "tokenizer of %s",
                  teacher->name, sum / (double)(n - 1), chance,
                  train_args.model);
}

int train_teacher_check(train_teacher_t *teacher, cli_ask_t *ask,
                        const train_data_t *data) {
  const tnk_model_input_t *prompt = &data->train.data[0].input;
  const size_t n = prompt->n_tokens;
  const size_t n_vocab = data->n_vocab > 0 ? data->n_vocab : CLI_CHATS_BYTES;
  int32_t *ids = malloc((n + 1) * sizeof(*ids));
  int status = CLI_EXIT_OK;

  if (ids == NULL)
    return cli_fail(ask->cli, CLI_EXIT_FAILED, "out of memory");
  memcpy(ids, prompt->tokens, n * sizeof(*ids));
  ids[n] = (int32_t)n_vocab - 1;
  for (size_t i = 0, is_done = 0; i < MAX_TRIES && !is_done; i++) {
    tnk_promise_t *scored = train_teacher_score(teacher, ids, n + 1);
    const float *logprobs =
        train_teacher_logprobs(teacher, ask, scored, 1, n + 1, &status);

    is_done = status != LEARN_LOST;
    if (logprobs != NULL && data->n_vocab > 0)
      status = compare_with_chance(teacher, ask, logprobs, n, n_vocab);
    tnk_promise_unref(scored);
  }
  free(ids);
  return status != LEARN_LOST
             ? status
             : cli_fail(ask->cli, CLI_EXIT_NETWORK,
                        "the service has lost its session again and again");
}

void train_teacher_free(train_teacher_t *teacher) {
  free(teacher->path);
}
