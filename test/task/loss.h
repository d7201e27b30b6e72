#ifndef TNK_TEST_TASK_LOSS_H
#define TNK_TEST_TASK_LOSS_H

#include "task/script.h"

/*
 * A server that can be killed and started again. It knows sessions, models,
 * samplers and futures by their ids; a model's weights are a version, which is
 * the number of optimizer steps in them. What a new process knows depends on
 * `state_t`. Saved states are on its disk and outlive every process.
 */

typedef enum {
  STATE_FULL,   /* everything, as it was */
  STATE_NONE,   /* nothing */
  STATE_OLDER,  /* everything, but models as they were saved last */
  STATE_OTHERS, /* our session's id, which somebody else has now */
  N_STATES
} state_t;

/* What a server makes of the numbers of requests. */
typedef enum { NUMBERS_BUFFERED, NUMBERS_LENIENT, NUMBERS_STRICT } numbers_t;

enum { MAX_MODELS = 64, MAX_SAVED = 64, MAX_IDS = 64 };

typedef struct {
  char id[64];
  int is_known;
  long version;
  long saved; /* the version that was saved last */
  long long next;
  long long saved_next;
} world_model_t;

typedef struct world {
  script_t script;
  numbers_t numbers;
  world_model_t models[MAX_MODELS];
  int n_models;
  struct {
    char path[128];
    long version;
  } saved[MAX_SAVED];
  int n_saved;
  char sessions[MAX_IDS][32];
  int n_sessions; /* those before first_session are not known any more */
  int first_session;
  int n_samplers;
  int first_sampler;
  int n_futures;
  int first_future;
  int is_down;
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
      world->models[i].next = world->models[i].saved_next;
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
  if (world->is_down)
    mock_reset(request, NULL);
  return world->is_down;
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

static inline void world_promise(world_t *world, mock_request_t *request,
                                 const char *what, const char *of) {
  char text[192];

  snprintf(text, sizeof(text), "{\"request_id\":\"%s:%d:1:%s\"}", what,
           world->n_futures++, of);
  mock_reply_json(request, 200, text);
}

static inline void world_new_model(world_t *world, mock_request_t *request,
                                   const char *what, long version) {
  world_model_t *model = &world->models[world->n_models];
  char session[64];

  CHECK(world->n_models < MAX_MODELS);
  world_text(request, "session_id", session, sizeof(session));
  snprintf(model->id, sizeof(model->id), "%.40s:train:%lld", session,
           script_number(request, "model_seq_id"));
  model->is_known = 1;
  model->version = model->saved = version;
  model->next = model->saved_next = 1;
  world->n_models++;
  world_promise(world, request, what, model->id);
}

static inline void world_create_model(mock_request_t *request, void *user) {
  world_t *world = user;
  char session[64];

  if (world_is_dead(world, request))
    return;
  world_text(request, "session_id", session, sizeof(session));
  if (world_knows_session(world, session))
    world_new_model(world, request, "create_model", 0);
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
      world_new_model(world, request, "load_weights", world->saved[i].version);
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
    world_reveal(world);
    snprintf(text, sizeof(text),
             "{\"detail\":\"Sequence conflict: expected %lld, got %lld\"}",
             model->next, seq);
    mock_reply_json(request, 409, text);
    return NULL;
  }
  if (world->numbers != NUMBERS_STRICT || seq == model->next)
    model->next = seq + 1;
  return model;
}

static inline void world_pass(mock_request_t *request, void *user) {
  world_t *world = user;
  TinkerPublic__ForwardBackwardRequest *message;

  if (world_is_dead(world, request))
    return;
  message = tinker_public__forward_backward_request__unpack(
      NULL, request->body_len, request->body);
  CHECK(message != NULL);
  if (world_take(world, request, message->model_id, message->seq_id) != NULL)
    world_promise(world, request, "forward_backward", message->model_id);
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
  world_promise(world, request, "optim_step", id);
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
  snprintf(world->saved[i].path, sizeof(world->saved[i].path),
           "tinker://%.60s/weights/%d", id, i);
  world->saved[i].version = model->saved = model->version;
  model->saved_next = model->next;
  world_promise(world, request, "save_weights", world->saved[i].path);
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
    world_promise(world, request, "asample", id);
}

static inline void world_poll(mock_request_t *request, void *user) {
  world_t *world = user;
  char id[192], text[256];

  if (world_is_dead(world, request))
    return;
  world_text(request, "request_id", id, sizeof(id));
  if (atoi(strchr(id, ':') + 1) < world->first_future) {
    world_refuse(world, request, 404, "Future", id);
  } else if (strncmp(id, "create_model", 12) == 0) {
    snprintf(text, sizeof(text), "{\"model_id\":\"%s\"}",
             strstr(id, ":1:") + 3);
    mock_reply_json(request, 200, text);
  } else if (strncmp(id, "save_weights", 12) == 0) {
    snprintf(text, sizeof(text), "{\"path\":\"%s\"}", strstr(id, ":1:") + 3);
    mock_reply_json(request, 200, text);
  } else {
    script_result(request, &world->script);
  }
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
}

#endif
