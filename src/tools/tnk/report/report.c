/* SPDX-License-Identifier: MIT */
/* tnk report: a run as one HTML file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/system.h"
#include "tnk/error.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/report/events.h"
#include "tools/tnk/report/mlflow.h"
#include "tools/tnk/report/page.h"
#include "tools/tnk/report/trackio.h"

/* The interval at which --follow looks for changes. */
enum { EVERY_S = 2 };

static const char *output;
static const char *board;
static const char *project;
static const char *server;
static const char *experiment;
static int follow;

static const cli_option_t options[] = {
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .text = &output,
     .offer = CLI_OFFER_FILES,
     .help = "The file to write; \"-\" is standard output. Default: "
             "report.html in the folder of the first run."},
    {.name = "tensorboard",
     .value = "DIR",
     .text = &board,
     .offer = CLI_OFFER_FOLDERS,
     .help = "Write all metrics as event files for TensorBoard instead of the "
             "HTML file: to DIR, or for two runs to DIR/RUN. Earlier ones are "
             "replaced."},
    {.name = "trackio",
     .value = "FILE",
     .text = &project,
     .offer = CLI_OFFER_FILES,
     .help = "Write all metrics and the configuration to a project of trackio "
             "instead of the HTML file: to a database whose name is that of "
             "the project and .db, in the folder TRACKIO_DIR. Earlier metrics "
             "of the run are replaced."},
    {.name = "mlflow",
     .value = "URL",
     .text = &server,
     .help = "Write all metrics and the configuration to this server of MLflow "
             "instead of the HTML file. MLFLOW_TRACKING_TOKEN, or "
             "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, have the "
             "key. The run replaces an earlier one of it."},
    {.name = "experiment",
     .value = "NAME",
     .text = &experiment,
     .help = "With --mlflow: the experiment (tnk). It is created if it does "
             "not exist."},
    {.name = "follow",
     .flag = &follow,
     .help = "Write the file again when the run has changed, until it ends. A "
             "browser then reads the page again by itself."},
    {.name = NULL}};

typedef struct {
  const cli_t *cli;
  report_data_t data[REPORT_MAX_RUNS];
  size_t n;
  char *path;   /* of the report; NULL: standard output */
  int is_final; /* all runs of the written report have ended */
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

/* Write to a file. Returns TNK_OK or an error. */
typedef int (*put_fn)(FILE *to, void *what);

static int put_page(FILE *to, void *what) {
  work_t *work = what;
  const report_page_t page = {
      .to = to,
      .data = work->data,
      .n = work->n,
      .now_s = (int64_t)time(NULL),
      .is_followed = follow,
  };

  work->is_final = report_page_is_final(&page);
  return report_page_put(&page);
}

static int put_events(FILE *to, void *what) {
  return report_events_put(to, what);
}

/* Write a file. A reader never sees a part of it: the name is given to the
 * whole file. */
static int write_file(const cli_t *cli, const char *path, put_fn put,
                      void *what) {
  const size_t n = strlen(path) + sizeof(".new");
  char *new_path = malloc(n);
  FILE *file;
  int err, is_ok;

  if (new_path == NULL)
    return failed(cli, TNK_ENOMEM, path);
  snprintf(new_path, n, "%s.new", path);
  file = fopen(new_path, "w");
  if (file == NULL) {
    const int status = failed(cli, TNK_EFILE, path);

    free(new_path);
    return status;
  }
  err = put(file, what);
  is_ok = !ferror(file);
  is_ok = (fclose(file) == 0) && is_ok;
  if (err == TNK_OK && (!is_ok || rename(new_path, path) != 0))
    err = TNK_EFILE;
  if (err != TNK_OK) {
    const int why = errno;

    (void)remove(new_path);
    errno = why;
  }
  free(new_path);
  return err == TNK_OK ? CLI_EXIT_OK : failed(cli, err, path);
}

static int write_all(work_t *work) {
  int err;

  if (work->path != NULL)
    return write_file(work->cli, work->path, put_page, work);
  err = put_page(stdout, work);
  if (err != TNK_OK)
    return failed(work->cli, err, "standard output");
  return fflush(stdout) == 0 ? CLI_EXIT_OK : CLI_EXIT_FILE;
}

/* ---- TensorBoard ---- */

static int make_folder(const cli_t *cli, const char *path) {
  if (mkdir(path, 0777) == 0 || errno == EEXIST)
    return CLI_EXIT_OK;
  return failed(cli, TNK_EFILE, path);
}

/* Write the events of a run to a folder, which TensorBoard shows as a run. */
static int write_events(work_t *work, size_t run) {
  /* TensorBoard finds the files by this word. */
  static const char name[] = "events.out.tfevents.0.tnk";
  const char *part = work->n > 1 ? work->data[run].run.name : NULL;
  /* Two runs with the same name get different folders. */
  const int is_same = run > 0 && strcmp(part, work->data[0].run.name) == 0;
  const size_t n =
      strlen(board) + (part != NULL ? strlen(part) : 0) + sizeof(name) + 8;
  char *path = malloc(n);
  size_t length;
  int status;

  if (path == NULL)
    return failed(work->cli, TNK_ENOMEM, board);
  length = (size_t)snprintf(path, n, "%s%s%s%s", board, part != NULL ? "/" : "",
                            part != NULL ? part : "", is_same ? "-2" : "");
  status = make_folder(work->cli, path);
  snprintf(path + length, n - length, "/%s", name);
  if (status == CLI_EXIT_OK)
    status = write_file(work->cli, path, put_events, &work->data[run]);
  free(path);
  return status;
}

static int write_board(work_t *work) {
  int status = make_folder(work->cli, board);

  for (size_t i = 0; i < work->n && status == CLI_EXIT_OK; i++)
    status = write_events(work, i);
  return status;
}

/* ---- trackio ---- */

static int write_project(work_t *work) {
  char why[REPORT_MAX_WHY] = "";
  int err = TNK_OK;

  for (size_t i = 0; i < work->n && err == TNK_OK; i++)
    err = report_trackio_put(project, &work->data[i], why);
  if (err == TNK_OK)
    return CLI_EXIT_OK;
  if (err == TNK_EUNSUPPORTED)
    return cli_fail(work->cli, CLI_EXIT_USAGE,
                    "--trackio: this program was built without SQLite");
  if (err == TNK_EFILE)
    return cli_fail(work->cli, CLI_EXIT_FILE, "%s: %s", project, why);
  return failed(work->cli, err, project);
}

/* ---- Following ---- */

/* The state of a run's files, compared to find changes. */
typedef struct {
  struct {
    ino_t inode;
    off_t size;
    int64_t changed_s;
    int64_t changed_ns;
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
        const tnk__system_time_t changed = tnk__system_modified(&about);

        traces->files[r][i].inode = about.st_ino;
        traces->files[r][i].size = about.st_size;
        traces->files[r][i].changed_s = changed.s;
        traces->files[r][i].changed_ns = changed.ns;
      }
      free(path);
    }
}

/* Wait until the files differ from *traces, and update it. */
static void wait_for_change(const work_t *work, traces_t *traces) {
  const struct timespec pause = {.tv_sec = EVERY_S};
  traces_t now;

  do {
    nanosleep(&pause, NULL);
    look_at(work, &now);
  } while (memcmp(&now, traces, sizeof(now)) == 0);
  *traces = now;
}

static int write_until_final(work_t *work) {
  /* The state of the files before they were read, because they may change
   * during the reading. It is unknown at first, so all files are read twice. */
  static traces_t traces;
  int status;

  for (;;) {
    status = write_all(work);
    if (status != CLI_EXIT_OK || !follow || work->is_final)
      return status;
    wait_for_change(work, &traces);
    free_all(work);
    status = read_all(work);
    if (status != CLI_EXIT_OK)
      return status;
  }
}

/* ---- The command ---- */

/* What was written, as a note and as the name of a member. */
static int show_path(const work_t *work) {
  const struct {
    const char *path, *note, *name;
  } kinds[] = {{board, "the event files are in", "tensorboard"},
               {project, "the project of trackio is", "trackio"},
               {server, "the metrics are on the server", "mlflow"},
               {work->path, "the report is", "report"}};
  size_t i = 0;
  cli_json_t json;

  while (i < 3 && kinds[i].path == NULL)
    i++;
  if (kinds[i].path == NULL)
    return CLI_EXIT_OK;
  if (!work->cli->json) {
    cli_note(work->cli, "%s %s", kinds[i].note, kinds[i].path);
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  cli_json_put_odd_text(&json, kinds[i].name, kinds[i].path);
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

/* Write what the options ask for. */
static int write_what_is_wanted(work_t *work) {
  int status;

  if (board != NULL)
    return write_board(work);
  if (project != NULL)
    return write_project(work);
  if (server != NULL)
    return report_mlflow_put(work->cli, server,
                             experiment != NULL ? experiment : "tnk",
                             work->data, work->n);
  status = set_path(work);
  return status == CLI_EXIT_OK ? write_until_final(work) : status;
}

static int run_report(cli_t *cli) {
  static work_t work;
  int status;

  work.cli = cli;
  status = read_all(&work);
  if (status == CLI_EXIT_OK)
    status = write_what_is_wanted(&work);
  if (status == CLI_EXIT_OK)
    status = show_path(&work);
  free_all(&work);
  free(work.path);
  return status;
}

static const char *check(const cli_t *cli) {
  const int n_others = (board != NULL) + (project != NULL) + (server != NULL);

  if (n_others > 0 && (output != NULL || follow))
    return "--tensorboard, --trackio and --mlflow write no HTML file: leave "
           "--output and --follow out";
  if (n_others > 1)
    return "--tensorboard, --trackio and --mlflow are different forms: use one";
  if (experiment != NULL && server == NULL)
    return "--experiment needs --mlflow";
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
    {"tnk report first second --tensorboard board",
     "write event files, for tensorboard --logdir board"},
    {"tnk report first --trackio ~/.cache/huggingface/trackio/mine.db",
     "add the run to a project, for trackio show --project mine"},
    {"tnk report first --mlflow http://127.0.0.1:5000",
     "write the metrics to a server of MLflow"},
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
        "left out. Two runs are compared. RUN is the folder of tnk train or "
        "tnk rl, or "
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
