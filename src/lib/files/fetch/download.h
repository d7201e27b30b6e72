#ifndef TNK_LIB_FILES_FETCH_DOWNLOAD_H
#define TNK_LIB_FILES_FETCH_DOWNLOAD_H

#include "lib/files/fetch/fetch.h"
#include "lib/files/fetch/sink.h"

/* What is wanted. Texts are copied. */
typedef struct {
  const char *url;
  const char *path;
  const char *name;   /* of the thing, in sentences */
  const char *token;  /* bearer token; NULL: none */
  const char *sum;    /* SHA-256, 64 lower-case digits; NULL: any */
  uint64_t n_bytes;   /* that it must have; UINT64_MAX: any number ... */
  uint64_t max_bytes; /* ... up to this one */
  /* See tnk__fetch_request_t. */
  int is_signed;
  uint64_t offset;
  uint64_t n_total;
  const char *validator;
  /* NULL; or the file is kept, as tnk__sink_keep() says, and this is its
   * journal. `gone` is called once, also when the start fails. */
  const char *journal;
  void (*gone)(void *user);
  void *user;
  uint64_t silence_ms;
  uint32_t max_retries;
  tnk__lane_t lane;
} tnk__download_request_t;

/*
 * A thing from an address to a file, in bounded memory: while the pool writes
 * one piece the next one comes in, and what is behind that waits on the
 * server's side.
 *
 * States: fetching, while the sink is idle or busy; closing up, when the fetch
 * is over and the sink writes the rest and finishes. Then done, once, and
 * never after a cancel.
 */
typedef struct tnk__download {
  /* The owner's. `error` is borrowed, NULL after a success. It may free the
   * download. */
  void (*done)(struct tnk__download *download, tnk__error_t *error);
  /* May be NULL: an answer begins, as fetch.on_begin says, whose n_total and
   * validator are known. */
  void (*on_begin)(struct tnk__download *download);
  /* May be NULL: more bytes have come. It may cancel and free the download. */
  void (*on_progress)(struct tnk__download *download);
  uint64_t n_fetched; /* bytes that have come, those that came twice as well */
  uint64_t n_total;   /* as far as it is known; UINT64_MAX: it is not */
  tnk__fetch_t fetch; /* fetch.offset: bytes that have come */
  /* Private. */
  tnk__sink_t *sink;
  tnk__error_t *failed; /* the fetch, while a kept file is still written */
  tnk__buf_t last;      /* came with the end of the answer */
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
/* Start a download. TNK_OK; or TNK_EINVAL (the URL, the sum), TNK_ENOMEM, and
 * then nothing is called and nothing needs to be canceled. */
int tnk__download_start(tnk__download_t *download,
                        const tnk__download_request_t *request);
/* In on_begin, of a kept file: have a line written, as tnk__sink_note(). */
void tnk__download_note(tnk__download_t *download, tnk__buf_t *line);
/* Cancel it; legal in every state. Allocates nothing. */
void tnk__download_cancel(tnk__download_t *download);
/* Write what it waits for, as the end of a sentence. */
void tnk__download_explain(const tnk__download_t *download, tnk__text_t *out);

#endif
