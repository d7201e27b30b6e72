/* Custom losses of the caller that run on the service. */
#include <string.h>

#include "lib/wire/message/calls.h"
#include "lib/wire/message/calls_training.h"

static void put_inputs(tnk__json_writer_t *w,
                       const tnk_loss_options_t *options) {
  tnk__json_key(w, "inputs");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < options->n_arguments; i++) {
    tnk__json_begin_object(w);
    tnk__json_put_text(w, "name", options->arguments[i].name);
    tnk__json_put_int(w, "rank", options->arguments[i].n_dims == 2 ? 2 : 1);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

void tnk__create_loss_write(tnk__buf_t *out, const char *session_id,
                            uint64_t loss_seq_id,
                            const tnk_loss_options_t *options) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "session_id", session_id);
  tnk__calls_put_uint(&w, "custom_loss_seq_id", loss_seq_id);
  tnk__json_put_text(&w, "name", options->name);
  put_inputs(&w, options);
  tnk__json_key(&w, "graph");
  tnk__json_raw(&w, options->graph, strlen(options->graph));
  tnk__json_put_text(&w, "type", "create_custom_loss");
  tnk__calls_end(&w);
}

int tnk__create_loss_read(const char **loss_id, tnk__arena_t *arena,
                          const uint8_t *body, size_t n) {
  return tnk__calls_read_one(loss_id, arena, body, n, "loss_id");
}
