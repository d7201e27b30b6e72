/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "bindings/lua/native/native.h"

/* ---- Lists ---- */

static void push_i32s(lua_State *L, const int32_t *values, size_t n) {
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_pushinteger(L, values[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

/* A value that was not computed is NaN, so the list has no hole. */
static void push_f32s(lua_State *L, const float *values, size_t n) {
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_pushnumber(L, (lua_Number)values[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static void push_tensor(lua_State *L, const tnk_tensor_t *tensor) {
  if (tensor->dtype == TNK_F32) {
    push_f32s(L, tensor->data, tensor->n_values);
    return;
  }
  const int64_t *values = tensor->data;
  lua_createtable(L, (int)tensor->n_values, 0);
  for (size_t i = 0; i < tensor->n_values; i++) {
    lua_pushinteger(L, (lua_Integer)values[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static void set_topk(lua_State *L, const char *name, const tnk_topk_t *topk) {
  if (topk == NULL)
    return;
  lua_newtable(L);
  put_whole(L, "k", topk->k);
  push_i32s(L, topk->ids, (size_t)topk->k * topk->length);
  lua_setfield(L, -2, "tokens");
  push_f32s(L, topk->logprobs, (size_t)topk->k * topk->length);
  lua_setfield(L, -2, "logprobs");
  lua_setfield(L, -2, name);
}

/* ---- Clients ---- */

static void push_client(lua_State *L, proxy_t *owner, tnk_promise_t *promise,
                        kind_t kind, void *handle) {
  proxy_t *service = owner->service != NULL ? owner->service : owner;
  proxy_t *client = proxy_push(L, owner->state, kind, service);

  client->promise = tnk_promise_ref(promise);
  client->handle = handle;
}

void result_training(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  push_client(L, owner, promise, PROXY_TRAINING, tnk_promise_training(promise));
}

void result_sampling(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  push_client(L, owner, promise, PROXY_SAMPLING, tnk_promise_sampling(promise));
}

/* ---- Results ---- */

void result_models(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  const tnk_capabilities_t *all = tnk_promise_capabilities(promise);

  (void)owner;
  lua_newtable(L);
  for (size_t i = 0; i < tnk_capabilities_count(all); i++) {
    const tnk_model_t *model = tnk_capabilities_model(all, i);
    lua_newtable(L);
    put_text(L, "name", model->name);
    if (model->max_context_length > 0)
      put_whole(L, "max_context_length", model->max_context_length);
    if (model->trainable != TNK_DEFAULT) {
      lua_pushboolean(L, model->trainable == TNK_YES);
      lua_setfield(L, -2, "trainable");
    }
    if (model->sampleable != TNK_DEFAULT) {
      lua_pushboolean(L, model->sampleable == TNK_YES);
      lua_setfield(L, -2, "sampleable");
    }
    lua_rawseti(L, -2, (int)i + 1);
  }
}

static void push_metrics(lua_State *L, const tnk_metrics_t *metrics) {
  lua_newtable(L);
  for (size_t i = 0; i < tnk_metrics_count(metrics); i++)
    put_number(L, tnk_metrics_key(metrics, i), tnk_metrics_value(metrics, i));
}

void result_metrics(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  (void)owner;
  push_metrics(L, tnk_promise_metrics(promise));
}

void result_pass(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  const tnk_pass_t *pass = tnk_promise_pass(promise);

  (void)owner;
  lua_newtable(L);
  put_number(L, "loss", tnk_pass_loss(pass));
  put_text(L, "output_type", tnk_pass_output_type(pass));
  push_metrics(L, tnk_pass_metrics(pass));
  lua_setfield(L, -2, "metrics");
  lua_newtable(L);
  for (size_t i = 0; i < tnk_pass_count(pass); i++) {
    lua_newtable(L);
    for (size_t f = 0; f < tnk_pass_field_count(pass, i); f++) {
      const char *name = tnk_pass_field_name(pass, i, f);
      push_tensor(L, tnk_pass_tensor(pass, i, name));
      lua_setfield(L, -2, name);
    }
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "outputs");
}

void result_saved(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  const tnk_saved_t *saved = tnk_promise_saved(promise);

  (void)owner;
  lua_newtable(L);
  if (saved == NULL)
    return;
  put_text(L, "path", saved->path);
  put_whole(L, "n_steps", (int64_t)saved->n_steps);
  put_whole(L, "n_passes", (int64_t)saved->n_passes);
}

static void push_sequence(lua_State *L, const tnk_samples_t *samples,
                          size_t index) {
  size_t n = 0;

  lua_newtable(L);
  const int32_t *tokens = tnk_samples_tokens(samples, index, &n);
  push_i32s(L, tokens, n);
  lua_setfield(L, -2, "tokens");
  const float *logprobs = tnk_samples_logprobs(samples, index, &n);
  if (logprobs != NULL) {
    push_f32s(L, logprobs, n);
    lua_setfield(L, -2, "logprobs");
  }
  put_text(L, "stop_reason",
           tnk_samples_stop_reason(samples, index) == TNK_STOP_LENGTH ? "length"
                                                                      : "stop");
  put_text(L, "id", tnk_samples_sequence_id(samples, index));
  set_topk(L, "topk", tnk_samples_topk(samples, index));
}

void result_samples(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  const tnk_samples_t *samples = tnk_promise_samples(promise);
  size_t n = 0;

  (void)owner;
  lua_newtable(L);
  lua_newtable(L);
  for (size_t i = 0; i < tnk_samples_count(samples); i++) {
    push_sequence(L, samples, i);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "sequences");
  const float *logprobs = tnk_samples_prompt_logprobs(samples, &n);
  if (logprobs != NULL) {
    push_f32s(L, logprobs, n);
    lua_setfield(L, -2, "prompt_logprobs");
  }
  set_topk(L, "prompt_topk", tnk_samples_prompt_topk(samples));
  int32_t hits = tnk_samples_cache_hit_tokens(samples);
  if (hits >= 0)
    put_whole(L, "cache_hit_tokens", hits);
}

void result_logprobs(lua_State *L, proxy_t *owner, tnk_promise_t *promise) {
  size_t n = 0;
  const float *logprobs = tnk_promise_logprobs(promise, &n);

  (void)owner;
  push_f32s(L, logprobs, n);
}
