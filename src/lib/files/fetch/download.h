/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_FETCH_DOWNLOAD_H
#define TNK_LIB_FILES_FETCH_DOWNLOAD_H

#include "lib/base/buf.h"
#include "lib/files/fetch/fetch.h"
#include "lib/files/fetch/sha256.h"
#include "lib/io/loop/work.h"

/*
 * Writes a file on the thread pool. A temporary file gets the final name only
 * when it is complete and matches the expected checksum. A kept file has its
 * final name from the start, so that a later process can resume it.
 *
 * States: idle; busy with one job at a time; finished. It may be freed in every
 * state.
 */
typedef struct tnk__sink tnk__sink_t;

/* The request for a download. Strings are copied. */
typedef struct {
  const char *url;
  const char *path;
  const char *name;   /* name of the download in messages */
  const char *token;  /* bearer token; NULL: none */
  const char *sum;    /* expected SHA-256, 64 lower-case digits; NULL: any */
  uint64_t n_bytes;   /* expected size; UINT64_MAX: any size ... */
  uint64_t max_bytes; /* ... up to this limit */
  /* See tnk__fetch_request_t. */
  int is_signed;
  uint64_t offset;
  uint64_t n_total;
  const char *validator;
  /* NULL, or the path of the journal: then the file is kept, see
   * sink_keep(). `gone` is called once, even if the start fails. */
  const char *journal;
  void (*gone)(void *user);
  void *user;
  uint64_t silence_ms;
  uint32_t max_retries;
  tnk__lane_t lane;
} tnk__download_request_t;

/*
 * Downloads an address to a file in bounded memory. While the pool writes one
 * piece, the next one is received. Further data waits on the server.
 *
 * States: fetching, with an idle or busy sink; closing up, after the fetch,
 * while the sink writes the rest and finishes. Then `done` is called once. It
 * is not called after a cancel.
 */
typedef struct tnk__download {
  /* Set by the owner. `error` is borrowed and is NULL after a success. `done`
   * may free the download. */
  void (*done)(struct tnk__download *download, tnk__error_t *error);
  /* May be NULL. Called at the start of an answer, see fetch.on_begin; n_total
   * and validator are known. */
  void (*on_begin)(struct tnk__download *download);
  /* May be NULL. Called when more bytes were received. It may cancel and free
   * the download. */
  void (*on_progress)(struct tnk__download *download);
  uint64_t n_fetched; /* received bytes, including repeated ones */
  uint64_t n_total;   /* size of the file; UINT64_MAX: unknown */
  tnk__fetch_t fetch; /* fetch.offset: bytes received so far */
  /* Private. */
  tnk__sink_t *sink;
  tnk__error_t *failed; /* error of the fetch, while the sink ends */
  tnk__buf_t last;      /* the last part of the body */
  int is_kept;
  int is_fetched;
  int is_finishing;
  uint64_t n_bytes;
  uint64_t max_bytes;
  char *path;
  char sum[TNK__SHA256_DIGITS + 1];
} tnk__download_t;

void tnk__download_init(tnk__download_t *download, tnk__context_t *context,
                        tnk__http_t *http);
/* Start a download. Returns TNK_OK, TNK_EINVAL (the URL or the sum) or
 * TNK_ENOMEM. After an error no callback is called and a cancel is not
 * needed. */
int tnk__download_start(tnk__download_t *download,
                        const tnk__download_request_t *request);
/* Write a line to the journal of a kept file, see sink_note(). Call it in
 * on_begin. */
void tnk__download_note(tnk__download_t *download, tnk__buf_t *line);
/* Cancel the download; allowed in every state. Allocates nothing. */
void tnk__download_cancel(tnk__download_t *download);
/* Describe the current step, as the end of a sentence. */
void tnk__download_explain(const tnk__download_t *download, tnk__text_t *out);

#endif
