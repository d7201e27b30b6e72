/* SPDX-License-Identifier: MIT */
/*
 * The specification lets an SDK ignore a variable that it does not understand.
 * Here each of them is an error, so that nobody waits for data that never
 * comes.
 */
#include "lib/otlp/settings.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/number.h"
#include "lib/base/text.h"
#include "lib/wire/format/http_write.h"
#include "tnk/error.h"

enum {
  MAX_SETTINGS = 1 << 20,
  MAX_NAME = 64, /* of a variable */
  MAX_MS = 24 * 3600 * 1000,
  MAX_SPANS = 1 << 20,
  MAX_PAIRS = 256
};

/* The reading of the variables. */
typedef struct {
  tnk__otlp_settings_t *out;
  tnk__otlp_env_t env;
  tnk__text_t why;
} reader_t;

static const char *const signal_names[TNK__OTLP_SIGNALS] = {"TRACES",
                                                            "METRICS"};

/* The value of a variable; an empty one counts as unset. */
static const char *find(const reader_t *reader, const char *name) {
  const char *value = reader->env(name);

  return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Find OTEL_EXPORTER_OTLP_<SIGNAL>_<word>, else OTEL_EXPORTER_OTLP_<word>.
 * `name` gets the name of the one that is used. */
static const char *find_for(const reader_t *reader, tnk__otlp_signal_t signal,
                            const char *word, char name[MAX_NAME]) {
  const char *value;

  (void)snprintf(name, MAX_NAME, "OTEL_EXPORTER_OTLP_%s_%s",
                 signal_names[signal], word);
  value = find(reader, name);
  if (value != NULL)
    return value;
  (void)snprintf(name, MAX_NAME, "OTEL_EXPORTER_OTLP_%s", word);
  return find(reader, name);
}

static int is_true(const char *text) {
  return text != NULL && strcasecmp(text, "true") == 0;
}

static int read_number(reader_t *reader, const char *name, const char *text,
                       uint64_t max, uint64_t *out) {
  if (text == NULL)
    return TNK_OK;
  if (tnk__text_u64(text, max, out) == TNK_OK && *out > 0)
    return TNK_OK;
  tnk__text_printf(&reader->why, "%s is not a number from 1 to %llu", name,
                   (unsigned long long)max);
  return TNK_EINVAL;
}

/* ---- Lists of pairs ---- */

static int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copy n bytes, decoded and without the blanks around them. Bytes that are no
 * escape are kept, as other SDKs do. */
static char *decode(tnk__arena_t *arena, const char *text, size_t n) {
  char *out;
  size_t to = 0;

  while (n > 0 && (*text == ' ' || *text == '\t'))
    text++, n--;
  while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
    n--;
  out = tnk__arena_alloc(arena, n + 1);
  for (size_t i = 0; out != NULL && i < n; i++) {
    const int high = text[i] == '%' && i + 2 < n ? digit(text[i + 1]) : -1;
    const int low = high >= 0 ? digit(text[i + 2]) : -1;

    if (low >= 0 && high * 16 + low != 0) {
      out[to++] = (char)(high * 16 + low);
      i += 2;
    } else {
      out[to++] = text[i];
    }
  }
  if (out != NULL)
    out[to] = '\0';
  return out;
}

int tnk__otlp_pairs_read(tnk_pair_t **out, size_t *n, tnk__arena_t *arena,
                         const char *text) {
  tnk_pair_t *pairs = tnk__arena_calloc(arena, MAX_PAIRS, sizeof(*pairs));
  size_t n_pairs = 0;

  *out = pairs;
  *n = 0;
  if (pairs == NULL)
    return TNK_ENOMEM;
  while (*text != '\0') {
    const size_t n_entry = strcspn(text, ",");
    const char *equals = memchr(text, '=', n_entry);
    const char *end = text + n_entry;

    if (strspn(text, " \t") < n_entry) {
      tnk_pair_t *pair = &pairs[n_pairs];

      if (equals == NULL || n_pairs == MAX_PAIRS)
        return TNK_EINVAL;
      pair->name = decode(arena, text, (size_t)(equals - text));
      pair->value = decode(arena, equals + 1, (size_t)(end - equals - 1));
      if (pair->name == NULL || pair->value == NULL)
        return TNK_ENOMEM;
      if (pair->name[0] == '\0')
        return TNK_EINVAL;
      n_pairs++;
    }
    text = *end == ',' ? end + 1 : end;
  }
  *n = n_pairs;
  return TNK_OK;
}

/* ---- Targets ---- */

/* OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER. */
static int read_exporter(reader_t *reader, tnk__otlp_signal_t signal,
                         int *is_on) {
  char name[MAX_NAME];
  const char *value;

  (void)snprintf(name, sizeof(name), "OTEL_%s_EXPORTER", signal_names[signal]);
  value = find(reader, name);
  *is_on = value == NULL || strcmp(value, "none") != 0;
  if (value == NULL || strcmp(value, "none") == 0 || strcmp(value, "otlp") == 0)
    return TNK_OK;
  tnk__text_printf(&reader->why, "%s must be otlp or none, not \"%.40s\"", name,
                   value);
  return TNK_EINVAL;
}

/* Returns the URL of the target, or NULL if none is set or without memory. */
static const char *find_url(reader_t *reader, tnk__otlp_signal_t signal,
                            char name[MAX_NAME], int *err) {
  static const char *const paths[] = {"/v1/traces", "/v1/metrics"};
  const char *value = find_for(reader, signal, "ENDPOINT", name);
  tnk__buf_t url;
  const char *text;
  size_t n;

  *err = TNK_OK;
  if (value == NULL || strcmp(name, "OTEL_EXPORTER_OTLP_ENDPOINT") != 0)
    return value;
  n = strcspn(value, "?#");
  while (n > 0 && value[n - 1] == '/')
    n--;
  tnk__buf_init(&url, reader->out->alloc, SIZE_MAX);
  tnk__buf_append(&url, value, n);
  tnk__buf_text(&url, paths[signal]);
  text = tnk__buf_cstr(&url);
  text = text != NULL ? tnk__arena_strdup(&reader->out->arena, text) : NULL;
  tnk__buf_deinit(&url);
  if (text == NULL)
    *err = TNK_ENOMEM;
  return text;
}

static int read_url(reader_t *reader, tnk__otlp_signal_t signal) {
  tnk__otlp_target_t *target = &reader->out->targets[signal];
  char name[MAX_NAME];
  int err;
  const char *url = find_url(reader, signal, name, &err);

  if (url == NULL)
    return err;
  err = tnk__location_parse(&target->at, reader->out->alloc, url);
  if (err == TNK_EINVAL)
    tnk__text_printf(&reader->why,
                     "%s is not an http:// or https:// URL without a user, "
                     "such as http://127.0.0.1:4318",
                     name);
  target->is_on = err == TNK_OK;
  return err;
}

static int read_headers(reader_t *reader, tnk__otlp_signal_t signal) {
  tnk__otlp_target_t *target = &reader->out->targets[signal];
  char name[MAX_NAME];
  const char *text = find_for(reader, signal, "HEADERS", name);
  int err;

  if (text == NULL)
    return TNK_OK;
  err = tnk__otlp_pairs_read(&target->headers, &target->n_headers,
                             &reader->out->arena, text);
  if (err == TNK_EINVAL)
    tnk__text_printf(&reader->why,
                     "%s is not a list such as name=value,name=value", name);
  for (size_t i = 0; err == TNK_OK && i < target->n_headers; i++) {
    if (tnk__http_is_token(target->headers[i].name) &&
        tnk__http_is_field_value(target->headers[i].value))
      continue;
    tnk__text_printf(&reader->why, "header %zu of %s cannot be sent", i + 1,
                     name);
    err = TNK_EINVAL;
  }
  return err;
}

/* A variable that has one of two values, or no value. */
static int read_choice(reader_t *reader, tnk__otlp_signal_t signal,
                       const char *word, const char *yes, const char *no,
                       int *out) {
  char name[MAX_NAME];
  const char *value = find_for(reader, signal, word, name);

  *out = value != NULL && strcmp(value, yes) == 0;
  if (value == NULL || *out || (no != NULL && strcmp(value, no) == 0))
    return TNK_OK;
  tnk__text_printf(&reader->why, "%s must be %s%s%s, not \"%.40s\"", name, yes,
                   no != NULL ? " or " : "", no != NULL ? no : "", value);
  return TNK_EINVAL;
}

static int read_target(reader_t *reader, tnk__otlp_signal_t signal) {
  tnk__otlp_target_t *target = &reader->out->targets[signal];
  char name[MAX_NAME];
  const char *text;
  int is_on, is_protobuf;
  int err = read_exporter(reader, signal, &is_on);

  if (err != TNK_OK || !is_on)
    return err;
  err = read_url(reader, signal);
  if (err != TNK_OK || !target->is_on)
    return err;
  err = read_choice(reader, signal, "PROTOCOL", "http/protobuf", NULL,
                    &is_protobuf);
  if (err == TNK_OK)
    err = read_choice(reader, signal, "COMPRESSION", "gzip", "none",
                      &target->is_gzip);
  if (err == TNK_OK)
    err = read_headers(reader, signal);
  text = find_for(reader, signal, "TIMEOUT", name);
  target->timeout_ms = 10000;
  return err == TNK_OK
             ? read_number(reader, name, text, MAX_MS, &target->timeout_ms)
             : err;
}

/* ---- The sampler ---- */

/* Read a decimal number from 0 to 1, independent of the locale. Returns 0 if it
 * is none. */
static int read_fraction(const char *text, double *out) {
  double value = 0, unit = 1;
  size_t n_digits = 0;

  for (; *text >= '0' && *text <= '9'; text++, n_digits++)
    value = value * 10 + (*text - '0');
  if (*text == '.')
    for (text++; *text >= '0' && *text <= '9'; text++, n_digits++) {
      unit /= 10;
      value += unit * (*text - '0');
    }
  *out = value;
  return *text == '\0' && n_digits > 0 && value <= 1;
}

static int read_ratio(reader_t *reader) {
  const char *text = find(reader, "OTEL_TRACES_SAMPLER_ARG");

  reader->out->ratio = 1;
  if (text == NULL || read_fraction(text, &reader->out->ratio))
    return TNK_OK;
  tnk__text_printf(&reader->why,
                   "OTEL_TRACES_SAMPLER_ARG is not a decimal number from 0 to "
                   "1");
  return TNK_EINVAL;
}

static int read_sampler(reader_t *reader) {
  static const struct {
    const char *name;
    tnk__otlp_sampler_t sampler;
    int follows_parent;
  } rows[] = {{"parentbased_always_on", TNK__OTLP_ALWAYS_ON, 1},
              {"parentbased_always_off", TNK__OTLP_ALWAYS_OFF, 1},
              {"parentbased_traceidratio", TNK__OTLP_RATIO, 1},
              {"always_on", TNK__OTLP_ALWAYS_ON, 0},
              {"always_off", TNK__OTLP_ALWAYS_OFF, 0},
              {"traceidratio", TNK__OTLP_RATIO, 0}};
  const char *name = find(reader, "OTEL_TRACES_SAMPLER");
  size_t i = 0;

  while (name != NULL && i < sizeof(rows) / sizeof(*rows) &&
         strcmp(name, rows[i].name) != 0)
    i++;
  if (i == sizeof(rows) / sizeof(*rows)) {
    tnk__text_printf(&reader->why,
                     "OTEL_TRACES_SAMPLER must be always_on, always_off, "
                     "traceidratio, or one of them after parentbased_, not "
                     "\"%.40s\"",
                     name);
    return TNK_EINVAL;
  }
  reader->out->sampler = rows[i].sampler;
  reader->out->follows_parent = rows[i].follows_parent;
  return rows[i].sampler == TNK__OTLP_RATIO ? read_ratio(reader) : TNK_OK;
}

/* ---- The rest ---- */

static int read_resource(reader_t *reader) {
  tnk__otlp_settings_t *out = reader->out;
  const char *text = find(reader, "OTEL_RESOURCE_ATTRIBUTES");
  tnk_pair_t *pairs;
  int err;

  out->service_name = find(reader, "OTEL_SERVICE_NAME");
  if (out->service_name != NULL) {
    out->service_name = tnk__arena_strdup(&out->arena, out->service_name);
    if (out->service_name == NULL)
      return TNK_ENOMEM;
  }
  if (text == NULL)
    return TNK_OK;
  err = tnk__otlp_pairs_read(&pairs, &out->n_resource, &out->arena, text);
  if (err == TNK_EINVAL)
    tnk__text_printf(&reader->why, "OTEL_RESOURCE_ATTRIBUTES is not a list "
                                   "such as name=value,name=value");
  if (err != TNK_OK)
    return err;
  out->resource = tnk__arena_calloc(&out->arena, out->n_resource + 1,
                                    sizeof(*out->resource));
  if (out->resource == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < out->n_resource; i++)
    out->resource[i] =
        (tnk_otlp_attribute_t){.key = pairs[i].name, .text = pairs[i].value};
  return TNK_OK;
}

static int read_numbers(reader_t *reader) {
  tnk__otlp_settings_t *out = reader->out;
  const struct {
    const char *name;
    uint64_t fallback;
    uint64_t max;
    uint64_t *out;
  } rows[] = {
      {"OTEL_BSP_SCHEDULE_DELAY", 5000, MAX_MS, &out->batch_delay_ms},
      {"OTEL_BSP_EXPORT_TIMEOUT", 30000, MAX_MS, &out->batch_patience_ms},
      {"OTEL_BSP_MAX_QUEUE_SIZE", 2048, MAX_SPANS, &out->max_queue},
      {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, MAX_SPANS, &out->max_batch},
      {"OTEL_METRIC_EXPORT_INTERVAL", 60000, MAX_MS, &out->metrics_interval_ms},
      {"OTEL_METRIC_EXPORT_TIMEOUT", 30000, MAX_MS, &out->metrics_patience_ms}};
  int err = TNK_OK;

  for (size_t i = 0; err == TNK_OK && i < sizeof(rows) / sizeof(*rows); i++) {
    *rows[i].out = rows[i].fallback;
    err = read_number(reader, rows[i].name, find(reader, rows[i].name),
                      rows[i].max, rows[i].out);
  }
  if (out->max_batch > out->max_queue)
    out->max_batch = out->max_queue;
  return err;
}

static int read_files(reader_t *reader) {
  tnk__otlp_settings_t *out = reader->out;
  const struct {
    const char *name;
    const char **out;
  } rows[] = {{"OTEL_EXPORTER_OTLP_CERTIFICATE", &out->ca_file},
              {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &out->cert_file},
              {"OTEL_EXPORTER_OTLP_CLIENT_KEY", &out->key_file}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const char *path = find(reader, rows[i].name);

    *rows[i].out = path != NULL ? tnk__arena_strdup(&out->arena, path) : NULL;
    if (path != NULL && *rows[i].out == NULL)
      return TNK_ENOMEM;
  }
  if ((out->cert_file == NULL) == (out->key_file == NULL))
    return TNK_OK;
  tnk__text_printf(&reader->why,
                   "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and "
                   "OTEL_EXPORTER_OTLP_CLIENT_KEY need each other");
  return TNK_EINVAL;
}

int tnk__otlp_settings_read(tnk__otlp_settings_t *out,
                            const tnk_allocator_t *alloc, tnk__otlp_env_t env,
                            char *why, size_t why_size) {
  reader_t reader = {.out = out, .env = env};
  int is_cumulative;
  int err = TNK_OK;

  memset(out, 0, sizeof(*out));
  out->alloc = alloc;
  tnk__arena_init(&out->arena, alloc, MAX_SETTINGS);
  tnk__text_init(&reader.why, why, why_size);
  if (is_true(find(&reader, "OTEL_SDK_DISABLED")))
    return TNK_OK;
  for (int i = 0; err == TNK_OK && i < TNK__OTLP_SIGNALS; i++)
    err = read_target(&reader, (tnk__otlp_signal_t)i);
  if (err != TNK_OK || !tnk__otlp_settings_are_on(out))
    return err;
  err = read_choice(&reader, TNK__OTLP_METRICS, "TEMPORALITY_PREFERENCE",
                    "cumulative", NULL, &is_cumulative);
  if (err == TNK_OK)
    err = read_sampler(&reader);
  if (err == TNK_OK)
    err = read_resource(&reader);
  if (err == TNK_OK)
    err = read_files(&reader);
  return err == TNK_OK ? read_numbers(&reader) : err;
}

void tnk__otlp_settings_deinit(tnk__otlp_settings_t *settings) {
  for (int i = 0; settings->alloc != NULL && i < TNK__OTLP_SIGNALS; i++)
    tnk__location_deinit(&settings->targets[i].at, settings->alloc);
  if (settings->alloc != NULL)
    tnk__arena_deinit_secret(&settings->arena);
  settings->alloc = NULL;
}

int tnk__otlp_settings_are_on(const tnk__otlp_settings_t *settings) {
  for (int i = 0; i < TNK__OTLP_SIGNALS; i++)
    if (settings->targets[i].is_on)
      return 1;
  return 0;
}

int tnk__otlp_target_leaks(const tnk__otlp_target_t *target, const char *text) {
  for (size_t i = 0; i < target->n_headers; i++)
    if (target->headers[i].value[0] != '\0' &&
        strstr(text, target->headers[i].value) != NULL)
      return 1;
  return 0;
}
