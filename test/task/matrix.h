/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_MATRIX_H
#define TNK_TEST_TASK_MATRIX_H

#include "task/script.h"

/*
 * Every state that an operation can wait in, ended in every way, from outside
 * and from inside a callback. Each cell brings an operation into its state on
 * a service of its own, ends it, and then lets the server answer whatever it
 * still holds: the promise has settled once, as it must, and if the client is
 * still open it works on, without a hole in its numbers. What explain tells in
 * the state is compared word for word on the way.
 */

#define FB "/api/v1/forward_backward"
#define STEP "/api/v1/optim_step"
#define POLL "/api/v1/retrieve_future"
#define BATCH "/api/v1/retrieve_futures"
#define SAMPLE "/api/v1/asample"

enum { MAX_OTHERS = 80, BIG = 1500000 };

typedef enum { CANCEL, CLOSE_CLIENT, CLOSE_SERVICE, DEADLINE, N_ACTIONS } act_t;

typedef struct cell {
  script_t script;
  tnk_promise_t *promise; /* our reference */
  tnk_promise_t *timed;
  outcome_t outcome;
  outcome_t timed_outcome;
  tnk_promise_t *others[MAX_OTHERS];
  int n_others;
  mock_request_t *partial; /* half answered */
  const struct state *state;
  act_t act;
  int has_acted;
  uv_work_t blockers[4];
  uv_sem_t gate;
  int n_blocked;
} cell_t;

typedef struct state {
  const char *name;
  const char *says;  /* part of what explain tells in this state */
  const char *tells; /* all of it; a star stands for what is drawn at random */
  const char *flags;
  tnk_promise_t *(*bring)(cell_t *cell);
} state_t;

#define SETTLED "has succeeded"
#define BATCHED "{\"sample_use_retrieve_futures\":true}"

/* ---- Helpers ---- */

static inline void turns(cell_t *cell) {
  mock_turns(cell->script.mock, 60);
}

static inline void hold(cell_t *cell, const char *path) {
  mock_on(cell->script.mock, "POST", path, mock_hold, NULL);
}

static inline mock_request_t *last(cell_t *cell, const char *path) {
  size_t n = mock_count(cell->script.mock, "POST", path);

  CHECK(n > 0);
  return mock_find(cell->script.mock, "POST", path, n - 1);
}

static inline void other(cell_t *cell, tnk_promise_t *promise) {
  CHECK(cell->n_others < MAX_OTHERS);
  tnk_then(tnk_promise_ref(promise), NULL, NULL);
  cell->others[cell->n_others++] = promise;
}

static inline int says(const tnk_promise_t *promise, const char *text) {
  char sentence[1024];

  tnk_promise_explain(promise, sentence, sizeof(sentence));
  return strstr(sentence, text) != NULL;
}

/* Whether a text is like a pattern with stars for any run of characters. */
static inline int is_like(const char *text, const char *pattern) {
  const char *star = strchr(pattern, '*');
  size_t n = star == NULL ? strlen(pattern) : (size_t)(star - pattern);

  if (strncmp(text, pattern, n) != 0)
    return 0;
  if (star == NULL)
    return text[n] == '\0';
  for (text += n; !is_like(text, star + 1); text++)
    if (*text == '\0')
      return 0;
  return 1;
}

/* All threads of the pool meet, so everything before them has been done. */
typedef struct {
  uv_work_t jobs[4];
  uv_barrier_t barrier;
  int n_done;
} meeting_t;

static inline void meet(uv_work_t *job) {
  uv_barrier_wait(&((meeting_t *)job->data)->barrier);
}

static inline void have_met(uv_work_t *job, int status) {
  CHECK_INT(status, 0);
  ((meeting_t *)job->data)->n_done++;
}

static inline void unblock(cell_t *cell) {
  meeting_t meeting = {.n_done = 0};

  if (cell->n_blocked == 0)
    return;
  for (; cell->n_blocked > 0; cell->n_blocked--)
    uv_sem_post(&cell->gate);
  CHECK_INT(uv_barrier_init(&meeting.barrier, 4), 0);
  for (int i = 0; i < 4; i++) {
    meeting.jobs[i].data = &meeting;
    CHECK_INT(uv_queue_work(&cell->script.uv, &meeting.jobs[i], meet, have_met),
              0);
  }
  while (meeting.n_done < 4)
    uv_run(&cell->script.uv, UV_RUN_ONCE);
  uv_barrier_destroy(&meeting.barrier);
}

static inline void until(cell_t *cell, tnk_promise_t *promise,
                         const char *text) {
  for (int i = 0; i < 1000 && !says(promise, text); i++)
    mock_turns(cell->script.mock, 1);
}

/* More than the buffers of the socket take. */
static inline const tnk_chunk_t *big_chunk(void) {
  static int32_t tokens[BIG];
  static tnk_chunk_t chunk;

  for (int i = 0; i < BIG; i++)
    tokens[i] = 100000 + i % 1000;
  chunk = tnk_chunk_text(tokens, BIG);
  return &chunk;
}

/* The first bytes of an answer. */
static inline void begin_answer(cell_t *cell, mock_request_t *request) {
  mock_begin(request, 200,
             "Content-Type: application/json\r\nContent-Length: 1000\r\n");
  mock_piece(request, "{", 1);
  cell->partial = request;
  turns(cell);
}

static const char ready[] =
    "{\"status\":\"complete_metadata\",\"response_payload_size\":900}";

static inline tnk_promise_t *create(cell_t *cell) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  tnk_promise_t *promise;

  options.base_model = "base";
  promise = tnk_service_create_lora(cell->script.service, &options);
  turns(cell);
  return promise;
}

/* ---- Into the states that steps and samples have in common ---- */

static inline const char *submit_path(const cell_t *cell) {
  return cell->script.training != NULL ? STEP : SAMPLE;
}

static inline tnk_promise_t *start(cell_t *cell) {
  return cell->script.training != NULL ? script_step(&cell->script)
                                       : script_sample(&cell->script);
}

static inline tnk_promise_t *start_turns(cell_t *cell) {
  tnk_promise_t *promise = start(cell);

  turns(cell);
  return promise;
}

static inline tnk_promise_t *connects(cell_t *cell) {
  tnk_promise_t *promise;

  mock_close_idle(cell->script.mock, 0);
  turns(cell);
  promise = start(cell);
  until(cell, promise, cell->state->says);
  return promise;
}

static inline tnk_promise_t *submitted(cell_t *cell) {
  hold(cell, submit_path(cell));
  return start_turns(cell);
}

static inline tnk_promise_t *acceptance_comes(cell_t *cell) {
  tnk_promise_t *promise = submitted(cell);

  begin_answer(cell, last(cell, submit_path(cell)));
  return promise;
}

static inline tnk_promise_t *repeats(cell_t *cell) {
  mock_json(cell->script.mock, "POST", submit_path(cell), 503, "{}");
  return start_turns(cell);
}

static inline tnk_promise_t *polls(cell_t *cell) {
  hold(cell, POLL);
  return start_turns(cell);
}

static inline tnk_promise_t *polls_later(cell_t *cell) {
  mock_json(cell->script.mock, "POST", POLL, 429, "{}");
  return start_turns(cell);
}

static inline tnk_promise_t *wants_room(cell_t *cell) {
  tnk_promise_t *promise;

  hold(cell, POLL);
  other(cell, start_turns(cell));
  mock_reply_json(last(cell, POLL), 200, ready);
  promise = start_turns(cell);
  mock_reply_json(last(cell, POLL), 200, ready);
  turns(cell);
  return promise;
}

static inline tnk_promise_t *result_comes(cell_t *cell) {
  tnk_promise_t *promise = polls(cell);

  begin_answer(cell, last(cell, POLL));
  return promise;
}

/* ---- The ends ---- */

/* These last for less than a turn, so they are over inside a callback. */
static inline int is_fleeting(const state_t *state) {
  return strcmp(state->says, "has its turn") == 0 ||
         strcmp(state->says, "is about to be submitted") == 0;
}

static inline void check_sentence(const cell_t *cell) {
  char sentence[1024];

  tnk_promise_explain(cell->promise, sentence, sizeof(sentence));
  if (!is_like(sentence, cell->state->tells))
    test_fail(__FILE__, __LINE__, "not in the state '%s':\n%s",
              cell->state->name, sentence);
}

static inline void do_act(cell_t *cell, int inside) {
  script_t *script = &cell->script;

  CHECK(!cell->has_acted);
  cell->has_acted = 1;
  if (!(inside && is_fleeting(cell->state)))
    check_sentence(cell);
  switch (cell->act) {
  case CANCEL:
    tnk_promise_cancel(cell->promise);
    break;
  case CLOSE_CLIENT:
    tnk_training_close(script->training, NULL, NULL);
    tnk_sampling_close(script->sampling, NULL, NULL);
    if (script->training != NULL || script->sampling != NULL)
      break;
    tnk_service_close(script->service, script_closed, script);
    break;
  case CLOSE_SERVICE:
    tnk_service_close(script->service, script_closed, script);
    break;
  default:
    cell->timed = tnk_with_timeout(tnk_promise_ref(cell->promise), 0);
    outcome_of(&cell->timed_outcome, cell->timed);
    break;
  }
}

static inline void on_trigger(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  CHECK(status != TNK_OK);
  do_act(user, 1);
}

/* A promise that is rejected at once calls back in the very next turn. */
static inline void do_act_inside(cell_t *cell) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  tnk_then(tnk_service_create_lora(cell->script.service, &options), on_trigger,
           cell);
  CHECK(!cell->has_acted);
  mock_turns(cell->script.mock, 1);
  CHECK(cell->has_acted);
}

/* ---- What comes after ---- */

/* A body of any size: its number, a small one, follows the model's id. */
static inline void accept_pass(mock_request_t *request, void *user) {
  script_t *script = user;
  script_sent_t *sent = &script->sent[script->n_sent++];
  char text[64];

  memset(sent, 0, sizeof(*sent));
  if (mock_header(request, "content-encoding") != NULL) {
    script_read(request, sent);
  } else {
    CHECK(request->body_len > 11 && request->body[9] == 0x10);
    sent->seq = request->body[10];
  }
  snprintf(text, sizeof(text), "{\"request_id\":\"forward_backward:%lld:1\"}",
           sent->seq);
  mock_reply_json(request, 200, text);
}

static inline void answer_held(cell_t *cell) {
  mock_server_t *mock = cell->script.mock;

  for (size_t i = 0; i < mock_n_requests(mock); i++) {
    mock_request_t *request = mock_request(mock, i);
    const char *path = strrchr(request->path, '/') + 1;
    if (!request->is_complete || request->is_answered || request->is_gone ||
        request == cell->partial)
      continue;
    if (strcmp(path, "retrieve_future") == 0)
      script_result(request, &cell->script);
    else if (strcmp(path, "retrieve_futures") == 0)
      mock_reply_json(request, 403, "{}");
    else if (strcmp(path, "config") == 0)
      mock_reply_json(request, 200, "{}");
    else if (strcmp(path, "get_info") == 0)
      mock_reply_json(request, 404, "{}");
    else if (strcmp(path, "forward_backward") == 0)
      accept_pass(request, &cell->script);
    else
      script_accept(request, &cell->script);
  }
}

/* The server is well again, and ends what it had begun. */
static inline void recover(cell_t *cell) {
  mock_server_t *mock = cell->script.mock;

  if (cell->n_blocked > 0)
    unblock(cell);
  cell->script.service->session.limits.checks.limit = 4;
  mock_set_reading(mock, 1);
  mock_json(mock, "POST", "/api/v1/client/config", 200, "{}");
  mock_json(mock, "POST", BATCH, 403, "{}");
  mock_on(mock, "POST", POLL, script_result, &cell->script);
  mock_on(mock, "POST", FB, accept_pass, &cell->script);
  mock_on(mock, "POST", STEP, script_accept, &cell->script);
  mock_on(mock, "POST", SAMPLE, script_accept, &cell->script);
  answer_held(cell);
  if (cell->partial != NULL && !cell->partial->is_gone) {
    mock_cut(cell->partial, NULL); /* asked for again */
    turns(cell);
  }
}

static inline void settle(cell_t *cell, outcome_t *outcome) {
  for (int i = 0; i < 400 && outcome->n_done == 0; i++) {
    script_advance(&cell->script, 1000);
    answer_held(cell);
  }
  CHECK_INT(outcome->n_done, 1);
}

/* The numbers of training that the server has taken are 1, 2, 3 ... */
static inline void check_numbers(const cell_t *cell) {
  char has[64] = {0};
  int n = 0;
  int max = 0;

  for (size_t i = 0; i < cell->script.n_sent; i++) {
    long long seq = cell->script.sent[i].seq;
    if (seq < 1 || seq >= 64)
      test_fail(__FILE__, __LINE__, "%s has number %lld",
                cell->script.sent[i].call, seq);
    n += !has[seq];
    has[seq] = 1;
    if (seq > max)
      max = (int)seq;
  }
  CHECK_INT(n, max);
}

static inline void check_works_on(cell_t *cell) {
  outcome_t outcome;

  if (cell->script.training != NULL)
    outcome_of(&outcome, script_step(&cell->script));
  else if (cell->script.sampling != NULL)
    outcome_of(&outcome, script_sample(&cell->script));
  else
    outcome_of(&outcome, create(cell));
  settle(cell, &outcome);
  if (outcome.status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome.text);
  outcome_drop(&outcome);
  if (cell->script.training != NULL)
    check_numbers(cell);
}

static inline int expected(const cell_t *cell) {
  if (strcmp(cell->state->says, SETTLED) == 0)
    return TNK_OK;
  return cell->act == CANCEL     ? TNK_ECANCELED
         : cell->act == DEADLINE ? TNK_ETIMEDOUT
                                 : TNK_ECLOSED;
}

static inline void close_cell(cell_t *cell) {
  script_t *script = &cell->script;

  if (cell->n_blocked > 0)
    unblock(cell);
  mock_set_reading(script->mock, 1); /* it is told of the session's end */
  if (script->is_closed || cell->act == CLOSE_SERVICE ||
      (cell->act == CLOSE_CLIENT && script->training == NULL &&
       script->sampling == NULL)) {
    mock_wait_flag(script->mock, &script->is_closed, 1);
    mock_close(script->mock);
    uv_run(&script->uv, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&script->uv), 0);
    heard_close(&script->heard);
    free(script->sent);
  } else {
    script_close(script);
  }
  outcome_drop(&cell->outcome);
  outcome_drop(&cell->timed_outcome);
  tnk_promise_unref(cell->promise);
  for (int i = 0; i < cell->n_others; i++)
    tnk_promise_unref(cell->others[i]);
}

/* ---- A cell ---- */

typedef enum { TRAINING, SAMPLING, REQUEST } kind_t;

static inline int run_cell(kind_t kind, const state_t *state, act_t act,
                           int inside) {
  static cell_t cell;
  outcome_t *decisive = &cell.outcome;

  memset(&cell, 0, sizeof(cell));
  cell.state = state;
  cell.act = act;
  script_open(&cell.script);
  if (state->flags != NULL)
    script_flags(&cell.script, state->flags);
  mock_json(cell.script.mock, "POST", "/api/v1/client/dynamic_config", 200,
            "{\"sample_cancel_enabled\":true}");
  mock_json(cell.script.mock, "POST", "/api/v1/cancel_future", 200, "{}");
  if (kind == TRAINING)
    script_train(&cell.script);
  else if (kind == SAMPLING)
    script_sampler(&cell.script);
  cell.promise = state->bring(&cell);
  outcome_of(&cell.outcome, tnk_promise_ref(cell.promise));
  if (inside)
    do_act_inside(&cell);
  else
    do_act(&cell, 0);
  /* What goes through the deferred queue needs a turn or two, no answer and
   * no time. */
  mock_turns(cell.script.mock, 3);
  if (act == DEADLINE)
    script_advance(&cell.script, 0);
  if (act == DEADLINE)
    decisive = &cell.timed_outcome;
  CHECK_INT(decisive->n_done, 1);
  CHECK_INT(decisive->status, expected(&cell));
  if (act == CANCEL || act == DEADLINE) {
    recover(&cell);
    check_works_on(&cell);
  }
  close_cell(&cell);
  CHECK_INT(cell.outcome.n_done, 1);
  return decisive->status;
}

static const char *word(int status) {
  return status == TNK_OK ? "result" : tnk_err_name(status) + strlen("TNK_E");
}

static inline void run_table(kind_t kind, const char *title,
                             const state_t *states, size_t n) {
  printf("# %-27s %-17s %-15s %-15s %s\n", title, "cancel", "close client",
         "close service", "deadline");
  for (size_t i = 0; i < n; i++) {
    printf("# %-27s", states[i].name);
    for (int act = 0; act < N_ACTIONS; act++) {
      int outside = run_cell(kind, &states[i], (act_t)act, 0);
      int inside = run_cell(kind, &states[i], (act_t)act, 1);
      printf(" %s/%s", word(outside), word(inside));
    }
    printf("\n#     %s\n", states[i].tells);
  }
}

#endif
