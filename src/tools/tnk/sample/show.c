#include "tools/tnk/sample/show.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "tnk/error.h"
#include "tools/common/base/clean.h"

static const char *reason_of(const tnk_samples_t *samples) {
  return tnk_samples_stop_reason(samples, 0) == TNK_STOP_LENGTH ? "length"
                                                                : "stop";
}

static char *text_of(const cli_words_t *words, const tnk_samples_t *samples,
                     size_t *n) {
  size_t n_ids;
  const int32_t *ids = tnk_samples_tokens(samples, 0, &n_ids);

  return cli_words_decode(words, ids, n_ids, n);
}

int cli_sample_print(const cli_t *cli, const cli_words_t *words,
                     const tnk_samples_t *samples, size_t number) {
  size_t n = 0;
  char *text = text_of(words, samples, &n);

  if (text == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (number > 0)
    printf("--- %zu (%s)\n", number, reason_of(samples));
  cli_put_shown(stdout, text, n);
  putchar('\n');
  fflush(stdout);
  free(text);
  return CLI_EXIT_OK;
}

void cli_sample_put_logprobs(cli_json_t *json, const char *key,
                             const float *logprobs, size_t n) {
  tnk__json_key(&json->w, key);
  if (logprobs == NULL) {
    tnk__json_null(&json->w);
    return;
  }
  tnk__json_begin_array(&json->w);
  for (size_t i = 0; i < n; i++)
    if (isfinite(logprobs[i]))
      tnk__json_float(&json->w, logprobs[i]);
    else
      tnk__json_null(&json->w);
  tnk__json_end(&json->w);
}

/* Each invalid UTF-8 byte becomes U+FFFD. */
static void put_bytes(cli_json_t *json, const char *key, const char *text,
                      size_t n) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), SIZE_MAX / 4);
  for (size_t i = 0; i < n;) {
    size_t length = tnk__utf8_char(text + i, n - i);

    if (length == 0)
      tnk__buf_text(&buf, "\xef\xbf\xbd");
    else
      tnk__buf_append(&buf, text + i, length);
    i += length == 0 ? 1 : length;
  }
  if (buf.err != TNK_OK)
    json->buf.err = buf.err;
  tnk__json_key(&json->w, key);
  tnk__json_text_n(&json->w, (const char *)buf.data, buf.len);
  tnk__buf_deinit(&buf);
}

int cli_sample_put(cli_json_t *json, const cli_words_t *words,
                   const tnk_samples_t *samples) {
  size_t n_ids;
  size_t n;
  const int32_t *ids = tnk_samples_tokens(samples, 0, &n_ids);
  const float *logprobs = tnk_samples_logprobs(samples, 0, &n);
  size_t n_text;
  char *text = text_of(words, samples, &n_text);

  if (text == NULL)
    return 0;
  tnk__json_begin_object(&json->w);
  put_bytes(json, "text", text, n_text);
  tnk__json_key(&json->w, "tokens");
  tnk__json_int32s(&json->w, ids, n_ids);
  cli_sample_put_logprobs(json, "logprobs", logprobs, n);
  tnk__json_put_text(&json->w, "stop_reason", reason_of(samples));
  tnk__json_end(&json->w);
  free(text);
  return 1;
}
