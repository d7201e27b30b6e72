/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* ---- Kinds ---- */

/* Returns whether a part of a name, which "/", "_" and similar characters
 * separate, is one of these words. The list ends with NULL. */
static int has_word(const char *key, const char *const *words) {
  for (const char *at = key; *at != '\0';) {
    const size_t n = strcspn(at, "/_-.: ");

    for (size_t i = 0; words[i] != NULL; i++)
      if (strlen(words[i]) == n && strncmp(at, words[i], n) == 0)
        return 1;
    at += n;
    at += *at != '\0';
  }
  return 0;
}

static int is_evaluation(const char *key) {
  static const char *const words[] = {"eval",  "evaluation", "test", "val",
                                      "valid", "validation", NULL};

  return has_word(key, words);
}

/* The first row with a word of the name applies. */
static const struct {
  report_kind_t kind;
  const char *words[8];
} kinds[] = {
    {REPORT_TIME, {"time", "seconds", "ms", NULL}},
    {REPORT_RATE, {"lr", NULL}},
    {REPORT_DRIFT, {"kl", "drift", "divergence", "staleness", NULL}},
    {REPORT_REWARD, {"reward", "rewards", NULL}},
    {REPORT_COST, {"usd", "cost", NULL}},
    {REPORT_LOSS, {"loss", "nll", "perplexity", NULL}},
    {REPORT_TOKENS, {"tokens", "token", NULL}},
};

report_kind_t report_kind(const char *key) {
  if (strstr(key, "learning_rate") != NULL)
    return REPORT_RATE;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (has_word(key, kinds[i].words))
      return kinds[i].kind == REPORT_LOSS && is_evaluation(key) ? REPORT_EVAL
                                                                : kinds[i].kind;
  return REPORT_OTHER;
}

const report_series_t *report_run_find(const report_run_t *run,
                                       const char *key) {
  for (size_t i = 0; i < run->n_series; i++)
    if (run->series[i].n_buckets > 0 && strcmp(run->series[i].key, key) == 0)
      return &run->series[i];
  return NULL;
}

const report_series_t *report_run_kind(const report_run_t *run,
                                       report_kind_t kind, size_t nth) {
  for (size_t i = 0; i < run->n_series; i++)
    if (run->series[i].n_buckets > 0 && report_kind(run->series[i].key) == kind)
      if (nth-- == 0)
        return &run->series[i];
  return NULL;
}

/* ---- Metrics ---- */

/* The metric of this name, which is added if it is new. Lines have the same
 * names in the same order, so it is probably at `near`. Returns NULL with *err
 * set. */
static report_series_t *get_series(report_run_t *run, const char *key,
                                   size_t near, int *err) {
  report_series_t *grown;

  *err = TNK_OK;
  for (size_t i = 0; i < run->n_series; i++) {
    report_series_t *series = &run->series[(near + i) % run->n_series];

    if (strcmp(series->key, key) == 0)
      return series;
  }
  if (run->n_series == REPORT_MAX_SERIES) {
    run->n_left_out++;
    return NULL;
  }
  grown = realloc(run->series, (run->n_series + 1) * sizeof(*grown));
  if (grown != NULL)
    run->series = grown;
  *err = grown != NULL ? report_series_init(&grown[run->n_series], key)
                       : TNK_ENOMEM;
  return *err == TNK_OK ? &run->series[run->n_series++] : NULL;
}

int report_run_step(int64_t last, const json_t *line, int64_t *step) {
  const json_t *found = json_object_get(line, "step");
  double number;

  *step = last + 1;
  if (found == NULL)
    return 1;
  if (!json_is_number(found))
    return 0;
  number = json_number_value(found);
  if (!(number >= 0 && number <= 9007199254740992.0))
    return 0;
  *step = (int64_t)number;
  return 1;
}

static int on_metrics(const json_t *object, void *user) {
  report_run_t *run = user;
  size_t near = 0;
  int64_t step;
  const char *key;
  json_t *value;
  int err = TNK_OK;

  if (!report_run_step(run->last_step, object, &step))
    return TNK_EPROTO;
  json_object_foreach((json_t *)object, key, value) {
    report_series_t *series;

    if (strcmp(key, "step") == 0 ||
        (!json_is_number(value) && !json_is_null(value)))
      continue;
    series = get_series(run, key, near, &err);
    if (err == TNK_OK && series != NULL) {
      err = report_series_add(
          series, step, json_is_null(value) ? NAN : json_number_value(value));
      near = (size_t)(series - run->series) + 1;
    }
    if (err != TNK_OK)
      return err;
  }
  if (step > run->last_step)
    run->last_step = step;
  return TNK_OK;
}

/* ---- Files ---- */

char *report_run_file(const report_run_t *run, const char *name) {
  const size_t n = strlen(run->folder) + strlen(name) + 2;
  char *path = malloc(n);

  if (path != NULL)
    snprintf(path, n, "%s/%s", run->folder, name);
  return path;
}

/* The folder of a run that is given by its folder or by its metrics. */
static char *folder_of(const char *path, int is_folder) {
  const char *slash = strrchr(path, '/');
  char *folder = is_folder || slash != NULL ? strdup(path) : strdup(".");
  size_t n;

  if (folder == NULL)
    return NULL;
  if (!is_folder && slash != NULL)
    folder[slash > path ? slash - path : 1] = '\0';
  n = strlen(folder);
  while (n > 1 && folder[n - 1] == '/')
    folder[--n] = '\0';
  return folder;
}

static char *name_of(const char *folder) {
  const char *slash = strrchr(folder, '/');
  char *name = strdup(slash != NULL && slash[1] != '\0' ? slash + 1 : folder);

  if (name != NULL)
    cli_clean(name);
  return name;
}

int report_run_open(report_run_t *run, const cli_t *cli, const char *path) {
  struct stat about;
  const int is_known = stat(path, &about) == 0;
  const int is_folder = is_known && S_ISDIR(about.st_mode);

  *run = (report_run_t){.last_step = -1, .path = strdup(path)};
  if (!is_known)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  run->folder = folder_of(path, is_folder);
  run->name = run->folder != NULL ? name_of(run->folder) : NULL;
  if (run->folder != NULL)
    run->metrics =
        is_folder ? report_run_file(run, "metrics.jsonl") : strdup(path);
  return run->path != NULL && run->name != NULL && run->metrics != NULL
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

int report_run_read(report_run_t *run, const cli_t *cli, const char *path) {
  const int status = report_run_open(run, cli, path);
  int err;

  if (status != CLI_EXIT_OK)
    return status;
  err = report_lines_read(&run->lines, run->metrics, on_metrics, run);
  if (err == TNK_EFILE && errno == ENOENT)
    return cli_fail(cli, CLI_EXIT_FILE,
                    "%s is not the folder of a run: it has no metrics.jsonl",
                    path);
  if (err == TNK_EFILE)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  return err == TNK_OK ? CLI_EXIT_OK
                       : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

void report_run_free(report_run_t *run) {
  for (size_t i = 0; i < run->n_series; i++)
    report_series_free(&run->series[i]);
  free(run->series);
  free(run->path);
  free(run->folder);
  free(run->name);
  free(run->metrics);
  *run = (report_run_t){0};
}
