/*
 *   SENDING --each part--> SENDING --the last--> COMPLETING --> VERIFYING
 *   SENDING (all at once) --> VERIFYING, if the hub wants that --> done
 */
#include "lib/files/push/large.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/files/push/message.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

enum { MAX_BODY = 4 * 1024 * 1024 };

static const char lfs[] = "application/vnd.git-lfs+json";

static void on_answer(tnk__ask_t *ask, const tnk__http_result_t *result,
                      tnk__error_t *error);
static void on_block(tnk__source_t *source);

void tnk__large_init(tnk__large_t *large, tnk__hub_t *hub) {
  memset(large, 0, sizeof(*large));
  large->hub = hub;
  tnk__ask_init(&large->ask, hub);
  large->ask.done = on_answer;
  tnk__buf_init(&large->parts, &hub->context->alloc, MAX_BODY);
  tnk__buf_init(&large->body, &hub->context->alloc, 2 * MAX_BODY);
}

void tnk__large_cancel(tnk__large_t *large) {
  tnk__ask_cancel(&large->ask);
  tnk__source_free(large->source);
  large->source = NULL;
  tnk__buf_deinit(&large->parts);
  tnk__buf_deinit(&large->body);
}

/* ---- Requests ---- */

/* An address from the hub must not be less secure than the hub. */
static int check_url(const tnk__large_t *large, const char *url) {
  const char *endpoint = large->hub->config->options.endpoint;

  if (url == NULL)
    return TNK_EPROTO;
  return strncmp(url, "https://", 8) == 0 ||
                 (strncmp(endpoint, "http://", 7) == 0 &&
                  strncmp(url, "http://", 7) == 0)
             ? TNK_OK
             : TNK_EPROTO;
}

static int start(tnk__large_t *large, const tnk__ask_request_t *request) {
  const int err = check_url(large, request->url);

  return err == TNK_OK ? tnk__ask_start(&large->ask, request) : err;
}

static const char *part_url(const tnk__large_t *large, uint32_t part) {
  char key[16];

  snprintf(key, sizeof(key), "%" PRIu32, part + 1);
  return tnk__json_str(tnk__json_obj(large->upload, "header"), key);
}

static int send_part(tnk__large_t *large) {
  const uint64_t at = large->part * large->part_size;
  const uint64_t left = large->file->n_bytes - at;
  const int is_part = large->part_size > 0;
  const tnk__ask_request_t request = {
      .what = is_part ? "upload a part" : "upload a file",
      .method = "PUT",
      .url = is_part ? part_url(large, large->part)
                     : tnk__json_str(large->upload, "href"),
      .accept = "*/*",
      .headers = large->headers,
      .n_headers = is_part ? 0 : large->n_headers,
      .feed = tnk__source_feed(
          large->source, at,
          is_part && large->part_size < left ? large->part_size : left)};

  return start(large, &request);
}

static int complete(tnk__large_t *large) {
  const tnk__ask_request_t request = {.what = "join the parts of a file",
                                      .method = "POST",
                                      .url =
                                          tnk__json_str(large->upload, "href"),
                                      .type = lfs,
                                      .accept = lfs,
                                      .body = large->body.data,
                                      .n_body = large->body.len};

  large->state = TNK__LARGE_COMPLETING;
  return start(large, &request);
}

static int verify(tnk__large_t *large) {
  const char *url = tnk__json_str(large->verify, "href");
  const char *endpoint = large->hub->config->options.endpoint;
  const size_t n = strlen(endpoint);
  const tnk__ask_request_t request = {
      .what = "verify a file",
      .method = "POST",
      .url = url,
      .type = "application/json",
      .has_token = url != NULL && strncmp(url, endpoint, n) == 0 &&
                   (url[n] == '/' || url[n] == '?'),
      .body = large->body.data,
      .n_body = large->body.len};

  large->state = TNK__LARGE_VERIFYING;
  return start(large, &request);
}

/* ---- The hub's answer ---- */

/* Parse a number, or a string of its digits. */
static int read_size(const json_t *header, uint64_t *out) {
  const char *text = NULL;
  int64_t size;

  if (json_object_get(header, "chunk_size") == NULL)
    return TNK_OK;
  if (tnk__json_get_int(header, "chunk_size", 1, INT64_MAX, &size) ==
      TNK__JSON_FOUND) {
    *out = (uint64_t)size;
    return TNK_OK;
  }
  text = tnk__json_str(header, "chunk_size");
  if (text == NULL || tnk__read_u64(&text, NULL, UINT64_MAX, out) != TNK_OK ||
      *out == 0)
    return TNK_EPROTO;
  return TNK_OK;
}

static int count_parts(tnk__large_t *large) {
  const uint64_t n_parts = (large->file->n_bytes - 1) / large->part_size + 1;

  if (n_parts > TNK__LARGE_MAX_PARTS)
    return TNK_EPROTO;
  large->n_parts = (uint32_t)n_parts;
  for (uint32_t i = 0; i < large->n_parts; i++)
    if (part_url(large, i) == NULL)
      return TNK_EPROTO;
  return TNK_OK;
}

static int is_ours(const char *name) {
  static const char *const names[] = {
      "host",   "connection", "content-length",   "accept-encoding",
      "accept", "user-agent", "transfer-encoding"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcasecmp(name, names[i]) == 0)
      return 1;
  return 0;
}

static void read_headers(tnk__large_t *large, const json_t *header) {
  union {
    const json_t *in;
    json_t *out;
  } object = {.in = header};
  const char *name;
  json_t *value;

  json_object_foreach(object.out, name, value) {
    if (!json_is_string(value) || is_ours(name) ||
        large->n_headers == TNK__LARGE_MAX_HEADERS)
      continue;
    large->headers[large->n_headers++] =
        (tnk_pair_t){name, json_string_value(value)};
  }
}

int tnk__large_start(tnk__large_t *large, const tnk__folder_t *folder,
                     const tnk__push_file_t *file, const json_t *actions) {
  const json_t *header;
  int err;

  large->file = file;
  large->upload = tnk__json_obj(actions, "upload");
  large->verify = tnk__json_obj(actions, "verify");
  header = tnk__json_obj(large->upload, "header");
  err =
      large->upload != NULL ? read_size(header, &large->part_size) : TNK_EPROTO;
  if (err == TNK_OK && large->part_size > 0)
    err = count_parts(large);
  else if (err == TNK_OK)
    read_headers(large, header);
  if (err != TNK_OK)
    return err;
  large->source = tnk__source_new(large->hub->context, folder->path, file->name,
                                  file->content, on_block, large);
  if (large->source == NULL)
    return TNK_ENOMEM;
  large->state = TNK__LARGE_SENDING;
  return send_part(large);
}

/* ---- Answers ---- */

/* A read error has priority: the exchange does not know its cause. */
static void fail(tnk__large_t *large, tnk__error_t *error) {
  tnk__error_t *own = NULL;
  int cause = 0;
  const int err =
      large->source != NULL ? tnk__source_err(large->source, &cause) : TNK_OK;

  if (err == TNK_EFILE) {
    own = tnk__error_new(
        &large->hub->context->alloc, err, "push: %.256s %s", large->file->name,
        cause != 0 ? "cannot be read" : "became shorter while it was sent");
    if (own->refs > 0)
      own->pub.cause = cause;
  }
  large->done(large, own != NULL ? own : error);
  tnk__error_unref(own);
}

static int note_part(tnk__large_t *large, const tnk__http_result_t *result) {
  const char *etag = tnk__http_result_header(result, "etag");
  tnk__json_writer_t w;

  if (etag == NULL || etag[0] == '\0')
    return TNK_EPROTO;
  tnk__buf_text(&large->parts, large->part == 0 ? "[" : ",");
  tnk__json_writer_init(&w, &large->parts);
  tnk__json_begin_object(&w);
  tnk__json_put_int(&w, "partNumber", (int64_t)large->part + 1);
  tnk__json_put_text(&w, "etag", etag);
  tnk__json_end(&w);
  tnk__json_finish(&w);
  return large->parts.err;
}

/* Start the next step. Returns TNK_OK; *is_over is set if none is left. */
static int step(tnk__large_t *large, const tnk__http_result_t *result,
                int *is_over) {
  int err = TNK_OK;

  if (large->state == TNK__LARGE_SENDING && large->part_size > 0) {
    err = note_part(large, result);
    if (err == TNK_OK && ++large->part < large->n_parts)
      return send_part(large);
    tnk__buf_text(&large->parts, "]");
    tnk__push_put_parts(&large->body, large->file, &large->parts);
    if (err == TNK_OK)
      err = large->parts.err != TNK_OK ? large->parts.err : large->body.err;
    return err != TNK_OK ? err : complete(large);
  }
  *is_over = large->state == TNK__LARGE_VERIFYING || large->verify == NULL;
  if (*is_over)
    return TNK_OK;
  tnk__buf_clear(&large->body);
  tnk__push_put_object(&large->body, large->file);
  return large->body.err != TNK_OK ? large->body.err : verify(large);
}

static void on_answer(tnk__ask_t *ask, const tnk__http_result_t *result,
                      tnk__error_t *error) {
  tnk__large_t *large = tnk__container_of(ask, tnk__large_t, ask);
  int is_over = 0;
  int err;

  if (error != NULL) {
    fail(large, error);
    return;
  }
  err = step(large, result, &is_over);
  if (err != TNK_OK) {
    error = tnk__error_new(&large->hub->context->alloc, err,
                           "push: %.256s: the store's answer: %s",
                           large->file->name, tnk_strerror(err));
    large->done(large, error);
    tnk__error_unref(error);
  } else if (is_over) {
    large->done(large, NULL);
  }
}

static void on_block(tnk__source_t *source) {
  tnk__large_t *large = tnk__source_user(source);

  tnk__exchange_go_on(&large->ask.exchange);
  if (large->on_progress != NULL)
    large->on_progress(large, tnk__source_place(source));
}

void tnk__large_explain(const tnk__large_t *large, tnk__text_t *out) {
  tnk__text_printf(out, "%.256s: ", large->file->name);
  if (large->part_size > 0)
    tnk__text_printf(out, "part %u of %u, ", (unsigned)large->part + 1,
                     (unsigned)large->n_parts);
  tnk__ask_explain(&large->ask, out);
}
