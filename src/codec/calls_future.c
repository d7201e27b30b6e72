#include "codec/calls_future.h"

#include "codec/calls.h"

void tnk__retrieve_future_write(tnk__buf_t *out, const char *request_id,
                                int allow_metadata_only) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "request_id", request_id);
  tnk__json_put_bool(&w, "allow_metadata_only", allow_metadata_only);
  tnk__calls_end(&w);
}

void tnk__cancel_future_write(tnk__buf_t *out, const char *request_id) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "request_id", request_id);
  tnk__calls_end(&w);
}
