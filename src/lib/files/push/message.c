/* SPDX-License-Identifier: MIT */
#include "lib/files/push/message.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

void tnk__push_put_create(tnk__buf_t *out, const char *owner, const char *name,
                          int is_private) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "name", name);
  tnk__json_put_text(&w, "organization", owner);
  tnk__json_put_text(&w, "type", "model");
  tnk__json_put_bool(&w, "private", is_private);
  tnk__json_end(&w);
  tnk__json_finish(&w);
}

static void put_base64(tnk__json_writer_t *w, const char *key, const void *data,
                       size_t n) {
  tnk__buf_t text;

  tnk__buf_init(&text, w->buf->alloc, n / 3 * 4 + 8);
  tnk__base64_write(&text, data, n);
  tnk__json_key(w, key);
  if (text.err == TNK_OK)
    tnk__json_text_n(w, (const char *)text.data, text.len);
  else
    w->buf->err = text.err;
  tnk__buf_deinit(&text);
}

size_t tnk__push_put_sorting(tnk__buf_t *out, const tnk__folder_t *folder,
                             size_t first) {
  size_t n = folder->n_files - first;
  tnk__json_writer_t w;

  n = n < TNK__PUSH_BATCH ? n : TNK__PUSH_BATCH;
  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "files");
  tnk__json_begin_array(&w);
  for (size_t i = first; i < first + n; i++) {
    const tnk__push_file_t *file = &folder->files[i];
    tnk__json_begin_object(&w);
    tnk__json_put_text(&w, "path", file->name);
    put_base64(&w, "sample", file->sample, file->n_sample);
    tnk__json_key(&w, "size");
    tnk__json_uint(&w, file->n_bytes);
    tnk__json_end(&w);
  }
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_finish(&w);
  return n;
}

static void put_object(tnk__json_writer_t *w, const tnk__push_file_t *file) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "oid", file->sum);
  tnk__json_key(w, "size");
  tnk__json_uint(w, file->n_bytes);
  tnk__json_end(w);
}

void tnk__push_put_object(tnk__buf_t *out, const tnk__push_file_t *file) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  put_object(&w, file);
  tnk__json_finish(&w);
}

size_t tnk__push_put_batch(tnk__buf_t *out, const tnk__folder_t *folder,
                           size_t first, const char *revision, size_t *n) {
  tnk__json_writer_t w;

  *n = 0;
  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "operation", "upload");
  tnk__json_key(&w, "transfers");
  tnk__json_begin_array(&w);
  tnk__json_text(&w, "basic");
  tnk__json_text(&w, "multipart");
  tnk__json_end(&w);
  tnk__json_key(&w, "objects");
  tnk__json_begin_array(&w);
  for (; first < folder->n_files && *n < TNK__PUSH_BATCH; first++) {
    if (folder->files[first].mode != TNK__PUSH_LARGE)
      continue;
    put_object(&w, &folder->files[first]);
    ++*n;
  }
  tnk__json_end(&w);
  tnk__json_put_text(&w, "hash_algo", "sha256");
  tnk__json_key(&w, "ref");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "name", revision);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_finish(&w);
  return first;
}

void tnk__push_put_parts(tnk__buf_t *out, const tnk__push_file_t *file,
                         const tnk__buf_t *parts) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "oid", file->sum);
  tnk__json_key(&w, "parts");
  tnk__json_raw(&w, parts->data, parts->len);
  tnk__json_end(&w);
  tnk__json_finish(&w);
}

/* ---- The commit ---- */

static void begin_line(tnk__json_writer_t *w, tnk__buf_t *out,
                       const char *key) {
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "key", key);
  tnk__json_key(w, "value");
  tnk__json_begin_object(w);
}

static void end_line(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__json_end(w);
  tnk__json_end(w);
  tnk__json_finish(w);
  tnk__buf_byte(out, '\n');
}

static void put_file(tnk__buf_t *out, const tnk__push_file_t *file) {
  tnk__json_writer_t w;

  if (file->mode == TNK__PUSH_LARGE) {
    begin_line(&w, out, "lfsFile");
    tnk__json_put_text(&w, "path", file->name);
    tnk__json_put_text(&w, "algo", "sha256");
    tnk__json_put_text(&w, "oid", file->sum);
    tnk__json_key(&w, "size");
    tnk__json_uint(&w, file->n_bytes);
  } else {
    begin_line(&w, out, "file");
    put_base64(&w, "content", file->content, (size_t)file->n_bytes);
    tnk__json_put_text(&w, "path", file->name);
    tnk__json_put_text(&w, "encoding", "base64");
  }
  end_line(&w, out);
}

size_t tnk__push_put_commit(tnk__buf_t *out, const tnk__folder_t *folder,
                            const char *message) {
  tnk__json_writer_t w;
  size_t n = 0;

  begin_line(&w, out, "header");
  tnk__json_put_text(&w, "summary", message);
  tnk__json_put_text(&w, "description", "");
  end_line(&w, out);
  for (size_t i = 0; i < folder->n_files; i++) {
    if (folder->files[i].mode == TNK__PUSH_LEFT_OUT)
      continue;
    put_file(out, &folder->files[i]);
    n++;
  }
  return n;
}

/* ---- Answers ---- */

/* Answers come in the order of the request, but no specification guarantees
 * it. */
static tnk__push_file_t *find(tnk__folder_t *folder, size_t first, size_t n,
                              size_t guess, const char *name) {
  if (name == NULL)
    return NULL;
  if (guess < n && strcmp(folder->files[first + guess].name, name) == 0)
    return &folder->files[first + guess];
  for (size_t i = first; i < first + n; i++)
    if (strcmp(folder->files[i].name, name) == 0)
      return &folder->files[i];
  return NULL;
}

int tnk__push_read_sorting(tnk__folder_t *folder, size_t first, size_t n,
                           const json_t *answer) {
  const json_t *files = tnk__json_arr(answer, "files");
  size_t n_seen = 0;

  for (size_t i = 0; i < json_array_size(files); i++) {
    const json_t *item = json_array_get(files, i);
    tnk__push_file_t *file =
        find(folder, first, n, i, tnk__json_str(item, "path"));
    const char *mode = tnk__json_str(item, "uploadMode");
    int is_ignored = 0;
    if (file == NULL)
      continue;
    if (mode == NULL || tnk__json_get_bool(item, "shouldIgnore", &is_ignored) ==
                            TNK__JSON_WRONG)
      return TNK_EPROTO;
    /* The store rejects empty files. */
    file->mode = is_ignored ? TNK__PUSH_LEFT_OUT
                 : strcmp(mode, "lfs") == 0 && file->n_bytes > 0
                     ? TNK__PUSH_LARGE
                     : TNK__PUSH_REGULAR;
    n_seen++;
  }
  return n_seen >= n ? TNK_OK : TNK_EPROTO;
}
