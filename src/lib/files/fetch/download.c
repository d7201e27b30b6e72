/*
 *   FETCHING --on_body, sink idle--> a piece goes to the sink
 *   FETCHING --done--> CLOSING UP: the last piece, then the sink finishes
 *   CLOSING UP --sink finished--> done
 *
 * A failure of one side stops the other side. Only end() calls the owner's
 * `done`.
 */
#include "lib/files/fetch/download.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"

static void on_begin(tnk__fetch_t *fetch);
static void on_body(tnk__fetch_t *fetch);
static void on_fetched(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                       tnk__error_t *error);

void tnk__download_init(tnk__download_t *download, tnk__context_t *context,
                        tnk__http_t *http) {
  memset(download, 0, sizeof(*download));
  tnk__fetch_init(&download->fetch, context, http);
  download->fetch.on_begin = on_begin;
  download->fetch.on_body = on_body;
  download->fetch.done = on_fetched;
  tnk__buf_init(&download->last, &context->alloc, TNK__MAX_UNREAD_BODY);
}

static tnk__download_t *download_of(tnk__fetch_t *fetch) {
  return tnk__container_of(fetch, tnk__download_t, fetch);
}

void tnk__download_cancel(tnk__download_t *download) {
  const tnk__context_t *context = download->fetch.context;

  if (context == NULL)
    return; /* never initialized */
  tnk__fetch_cancel(&download->fetch);
  tnk__error_unref(download->failed);
  download->failed = NULL;
  tnk__sink_free(download->sink);
  download->sink = NULL;
  tnk__buf_deinit(&download->last);
  tnk__free(&context->alloc, download->path);
  download->path = NULL;
}

static void end(tnk__download_t *download, tnk__error_t *error) {
  tnk__download_cancel(download);
  download->done(download, error);
  tnk__error_unref(error);
}

/* ---- The file ---- */

static void finish_or_wait(tnk__download_t *download) {
  if (tnk__sink_is_busy(download->sink) || !download->is_fetched)
    return;
  if (download->last.len > 0) {
    tnk__sink_write(download->sink, &download->last);
    return;
  }
  download->is_finishing = 1;
  tnk__sink_finish(download->sink,
                   download->sum[0] != '\0' ? download->sum : NULL);
}

static tnk__error_t *sink_error(const tnk__download_t *download, int err,
                                int cause) {
  tnk__error_t *error;

  if (err == TNK_ECORRUPT)
    return tnk__fetch_error(&download->fetch, err, "%s: the checksum differs",
                            tnk_strerror(err));
  error = tnk__fetch_error(&download->fetch, err, "cannot write %.256s: %s",
                           download->path, uv_strerror(cause));
  if (error->refs > 0)
    error->pub.cause = cause;
  return error;
}

static void on_sunk(tnk__sink_t *sink, int err, int cause) {
  tnk__download_t *download = tnk__sink_user(sink);

  if (err != TNK_OK)
    end(download, sink_error(download, err, cause));
  else if (download->failed != NULL)
    end(download, tnk__error_ref(download->failed));
  else if (download->is_finishing)
    end(download, NULL);
  else if (download->is_fetched)
    finish_or_wait(download);
  else
    on_body(&download->fetch);
}

/* ---- The answer ---- */

static int is_too_long(const tnk__download_t *download, uint64_t n) {
  return n > download->max_bytes || n > download->n_total ||
         (download->n_bytes != UINT64_MAX && n > download->n_bytes);
}

static tnk__error_t *length_error(const tnk__download_t *download, uint64_t n) {
  if (n > download->max_bytes)
    return tnk__fetch_error(&download->fetch, TNK_ETOOBIG,
                            "it is larger than %" PRIu64 " bytes",
                            download->max_bytes);
  return tnk__fetch_error(
      &download->fetch, TNK_ECORRUPT,
      "it has %" PRIu64 " bytes or more, and not %" PRIu64, n,
      download->n_bytes < download->n_total ? download->n_bytes
                                            : download->n_total);
}

static void on_begin(tnk__fetch_t *fetch) {
  tnk__download_t *download = download_of(fetch);

  if (!fetch->is_rest) {
    fetch->offset = 0;
    tnk__sink_rewind(download->sink);
  }
  download->n_total =
      fetch->n_total != UINT64_MAX ? fetch->n_total : download->n_bytes;
  if (download->on_begin != NULL)
    download->on_begin(download);
}

/* Count received bytes. Returns 0 if the limit is exceeded. */
static int count(tnk__download_t *download, size_t n) {
  download->fetch.offset += n;
  download->n_fetched += n;
  return !is_too_long(download, download->fetch.offset);
}

/* The owner may free the download in the callback, so this is the last
 * access. */
static void tell_progress(tnk__download_t *download) {
  if (download->on_progress != NULL)
    download->on_progress(download);
}

static void on_body(tnk__fetch_t *fetch) {
  tnk__download_t *download = download_of(fetch);
  tnk__buf_t piece;

  if (tnk__sink_is_busy(download->sink))
    return;
  tnk__buf_init(&piece, &fetch->context->alloc, 0);
  if (fetch->is_good)
    tnk__exchange_take_body(&fetch->exchange, &piece);
  if (piece.len == 0) {
    tnk__buf_deinit(&piece);
    return;
  }
  if (count(download, piece.len)) {
    tnk__sink_write(download->sink, &piece);
    tell_progress(download);
    return;
  }
  tnk__buf_deinit(&piece);
  end(download, length_error(download, fetch->offset));
}

static void on_fetched(tnk__fetch_t *fetch, const tnk__http_result_t *result,
                       tnk__error_t *error) {
  tnk__download_t *download = download_of(fetch);
  size_t n;

  /* The received bytes of a kept file are written before `done` is called. */
  if (error != NULL && tnk__sink_is_busy(download->sink) && download->is_kept) {
    download->failed = tnk__error_ref(error);
    return;
  }
  if (error != NULL) {
    end(download, tnk__error_ref(error));
    return;
  }
  n = result->body->len;
  if (!count(download, n) ||
      (download->n_bytes != UINT64_MAX && fetch->offset != download->n_bytes)) {
    end(download, length_error(download, fetch->offset));
    return;
  }
  download->last = *result->body;
  tnk__buf_init(result->body, download->last.alloc, 0);
  download->is_fetched = 1;
  finish_or_wait(download);
  if (n > 0)
    tell_progress(download);
}

/* ---- Starting ---- */

int tnk__download_start(tnk__download_t *download,
                        const tnk__download_request_t *request) {
  const tnk__fetch_request_t fetch = {.url = request->url,
                                      .name = request->name,
                                      .token = request->token,
                                      .silence_ms = request->silence_ms,
                                      .max_retries = request->max_retries,
                                      .lane = request->lane,
                                      .is_signed = request->is_signed,
                                      .offset = request->offset,
                                      .n_total = request->n_total,
                                      .validator = request->validator};
  tnk__context_t *context = download->fetch.context;
  int err = TNK_OK;

  if (request->sum != NULL && !tnk__sha256_is_sum(request->sum))
    return TNK_EINVAL;
  if (request->sum != NULL)
    memcpy(download->sum, request->sum, sizeof(download->sum));
  download->n_bytes = download->n_total = request->n_bytes;
  download->max_bytes = request->max_bytes;
  download->path = tnk__strdup(&context->alloc, request->path);
  if (download->path == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_OK)
    err = tnk__sink_new(&download->sink, context, request->path, on_sunk,
                        download);
  if (download->sink == NULL && request->gone != NULL)
    request->gone(request->user);
  if (err == TNK_OK && request->journal != NULL)
    err = tnk__sink_keep(download->sink, request->offset, request->journal,
                         request->gone, request->user);
  download->is_kept = request->journal != NULL;
  if (err == TNK_OK)
    err = tnk__fetch_start(&download->fetch, &fetch);
  if (err != TNK_OK)
    tnk__download_cancel(download);
  return err;
}

void tnk__download_note(tnk__download_t *download, tnk__buf_t *line) {
  tnk__sink_note(download->sink, line);
}

void tnk__download_explain(const tnk__download_t *download, tnk__text_t *out) {
  tnk__text_printf(out, "%" PRIu64 " bytes", download->fetch.offset);
  if (download->n_total != UINT64_MAX)
    tnk__text_printf(out, " of %" PRIu64, download->n_total);
  tnk__text_printf(out, " have come; ");
  if (download->is_fetched)
    tnk__text_printf(out, "is being written to the disk");
  else
    tnk__fetch_explain(&download->fetch, out);
}
