#include "lib/base/alloc.h"
#include "lib/io/http/h2.h"
#include "tnk/error.h"

tnk__h2_stream_t *tnk__h2_stream_new(tnk__h2_t *h2, tnk__exchange_t *ex) {
  tnk__h2_stream_t *stream = tnk__calloc(h2->alloc, 1, sizeof(*stream));

  if (stream == NULL)
    return NULL;
  stream->h2 = h2;
  stream->ex = ex;
  stream->begins_at = UINT64_MAX;
  tnk__list_init(&stream->link);
  tnk__list_append(&h2->fresh, &stream->link);
  h2->n_streams++;
  return stream;
}

void tnk__h2_stream_free(tnk__h2_stream_t *stream) {
  tnk__list_remove(&stream->link);
  if (!stream->is_closed)
    stream->h2->n_streams--;
  tnk__free(stream->h2->alloc, stream);
}

void tnk__h2_stream_over(tnk__h2_stream_t *stream, int err, const char *why) {
  tnk__h2_t *h2 = stream->h2;

  if (stream->ex == NULL || stream->err != TNK_OK || stream->is_over)
    return;
  stream->is_over = 1;
  stream->err = err;
  stream->why = why;
  tnk__list_remove(&stream->link);
  tnk__list_append(&h2->over, &stream->link);
}

void tnk__h2_stream_leave(tnk__h2_stream_t *stream) {
  tnk__h2_t *h2 = stream->h2;

  stream->ex = NULL;
  stream->reader = NULL;
  if (stream->id == 0 || stream->is_closed) {
    tnk__h2_stream_free(stream);
    return;
  }
  /* A stream that is complete in both directions closes without a reset. */
  stream->needs_reset = !stream->is_sent || !stream->is_answered;
  tnk__list_remove(&stream->link);
  if (stream->is_sent)
    tnk__list_append(&h2->orphans, &stream->link);
  else
    tnk__list_prepend(&h2->orphans, &stream->link);
}

const char *tnk__h2_words(uint32_t code) {
  static const char *const words[] = {
      [NGHTTP2_NO_ERROR] = "without an error (NO_ERROR)",
      [NGHTTP2_PROTOCOL_ERROR] = "it found our HTTP/2 wrong (PROTOCOL_ERROR)",
      [NGHTTP2_INTERNAL_ERROR] = "it failed (INTERNAL_ERROR)",
      [NGHTTP2_FLOW_CONTROL_ERROR] =
          "it found our HTTP/2 wrong (FLOW_CONTROL_ERROR)",
      [NGHTTP2_SETTINGS_TIMEOUT] =
          "it waited for its settings to be accepted (SETTINGS_TIMEOUT)",
      [NGHTTP2_STREAM_CLOSED] = "it found our HTTP/2 wrong (STREAM_CLOSED)",
      [NGHTTP2_FRAME_SIZE_ERROR] =
          "it found our HTTP/2 wrong (FRAME_SIZE_ERROR)",
      [NGHTTP2_REFUSED_STREAM] = "it has no room for it (REFUSED_STREAM)",
      [NGHTTP2_CANCEL] = "it gave it up (CANCEL)",
      [NGHTTP2_COMPRESSION_ERROR] =
          "it found our HTTP/2 wrong (COMPRESSION_ERROR)",
      [NGHTTP2_CONNECT_ERROR] = "a tunnel behind it broke (CONNECT_ERROR)",
      [NGHTTP2_ENHANCE_YOUR_CALM] = "it wants less of us (ENHANCE_YOUR_CALM)",
      [NGHTTP2_INADEQUATE_SECURITY] =
          "it wants better encryption (INADEQUATE_SECURITY)",
      [NGHTTP2_HTTP_1_1_REQUIRED] = "it wants HTTP/1.1 (HTTP_1_1_REQUIRED)",
  };

  return code < sizeof(words) / sizeof(words[0])
             ? words[code]
             : "for a reason that HTTP/2 does not know";
}
