/* SPDX-License-Identifier: MIT */
/* tnk report: a run as one HTML file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tnk/error.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/report/page.h"

/* How often --follow looks for changes. */
enum { EVERY_S = 2 };

static const char *output;
static int follow;

static const cli_option_t options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .text = &output,
     .offer = CLI_OFFER_FILES,
     .help = "The file to write; \"-\" is standard output. Default: "
             "report.html in the folder of the first run."},
    {.name = "follow",
     .flag = &follow,
     .help = "Write the file again when the run has changed, until it ends. A "
             "browser then reads the page again by itself."},
    {.name = NULL}};

typedef struct {
  const cli_t *cli;
  report_data_t data[REPORT_MAX_RUNS];
  size_t n;
  char *path; /* of the report; NULL: standard output */
} work_t;

/* ---- Reading ---- */

static int failed(const cli_t *cli, int err, const char *path) {
  if (err == TNK_EFILE)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

/* Read the files of a run beside its metrics. */
static int read_others(const cli_t *cli, report_data_t *data) {
  char *saves = report_run_file(&data->run, "checkpoints.jsonl");
  char *samples = report_run_file(&data->run, "samples.jsonl");
  char *config = report_run_file(&data->run, "config.json");
  const char *path = saves;
  int err = TNK_ENOMEM;

  if (saves != NULL && samples != NULL && config != NULL)
    err = report_saves_read(&data->saves, saves);
  if (err == TNK_OK)
    err = report_samples_read(&data->samples, path = samples);
  if (err == TNK_OK)
    err = report_config_read(&data->config, path = config);
  if (err != TNK_OK)
    err = failed(cli, err, path);
  free(saves);
  free(samples);
  free(config);
  return err;
}

static void free_all(work_t *work) {
  for (size_t i = 0; i < work->n; i++) {
    report_run_free(&work->data[i].run);
    report_saves_free(&work->data[i].saves);
    report_samples_free(&work->data[i].samples);
    report_config_free(&work->data[i].config);
  }
  work->n = 0;
}

static int read_all(work_t *work) {
  int status = CLI_EXIT_OK;

  while (work->n < work->cli->n_words && status == CLI_EXIT_OK) {
    report_data_t *data = &work->data[work->n];

    status = report_run_read(&data->run, work->cli, work->cli->words[work->n]);
    work->n++;
    if (status == CLI_EXIT_OK)
      status = read_others(work->cli, data);
  }
  return status;
}

/* ---- Writing ---- */

static int write_page(const work_t *work, FILE *to, int *is_final) {
  const report_page_t page = {
      .to = to,
      .data = work->data,
      .n = work->n,
      .now_s = (int64_t)time(NULL),
      .is_followed = follow,
  };

  *is_final = report_page_is_final(&page);
  return report_page_put(&page);
}

static int cannot_write(const work_t *work) {
  return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", work->path,
                  strerror(errno));
}

/* A reader of the file never sees a part of it: the name is given to the whole
 * file. */
static int write_file(const work_t *work, int *is_final) {
  const size_t n = strlen(work->path) + sizeof(".new");
  char *path = malloc(n);
  FILE *file;
  int err, is_ok;

  if (path == NULL)
    return failed(work->cli, TNK_ENOMEM, "");
  snprintf(path, n, "%s.new", work->path);
  file = fopen(path, "w");
  if (file == NULL) {
    free(path);
    return cannot_write(work);
  }
  err = write_page(work, file, is_final);
  is_ok = !ferror(file);
  is_ok = (fclose(file) == 0) && is_ok;
  is_ok = err == TNK_OK && is_ok && rename(path, work->path) == 0;
  if (!is_ok)
    (void)remove(path);
  free(path);
  if (err != TNK_OK)
    return failed(work->cli, err, "");
  return is_ok ? CLI_EXIT_OK : cannot_write(work);
}

static int write_all(const work_t *work, int *is_final) {
  int err;

  if (work->path != NULL)
    return write_file(work, is_final);
  err = write_page(work, stdout, is_final);
  if (err != TNK_OK)
    return failed(work->cli, err, "");
  return fflush(stdout) == 0 ? CLI_EXIT_OK : CLI_EXIT_FILE;
}

/* ---- Following ---- */

/* What changes when a file of a run does. */
typedef struct {
  struct {
    ino_t inode;
    off_t size;
    struct timespec changed;
  } files[REPORT_MAX_RUNS][4];
} traces_t;

static void look_at(const work_t *work, traces_t *traces) {
  static const char *const names[4] = {"metrics.jsonl", "checkpoints.jsonl",
                                       "samples.jsonl", "config.json"};

  memset(traces, 0, sizeof(*traces));
  for (size_t r = 0; r < work->n; r++)
    for (size_t i = 0; i < 4; i++) {
      char *path = report_run_file(&work->data[r].run, names[i]);
      struct stat about;

      if (path != NULL && stat(path, &about) == 0) {
        traces->files[r][i].inode = about.st_ino;
        traces->files[r][i].size = about.st_size;
        traces->files[r][i].changed = about.st_mtim;
      }
      free(path);
    }
}

static void wait_for_change(const work_t *work, const traces_t *before) {
  const struct timespec pause = {.tv_sec = EVERY_S};
  traces_t now;

  do {
    nanosleep(&pause, NULL);
    look_at(work, &now);
  } while (memcmp(&now, before, sizeof(now)) == 0);
}

static int write_until_final(work_t *work) {
  static traces_t traces;
  int is_final = 0;
  int status;

  for (;;) {
    /* A change during the reading is found afterwards. */
    look_at(work, &traces);
    status = write_all(work, &is_final);
    if (status != CLI_EXIT_OK || !follow || is_final)
      return status;
    wait_for_change(work, &traces);
    free_all(work);
    status = read_all(work);
    if (status != CLI_EXIT_OK)
      return status;
  }
}

/* ---- The command ---- */

static int show_path(const work_t *work) {
  cli_json_t json;

  if (work->path == NULL)
    return CLI_EXIT_OK;
  if (!work->cli->json) {
    cli_note(work->cli, "the report is %s", work->path);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, "report", work->path);
  return cli_json_end(&json, work->cli);
}

static int set_path(work_t *work) {
  if (output != NULL && strcmp(output, "-") == 0)
    return CLI_EXIT_OK;
  work->path = output != NULL
                   ? strdup(output)
                   : report_run_file(&work->data[0].run, "report.html");
  return work->path != NULL ? CLI_EXIT_OK : failed(work->cli, TNK_ENOMEM, "");
}

static int run_report(cli_t *cli) {
  static work_t work;
  int status;

  work.cli = cli;
  status = read_all(&work);
  if (status == CLI_EXIT_OK)
    status = set_path(&work);
  if (status == CLI_EXIT_OK)
    status = write_until_final(&work);
  if (status == CLI_EXIT_OK)
    status = show_path(&work);
  free_all(&work);
  free(work.path);
  return status;
}

static const char *check(const cli_t *cli) {
  if (output != NULL && strcmp(output, "-") == 0) {
    if (follow)
      return "--follow needs a file";
    if (cli->json)
      return "--json needs a file for the report";
  }
  return NULL;
}

static const cli_item_t examples[] = {
    {"tnk report first", "write first/report.html"},
    {"tnk report first second -o both.html", "compare two runs"},
    {"tnk report first --follow", "keep the report up to date"},
    {NULL, NULL}};

static const cli_item_t files[] = {
    {"metrics.jsonl", "The metrics of each step. It is required."},
    {"checkpoints.jsonl", "The ledger: checkpoints, tokens and cost."},
    {"config.json", "The configuration. Values that look like secrets are "
                    "replaced by \"(hidden)\"."},
    {"samples.jsonl",
     "Samples of fixed prompts over time, which a program may write:\n"
     "  {\"step\": 20, \"prompt\": \"Hi\", \"text\": \"Hello\"}"},
    {NULL, NULL}};

static const cli_section_t sections[] = {{"Files", NULL, files},
                                         {NULL, NULL, NULL}};

const cli_command_t cli_run_report = {
    .name = "report",
    .brief = "write a run as an HTML file",
    .about =
        "Write one HTML file about a run: loss and evaluation, learning rate, "
        "reward, KL and drift, tokens and cost, time by phase, samples, "
        "checkpoints, configuration and notices. What the run does not have is "
        "left out. Two runs are compared. RUN is the folder of tnk train, or "
        "any folder with a metrics.jsonl.\n\nThe file needs no other files and "
        "sends no requests. The minima and maxima of long runs stay visible.",
    .words = "RUN [RUN]",
    .offer = CLI_OFFER_FOLDERS,
    .options = options,
    .sections = sections,
    .examples = examples,
    .has = CLI_HAS_JSON,
    .check = check,
    .run = run_report,
};
