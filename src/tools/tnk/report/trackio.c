/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/trackio.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/tnk/report/steps.h"

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
enum { ADD_METRICS, DROP_METRICS, ADD_CONFIG, DROP_CONFIG, N_STATEMENTS };

static const char *const statements[N_STATEMENTS] = {
    [ADD_METRICS] = "INSERT INTO metrics (run_id, run_name, timestamp, metrics,"
                    " step) VALUES (?1, ?2, ?3, ?4, ?5)",
    [DROP_METRICS] = "DELETE FROM metrics WHERE run_id = ?1 AND step >= ?5",
    [ADD_CONFIG] = "INSERT INTO configs (run_id, run_name, created_at, config) "
                   "VALUES (?1, ?2, ?3, ?4)",
    [DROP_CONFIG] = "DELETE FROM configs WHERE run_id = ?1"};

typedef struct {
  sqlite3 *db;
  sqlite3_stmt *statements[N_STATEMENTS];
  const report_data_t *data;
  char *id; /* of the run */
  int64_t now_s;
  report_steps_t steps;
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

static int open_project(writer_t *writer, const char *path) {
  int code = sqlite3_open_v2(path, &writer->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
  int err;

  if (code != SQLITE_OK)
    return error_of(code);
  (void)sqlite3_busy_timeout(writer->db, BUSY_MS);
  err = run_text(writer, "BEGIN IMMEDIATE");
  if (err == TNK_OK)
    err = run_text(writer, tables);
  for (int i = 0; i < N_STATEMENTS && err == TNK_OK; i++)
    err = error_of(sqlite3_prepare_v2(writer->db, statements[i], -1,
                                      &writer->statements[i], NULL));
  return err;
}

static void close_project(writer_t *writer) {
  for (int i = 0; i < N_STATEMENTS; i++)
    (void)sqlite3_finalize(writer->statements[i]);
  /* A transaction that was not committed is undone. */
  (void)sqlite3_close(writer->db);
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

/* The time of a step, or of this program if it is not known. */
static void write_time_of(const writer_t *writer, char *text, size_t n,
                          int64_t step) {
  const double time_s = report_steps_time(writer->data, step);

  write_time(text, n, time_s > 0 ? time_s : (double)writer->now_s);
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

static int put_json(const writer_t *writer, int which, const json_t *json,
                    int64_t step) {
  char timestamp[64];
  char *text = json_dumps(json, JSON_COMPACT);
  int err;

  if (text == NULL)
    return TNK_ENOMEM;
  write_time_of(writer, timestamp, sizeof(timestamp), step);
  err = run(writer, which, timestamp, text, step);
  tnk__json_free_string(text);
  return err;
}

static int put_line(const json_t *line, void *user) {
  writer_t *writer = user;
  json_t *numbers;
  int64_t step;
  int is_back;
  int err = TNK_OK;

  if (!report_steps_next(&writer->steps, line, &step, &is_back))
    return TNK_EPROTO;
  if (is_back)
    err = run(writer, DROP_METRICS, NULL, NULL, step);
  numbers = numbers_of(line);
  if (numbers == NULL)
    return TNK_ENOMEM;
  if (err == TNK_OK && json_object_size(numbers) > 0)
    err = put_json(writer, ADD_METRICS, numbers, step);
  json_decref(numbers);
  return err;
}

/* The configuration, without values that look like secrets. */
static int put_config(writer_t *writer) {
  const report_config_t *config = &writer->data->config;
  json_t *json = json_object();
  char timestamp[64];
  int failed = json == NULL;
  int err = TNK_ENOMEM;

  write_time_of(writer, timestamp, sizeof(timestamp), 0);
  for (size_t i = 0; i < config->n && !failed; i++)
    failed = json_object_set_new(json, config->settings[i].name,
                                 json_string(config->settings[i].value)) != 0;
  if (!failed)
    failed = json_object_set_new(json, "_Created", json_string(timestamp)) != 0;
  if (!failed)
    err = put_json(writer, ADD_CONFIG, json, 0);
  json_decref(json);
  return err;
}

static int put_all(writer_t *writer) {
  report_lines_t lines;
  int err = run(writer, DROP_METRICS, NULL, NULL, INT64_MIN);

  if (err == TNK_OK)
    err = run(writer, DROP_CONFIG, NULL, NULL, 0);
  if (err == TNK_OK)
    err = put_config(writer);
  if (err == TNK_OK)
    err =
        report_lines_read(&lines, writer->data->run.metrics, put_line, writer);
  return err == TNK_OK ? run_text(writer, "COMMIT") : err;
}

int report_trackio_put(const char *path, const report_data_t *data,
                       char why[REPORT_MAX_WHY]) {
  writer_t writer = {.data = data, .now_s = (int64_t)time(NULL)};
  int err = TNK_ENOMEM;

  report_steps_init(&writer.steps, &data->run);
  writer.id = report_steps_id(data);
  if (writer.id != NULL)
    err = open_project(&writer, path);
  if (err == TNK_OK)
    err = put_all(&writer);
  if (err == TNK_EFILE) {
    const int code = writer.db != NULL ? sqlite3_errcode(writer.db) : SQLITE_OK;

    (void)snprintf(why, REPORT_MAX_WHY, "%s",
                   code != SQLITE_OK && code != SQLITE_DONE
                       ? sqlite3_errmsg(writer.db)
                       : strerror(errno));
  }
  close_project(&writer);
  free(writer.id);
  return err;
}
