/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/trackio.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <uv.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* The time to wait for a program that writes to the same project. */
enum { BUSY_MS = 10000 };

/* What trackio 0.43 creates first. It adds the rest when it opens the project.
 */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS metrics ("
    "id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "timestamp TEXT NOT NULL, run_name TEXT NOT NULL, step INTEGER NOT NULL, "
    "metrics TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS configs ("
    "id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, "
    "run_name TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL, "
    "UNIQUE(run_id));";

/* The statements. ?1 is always the run's id. */
enum {
  ADD_METRICS,
  DROP_METRICS,
  ADD_CONFIG,
  DROP_CONFIG,
  FIND_CONFIG,
  N_STATEMENTS
};

static const char *const statements[N_STATEMENTS] = {
    [ADD_METRICS] = "INSERT INTO metrics (run_id, run_name, timestamp, metrics,"
                    " step) VALUES (?1, ?2, ?3, ?4, ?5)",
    [DROP_METRICS] = "DELETE FROM metrics WHERE run_id = ?1 AND step >= ?5",
    [ADD_CONFIG] = "INSERT INTO configs (run_id, run_name, created_at, config) "
                   "VALUES (?1, ?2, ?3, ?4)",
    [DROP_CONFIG] = "DELETE FROM configs WHERE run_id = ?1",
    [FIND_CONFIG] = "SELECT id FROM configs WHERE run_id = ?1"};

typedef struct {
  const cli_t *cli;
  const char *path;
  int is_live;
  sqlite3 *db; /* NULL: closed */
  sqlite3_stmt *statements[N_STATEMENTS];
  int is_writing; /* a transaction is open */
  const report_data_t *data;
  char *id;             /* of the run; NULL: not begun */
  sqlite3_int64 config; /* the row of the configuration, which only a new writer
                           of the run replaces */
  double now_s;
} writer_t;

/* ---- The database ---- */

static int error_of(int code) {
  return code == SQLITE_OK || code == SQLITE_DONE ? TNK_OK
         : code == SQLITE_NOMEM                   ? TNK_ENOMEM
                                                  : TNK_EFILE;
}

static int run_text(const writer_t *writer, const char *text) {
  return error_of(sqlite3_exec(writer->db, text, NULL, NULL, NULL));
}

/* Run a statement. Texts that it does not have are NULL. */
static int run(const writer_t *writer, int which, const char *timestamp,
               const char *json, int64_t step) {
  const char *const texts[] = {writer->id, writer->data->run.name, timestamp,
                               json};
  sqlite3_stmt *statement = writer->statements[which];
  const int n = sqlite3_bind_parameter_count(statement);
  int code = SQLITE_OK;

  for (int i = 0; i < 4 && i < n && code == SQLITE_OK; i++)
    code = sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
  if (code == SQLITE_OK && n == 5)
    code = sqlite3_bind_int64(statement, 5, step);
  if (code == SQLITE_OK)
    code = sqlite3_step(statement);
  (void)sqlite3_reset(statement);
  return error_of(code);
}

static int open_project(writer_t *writer) {
  int code = sqlite3_open_v2(writer->path, &writer->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);

  if (code != SQLITE_OK)
    return error_of(code);
  (void)sqlite3_busy_timeout(writer->db, BUSY_MS);
  return TNK_OK;
}

/* A transaction that was not committed is undone. */
static void close_project(writer_t *writer) {
  for (int i = 0; i < N_STATEMENTS; i++) {
    (void)sqlite3_finalize(writer->statements[i]);
    writer->statements[i] = NULL;
  }
  (void)sqlite3_close(writer->db);
  writer->db = NULL;
  writer->is_writing = 0;
}

/* Begin a transaction. The tables are made in the first one. */
static int begin_writing(writer_t *writer) {
  int err = writer->db == NULL ? open_project(writer) : TNK_OK;

  if (err != TNK_OK || writer->is_writing)
    return err;
  err = run_text(writer, "BEGIN IMMEDIATE");
  writer->is_writing = err == TNK_OK;
  if (err == TNK_OK)
    err = run_text(writer, tables);
  for (int i = 0; i < N_STATEMENTS && err == TNK_OK; i++)
    if (writer->statements[i] == NULL)
      err = error_of(sqlite3_prepare_v2(writer->db, statements[i], -1,
                                        &writer->statements[i], NULL));
  return err;
}

static int end_writing(writer_t *writer) {
  const int err = run_text(writer, "COMMIT");

  if (err == TNK_OK)
    writer->is_writing = 0;
  return err;
}

/* Report an error, and undo the transaction. */
static int failed(writer_t *writer, int err) {
  const int cause = errno;
  const int code = writer->db != NULL ? sqlite3_errcode(writer->db) : SQLITE_OK;
  int status;

  if (err == TNK_ENOMEM)
    status = cli_fail(writer->cli, CLI_EXIT_FAILED, "out of memory");
  else if (err == TNK_ECANCELED)
    status = cli_fail(writer->cli, CLI_EXIT_FILE,
                      "%s: another process has replaced the run", writer->path);
  else
    status = cli_fail(writer->cli, CLI_EXIT_FILE, "%s: %s", writer->path,
                      code != SQLITE_OK && code != SQLITE_DONE
                          ? sqlite3_errmsg(writer->db)
                          : strerror(cause));
  close_project(writer);
  return status;
}

/* ---- The rows ---- */

/* In the form of ISO 8601. */
static void write_time(char *text, size_t n, double time_s) {
  const time_t whole = (time_t)floor(time_s);
  const int us = (int)((time_s - floor(time_s)) * 1e6);
  struct tm tm = {0};
  char part[32];

  if (gmtime_r(&whole, &tm) == NULL ||
      strftime(part, sizeof(part), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
    part[0] = '\0';
  (void)snprintf(text, n, "%s.%06d+00:00", part, us);
}

/* The numbers of a line. trackio writes NaN as a string. */
static json_t *numbers_of(const json_t *line) {
  json_t *numbers = json_object();
  const char *key;
  json_t *value;
  int failed = numbers == NULL;

  json_object_foreach((json_t *)line, key, value) {
    if (failed || strcmp(key, "step") == 0)
      continue;
    if (json_is_null(value))
      failed = json_object_set_new(numbers, key, json_string("NaN")) != 0;
    else if (json_is_number(value))
      failed = json_object_set(numbers, key, value) != 0;
  }
  if (!failed)
    return numbers;
  json_decref(numbers);
  return NULL;
}

/* The time is that of this program if it is not known. */
static int put_json(const writer_t *writer, int which, const json_t *json,
                    double time_s, int64_t step) {
  char timestamp[64];
  char *text = json_dumps(json, JSON_COMPACT);
  int err;

  if (text == NULL)
    return TNK_ENOMEM;
  write_time(timestamp, sizeof(timestamp), time_s > 0 ? time_s : writer->now_s);
  err = run(writer, which, timestamp, text, step);
  tnk__json_free_string(text);
  return err;
}

static int put_row(writer_t *writer, const report_row_t *row) {
  json_t *numbers = numbers_of(row->line);
  int err = numbers != NULL ? TNK_OK : TNK_ENOMEM;

  if (err == TNK_OK && row->is_back)
    err = run(writer, DROP_METRICS, NULL, NULL, row->step);
  if (err == TNK_OK && json_object_size(numbers) > 0)
    err = put_json(writer, ADD_METRICS, numbers, row->time_s, row->step);
  json_decref(numbers);
  return err;
}

/* The configuration, without values that look like secrets. */
static int put_config(writer_t *writer) {
  const report_config_t *config = &writer->data->config;
  const double time_s = report_steps_time(writer->data, 0);
  json_t *json = json_object();
  char timestamp[64];
  int failed = json == NULL;
  int err = TNK_ENOMEM;

  write_time(timestamp, sizeof(timestamp), time_s > 0 ? time_s : writer->now_s);
  for (size_t i = 0; i < config->n && !failed; i++)
    failed = json_object_set_new(json, config->settings[i].name,
                                 json_string(config->settings[i].value)) != 0;
  if (!failed)
    failed = json_object_set_new(json, "_Created", json_string(timestamp)) != 0;
  if (!failed)
    err = put_json(writer, ADD_CONFIG, json, time_s, 0);
  json_decref(json);
  if (err == TNK_OK)
    writer->config = sqlite3_last_insert_rowid(writer->db);
  return err;
}

/* Returns TNK_ECANCELED if another process has replaced the run. */
static int check_owner(const writer_t *writer) {
  sqlite3_stmt *statement = writer->statements[FIND_CONFIG];
  int code = sqlite3_bind_text(statement, 1, writer->id, -1, SQLITE_STATIC);
  int is_own = 0;

  if (code == SQLITE_OK)
    code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    is_own = sqlite3_column_int64(statement, 0) == writer->config;
    code = SQLITE_DONE;
  }
  (void)sqlite3_reset(statement);
  return code != SQLITE_DONE ? error_of(code) : is_own ? TNK_OK : TNK_ECANCELED;
}

/* ---- The target ---- */

static int begin(void *target, const report_data_t *data) {
  writer_t *writer = target;
  uv_timeval64_t now = {0};
  int err = TNK_OK;

  (void)uv_gettimeofday(&now);
  writer->now_s = (double)now.tv_sec;
  writer->data = data;
  free(writer->id);
  writer->id = report_steps_id(data);
  if (writer->id == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    err = begin_writing(writer);
  if (err == TNK_OK)
    err = run(writer, DROP_METRICS, NULL, NULL, INT64_MIN);
  if (err == TNK_OK)
    err = run(writer, DROP_CONFIG, NULL, NULL, 0);
  if (err == TNK_OK)
    err = put_config(writer);
  if (err == TNK_OK && writer->is_live)
    err = end_writing(writer);
  return err == TNK_OK ? CLI_EXIT_OK : failed(writer, err);
}

static int write_rows(void *target, const report_row_t *rows, size_t n) {
  writer_t *writer = target;
  int err = begin_writing(writer);

  if (err == TNK_OK && writer->is_live)
    err = check_owner(writer);
  for (size_t i = 0; i < n && err == TNK_OK; i++)
    err = put_row(writer, &rows[i]);
  if (err == TNK_OK && writer->is_live)
    err = end_writing(writer);
  return err == TNK_OK ? CLI_EXIT_OK : failed(writer, err);
}

/* trackio knows no end of a run. */
static int end(void *target, report_moment_t moment, int64_t last_step) {
  (void)target, (void)moment, (void)last_step;
  return CLI_EXIT_OK;
}

static int settle(void *target) {
  writer_t *writer = target;
  const int err = writer->is_writing ? end_writing(writer) : TNK_OK;

  return err == TNK_OK ? CLI_EXIT_OK : failed(writer, err);
}

static int rest(void *target, int status) {
  close_project(target);
  return status;
}

static void free_writer(void *target) {
  writer_t *writer = target;

  close_project(writer);
  free(writer->id);
  free(writer);
}

report_target_t report_trackio_open(const cli_t *cli, const char *path,
                                    int is_live) {
  static const report_target_class_t class_ = {.begin = begin,
                                               .write = write_rows,
                                               .end = end,
                                               .settle = settle,
                                               .rest = rest,
                                               .free = free_writer};
  writer_t *writer = calloc(1, sizeof(*writer));

  if (writer != NULL)
    *writer = (writer_t){.cli = cli, .path = path, .is_live = is_live};
  return (report_target_t){.class_ = &class_, .target = writer};
}
