#include "codec/message/optim_wire.h"

#include <string.h>

#include "codec/format/json_read.h"
#include "codec/format/json_write.h"
#include "tnk/error.h"

/* The kind first, as the official client sends it; until 0.25 it came last. */
static void begin(tnk__json_writer_t *w, tnk__buf_t *out, const char *model_id,
                  int64_t seq_id) {
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "model_id", model_id);
  tnk__json_put_int(w, "seq_id", seq_id);
  tnk__json_put_text(w, "type", "optim_step");
}

int tnk__optim_write_adam(tnk__buf_t *out, const char *model_id, int64_t seq_id,
                          const tnk_adam_t *adam) {
  tnk__json_writer_t w;

  begin(&w, out, model_id, seq_id);
  tnk__json_key(&w, "adam_params");
  tnk__json_begin_object(&w);
  tnk__json_put_double(&w, "learning_rate", adam->learning_rate);
  tnk__json_put_double(&w, "beta1", adam->beta1);
  tnk__json_put_double(&w, "beta2", adam->beta2);
  tnk__json_put_double(&w, "eps", adam->eps);
  tnk__json_put_double(&w, "weight_decay", adam->weight_decay);
  tnk__json_put_double(&w, "grad_clip_norm", adam->grad_clip_norm);
  tnk__json_end(&w);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

int tnk__optim_write_dimuon(tnk__buf_t *out, const char *model_id,
                            int64_t seq_id, const tnk_dimuon_t *dimuon) {
  tnk__json_writer_t w;

  begin(&w, out, model_id, seq_id);
  tnk__json_key(&w, "optimizer_params");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "dimuon");
  tnk__json_put_double(&w, "learning_rate", dimuon->learning_rate);
  tnk__json_put_double(&w, "grad_clip_norm", dimuon->grad_clip_norm);
  tnk__json_put_double(&w, "beta1", dimuon->beta1);
  tnk__json_end(&w);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

int tnk__optim_write_raw(tnk__buf_t *out, const char *model_id, int64_t seq_id,
                         const char *json) {
  tnk__json_writer_t w;

  begin(&w, out, model_id, seq_id);
  tnk__json_key(&w, "optimizer_params");
  tnk__json_raw(&w, json, strlen(json));
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

int tnk__optim_read(tnk_metrics_t **out, const tnk_allocator_t *alloc,
                    const void *body, size_t n) {
  const json_t *object = NULL;
  tnk__room_t room;
  tnk_metrics_t *metrics;
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  *out = NULL;
  if (err != TNK_OK)
    return err;
  tnk__room_init(&room, alloc, n);
  metrics = tnk__room_zeroed(&room, 1, sizeof(*metrics));
  if (tnk__json_get_object(root, "metrics", &object) == TNK__JSON_WRONG)
    tnk__room_bad(&room);
  /* NULL only after a failure, which the room remembers. */
  if (metrics != NULL)
    tnk__metrics_from_json(metrics, &room, object, NULL);
  json_decref(root);
  if (room.err != TNK_OK) {
    tnk__arena_deinit(&room.arena);
    return room.err;
  }
  metrics->arena = room.arena;
  *out = metrics;
  return TNK_OK;
}
