/* Objects on the server: created when a rule needs them, and removed again. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/location.h"
#include "tools/conform/state.h"

#define MADE(node) tnk__container_of(node, conform_made_t, link)

enum { MAX_ID = 512, MAX_PATH = 8192 };

/* Some servers have a limited number of models and cannot unload any, so the
 * number of models left behind is limited. */
enum { MAX_KEPT = 32 };

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

conform_call_t *conform_of_checkpoint(conform_t *c, const char *method,
                                      const char *path, const char *suffix,
                                      json_t *json) {
  conform_ask_t ask = {.method = method, .json = json};
  conform_call_t *call;
  tnk__buf_t out;

  tnk__buf_init(&out, tnk__allocator_default(), MAX_PATH);
  ask.path = checkpoint_path(&out, path, suffix) == 0
                 ? (const char *)out.data
                 : "training_runs/none/checkpoints/none";
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&out);
  return call;
}

conform_call_t *conform_finish(conform_t *c, const char *session) {
  conform_ask_t ask = {.method = "POST"};
  conform_call_t *call;
  tnk__buf_t out;

  tnk__buf_init(&out, tnk__allocator_default(), MAX_PATH);
  tnk__buf_text(&out, "sessions/");
  tnk__url_put_segment(&out, session);
  tnk__buf_text(&out, "/finish");
  ask.path = tnk__buf_cstr(&out) != NULL ? (const char *)out.data : "";
  ask.json = json_pack("{s:{s:s},s:n}", "reason", "type", "success", "detail");
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&out);
  return call;
}

static void remove_one(conform_t *c, conform_made_t *made) {
  const conform_call_t *call;
  int is_gone;

  if (made->kind == CONFORM_SESSION)
    call = conform_finish(c, made->id);
  else if (made->kind == CONFORM_MODEL)
    call = conform_post(
        c, "unload_model",
        json_pack("{s:s,s:s}", "model_id", made->id, "type", "unload_model"));
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

conform_made_t *conform_new_session(conform_t *c) {
  json_t *body = json_pack("{s:[],s:{s:s},s:s,s:s}", "tags", "user_metadata",
                           "made_by", "tnk conform", "sdk_version", "0.38.0",
                           "type", "create_session");
  const conform_call_t *call = conform_post(c, "create_session", body);
  conform_made_t *made = NULL;

  if (conform_is_ok(call))
    made = conform_made(c, CONFORM_SESSION, conform_text(call, "session_id"));
  if (made == NULL)
    why(c, "no session", call);
  return made;
}

const char *conform_session_id(conform_t *c) {
  conform_made_t *made;

  if (c->session != NULL)
    return c->session;
  made = conform_new_session(c);
  if (made == NULL)
    return NULL;
  made->is_kept = 1;
  c->session = tnk__strdup(tnk__allocator_default(), made->id);
  return c->session;
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
    snprintf(c->why, sizeof(c->why), "no model is offered: --model NAME");
  else
    snprintf(c->why, sizeof(c->why),
             "none of the %zu models that are named is said to be for both "
             "training and sampling: --model NAME",
             n);
}

const char *conform_base_model(conform_t *c) {
  const char *name = c->options.model;
  conform_call_t *call;

  if (c->base_model != NULL)
    return c->base_model;
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
  return c->base_model;
}

json_t *conform_model_body(conform_t *c, const char *session, int64_t number) {
  return json_pack("{s:s,s:I,s:s,s:{s:i,s:b,s:b,s:b},s:s}", "session_id",
                   session, "model_seq_id", (json_int_t)number, "base_model",
                   conform_base_model(c), "lora_config", "rank", 8,
                   "train_unembed", 1, "train_mlp", 1, "train_attn", 1, "type",
                   "create_model");
}

/* The created model, from a call that is followed to its end. */
conform_made_t *conform_take_model(conform_t *c, const conform_call_t *call) {
  const char *id = NULL;
  conform_end_t end;

  conform_follow(c, call, 0, &end);
  if (end.fate == CONFORM_RESULT)
    id = conform_text(end.last, "model_id");
  if (id == NULL)
    snprintf(c->why, sizeof(c->why), "no model: %.180s", end.how);
  return conform_made(c, CONFORM_MODEL, id);
}

conform_made_t *conform_new_model(conform_t *c) {
  const char *session = conform_session_id(c);

  if (session == NULL || conform_base_model(c) == NULL)
    return NULL;
  if (c->n_kept >= MAX_KEPT) {
    snprintf(c->why, sizeof(c->why),
             "models cannot be unloaded here, and %u are left already",
             c->n_kept);
    return NULL;
  }
  return conform_take_model(
      c, conform_post(c, "create_model",
                      conform_model_body(c, session, c->n_models++)));
}

conform_made_t *conform_shared_model(conform_t *c) {
  if (c->shared == NULL)
    c->shared = conform_new_model(c);
  if (c->shared != NULL)
    c->shared->is_kept = 1;
  return c->shared;
}

conform_made_t *conform_any_model(conform_t *c) {
  if (!c->keeps_models)
    return conform_new_model(c);
  if (c->any == NULL)
    c->any = conform_new_model(c);
  if (c->any != NULL)
    c->any->is_kept = 1;
  return c->any;
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

const char *conform_sampler_id(conform_t *c) {
  const char *session = conform_session_id(c);
  const char *base = conform_base_model(c);
  const conform_call_t *call;
  const char *id;

  if (c->sampler != NULL || session == NULL || base == NULL)
    return c->sampler;
  call = conform_post(
      c, "create_sampling_session",
      json_pack("{s:s,s:I,s:s,s:s}", "session_id", session,
                "sampling_session_seq_id", (json_int_t)conform_next_sampler(c),
                "base_model", base, "type", "create_sampling_session"));
  id = conform_text(call, "sampling_session_id");
  if (!conform_is_ok(call) || id == NULL)
    why(c, "no sampling session", call);
  else
    c->sampler = tnk__strdup(tnk__allocator_default(), id);
  return c->sampler;
}

int64_t conform_next_sample(conform_t *c) {
  return c->n_samples++;
}
