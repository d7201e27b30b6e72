/* SPDX-License-Identifier: MIT */
/* Follows accepted requests to their end. Objects on the server: created when a
 * rule needs them, and removed again. Requests for training and samples. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/location.h"
#include "lib/wire/format/zstd.h"
#include "lib/wire/message/fwdbwd.h"
#include "tnk/training.h"
#include "tools/conform/state.h"

#define MADE(node) tnk__container_of(node, conform_made_t, link)

enum { MAX_ID = 512, MAX_PATH = 8192 };
enum { PATIENCE_MS = 120000, MIN_GAP_MS = 20, MAX_GAP_MS = 1000 };

/* Some servers have a limited number of models and cannot unload any, so the
 * number of models left behind is limited. */
enum { MAX_KEPT = 32 };

/* ---- The end of a request ---- */

conform_call_t *conform_begin_poll(conform_t *c, const char *id,
                                   int wants_proto, int allow_metadata) {
  const conform_ask_t ask = {
      .method = "POST",
      .path = "retrieve_future",
      .json = json_pack("{s:s,s:b}", "request_id", id, "allow_metadata_only",
                        allow_metadata),
      .accept = wants_proto ? "application/x-protobuf" : NULL,
      .is_poll = 1};

  return conform_send(c, &ask);
}

conform_call_t *conform_poll(conform_t *c, const char *id, int wants_proto,
                             int allow_metadata) {
  conform_call_t *call = conform_begin_poll(c, id, wants_proto, allow_metadata);

  conform_wait(c, call);
  return call;
}

static conform_fate_t fail(conform_end_t *end, const conform_call_t *poll,
                           const char *words) {
  snprintf(end->how, sizeof(end->how), "failed with %d: %.180s", poll->status,
           words != NULL && words[0] != '\0' ? words : "no message");
  return end->fate = CONFORM_FAILED;
}

static conform_fate_t lose(conform_end_t *end, const char *what) {
  snprintf(end->how, sizeof(end->how), "%.200s", what);
  return end->fate = CONFORM_LOST;
}

static conform_fate_t read_json(const conform_call_t *poll,
                                conform_end_t *end) {
  const char *type = conform_text(poll, "type");
  const char *status = conform_text(poll, "status");

  if (!json_is_object(poll->json))
    return lose(end, "a 200 that is not a JSON object");
  if (json_object_get(poll->json, "error") != NULL) {
    end->category = conform_text(poll, "category");
    return fail(end, poll, conform_text(poll, "error"));
  }
  if ((type != NULL && strcmp(type, "try_again") == 0) ||
      (status != NULL && strcmp(status, "complete_metadata") == 0)) {
    snprintf(end->how, sizeof(end->how), "%s",
             type != NULL ? "try_again" : "complete_metadata");
    return end->fate = CONFORM_PENDING;
  }
  snprintf(end->how, sizeof(end->how), "a result");
  return end->fate = CONFORM_RESULT;
}

conform_fate_t conform_fate_of(const conform_call_t *poll, conform_end_t *end) {
  memset(end, 0, sizeof(*end));
  end->last = poll;
  if (poll->err != TNK_OK)
    return lose(end, poll->how);
  end->is_proto = strstr(poll->type, "application/x-protobuf") != NULL;
  if (poll->status == 200 && end->is_proto) {
    snprintf(end->how, sizeof(end->how), "a result");
    return end->fate = CONFORM_RESULT;
  }
  if (conform_is_ok(poll))
    return read_json(poll, end);
  if (poll->status == 408) {
    snprintf(end->how, sizeof(end->how), "408");
    return end->fate = CONFORM_PENDING;
  }
  if (poll->status == 402 || poll->status == 429 || poll->status >= 500) {
    snprintf(end->how, sizeof(end->how), "the poll returned %d: %.160s",
             poll->status, poll->words);
    return end->fate = CONFORM_LOST;
  }
  return fail(end, poll, poll->words);
}

void conform_follow_id(conform_t *c, const char *id, int wants_proto,
                       uint64_t patience_ms, conform_end_t *end) {
  const uint64_t until = tnk__context_now_ms(&c->context) + patience_ms;
  uint64_t gap = MIN_GAP_MS;

  for (;;) {
    const conform_call_t *poll = conform_poll(c, id, wants_proto, 0);

    if (conform_fate_of(poll, end) != CONFORM_PENDING)
      return;
    if (tnk__context_now_ms(&c->context) >= until || c->is_interrupted)
      return;
    /* If the server does not hold polls, they are sent at intervals. */
    if (poll->ms < gap)
      conform_pause(c, gap - poll->ms);
    gap = gap * 2 < MAX_GAP_MS ? gap * 2 : MAX_GAP_MS;
  }
}

conform_fate_t conform_follow(conform_t *c, const conform_call_t *call,
                              int wants_proto) {
  conform_end_t *end = &c->end;
  const char *id = conform_text(call, "request_id");

  memset(end, 0, sizeof(*end));
  if (call->err != TNK_OK) {
    lose(end, call->how);
  } else if (!conform_is_ok(call)) {
    end->fate = CONFORM_FAILED;
    snprintf(end->how, sizeof(end->how), "rejected with %d: %.180s",
             call->status, call->words);
  } else if (id == NULL) {
    lose(end, "accepted without a string request_id");
  } else {
    conform_follow_id(c, id, wants_proto,
                      c->options.patience_ms != 0 ? c->options.patience_ms
                                                  : PATIENCE_MS,
                      end);
    if (end->fate == CONFORM_PENDING)
      snprintf(end->how, sizeof(end->how), "no result before the timeout");
  }
  return end->fate;
}

int conform_succeeds(conform_t *c, const conform_call_t *call,
                     int wants_proto) {
  if (conform_follow(c, call, wants_proto) != CONFORM_RESULT)
    conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  return c->end.fate == CONFORM_RESULT;
}

/* ---- Created objects ---- */

conform_made_t *conform_made(conform_t *c, conform_kind_t kind,
                             const char *id) {
  const size_t n = id != NULL ? strlen(id) : 0;
  conform_made_t *made;

  if (n == 0 || n > MAX_ID)
    return NULL;
  TNK__LIST_FOREACH (node, &c->made) {
    if (MADE(node)->kind == kind && strcmp(MADE(node)->id, id) == 0)
      return MADE(node);
  }
  made = tnk__calloc(tnk__allocator_default(), 1, sizeof(*made) + n);
  if (made == NULL)
    return NULL;
  made->kind = kind;
  made->seq = 1;
  memcpy(made->id, id, n + 1);
  /* The latest first, so that dependent objects are removed first. */
  tnk__list_prepend(&c->made, &made->link);
  return made;
}

void conform_gone(conform_t *c, conform_made_t *made) {
  if (c->shared == made)
    c->shared = NULL;
  if (c->any == made)
    c->any = NULL;
  tnk__list_remove(&made->link);
  tnk__free(tnk__allocator_default(), made);
}

static void note_left(conform_t *c, const conform_made_t *made,
                      const conform_call_t *call) {
  static const char *const kinds[] = {"session", "model", "checkpoint"};

  tnk__buf_printf(&c->left, "%s %s (%s)", kinds[made->kind], made->id,
                  call->how);
  tnk__buf_byte(&c->left, 0);
  c->n_left++;
}

/* Convert "tinker://run/kind/name" to the path of a call. */
static int checkpoint_path(tnk__buf_t *out, const char *path,
                           const char *suffix) {
  const char *run = strncmp(path, "tinker://", 9) == 0 ? path + 9 : "";
  const size_t n_run = strcspn(run, "/");

  if (n_run == 0 || run[n_run] != '/' || run[n_run + 1] == '\0')
    return -1;
  tnk__buf_text(out, "training_runs/");
  tnk__url_put_segment_n(out, run, n_run);
  tnk__buf_text(out, "/checkpoints/");
  tnk__url_put_segments(out, run + n_run + 1);
  tnk__buf_text(out, suffix);
  return tnk__buf_cstr(out) != NULL ? 0 : -1;
}

static conform_call_t *ask_path(conform_t *c, const char *method,
                                tnk__buf_t *path, json_t *json) {
  const char *text = tnk__buf_cstr(path);
  const conform_ask_t ask = {
      .method = method, .path = text != NULL ? text : "", .json = json};
  conform_call_t *call = conform_ask(c, &ask);

  tnk__buf_deinit(path);
  return call;
}

conform_call_t *conform_of(conform_t *c, const char *method, const char *folder,
                           const char *id, const char *suffix, json_t *json) {
  tnk__buf_t path;

  tnk__buf_init(&path, tnk__allocator_default(), MAX_PATH);
  tnk__buf_printf(&path, "%s/", folder);
  tnk__url_put_segment(&path, id);
  tnk__buf_text(&path, suffix);
  return ask_path(c, method, &path, json);
}

conform_call_t *conform_of_checkpoint(conform_t *c, const char *method,
                                      const char *path, const char *suffix,
                                      json_t *json) {
  tnk__buf_t out;

  tnk__buf_init(&out, tnk__allocator_default(), MAX_PATH);
  if (checkpoint_path(&out, path, suffix) != 0) {
    tnk__buf_clear(&out);
    tnk__buf_text(&out, "training_runs/none/checkpoints/none");
  }
  return ask_path(c, method, &out, json);
}

conform_call_t *conform_finish(conform_t *c, const char *session) {
  return conform_of(
      c, "POST", "sessions", session, "/finish",
      json_pack("{s:{s:s},s:n}", "reason", "type", "success", "detail"));
}

static void remove_one(conform_t *c, conform_made_t *made) {
  const conform_call_t *call;
  int is_gone;

  if (made->kind == CONFORM_SESSION)
    call = conform_finish(c, made->id);
  else if (made->kind == CONFORM_MODEL)
    call = conform_post(c, "unload_model", "{s:s,s:s}", "model_id", made->id,
                        "type", "unload_model");
  else
    call = conform_of_checkpoint(c, "DELETE", made->id, "", NULL);
  /* Without this call, sessions end by a timeout, and their models with
   * them. */
  is_gone = conform_is_ok(call) || call->status == 404 || call->status == 410;
  if (made->kind == CONFORM_MODEL && conform_is_absent(c, call)) {
    c->keeps_models = 1;
    c->n_kept++;
  }
  if (made->kind != CONFORM_CHECKPOINT && conform_is_absent(c, call))
    is_gone = 1;
  if (made->kind == CONFORM_CHECKPOINT && conform_is_absent(c, call))
    is_gone = 0;
  if (!is_gone)
    note_left(c, made, call);
  conform_gone(c, made);
}

void conform_clean(conform_t *c, int all) {
  if (c->is_interrupted && !all)
    return;
  if (c->is_interrupted) {
    c->was_interrupted = 1;
    c->is_interrupted = 0; /* the cleanup itself is interrupted only once */
  }
  TNK__LIST_FOREACH_SAFE (node, next, &c->made) {
    if (all || !MADE(node)->is_kept)
      remove_one(c, MADE(node));
  }
  if (c->was_interrupted)
    c->is_interrupted = 1;
}

void conform_name(conform_t *c, char *out, size_t size) {
  snprintf(out, size, "tnk-conform-%08x-%u",
           (unsigned)tnk__context_random(&c->context), c->n_names++);
}

/* ---- Sessions ---- */

static void why(conform_t *c, const char *what, const conform_call_t *call) {
  snprintf(c->why, sizeof(c->why), "%s: %.80s%s%.80s", what, call->how,
           call->words[0] != '\0' ? ": " : "", call->words);
}

static int skip(conform_t *c) {
  c->n_unmet++;
  conform_tell(c, CONFORM_SKIPPED, "%s", c->why);
  return 0;
}

static conform_made_t *new_session(conform_t *c) {
  const conform_call_t *call =
      conform_post(c, "create_session", "{s:[],s:{s:s},s:s,s:s}", "tags",
                   "user_metadata", "made_by", "tnk conform", "sdk_version",
                   "0.38.0", "type", "create_session");
  conform_made_t *made = NULL;

  if (conform_is_ok(call))
    made = conform_made(c, CONFORM_SESSION, conform_text(call, "session_id"));
  if (made == NULL)
    why(c, "no session", call);
  return made;
}

int conform_needs_new_session(conform_t *c) {
  c->fresh = new_session(c);
  return c->fresh != NULL || skip(c);
}

int conform_needs_session(conform_t *c) {
  conform_made_t *made;

  if (c->session != NULL)
    return 1;
  made = new_session(c);
  if (made == NULL)
    return skip(c);
  made->is_kept = 1;
  c->session = tnk__strdup(tnk__allocator_default(), made->id);
  return c->session != NULL || skip(c);
}

/* ---- Models ---- */

static const char *choose_model(const json_t *capabilities) {
  const json_t *models = tnk__json_arr(capabilities, "supported_models");

  for (size_t i = 0; i < json_array_size(models); i++) {
    const json_t *model = json_array_get(models, i);
    const char *name = tnk__json_str(model, "model_name");

    if (name != NULL && !json_is_false(json_object_get(model, "trainable")) &&
        !json_is_false(json_object_get(model, "sampleable")))
      return name;
  }
  return NULL;
}

static void tell_no_model(conform_t *c) {
  const size_t n =
      json_array_size(tnk__json_arr(c->capabilities, "supported_models"));

  if (n == 0)
    snprintf(c->why, sizeof(c->why),
             "the server lists no models; use --model NAME");
  else
    snprintf(c->why, sizeof(c->why),
             "none of the %zu listed models supports both training and "
             "sampling; use --model NAME",
             n);
}

int conform_needs_base(conform_t *c) {
  const char *name = c->options.model;
  conform_call_t *call;

  if (!conform_needs_session(c))
    return 0;
  if (c->base_model != NULL)
    return 1;
  if (name == NULL && c->capabilities == NULL) {
    call = conform_get(c, "get_server_capabilities");
    if (conform_is_ok(call))
      c->capabilities = json_incref(call->json);
    else
      why(c, "no capabilities", call);
  }
  if (name == NULL)
    name = choose_model(c->capabilities);
  if (name == NULL && c->capabilities != NULL)
    tell_no_model(c);
  if (name != NULL)
    c->base_model = tnk__strdup(tnk__allocator_default(), name);
  return c->base_model != NULL || skip(c);
}

json_t *conform_model_body(conform_t *c, const char *session, int64_t number) {
  return json_pack("{s:s,s:I,s:s,s:{s:i,s:b,s:b,s:b},s:s}", "session_id",
                   session, "model_seq_id", (json_int_t)number, "base_model",
                   c->base_model, "lora_config", "rank", 8, "train_unembed", 1,
                   "train_mlp", 1, "train_attn", 1, "type", "create_model");
}

json_t *conform_new_model_body(conform_t *c) {
  return conform_model_body(c, c->session, c->n_models++);
}

conform_made_t *conform_take_model(conform_t *c, const conform_call_t *call) {
  const char *id = NULL;

  if (conform_follow(c, call, 0) == CONFORM_RESULT)
    id = conform_text(c->end.last, "model_id");
  if (id == NULL)
    snprintf(c->why, sizeof(c->why), "no model: %.180s", c->end.how);
  return conform_made(c, CONFORM_MODEL, id);
}

int conform_needs_model(conform_t *c) {
  if (!conform_needs_base(c))
    return 0;
  if (c->n_kept >= MAX_KEPT) {
    snprintf(c->why, sizeof(c->why),
             "models cannot be unloaded, and %u are left already", c->n_kept);
    return skip(c);
  }
  c->model = conform_take_model(
      c, conform_post_json(c, "create_model", conform_new_model_body(c)));
  return c->model != NULL || skip(c);
}

/* Provide the model that rules share in *shared. */
static int share(conform_t *c, conform_made_t **shared) {
  if (*shared == NULL && !conform_needs_model(c))
    return 0;
  if (*shared == NULL)
    *shared = c->model;
  c->model = *shared;
  c->model->is_kept = 1;
  return 1;
}

int conform_needs_shared_model(conform_t *c) {
  return share(c, &c->shared);
}

int conform_needs_any_model(conform_t *c) {
  return c->keeps_models ? share(c, &c->any) : conform_needs_model(c);
}

void conform_spoil(conform_t *c) {
  if (c->shared != NULL)
    c->shared->is_kept = 0;
  c->shared = NULL;
}

/* ---- Sampling sessions ---- */

int64_t conform_next_sampler(conform_t *c) {
  return c->n_samplers++;
}

conform_call_t *conform_new_sampler(conform_t *c, const char *session,
                                    const char *key, const char *value,
                                    int64_t number) {
  json_t *body = json_pack("{s:s,s:I,s:s}", "session_id", session,
                           "sampling_session_seq_id", (json_int_t)number,
                           "type", "create_sampling_session");

  if (value != NULL)
    json_object_set_new(body, key, json_string(value));
  return conform_post_json(c, "create_sampling_session", body);
}

int conform_needs_sampler(conform_t *c) {
  const conform_call_t *call;
  const char *id;

  if (!conform_needs_base(c))
    return 0;
  if (c->sampler != NULL)
    return 1;
  call = conform_new_sampler(c, c->session, "base_model", c->base_model,
                             conform_next_sampler(c));
  id = conform_text(call, "sampling_session_id");
  if (!conform_is_ok(call) || id == NULL)
    why(c, "no sampling session", call);
  else
    c->sampler = tnk__strdup(tnk__allocator_default(), id);
  return c->sampler != NULL || skip(c);
}

int64_t conform_next_sample(conform_t *c) {
  return c->n_samples++;
}

/* ---- Bodies ---- */

/* They have few tokens, with small ids that every vocabulary has. */
enum { MAX_BODY = 1 << 20 };

static const int32_t tokens[] = {104, 101, 108, 108};
static const int64_t targets[] = {101, 108, 108, 111};

const tnk_datum_t conform_datum = {.input = {.tokens = tokens, .n_tokens = 4},
                                   .targets = targets};

/* Remove the sequence number 1 from a request; it stands for 0. It follows the
 * model id, which is a string with a tag and its length. */
static void drop_number(tnk__buf_t *out, size_t n_model) {
  const size_t at = (n_model >= 128 ? 3 : 2) + n_model;

  memmove(out->data + at, out->data + at + 2, out->len - at - 2);
  out->len -= 2;
}

static int write_pass(tnk__buf_t *out, const char *model, int64_t seq,
                      const conform_pass_t *pass) {
  const tnk_loss_setting_t setting = {.name = pass->setting, .number = 0.5};
  tnk__fwdbwd_writer_t writer;
  const tnk__fwdbwd_t request = {
      .model_id = model,
      .seq_id = seq > 0 ? seq : 1,
      .data = pass->data != NULL ? pass->data : &conform_datum,
      .n_data = pass->data != NULL ? pass->n_data : 1,
      .loss_fn = pass->loss != NULL ? pass->loss : "cross_entropy",
      .settings = &setting,
      .n_settings = pass->setting != NULL,
      .forward_only = pass->forward_only};
  uint8_t *to;

  if (tnk__fwdbwd_begin(&writer, &request) != TNK_OK)
    return -1;
  to = tnk__buf_reserve(out, writer.len);
  if (to == NULL)
    return -1;
  out->len += tnk__fwdbwd_piece(&writer, 0, to, writer.len);
  if (seq <= 0)
    drop_number(out, strlen(model));
  return 0;
}

int conform_zstd(tnk__buf_t *out, const void *data, size_t n) {
  tnk__zstd_t zstd = {0};
  int err = tnk__zstd_begin(&zstd, tnk__allocator_default(), n);

  if (err == TNK_OK)
    err = tnk__zstd_feed(&zstd, out, data, n, 1);
  tnk__zstd_deinit(&zstd);
  return err;
}

conform_call_t *conform_pass(conform_t *c, const char *model, int64_t seq,
                             const conform_pass_t *pass) {
  static const conform_pass_t plain = {0};
  conform_ask_t ask = {.method = "POST",
                       .path = "forward_backward",
                       .type = "application/x-protobuf"};
  conform_call_t *call;
  tnk__buf_t body;
  tnk__buf_t packed;
  int err;

  if (pass == NULL)
    pass = &plain;
  tnk__buf_init(&body, tnk__allocator_default(), MAX_BODY);
  tnk__buf_init(&packed, tnk__allocator_default(), MAX_BODY);
  err = write_pass(&body, model, seq, pass);
  if (err == 0 && pass->is_zstd)
    err = conform_zstd(&packed, body.data, body.len);
  ask.body = pass->is_zstd ? packed.data : body.data;
  ask.n_body = pass->is_zstd ? packed.len : body.len;
  ask.encoding = pass->is_zstd ? "zstd" : NULL;
  ask.idempotency_key = pass->idempotency_key;
  if (err != 0) /* An empty body is refused; the rule sees that. */
    ask.n_body = 0;
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&body);
  tnk__buf_deinit(&packed);
  return call;
}

json_t *conform_step_body(const char *model, int64_t seq) {
  return json_pack("{s:s,s:I,s:s,s:{s:f,s:f,s:f,s:f,s:f,s:f}}", "model_id",
                   model, "seq_id", (json_int_t)seq, "type", "optim_step",
                   "adam_params", "learning_rate", 0.0001, "beta1", 0.9,
                   "beta2", 0.95, "eps", 1e-12, "weight_decay", 0.0,
                   "grad_clip_norm", 0.0);
}

conform_call_t *conform_step(conform_t *c, const char *model, int64_t seq) {
  return conform_post_json(c, "optim_step", conform_step_body(model, seq));
}

conform_call_t *conform_load(conform_t *c, const char *model, int64_t seq,
                             const char *path) {
  return conform_post(c, "load_weights", "{s:s,s:I,s:s,s:b,s:s}", "model_id",
                      model, "seq_id", (json_int_t)seq, "path", path,
                      "optimizer", 0, "type", "load_weights");
}

conform_call_t *conform_save(conform_t *c, const char *call, int64_t seq,
                             const char *name) {
  enum { HOUR_S = 3600 };
  conform_call_t *sent = NULL;
  char own[64];

  if (name == NULL) {
    conform_name(c, own, sizeof(own));
    name = own;
  }
  for (int with_ttl = 1; with_ttl >= 0; with_ttl--) {
    json_t *body = json_pack("{s:s,s:s,s:I,s:i,s:s}", "model_id", c->model->id,
                             "path", name, "seq_id", (json_int_t)seq,
                             "ttl_seconds", HOUR_S, "type", call);

    if (!with_ttl)
      json_object_del(body, "ttl_seconds");
    sent = conform_post_json(c, call, body);
    if (sent->status != 400 && sent->status != 422)
      break;
  }
  if (conform_follow(c, sent, 0) == CONFORM_RESULT)
    conform_made(c, CONFORM_CHECKPOINT, conform_text(c->end.last, "path"));
  return sent;
}

conform_call_t *conform_save_unnamed(conform_t *c, int64_t seq) {
  static const char call[] = "save_weights_for_sampler";

  return conform_post(c, call, "{s:s,s:I,s:I,s:s}", "model_id", c->model->id,
                      "sampling_session_seq_id",
                      (json_int_t)conform_next_sampler(c), "seq_id",
                      (json_int_t)seq, "type", call);
}

conform_call_t *conform_batch(conform_t *c, const char *sampler) {
  return conform_post(
      c, "retrieve_futures", "{s:{s:s,s:s,s:i},s:i,s:f,s:[]}", "target", "type",
      "sampling_session", "sampling_session_id", sampler, "cloned_sampler_id",
      0, "prev_cursor", 0, "timeout", 0.0, "retrieved_request_ids");
}

/* Merge the members of a JSON object into `to`. */
static void merge(json_t *to, const char *text) {
  json_t *from = text != NULL ? json_loads(text, 0, NULL) : NULL;

  if (from != NULL)
    json_object_update(to, from);
  json_decref(from);
}

conform_call_t *conform_sample(conform_t *c, const char *sampler, int64_t seq,
                               const char *params, const char *more) {
  json_t *p = json_pack("{s:i,s:f,s:i,s:f}", "max_tokens", 4, "temperature",
                        1.0, "top_k", -1, "top_p", 1.0);
  json_t *body;

  merge(p, params);
  body =
      json_pack("{s:i,s:{s:[{s:[i,i,i],s:s}]},s:o,s:b,s:i,s:s}", "num_samples",
                1, "prompt", "chunks", "tokens", 104, 101, 108, "type",
                "encoded_text", "sampling_params", p, "prompt_logprobs", 0,
                "topk_prompt_logprobs", 0, "type", "sample");
  if (sampler != NULL)
    json_object_set_new(body, "sampling_session_id", json_string(sampler));
  if (sampler != NULL && seq != CONFORM_NO_NUMBER)
    json_object_set_new(body, "seq_id", json_integer(seq));
  merge(body, more);
  return conform_post_json(c, "asample", body);
}
