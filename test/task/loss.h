/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_LOSS_H
#define TNK_TEST_TASK_LOSS_H

#include "lib/policy/poll.h"
#include "task/script.h"

/*
 * A server that can be killed and started again. It knows sessions, models,
 * samplers and futures by their ids. A model's weights are a number that
 * depends on every pass and step before, and a version, which is the number of
 * optimizer steps. The loss of a pass depends on its data and the weights. What
 * a new process knows depends on `state_t`. Saved states are on its disk and
 * outlive every process.
 */

typedef enum {
  STATE_FULL,   /* everything, as it was */
  STATE_NONE,   /* nothing */
  STATE_OLDER,  /* everything, but models as they were saved last */
  STATE_OTHERS, /* our session's id, which somebody else has now */
  N_STATES
} state_t;

/* What a server makes of the numbers of requests: a number that it has run gets
 * the same answer, is run again, or is refused. */
typedef enum { NUMBERS_BUFFERED, NUMBERS_LENIENT, NUMBERS_STRICT } numbers_t;

enum { MAX_MODELS = 64, MAX_SAVED = 64, MAX_IDS = 64 };

typedef struct {
  char id[64];
  int is_known;
  long version;
  uint64_t weights;
  uint64_t gradient;
  long saved; /* the version that was saved last */
  uint64_t saved_weights;
  long long next;
  long long saved_next;
  long long last; /* the number that was run last; 0: none */
  char last_answer[256];
} world_model_t;

typedef struct world {
  script_t script;
  numbers_t numbers;
  int has_names; /* the path of a state ends with the name of its save */
  world_model_t models[MAX_MODELS];
  int n_models;
  struct {
    char path[128];
    long version;
    uint64_t weights;
  } saved[MAX_SAVED];
  int n_saved;
  char sessions[MAX_IDS][32];
  int n_sessions; /* those before first_session are not known any more */
  int first_session;
  int n_samplers;
  int first_sampler;
  int n_futures;
  int first_future;
  int n_unknown; /* polls since the last kill that asked for a forgotten model
                  */
  int is_down;
  const char *dies_of; /* after running this call it dies, without an answer */
  int n_until;         /* at so many more of these calls */
  int is_dying;        /* a kill is due at once */
  int n_kills;
  state_t state;            /* of the process that follows */
  uint64_t n_refusals[400]; /* 4xx answers by second since the beginning */
  uint64_t revealed_ms;     /* the first answer that shows the loss; 0: none */
  uint64_t reported_ms;     /* when the program was told; 0: never */
  uint64_t refused_ms;      /* a restart can have been seen since */
  long expected;            /* the version that the program's next step needs */
  int n_wrong;              /* steps on other weights */
  int n_steps;
} world_t;

static inline uint64_t world_now(const world_t *world) {
  return world->script.service->root.context.fake_now;
}

static inline uint64_t world_second(const world_t *world) {
  const uint64_t s = (world_now(world) - 1000000) / 1000;

  CHECK(s < 400);
  return s;
}

/* The text of a member; "" without it. */
static inline void world_text(const mock_request_t *request, const char *key,
                              char *to, size_t size) {
  char text[64];
  const char *at;

  snprintf(text, sizeof(text), "\"%s\":\"", key);
  at = strstr((const char *)request->body, text);
  if (at == NULL) {
    to[0] = '\0';
    return;
  }
  at += strlen(text);
  snprintf(to, size, "%.*s", (int)strcspn(at, "\""), at);
}

static inline void world_reveal(world_t *world) {
  if (world->n_kills > 0 && world->revealed_ms == 0)
    world->revealed_ms = world_now(world);
}

/* Mixes a number into another one; the result fits into JSON. */
static inline uint64_t world_mix(uint64_t a, uint64_t b) {
  a = (a ^ b) * 0x9E3779B97F4A7C15u;
  return (a ^ a >> 29) >> 16;
}

static inline uint64_t world_mix_bytes(uint64_t a, const uint8_t *data,
                                       size_t n) {
  for (size_t i = 0; i < n; i++)
    a = world_mix(a, data[i]);
  return a;
}

/* A refusal in the server's own words. */
static inline void world_refuse(world_t *world, mock_request_t *request,
                                int status, const char *what, const char *id) {
  char text[256];

  world->n_refusals[world_second(world)]++;
  world_reveal(world);
  snprintf(text, sizeof(text), "{\"detail\":\"%s not found: %s\"}", what, id);
  mock_reply_json(request, status, text);
}

static inline int world_knows_session(const world_t *world, const char *id) {
  for (int i = world->first_session; i < world->n_sessions; i++)
    if (strcmp(world->sessions[i], id) == 0)
      return 1;
  return 0;
}

static inline world_model_t *world_model(world_t *world, const char *id) {
  for (int i = 0; i < world->n_models; i++)
    if (world->models[i].is_known && strcmp(world->models[i].id, id) == 0)
      return &world->models[i];
  return NULL;
}

/* ---- Death and birth ---- */

static inline void world_forget_models(world_t *world) {
  for (int i = 0; i < world->n_models; i++)
    world->models[i].is_known = 0;
  world->first_sampler = world->n_samplers;
  world->first_future = world->n_futures;
}

/* The process ends, with all its connections. */
static inline void world_kill(world_t *world) {
  world->is_down = 1;
  world->n_kills++;
  world->revealed_ms = world->reported_ms = 0;
  world->n_unknown = 0;
  mock_stop_listening(world->script.mock);
  mock_close_idle(world->script.mock, 1);
  if (world->state == STATE_NONE) {
    world->first_session = world->n_sessions;
    world_forget_models(world);
  } else if (world->state == STATE_OTHERS) {
    world_forget_models(world);
  } else if (world->state == STATE_OLDER) {
    for (int i = 0; i < world->n_models; i++) {
      world->models[i].version = world->models[i].saved;
      world->models[i].weights = world->models[i].saved_weights;
      world->models[i].gradient = 0;
      world->models[i].next = world->models[i].saved_next;
      world->models[i].last = 0;
    }
  }
}

static inline void world_start(world_t *world) {
  world->is_down = 0;
  mock_listen_again(world->script.mock);
}

/* ---- Calls ---- */

/* Requests that reach a process that is dying get no answer. 1: that is so. */
static inline int world_is_dead(world_t *world, mock_request_t *request) {
  const int is_dead = world->is_down || world->is_dying;

  if (is_dead)
    mock_reset(request, NULL);
  return is_dead;
}

static inline void world_config(mock_request_t *request, void *user) {
  if (!world_is_dead(user, request))
    mock_reply_json(request, 200, "{}");
}

static inline void world_create_session(mock_request_t *request, void *user) {
  world_t *world = user;
  char text[128];

  if (world_is_dead(world, request))
    return;
  CHECK(world->n_sessions < MAX_IDS);
  snprintf(world->sessions[world->n_sessions], 32, "session-%d",
           world->n_sessions);
  snprintf(text, sizeof(text), "{\"session_id\":\"%s\"}",
           world->sessions[world->n_sessions++]);
  mock_reply_json(request, 200, text);
}

static inline void world_heartbeat(mock_request_t *request, void *user) {
  world_t *world = user;
  char id[64];

  if (world_is_dead(world, request))
    return;
  world_text(request, "session_id", id, sizeof(id));
  if (world_knows_session(world, id))
    mock_reply_json(request, 200, "{}");
  else
    world_refuse(world, request, 404, "Session", id);
}

/* A future: what it is of, its number, the result's number, and its text. */
static inline void world_promise(world_t *world, mock_request_t *request,
                                 const char *what, uint64_t value,
                                 const char *of) {
  char text[256];

  snprintf(text, sizeof(text), "{\"request_id\":\"%s:%d:%llu:%s\"}", what,
           world->n_futures++, (unsigned long long)value, of);
  if (world_model(world, of) != NULL)
    snprintf(world_model(world, of)->last_answer, sizeof(text), "%s", text);
  if (world->dies_of != NULL && strcmp(world->dies_of, what) == 0 &&
      world->n_until-- == 1) {
    world->is_dying = 1;
    mock_reset(request, NULL);
  } else {
    mock_reply_json(request, 200, text);
  }
}

static inline void world_new_model(world_t *world, mock_request_t *request,
                                   const char *what, long version,
                                   uint64_t weights) {
  world_model_t *model = &world->models[world->n_models];
  char session[64];

  CHECK(world->n_models < MAX_MODELS);
  world_text(request, "session_id", session, sizeof(session));
  snprintf(model->id, sizeof(model->id), "%.40s:train:%lld", session,
           script_number(request, "model_seq_id"));
  model->is_known = 1;
  model->version = model->saved = version;
  model->weights = model->saved_weights = weights;
  model->gradient = 0;
  model->next = model->saved_next = 1;
  model->last = 0;
  world->n_models++;
  world_promise(world, request, what, 0, model->id);
}

static inline void world_create_model(mock_request_t *request, void *user) {
  world_t *world = user;
  char session[64];

  if (world_is_dead(world, request))
    return;
  world_text(request, "session_id", session, sizeof(session));
  if (world_knows_session(world, session))
    world_new_model(world, request, "create_model", 0, 1);
  else
    world_refuse(world, request, 404, "Session", session);
}

static inline void world_load(mock_request_t *request, void *user) {
  world_t *world = user;
  char session[64], path[128];

  if (world_is_dead(world, request))
    return;
  world_text(request, "session_id", session, sizeof(session));
  world_text(request, "path", path, sizeof(path));
  if (!world_knows_session(world, session)) {
    world_refuse(world, request, 404, "Session", session);
    return;
  }
  for (int i = 0; i < world->n_saved; i++)
    if (strcmp(world->saved[i].path, path) == 0) {
      world_new_model(world, request, "load_weights", world->saved[i].version,
                      world->saved[i].weights);
      return;
    }
  world_refuse(world, request, 404, "Checkpoint", path);
}

/* The model of a numbered request that is to be run now; NULL: it is answered.
 */
static inline world_model_t *world_take(world_t *world, mock_request_t *request,
                                        const char *id, long long seq) {
  world_model_t *model = world_model(world, id);
  char text[128];

  if (model == NULL) {
    world_refuse(world, request, 404, "Model", id);
    return NULL;
  }
  if (world->numbers == NUMBERS_STRICT && seq != model->next) {
    world->n_refusals[world_second(world)]++;
    /* A number that was run shows that nothing is lost. */
    if (seq > model->next)
      world_reveal(world);
    snprintf(text, sizeof(text),
             "{\"detail\":\"Sequence conflict: expected %lld, got %lld\"}",
             model->next, seq);
    mock_reply_json(request, 409, text);
    return NULL;
  }
  if (world->numbers == NUMBERS_BUFFERED && seq == model->last) {
    mock_reply_json(request, 200, model->last_answer);
    return NULL;
  }
  model->next = seq + 1;
  model->last = seq;
  return model;
}

/* Changes the gradient, and returns the loss in millionths. */
static inline uint64_t
world_run_pass(world_model_t *model,
               const TinkerPublic__ForwardBackwardRequest *message) {
  uint64_t data = message->n_data;

  for (size_t i = 0; i < message->n_data; i++) {
    uint8_t bytes[512];
    const TinkerPublic__Datum *datum = message->data[i];

    CHECK(tinker_public__datum__get_packed_size(datum) <= sizeof(bytes));
    data =
        world_mix_bytes(data, bytes, tinker_public__datum__pack(datum, bytes));
  }
  if (!message->forward_only)
    model->gradient = world_mix(model->gradient, data);
  return world_mix(model->weights, data) % 4000000;
}

static inline void world_pass(mock_request_t *request, void *user) {
  world_t *world = user;
  TinkerPublic__ForwardBackwardRequest *message;
  world_model_t *model;

  if (world_is_dead(world, request))
    return;
  message = tinker_public__forward_backward_request__unpack(
      NULL, request->body_len, request->body);
  CHECK(message != NULL);
  model = world_take(world, request, message->model_id, message->seq_id);
  if (model != NULL)
    world_promise(world, request, "forward_backward",
                  world_run_pass(model, message), message->model_id);
  tinker_public__forward_backward_request__free_unpacked(message, NULL);
}

static inline void world_optim(mock_request_t *request, void *user) {
  world_t *world = user;
  world_model_t *model;
  char id[64];

  if (world_is_dead(world, request))
    return;
  world_text(request, "model_id", id, sizeof(id));
  model = world_take(world, request, id, script_number(request, "seq_id"));
  if (model == NULL)
    return;
  world->n_wrong += model->version != world->expected;
  world->n_steps++;
  model->version++;
  model->weights = world_mix(model->weights, model->gradient);
  model->gradient = 0;
  world_promise(world, request, "optim_step", model->weights, id);
}

static inline void world_save(mock_request_t *request, void *user) {
  world_t *world = user;
  world_model_t *model;
  char id[64], name[64];
  int i;

  if (world_is_dead(world, request))
    return;
  world_text(request, "model_id", id, sizeof(id));
  world_text(request, "path", name, sizeof(name));
  model = world_take(world, request, id, script_number(request, "seq_id"));
  if (model == NULL)
    return;
  i = world->n_saved++;
  CHECK(i < MAX_SAVED);
  if (!world->has_names)
    snprintf(name, sizeof(name), "%d", i);
  snprintf(world->saved[i].path, sizeof(world->saved[i].path),
           "tinker://%.50s/weights/%.40s", id, name);
  world->saved[i].version = model->saved = model->version;
  world->saved[i].weights = model->saved_weights = model->weights;
  model->saved_next = model->next;
  world_promise(world, request, "save_weights", 0, world->saved[i].path);
  snprintf(model->last_answer, sizeof(model->last_answer),
           "{\"request_id\":\"save_weights:%d:0:%s\"}", world->n_futures - 1,
           world->saved[i].path);
}

static inline void world_info(mock_request_t *request, void *user) {
  world_t *world = user;
  char id[64], text[256];

  if (world_is_dead(world, request))
    return;
  world_text(request, "model_id", id, sizeof(id));
  if (world_model(world, id) == NULL) {
    world_refuse(world, request, 404, "Model", id);
    return;
  }
  snprintf(text, sizeof(text),
           "{\"model_id\":\"%s\",\"model_data\":{\"arch\":\"a\",\"model_name\":"
           "\"base\",\"tokenizer_id\":\"t:1\"},\"is_lora\":true}",
           id);
  mock_reply_json(request, 200, text);
}

static inline void world_create_sampler(mock_request_t *request, void *user) {
  world_t *world = user;
  char session[64], text[96];

  if (world_is_dead(world, request))
    return;
  world_text(request, "session_id", session, sizeof(session));
  if (!world_knows_session(world, session)) {
    world_refuse(world, request, 404, "Session", session);
    return;
  }
  snprintf(text, sizeof(text), "{\"sampling_session_id\":\"sampler-%d\"}",
           world->n_samplers++);
  mock_reply_json(request, 200, text);
}

static inline void world_sample(mock_request_t *request, void *user) {
  world_t *world = user;
  char id[64];

  if (world_is_dead(world, request))
    return;
  world_text(request, "sampling_session_id", id, sizeof(id));
  if (atoi(id + strlen("sampler-")) < world->first_sampler)
    world_refuse(world, request, 404, "Sampling session", id);
  else
    world_promise(world, request, "asample", 0, id);
}

static inline void world_answer(mock_request_t *request, const char *id,
                                unsigned long long value, const char *of) {
  char text[256];

  if (strncmp(id, "create_model", 12) == 0)
    snprintf(text, sizeof(text), "{\"model_id\":\"%s\"}", of);
  else if (strncmp(id, "save_weights", 12) == 0)
    snprintf(text, sizeof(text), "{\"path\":\"%s\"}", of);
  else if (strncmp(id, "optim_step", 10) == 0)
    snprintf(text, sizeof(text), "{\"metrics\":{\"grad_norm\":%llu.0}}", value);
  else
    snprintf(text, sizeof(text),
             "{\"loss_fn_output_type\":\"ArrayRecord\",\"metrics\":{"
             "\"loss:sum\":%llu.0},\"loss_fn_outputs\":[{\"logprobs\":{"
             "\"data\":[-1.0,-2.0],\"dtype\":\"float32\",\"shape\":[2]}}]}",
             value);
  mock_reply_json(request, 200, text);
}

/* The first polls for a model that is being made do not show the loss: a server
 * may know the result later. */
static inline void world_forget(world_t *world, mock_request_t *request,
                                const char *id) {
  const uint64_t revealed_ms = world->revealed_ms;

  world_refuse(world, request, 404, "Future", id);
  if (strncmp(id, "create_model", 12) == 0 &&
      world->n_unknown++ < TNK__POLL_MAX_UNKNOWN)
    world->revealed_ms = revealed_ms;
}

static inline void world_poll(mock_request_t *request, void *user) {
  world_t *world = user;
  char id[192];
  char *value;
  char *of;

  if (world_is_dead(world, request))
    return;
  world_text(request, "request_id", id, sizeof(id));
  value = strchr(id, ':') + 1;
  if (atoi(value) < world->first_future) {
    world_forget(world, request, id);
    return;
  }
  if (strncmp(id, "asample", 7) == 0 || strncmp(id, "load_weights", 12) == 0) {
    script_result(request, &world->script);
    return;
  }
  of = strchr(strchr(value, ':') + 1, ':') + 1;
  world_answer(request, id, strtoull(strchr(value, ':') + 1, NULL, 10), of);
}

/* The checkpoints of a run, which outlive it. */
static inline void world_list(mock_request_t *request, void *user) {
  world_t *world = user;
  char text[8192] = "{\"checkpoints\":[";
  size_t n = strlen(text);

  if (strstr(request->path, "/checkpoints") == NULL) {
    mock_pass(request);
    return;
  }
  if (world_is_dead(world, request))
    return;
  for (int i = 0; i < world->n_saved && n < sizeof(text) - 512; i++) {
    const char *path = world->saved[i].path;
    const char *name = strstr(path, "/weights/") + 1;
    const size_t n_run = (size_t)(name - 1 - path) - strlen("tinker://");
    char run[128];

    snprintf(run, sizeof(run), "/training_runs/%.*s/checkpoints", (int)n_run,
             path + strlen("tinker://"));
    if (strstr(request->path, run) != NULL)
      n += (size_t)snprintf(
          text + n, sizeof(text) - n,
          "%s{\"checkpoint_id\":\"%s\",\"checkpoint_type\":\"training\","
          "\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":\"%s\"}",
          text[n - 1] == '}' ? "," : "", name, path);
  }
  snprintf(text + n, sizeof(text) - n, "]}");
  mock_reply_json(request, 200, text);
}

static inline void world_serve(world_t *world) {
  static const struct {
    const char *path;
    mock_handler_t handler;
  } calls[] = {{"/api/v1/client/config", world_config},
               {"/api/v1/client/dynamic_config", world_config},
               {"/api/v1/create_session", world_create_session},
               {"/api/v1/session_heartbeat", world_heartbeat},
               {"/api/v1/create_model", world_create_model},
               {"/api/v1/load_weights", world_load},
               {"/api/v1/forward_backward", world_pass},
               {"/api/v1/optim_step", world_optim},
               {"/api/v1/save_weights", world_save},
               {"/api/v1/get_info", world_info},
               {"/api/v1/create_sampling_session", world_create_sampler},
               {"/api/v1/asample", world_sample},
               {"/api/v1/retrieve_future", world_poll}};

  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
    mock_on(world->script.mock, "POST", calls[i].path, calls[i].handler, world);
  mock_on(world->script.mock, "GET", NULL, world_list, world);
}

#endif
