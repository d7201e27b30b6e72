/* SPDX-License-Identifier: MIT */
#include "lib/files/push/large.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/files/push/message.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

/* ---- The source ---- */

/*
 *   IDLE --piece() misses--> READING --on_read()--> IDLE
 *   READING --free()--> given up, gone when the pool is done
 *
 * The exchange uses one of two blocks, while the pool may fill the other one.
 */

enum { BLOCK = 512 * 1024, N_BLOCKS = 2 };

typedef struct {
  uint64_t at;
  size_t n; /* 0: empty */
  uint8_t *data;
} block_t;

struct tnk__source {
  tnk__feed_t feed;
  tnk__context_t *context;
  tnk__work_t work;
  void (*on_block)(tnk__source_t *source);
  void *user;
  const char *content;
  uint64_t base; /* start of the range */
  uint64_t end;
  block_t blocks[N_BLOCKS];
  block_t *loading; /* the block that the pool fills, or NULL */
  uint64_t place;
  int is_free; /* freed by the owner while the pool reads */
  int err;
  int cause;
  int fd; /* -1: not open yet */
  char path[];
};

static const uint8_t *give(tnk__feed_t *feed, size_t at, size_t *n);

/* Create a source for a file in the folder `dir`, or for `content`, which is
 * borrowed. `on_block` is called on the loop thread after a block was read, as
 * the last access; it may free the source. NULL without memory. */
static tnk__source_t *source_new(tnk__context_t *context, const char *dir,
                                 const char *name, const char *content,
                                 void (*on_block)(tnk__source_t *source),
                                 void *user) {
  const size_t n_path = strlen(dir) + strlen(name) + 2;
  const size_t n_blocks = content != NULL ? 0 : (size_t)BLOCK * N_BLOCKS;
  tnk__source_t *source =
      tnk__malloc(&context->alloc, sizeof(*source) + n_path + n_blocks);

  if (source == NULL)
    return NULL;
  memset(source, 0, sizeof(*source));
  source->context = context;
  source->on_block = on_block;
  source->user = user;
  source->content = content;
  source->feed.piece = give;
  source->fd = -1;
  snprintf(source->path, n_path, "%s/%s", dir, name);
  for (size_t i = 0; i < N_BLOCKS && content == NULL; i++)
    source->blocks[i].data = (uint8_t *)source->path + n_path + i * BLOCK;
  return source;
}

static void dispose(tnk__source_t *source) {
  if (source->fd >= 0)
    close(source->fd);
  tnk__free(&source->context->alloc, source);
}

/* Free it: no callback is called afterwards. `source` may be NULL. No exchange
 * may still use the feed. Allocates nothing. */
static void source_free(tnk__source_t *source) {
  if (source == NULL)
    return;
  source->is_free = 1;
  if (source->loading == NULL)
    dispose(source);
}

static void *source_user(const tnk__source_t *source) {
  return source->user;
}

/* End of the last block that was read. */
static uint64_t source_place(const tnk__source_t *source) {
  return source->place;
}

/* Returns TNK_OK, TNK_EFILE with libuv's cause (0: the file became shorter), or
 * TNK_ENOMEM. */
static int source_err(const tnk__source_t *source, int *cause) {
  *cause = source->cause;
  return source->err;
}

/* The n bytes from `at` on, as a body. The previous exchange must have
 * ended. */
static tnk__feed_t *source_feed(tnk__source_t *source, uint64_t at,
                                uint64_t n) {
  source->base = at;
  source->end = at + n;
  source->feed.len = (size_t)n;
  return &source->feed;
}

/* ---- The source: in the pool ---- */

static void fill(tnk__work_t *work) {
  tnk__source_t *source = tnk__container_of(work, tnk__source_t, work);
  block_t *block = source->loading;
  ssize_t n = 1;

  if (source->fd < 0)
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC);
  while (source->fd >= 0 && block->n < BLOCK && n > 0) {
    n = pread(source->fd, block->data + block->n, BLOCK - block->n,
              (off_t)(block->at + block->n));
    if (n > 0)
      block->n += (size_t)n;
  }
  if (source->fd < 0 || n < 0)
    source->cause = -errno;
}

/* ---- The source: on the loop ---- */

static void on_read(tnk__work_t *work) {
  tnk__source_t *source = tnk__container_of(work, tnk__source_t, work);
  block_t *block = source->loading;

  source->loading = NULL;
  if (source->is_free) {
    dispose(source);
    return;
  }
  if (source->cause != 0 || (block->n == 0 && block->at < source->end))
    source->err = TNK_EFILE;
  source->place = block->at + block->n;
  source->on_block(source);
}

static void load(tnk__source_t *source, block_t *block, uint64_t at) {
  int err;

  if (source->loading != NULL || source->err != TNK_OK || at >= source->end)
    return;
  block->at = at;
  block->n = 0;
  source->loading = block;
  err = tnk__work_start(source->context, &source->work, fill, on_read);
  if (err != TNK_OK) {
    source->loading = NULL;
    source->err = err;
  }
}

static int has(const tnk__source_t *source, const block_t *block, uint64_t at) {
  return block != source->loading && at >= block->at &&
         at - block->at < block->n;
}

static const uint8_t *give(tnk__feed_t *feed, size_t at, size_t *n) {
  tnk__source_t *source = (tnk__source_t *)(void *)feed;
  const uint64_t place = source->base + at;
  size_t left = feed->len - at;

  if (source->content != NULL) {
    *n = left;
    return (const uint8_t *)source->content + place;
  }
  for (size_t i = 0; i < N_BLOCKS; i++) {
    block_t *block = &source->blocks[i];
    block_t *other = &source->blocks[N_BLOCKS - 1 - i];
    if (!has(source, block, place))
      continue;
    if (!has(source, other, block->at + block->n))
      load(source, other, block->at + block->n);
    *n = (size_t)(block->at + block->n - place);
    *n = *n < left ? *n : left;
    return block->data + (place - block->at);
  }
  load(source, &source->blocks[0], place);
  *n = 0;
  return source->err == TNK_OK ? source->blocks[0].data : NULL;
}

/* ---- Large files ---- */

/*
 *   SENDING --each part--> SENDING --the last--> COMPLETING --> VERIFYING
 *   SENDING (all at once) --> VERIFYING, if the hub wants that --> done
 */

#define TNK__LARGE_MAX_PARTS 10000

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
  source_free(large->source);
  large->source = NULL;
  tnk__buf_deinit(&large->parts);
  tnk__buf_deinit(&large->body);
}

/* ---- Large files: requests ---- */

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
      .feed = source_feed(large->source, at,
                          is_part && large->part_size < left ? large->part_size
                                                             : left)};

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

/* ---- Large files: the hub's answer ---- */

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
  large->source = source_new(large->hub->context, folder->path, file->name,
                             file->content, on_block, large);
  if (large->source == NULL)
    return TNK_ENOMEM;
  large->state = TNK__LARGE_SENDING;
  return send_part(large);
}

/* ---- Large files: answers ---- */

/* A read error has priority: the exchange does not know its cause. */
static void fail(tnk__large_t *large, tnk__error_t *error) {
  tnk__error_t *own = NULL;
  int cause = 0;
  const int err =
      large->source != NULL ? source_err(large->source, &cause) : TNK_OK;

  if (err == TNK_EFILE) {
    own = tnk__error_new(&large->hub->context->alloc, err, "push: %.256s %s",
                         large->file->name,
                         cause != 0 ? "cannot be read"
                                    : "became shorter while it was being sent");
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
  tnk__large_t *large = source_user(source);

  tnk__exchange_go_on(&large->ask.exchange);
  if (large->on_progress != NULL)
    large->on_progress(large, source_place(source));
}

void tnk__large_explain(const tnk__large_t *large, tnk__text_t *out) {
  tnk__text_printf(out, "%.256s: ", large->file->name);
  if (large->part_size > 0)
    tnk__text_printf(out, "part %u of %u, ", (unsigned)large->part + 1,
                     (unsigned)large->n_parts);
  tnk__ask_explain(&large->ask, out);
}
