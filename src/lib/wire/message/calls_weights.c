#include "lib/wire/message/calls.h"
#include "lib/wire/message/calls_training.h"
#include "tnk/error.h"

static const tnk_save_options_t defaults = TNK_SAVE_OPTIONS_INIT;

/* Write the common beginning of all saves with a name. Returns the options, or
 * the defaults. */
static const tnk_save_options_t *begin_save(tnk__json_writer_t *w,
                                            tnk__buf_t *out,
                                            const char *model_id,
                                            uint64_t seq_id, const char *name,
                                            const tnk_save_options_t *options) {
  const tnk_save_options_t *o = options != NULL ? options : &defaults;

  tnk__calls_begin(w, out);
  tnk__json_put_text(w, "model_id", model_id);
  tnk__json_put_text(w, "path", name);
  tnk__calls_put_uint(w, "seq_id", seq_id);
  if (o->ttl_seconds != 0)
    tnk__calls_put_uint(w, "ttl_seconds", o->ttl_seconds);
  return o;
}

static void end_typed(tnk__json_writer_t *w, const char *type) {
  tnk__json_put_text(w, "type", type);
  tnk__calls_end(w);
}

void tnk__save_weights_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *name,
                             const tnk_save_options_t *options) {
  tnk__json_writer_t w;
  const tnk_save_options_t *o =
      begin_save(&w, out, model_id, seq_id, name, options);

  tnk__json_put_bool(&w, "overwrite", o->overwrite == TNK_YES);
  tnk__calls_put_metadata(&w, o->user_metadata, o->n_user_metadata);
  end_typed(&w, "save_weights");
}

void tnk__save_sampler_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *name,
                             const tnk_save_options_t *options) {
  tnk__json_writer_t w;
  const tnk_save_options_t *o =
      begin_save(&w, out, model_id, seq_id, name, options);

  tnk__calls_put_metadata(&w, o->user_metadata, o->n_user_metadata);
  end_typed(&w, "save_weights_for_sampler");
}

void tnk__save_ephemeral_write(tnk__buf_t *out, const char *model_id,
                               uint64_t seq_id, uint64_t sampling_seq_id,
                               tnk_sampling_kind_t kind) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__calls_put_uint(&w, "sampling_session_seq_id", sampling_seq_id);
  /* A snapshot is the server's default, and some servers know no other kind. */
  if (kind == TNK_SAMPLING_INFLIGHT)
    tnk__json_put_text(&w, "kind", "inflight");
  tnk__calls_put_uint(&w, "seq_id", seq_id);
  end_typed(&w, "save_weights_for_sampler");
}

void tnk__save_external_write(tnk__buf_t *out, const char *model_id,
                              uint64_t seq_id, const char *name,
                              const tnk_save_options_t *options) {
  tnk__json_writer_t w;
  const tnk_save_options_t *o =
      begin_save(&w, out, model_id, seq_id, name, options);
  size_t i;

  if (o->n_recipients > 0) {
    tnk__json_key(&w, "age_encryption_recipients");
    tnk__json_begin_array(&w);
    for (i = 0; i < o->n_recipients; i++)
      tnk__json_text(&w, o->recipients[i]);
    tnk__json_end(&w);
  }
  end_typed(&w, "save_weights_external");
}

void tnk__load_weights_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *path,
                             int with_optimizer, const char *access_token) {
  tnk__json_writer_t w;

  tnk__calls_begin(&w, out);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__calls_put_uint(&w, "seq_id", seq_id);
  tnk__json_put_text(&w, "path", path);
  tnk__json_put_bool(&w, "optimizer", with_optimizer);
  tnk__calls_put_optional(&w, "weights_access_token", access_token);
  end_typed(&w, "load_weights");
}

int tnk__saved_read(tnk__saved_t *out, tnk__arena_t *arena, const uint8_t *body,
                    size_t n) {
  tnk__saved_t read = {.size_bytes = -1};
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = tnk__calls_get_text(&read.path, arena, root, "path");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.sampling_session_id, arena, root,
                              "sampling_session_id");
  if (err == TNK_OK)
    err = tnk__calls_get_text(&read.model_id, arena, root, "model_id");
  if (err == TNK_OK && tnk__json_get_int(root, "size_bytes", 0, INT64_MAX,
                                         &read.size_bytes) == TNK__JSON_WRONG)
    err = TNK_EPROTO;
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}
