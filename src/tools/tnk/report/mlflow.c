/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/mlflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/url.h"
#include "tnk/error.h"
#include "tools/tnk/web/web.h"

#define API "/api/2.0/mlflow/"
#define HINT_URL "Check that a server of MLflow listens at this address."
#define HINT_KEY                                                               \
  "Set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and "                \
  "MLFLOW_TRACKING_PASSWORD."

/* Limits of the server. */
enum {
  MAX_METRICS = 1000, /* of a request */
  MAX_PARAMS = 100,
  MAX_KEY = 250,
  MAX_VALUE = 6000, /* bytes of a parameter */
  MAX_AUTHORIZATION = 16384,
  MAX_TARGET = 900
};

typedef struct {
  const cli_t *cli;
  const char *url;
  const char *name; /* of the experiment */
  cli_web_t web;
  int is_open;              /* the server is */
  tnk__buf_t authorization; /* empty: none */
  const report_data_t *data;
  char *id; /* by which the run is found again */
  char *experiment;
  char *run;       /* the server's id of the new run */
  json_t *earlier; /* runs to delete when the new one has all steps */
  json_t *metrics; /* of the rows that are being written; NULL: none */
  size_t n_sent;   /* of them */
  int64_t now_ms;
} writer_t;

static int no_memory(const writer_t *writer) {
  return cli_fail(writer->cli, CLI_EXIT_FAILED, "out of memory");
}

/* ---- Requests ---- */

static int not_mlflow(const writer_t *writer) {
  return cli_report(
      writer->cli,
      &(cli_problem_t){.status = CLI_EXIT_FAILED,
                       .message = "the answer is not one of MLflow",
                       .hint = HINT_URL});
}

/* Report an answer that is an error. `json` is its body, or NULL. */
static int refused(const writer_t *writer, int http_status,
                   const json_t *json) {
  const char *text = tnk__json_str(json, "message");
  const int is_key = http_status == 401 || http_status == 403;
  char own[128];

  if (http_status == 200)
    return not_mlflow(writer);
  (void)snprintf(own, sizeof(own), "the server answers with status %d",
                 http_status);
  return cli_report(
      writer->cli,
      &(cli_problem_t){.status = is_key ? CLI_EXIT_AUTH : CLI_EXIT_FAILED,
                       .message = text != NULL ? text : own,
                       .code = tnk__json_str(json, "error_code"),
                       .hint = is_key         ? HINT_KEY
                               : text == NULL ? HINT_URL
                                              : NULL,
                       .http_status = http_status});
}

/* Send a request and take the object of the answer, which the caller drops.
 * `body` is NULL for GET. *is_new (or NULL): 0 if the server says that the
 * thing exists, which is no failure then. */
static int request(writer_t *writer, const char *path, const char *body,
                   json_t **out, int *is_new) {
  const tnk_pair_t header = {"Authorization",
                             (const char *)writer->authorization.data};
  cli_web_answer_t answer = {0};
  const char *code;
  int status = cli_web_send(
      &writer->web,
      &(cli_web_request_t){.method = body != NULL ? "POST" : "GET",
                           .path = path,
                           .headers = &header,
                           .n_headers = writer->authorization.len > 0,
                           .body = body,
                           .why_header = "the key of MLflow has characters "
                                         "that no request can have",
                           .hint_header = HINT_KEY},
      &answer);

  *out = NULL;
  if (status == CLI_EXIT_OK &&
      tnk__json_parse_object(out, answer.body.data, answer.body.len) != TNK_OK)
    *out = NULL;
  code = tnk__json_str(*out, "error_code");
  if (is_new != NULL)
    *is_new = code == NULL || strcmp(code, "RESOURCE_ALREADY_EXISTS") != 0;
  if (status == CLI_EXIT_OK && (answer.status != 200 || *out == NULL) &&
      (is_new == NULL || *is_new))
    status = refused(writer, answer.status, *out);
  cli_web_drop(&answer);
  return status;
}

/* The same with an object, which is dropped. NULL: there was no memory for
 * it. */
static int ask(writer_t *writer, const char *path, json_t *body, json_t **out,
               int *is_new) {
  char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
  int status;

  json_decref(body);
  *out = NULL;
  if (text == NULL)
    return no_memory(writer);
  status = request(writer, path, text, out, is_new);
  tnk__json_free_string(text);
  return status;
}

/* The same without an answer that matters. */
static int tell(writer_t *writer, const char *path, json_t *body) {
  json_t *answer;
  const int status = ask(writer, path, body, &answer, NULL);

  json_decref(answer);
  return status;
}

/* Copy a text of an answer that must be there. */
static int take_text(const writer_t *writer, char **out, const json_t *from,
                     const char *name) {
  const char *text = tnk__json_str(from, name);

  if (text == NULL)
    return not_mlflow(writer);
  *out = strdup(text);
  return *out != NULL ? CLI_EXIT_OK : no_memory(writer);
}

/* ---- Experiments and runs ---- */

static int find_experiment(writer_t *writer, const char *name) {
  static const char path[] = API "experiments/get-by-name?experiment_name=";
  json_t *answer = NULL;
  tnk__buf_t target;
  int status;

  tnk__buf_init(&target, tnk__allocator_default(), MAX_TARGET);
  tnk__buf_append(&target, path, sizeof(path) - 1);
  tnk__url_put_query(&target, name);
  tnk__buf_byte(&target, 0);
  if (target.err != TNK_OK)
    status = cli_fail(writer->cli, CLI_EXIT_USAGE,
                      "the name of the experiment is too long");
  else
    status = request(writer, (const char *)target.data, NULL, &answer, NULL);
  if (status == CLI_EXIT_OK)
    status = take_text(writer, &writer->experiment,
                       tnk__json_obj(answer, "experiment"), "experiment_id");
  json_decref(answer);
  tnk__buf_deinit(&target);
  return status;
}

static int open_experiment(writer_t *writer) {
  json_t *answer;
  int is_new;
  int status;

  if (writer->experiment != NULL)
    return CLI_EXIT_OK;
  status = ask(writer, API "experiments/create",
               json_pack("{s:s}", "name", writer->name), &answer, &is_new);
  if (status == CLI_EXIT_OK && is_new)
    status = take_text(writer, &writer->experiment, answer, "experiment_id");
  else if (status == CLI_EXIT_OK)
    status = find_experiment(writer, writer->name);
  json_decref(answer);
  return status;
}

/* The runs that were written before. The caller drops *out. */
static int find_earlier(writer_t *writer) {
  char filter[512];

  json_decref(writer->earlier);
  writer->earlier = NULL;
  if ((size_t)snprintf(filter, sizeof(filter), "tags.`tnk.run` = '%s'",
                       writer->id) >= sizeof(filter))
    return cli_fail(writer->cli, CLI_EXIT_USAGE,
                    "the name of the run is too long");
  return ask(writer, API "runs/search",
             json_pack("{s:[s],s:s,s:i}", "experiment_ids", writer->experiment,
                       "filter", filter, "max_results", 1000),
             &writer->earlier, NULL);
}

static int delete_earlier(writer_t *writer) {
  json_t *runs = json_object_get(writer->earlier, "runs");
  int status = CLI_EXIT_OK;

  while (json_array_size(runs) > 0 && status == CLI_EXIT_OK) {
    const char *id =
        tnk__json_str(tnk__json_obj(json_array_get(runs, 0), "info"), "run_id");

    if (id != NULL)
      status =
          tell(writer, API "runs/delete", json_pack("{s:s}", "run_id", id));
    if (status == CLI_EXIT_OK)
      json_array_remove(runs, 0);
  }
  return status;
}

/* Milliseconds; those of this program if the time is not known. */
static int64_t time_of(const writer_t *writer, double time_s) {
  return time_s > 0 ? (int64_t)(time_s * 1000) : writer->now_ms;
}

static int64_t time_of_step(const writer_t *writer, int64_t step) {
  return time_of(writer, report_steps_time(writer->data, step));
}

static int create_run(writer_t *writer) {
  json_t *answer;
  int status;

  free(writer->run);
  writer->run = NULL;
  status = ask(writer, API "runs/create",
               json_pack("{s:s,s:s,s:I,s:[{s:s,s:s}]}", "experiment_id",
                         writer->experiment, "run_name", writer->data->run.name,
                         "start_time", (json_int_t)time_of_step(writer, 0),
                         "tags", "key", "tnk.run", "value", writer->id),
               &answer, NULL);

  if (status == CLI_EXIT_OK)
    status = take_text(writer, &writer->run,
                       tnk__json_obj(tnk__json_obj(answer, "run"), "info"),
                       "run_id");
  json_decref(answer);
  return status;
}

static int end_run(writer_t *writer, report_moment_t moment,
                   int64_t last_step) {
  static const char *const words[] = {[REPORT_RUNNING] = "RUNNING",
                                      [REPORT_LEFT] = "RUNNING",
                                      [REPORT_KILLED] = "KILLED",
                                      [REPORT_FINISHED] = "FINISHED"};
  json_t *body =
      json_pack("{s:s,s:s}", "run_id", writer->run, "status", words[moment]);

  if (body != NULL && (moment == REPORT_KILLED || moment == REPORT_FINISHED) &&
      json_object_set_new(
          body, "end_time",
          json_integer((json_int_t)time_of_step(writer, last_step))) != 0) {
    json_decref(body);
    body = NULL;
  }
  return tell(writer, API "runs/update", body);
}

/* ---- Metrics and parameters ---- */

/* The server permits fewer characters. */
static void write_key(char key[MAX_KEY + 1], const char *name) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ ";

  (void)snprintf(key, MAX_KEY + 1, "%s", name);
  for (char *c = key; *(c += strspn(c, allowed)) != '\0';)
    *c = '_';
}

static int add_metric(const writer_t *writer, json_t *metrics, const char *name,
                      const json_t *value, const report_row_t *row) {
  char key[MAX_KEY + 1];
  json_t *one;

  write_key(key, name);
  one = json_pack("{s:s,s:I,s:I}", "key", key, "step", (json_int_t)row->step,
                  "timestamp", (json_int_t)time_of(writer, row->time_s));
  if (json_object_set_new(one, "value",
                          json_is_null(value)
                              ? json_string("NaN")
                              : json_real(json_number_value(value))) != 0 ||
      json_array_append_new(metrics, json_incref(one)) != 0) {
    json_decref(one);
    return no_memory(writer);
  }
  json_decref(one);
  return CLI_EXIT_OK;
}

static int add_row(const writer_t *writer, json_t *metrics,
                   const report_row_t *row) {
  const char *key;
  json_t *value;
  int status = CLI_EXIT_OK;

  json_object_foreach(row->line, key, value) {
    if (status != CLI_EXIT_OK || strcmp(key, "step") == 0 ||
        (!json_is_number(value) && !json_is_null(value)))
      continue;
    status = add_metric(writer, metrics, key, value, row);
  }
  return status;
}

static int collect(writer_t *writer, const report_row_t *rows, size_t n) {
  json_t *metrics = json_array();
  int status = metrics != NULL ? CLI_EXIT_OK : no_memory(writer);

  for (size_t i = 0; i < n && status == CLI_EXIT_OK; i++)
    status = add_row(writer, metrics, &rows[i]);
  if (status == CLI_EXIT_OK)
    writer->metrics = metrics;
  else
    json_decref(metrics);
  writer->n_sent = 0;
  return status;
}

/* Send the metrics that were not sent yet. */
static int send_metrics(writer_t *writer) {
  const size_t n = json_array_size(writer->metrics);

  while (writer->n_sent < n) {
    json_t *some = json_array();
    size_t at = writer->n_sent;
    int failed = some == NULL;
    int status;

    while (at < n && json_array_size(some) < MAX_METRICS && !failed)
      failed =
          json_array_append(some, json_array_get(writer->metrics, at++)) != 0;
    if (failed) {
      json_decref(some);
      return no_memory(writer);
    }
    status =
        tell(writer, API "runs/log-batch",
             json_pack("{s:s,s:o}", "run_id", writer->run, "metrics", some));
    if (status != CLI_EXIT_OK)
      return status;
    writer->n_sent = at;
  }
  return CLI_EXIT_OK;
}

static void drop_metrics(writer_t *writer) {
  json_decref(writer->metrics);
  writer->metrics = NULL;
}

/* A long value is cut, but no character. */
static size_t length_of(const char *value) {
  size_t n = strlen(value);

  if (n <= MAX_VALUE)
    return n;
  for (n = MAX_VALUE; n > 0 && ((unsigned char)value[n] & 0xc0) == 0x80;)
    n--;
  return n;
}

/* The configuration, without values that look like secrets. Two names that the
 * server does not distinguish are one parameter. */
static int put_params(writer_t *writer) {
  const report_config_t *config = &writer->data->config;
  json_t *seen = json_object();
  json_t *params = json_array();
  int failed = seen == NULL || params == NULL;
  int status = CLI_EXIT_OK;

  for (size_t i = 0; i < config->n && !failed && status == CLI_EXIT_OK; i++) {
    const char *value = config->settings[i].value;
    char key[MAX_KEY + 1];

    write_key(key, config->settings[i].name);
    if (json_object_get(seen, key) != NULL)
      continue;
    failed = json_object_set_new(seen, key, json_true()) != 0 ||
             json_array_append_new(params,
                                   json_pack("{s:s,s:s%}", "key", key, "value",
                                             value, length_of(value))) != 0;
    if (!failed && json_array_size(params) == MAX_PARAMS) {
      status =
          tell(writer, API "runs/log-batch",
               json_pack("{s:s,s:O}", "run_id", writer->run, "params", params));
      json_array_clear(params);
    }
  }
  if (!failed && status == CLI_EXIT_OK && json_array_size(params) > 0)
    status =
        tell(writer, API "runs/log-batch",
             json_pack("{s:s,s:O}", "run_id", writer->run, "params", params));
  json_decref(seen);
  json_decref(params);
  return failed ? no_memory(writer) : status;
}

/* The value of the header, or nothing. */
static int make_authorization(tnk__buf_t *out) {
  const char *token = tnk__env("MLFLOW_TRACKING_TOKEN");
  const char *user = tnk__env("MLFLOW_TRACKING_USERNAME");
  const char *password = tnk__env("MLFLOW_TRACKING_PASSWORD");
  tnk__buf_t plain;

  tnk__buf_init(&plain, tnk__allocator_default(), MAX_AUTHORIZATION);
  tnk__buf_keep_secret(&plain);
  if (user != NULL && password != NULL) {
    tnk__buf_append(&plain, user, strlen(user));
    tnk__buf_byte(&plain, ':');
    tnk__buf_append(&plain, password, strlen(password));
    tnk__buf_append(out, "Basic ", 6);
    tnk__base64_write(out, plain.data, plain.len);
  } else if (token != NULL) {
    tnk__buf_append(out, "Bearer ", 7);
    tnk__buf_append(out, token, strlen(token));
  }
  if (out->len > 0)
    tnk__buf_byte(out, 0);
  if (plain.err != TNK_OK)
    out->err = plain.err;
  tnk__buf_deinit(&plain);
  return out->err;
}

/* ---- The target ---- */

static int open_server(writer_t *writer) {
  if (writer->is_open)
    return CLI_EXIT_OK;
  tnk__buf_clear(&writer->authorization);
  if (make_authorization(&writer->authorization) != TNK_OK)
    return cli_fail(writer->cli, CLI_EXIT_USAGE,
                    "the key of MLflow is too long");
  writer->is_open = 1;
  return cli_web_open(&writer->web, writer->cli, writer->url, "mlflow",
                      HINT_URL);
}

static int begin(void *target, const report_data_t *data) {
  writer_t *writer = target;
  uv_timeval64_t now = {0};
  int status = CLI_EXIT_OK;

  (void)uv_gettimeofday(&now);
  writer->now_ms = now.tv_sec * 1000;
  writer->data = data;
  drop_metrics(writer);
  free(writer->id);
  writer->id = report_steps_id(data);
  if (writer->id == NULL)
    status = no_memory(writer);
  if (status == CLI_EXIT_OK)
    status = open_server(writer);
  if (status == CLI_EXIT_OK)
    status = open_experiment(writer);
  if (status == CLI_EXIT_OK)
    status = find_earlier(writer);
  if (status == CLI_EXIT_OK)
    status = create_run(writer);
  return status == CLI_EXIT_OK ? put_params(writer) : status;
}

static int write_rows(void *target, const report_row_t *rows, size_t n) {
  writer_t *writer = target;
  int status = open_server(writer);

  if (status == CLI_EXIT_OK && writer->metrics == NULL)
    status = collect(writer, rows, n);
  if (status == CLI_EXIT_OK)
    status = send_metrics(writer);
  if (status == CLI_EXIT_OK)
    drop_metrics(writer);
  return status;
}

static int end(void *target, report_moment_t moment, int64_t last_step) {
  writer_t *writer = target;
  const int status = open_server(writer);

  return status == CLI_EXIT_OK ? end_run(writer, moment, last_step) : status;
}

static int settle(void *target) {
  writer_t *writer = target;
  int status = open_server(writer);

  if (status == CLI_EXIT_OK)
    status = delete_earlier(writer);
  return status;
}

static int rest(void *target, int status) {
  writer_t *writer = target;

  if (writer->is_open)
    status = cli_web_close(&writer->web, status);
  writer->is_open = 0;
  return status;
}

static void free_writer(void *target) {
  writer_t *writer = target;

  (void)rest(writer, CLI_EXIT_OK);
  drop_metrics(writer);
  json_decref(writer->earlier);
  free(writer->id);
  free(writer->run);
  free(writer->experiment);
  tnk__buf_deinit(&writer->authorization);
  free(writer);
}

report_target_t report_mlflow_open(const cli_t *cli, const char *url,
                                   const char *experiment) {
  static const report_target_class_t class_ = {.begin = begin,
                                               .write = write_rows,
                                               .end = end,
                                               .settle = settle,
                                               .rest = rest,
                                               .free = free_writer};
  writer_t *writer = calloc(1, sizeof(*writer));

  if (writer != NULL) {
    *writer = (writer_t){.cli = cli, .url = url, .name = experiment};
    tnk__buf_init(&writer->authorization, tnk__allocator_default(),
                  MAX_AUTHORIZATION);
    tnk__buf_keep_secret(&writer->authorization);
  }
  return (report_target_t){.class_ = &class_, .target = writer};
}
