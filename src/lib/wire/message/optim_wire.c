/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/optim_wire.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

static void put(tnk__json_writer_t *w, const char *key, double value,
                double absent) {
  tnk__json_put_double(w, key, value != TNK_ABSENT ? value : absent);
}

static void put_adam(tnk__json_writer_t *w, const tnk_optim_t *optim) {
  tnk__json_key(w, "adam_params");
  tnk__json_begin_object(w);
  put(w, "learning_rate", optim->learning_rate, 0.0001);
  put(w, "beta1", optim->beta1, 0.9);
  put(w, "beta2", optim->beta2, 0.95);
  put(w, "eps", optim->eps, 1e-12);
  put(w, "weight_decay", optim->weight_decay, 0.0);
  put(w, "grad_clip_norm", optim->grad_clip_norm, 0.0);
  tnk__json_end(w);
}

static void put_dimuon(tnk__json_writer_t *w, const tnk_optim_t *optim) {
  tnk__json_key(w, "optimizer_params");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", "dimuon");
  tnk__json_put_double(w, "learning_rate", optim->learning_rate);
  put(w, "grad_clip_norm", optim->grad_clip_norm, 0.0);
  put(w, "beta1", optim->beta1, 0.9);
  tnk__json_end(w);
}

/* The kind first, in the order of the official client; until 0.25 it came
 * last. */
int tnk__optim_write(tnk__buf_t *out, const char *model_id, int64_t seq_id,
                     const tnk_optim_t *optim) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "model_id", model_id);
  tnk__json_put_int(&w, "seq_id", seq_id);
  tnk__json_put_text(&w, "type", "optim_step");
  if (optim->optimizer == TNK_OPTIMIZER_RAW) {
    tnk__json_key(&w, "optimizer_params");
    tnk__json_raw(&w, optim->json, strlen(optim->json));
  } else if (optim->optimizer == TNK_OPTIMIZER_DIMUON) {
    put_dimuon(&w, optim);
  } else {
    put_adam(&w, optim);
  }
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
  /* NULL only after a failure, which is kept in the room. */
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
