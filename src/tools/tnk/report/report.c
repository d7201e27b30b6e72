/* SPDX-License-Identifier: MIT */
/* tnk report: a run as one HTML file, or in a program that shows metrics. */
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
#include "tools/tnk/report/follow.h"
#include "tools/tnk/report/mlflow.h"
#include "tools/tnk/report/page.h"
#include "tools/tnk/report/trackio.h"

static const char *output;
static const char *board;
static const char *project;
static const char *server;
static const char *experiment;
static int follow;
static int ends_with_input;

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
     .help = "Continue until the run ends: write the file again when the run "
             "has changed, or add its new steps to what was written. A browser "
             "reads the page again by itself. Failed writes are repeated."},
    {.name = "exit-with-stdin",
     .flag = &ends_with_input,
     .help = "With --follow: write the last steps and end when the standard "
             "input ends, because the process of the run is gone. Signals are "
             "ignored."},
    {.name = NULL}};

typedef struct {
  const cli_t *cli; /* for errors */
  report_data_t data[REPORT_MAX_RUNS];
  size_t n;
  char *path;      /* of the report; NULL: standard output */
  int has_page;    /* the page was written */
  int is_followed; /* the page is written again */
  int is_final;    /* all runs of the written report have ended */
  char *folders[REPORT_MAX_RUNS]; /* of event files */
  report_tracker_t trackers[REPORT_MAX_RUNS];
  report_follow_t follow;
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

static void free_others(report_data_t *data) {
  report_saves_free(&data->saves);
  report_samples_free(&data->samples);
  report_config_free(&data->config);
}

static void free_all(work_t *work) {
  for (size_t i = 0; i < work->n; i++) {
    report_run_free(&work->data[i].run);
    free_others(&work->data[i]);
  }
  work->n = 0;
}

/* Find the runs, which may not have metrics yet. */
static int find_all(work_t *work) {
  int status = CLI_EXIT_OK;

  while (work->n < work->cli->n_words && status == CLI_EXIT_OK) {
    status = report_run_open(&work->data[work->n].run, work->cli,
                             work->cli->words[work->n]);
    work->n++;
  }
  return status;
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
      .is_followed = work->is_followed,
  };

  work->is_final = report_page_is_final(&page);
  return report_page_put(&page);
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

  if (work->path != NULL) {
    const int status = write_file(work->cli, work->path, put_page, work);

    work->has_page |= status == CLI_EXIT_OK;
    return status;
  }
  err = put_page(stdout, work);
  if (err != TNK_OK)
    return failed(work->cli, err, "standard output");
  return fflush(stdout) == 0 ? CLI_EXIT_OK : CLI_EXIT_FILE;
}

/* ---- Trackers ---- */

/* The folder of the event files of a run. TensorBoard shows it as a run. */
static char *folder_of(const work_t *work, size_t run) {
  const char *part = work->n > 1 ? work->data[run].run.name : NULL;
  /* Two runs with the same name get different folders. */
  const int is_same = run > 0 && strcmp(part, work->data[0].run.name) == 0;
  const size_t n = strlen(board) + (part != NULL ? strlen(part) : 0) + 8;
  char *path = malloc(n);

  if (path != NULL)
    snprintf(path, n, "%s%s%s%s", board, part != NULL ? "/" : "",
             part != NULL ? part : "", is_same ? "-2" : "");
  return path;
}

static report_target_t open_target(work_t *work, size_t run) {
  if (board != NULL) {
    work->folders[run] = folder_of(work, run);
    return work->folders[run] != NULL
               ? report_events_open(work->cli, work->folders[run], follow)
               : (report_target_t){.target = NULL};
  }
  if (project != NULL)
    return report_trackio_open(work->cli, project, follow);
  return report_mlflow_open(work->cli, server,
                            experiment != NULL ? experiment : "tnk");
}

static void open_trackers(work_t *work) {
  for (size_t i = 0; i < work->n; i++)
    report_tracker_init(&work->trackers[i], work->cli, &work->data[i],
                        open_target(work, i));
}

static void close_trackers(work_t *work) {
  for (size_t i = 0; i < REPORT_MAX_RUNS; i++) {
    report_tracker_free(&work->trackers[i]);
    free(work->folders[i]);
  }
}

/* A run without a ledger has ended, as far as is known. */
static report_moment_t moment_of(const report_data_t *data,
                                 report_moment_t moment) {
  return data->saves.is_final || (moment == REPORT_LEFT && data->saves.n == 0)
             ? REPORT_FINISHED
             : moment;
}

static int track_all(work_t *work, report_moment_t moment) {
  int status = CLI_EXIT_OK;

  for (size_t i = 0; i < work->n && status == CLI_EXIT_OK; i++)
    status = report_tracker_write(&work->trackers[i],
                                  moment_of(&work->data[i], moment));
  return status;
}

static int track_once(work_t *work) {
  int status = read_all(work);

  if (status != CLI_EXIT_OK)
    return status;
  open_trackers(work);
  return track_all(work, REPORT_LEFT);
}

/* ---- Following ---- */

/* The state of a run's files, compared to find changes. */
static void look_at(const char *path, uint64_t *digest) {
  struct stat about;
  uint64_t parts[4] = {0};

  if (path != NULL && stat(path, &about) == 0) {
    const tnk__system_time_t changed = tnk__system_modified(&about);

    parts[0] = (uint64_t)about.st_ino;
    parts[1] = (uint64_t)about.st_size;
    parts[2] = (uint64_t)changed.s;
    parts[3] = (uint64_t)changed.ns;
  }
  /* FNV-1a, by words. */
  for (size_t i = 0; i < 4; i++)
    *digest = (*digest ^ parts[i]) * UINT64_C(0x100000001b3);
}

static uint64_t look(void *user) {
  static const char *const names[] = {"checkpoints.jsonl", "samples.jsonl",
                                      "config.json"};
  const work_t *work = user;
  uint64_t digest = UINT64_C(0xcbf29ce484222325);

  for (size_t r = 0; r < work->n; r++) {
    look_at(work->data[r].run.metrics, &digest);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
      char *path = report_run_file(&work->data[r].run, names[i]);

      look_at(path, &digest);
      free(path);
    }
  }
  return digest;
}

static int track_again(void *user, report_moment_t moment, int *is_over) {
  work_t *work = user;
  int status = CLI_EXIT_OK;

  *is_over = 1;
  /* Before the metrics: those of a run that has ended are complete. */
  for (size_t i = 0; i < work->n && status == CLI_EXIT_OK; i++) {
    free_others(&work->data[i]);
    status = read_others(work->cli, &work->data[i]);
    *is_over &= work->data[i].saves.is_final;
  }
  return status == CLI_EXIT_OK ? track_all(work, moment) : status;
}

static int has_all_metrics(const work_t *work) {
  for (size_t i = 0; i < work->n; i++)
    if (access(work->data[i].run.metrics, F_OK) != 0)
      return 0;
  return 1;
}

/* Write the page again. */
static int write_again(void *user, report_moment_t moment, int *is_over) {
  work_t *work = user;
  uint64_t seen;
  int status;

  free_all(work);
  status = find_all(work);
  /* A run that has just begun. */
  if (status != CLI_EXIT_OK || !has_all_metrics(work))
    return status;
  seen = look(work);
  free_all(work);
  status = read_all(work);
  work->is_followed = moment == REPORT_RUNNING;
  if (status == CLI_EXIT_OK)
    status = write_all(work);
  /* The last metrics may have been written while the files were read. */
  *is_over = work->is_final && look(work) == seen;
  return status;
}

static int follow_all(work_t *work) {
  const int is_page = board == NULL && project == NULL && server == NULL;
  const report_work_t what = {
      .write = is_page ? write_again : track_again,
      .look = look,
      .user = work,
      .name = is_page           ? work->path
              : board != NULL   ? board
              : project != NULL ? project
                                : server,
      .watches_input = ends_with_input,
  };

  work->cli = &work->follow.held_cli;
  if (!is_page)
    open_trackers(work);
  return report_follow_run(&work->follow, &what);
}

/* ---- The command ---- */

static int has_written(const work_t *work) {
  int has = !follow || work->has_page;

  for (size_t i = 0; i < work->n; i++)
    has |= work->trackers[i].is_begun;
  return has;
}

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
    if (has_written(work))
      cli_note(work->cli, "%s %s", kinds[i].note, kinds[i].path);
    else
      cli_note(work->cli, "the run has no metrics");
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

static int write_once(work_t *work) {
  int status = read_all(work);

  if (status == CLI_EXIT_OK)
    status = set_path(work);
  return status == CLI_EXIT_OK ? write_all(work) : status;
}

/* Write what the options ask for. */
static int write_what_is_wanted(work_t *work) {
  const int is_page = board == NULL && project == NULL && server == NULL;
  int status;

  if (!follow)
    return is_page ? write_once(work) : track_once(work);
  status = find_all(work);
  if (status == CLI_EXIT_OK && is_page)
    status = set_path(work);
  return status == CLI_EXIT_OK ? follow_all(work) : status;
}

static int run_report(cli_t *cli) {
  static work_t work;
  int status;

  work.cli = cli;
  report_follow_init(&work.follow, cli);
  status = write_what_is_wanted(&work);
  work.cli = cli;
  if (status == CLI_EXIT_OK)
    status = show_path(&work);
  close_trackers(&work);
  free_all(&work);
  free(work.path);
  return status;
}

static const char *check(const cli_t *cli) {
  const int n_others = (board != NULL) + (project != NULL) + (server != NULL);

  if (n_others > 0 && output != NULL)
    return "--tensorboard, --trackio and --mlflow write no HTML file: leave "
           "--output out";
  if (ends_with_input && !follow)
    return "--exit-with-stdin needs --follow";
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
    {"tnk report first --follow --tensorboard board",
     "add the steps of a run that goes on"},
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
