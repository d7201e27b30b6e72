#include "tools/local/sample/record.h"

#include <string.h>

#include "lib/base/alloc.h"

/*
 * A sample waits in the lane of its sampling session until it is moved to
 * `drawing`. The samples there share the threads slice by slice. Their number
 * is small, because each has a cache of the size of its context. Lanes are
 * served in turn. A lane without a running sample may exceed the usual number,
 * so that a client with thousands of samples does not block the others. A lane
 * is in the order of arrival. A lane whose first sample needs weights from the
 * disk waits for them.
 */

enum { MAX_DRAWING = 32, MAX_EXTRA = 32, SLICE_TOKENS = 64 };

#define SAMPLE(p) tnk__container_of(p, local_sample_t, link)

static void pump(local_server_t *server);
static void on_loaded(local_weights_t *weights);

void local_sample_free(local_sample_t *sample) {
  tnk__list_remove(&sample->link);
  tnk__lm_draw_free(sample->draw);
  if (sample->weights != NULL)
    local_weights_unref(sample->weights);
  tnk__arena_deinit(&sample->arena);
  tnk__free(sample->server->alloc, sample);
}

static int on_thread(local_job_t *job) {
  local_sample_t *sample = tnk__container_of(job, local_sample_t, job);
  int done = 0;

  /* On the thread, because it copies the prompt. */
  if (sample->draw == NULL)
    sample->err =
        tnk__lm_draw_new(&sample->draw, sample->weights->lm, &sample->options,
                         sample->server->alloc, &sample->why);
  if (sample->err == TNK_OK)
    sample->err = tnk__lm_draw_step(sample->draw, SLICE_TOKENS, &done);
  return done || sample->err != TNK_OK;
}

/* Record the sample's use and times. */
static void note_run(const local_sample_t *sample) {
  const local_server_t *server = sample->server;
  local_span_t span = {.name = "sample",
                       .begin_ms = sample->begin_ms,
                       .end_ms = local_now_ms(server),
                       .seq = -1,
                       .track = -1};
  double n_tokens = 0;

  if (sample->begin_ms == 0)
    return;
  memcpy(span.session, sample->payer, sizeof(span.session));
  local_ledger_span(server, &span);
  if (sample->err != TNK_OK || sample->future->is_cancelled)
    return;
  for (uint32_t i = 0; i < sample->options.n_samples; i++)
    n_tokens += (double)tnk__lm_draw_sample(sample->draw, i).n_tokens;
  local_ledger_use(server, LOCAL_USE_PREFILL, sample->payer,
                   (double)sample->options.n_prompt);
  local_ledger_use(server, LOCAL_USE_SAMPLE, sample->payer, n_tokens);
}

/* Write the sequences to the log, if there is one. */
static int log_drawn(const local_sample_t *sample) {
  local_drawn_t *log = sample->server->options.sample_log;
  const tnk__lm_draw_options_t *o = &sample->options;
  local_drawn_line_t *lines;
  int err;

  if (log == NULL)
    return TNK_OK;
  lines = tnk__calloc(sample->server->alloc, o->n_samples, sizeof(*lines));
  if (lines == NULL)
    return TNK_ENOMEM;
  for (uint32_t i = 0; i < o->n_samples; i++) {
    const tnk__lm_sample_t drawn = tnk__lm_draw_sample(sample->draw, i);

    lines[i] =
        (local_drawn_line_t){.request_id = sample->future->id,
                             .index = i,
                             .weights = sample->path,
                             .prompt = o->prompt,
                             .n_prompt = o->n_prompt,
                             .tokens = drawn.tokens,
                             .logprobs = drawn.logprobs,
                             .n_tokens = drawn.n_tokens,
                             .is_length = drawn.reason == TNK__LM_LENGTH};
  }
  err = local_drawn_write(log, lines, o->n_samples);
  tnk__free(sample->server->alloc, lines);
  return err;
}

static void settle(local_sample_t *sample) {
  local_future_t *future = sample->future;
  tnk__buf_t buf;

  note_run(sample);
  if (future->is_cancelled) {
    local_future_fail(future, 410, "user", "The request was cancelled");
    return;
  }
  if (sample->err != TNK_OK) {
    local_future_fail_code(future, sample->err, sample->why.text);
    return;
  }
  if (log_drawn(sample) != TNK_OK) {
    local_future_fail(future, 500, "server",
                      "What was drawn could not be written to the sample log");
    return;
  }
  tnk__buf_init(&buf, sample->server->alloc, (size_t)1 << 30);
  if (sample->is_streamed)
    local_stream_write(&buf, sample);
  else
    local_sample_write(&buf, sample);
  /* A sequence without its record cannot be used for training. */
  if (sample->session[0] != '\0' && local_records_add(sample) != TNK_OK)
    buf.err = TNK_ENOMEM;
  if (sample->is_streamed)
    local_future_json(future, &buf);
  else
    local_future_proto(future, &buf);
}

static void on_done(local_job_t *job) {
  local_sample_t *sample = tnk__container_of(job, local_sample_t, job);
  local_server_t *server = sample->server;

  server->n_drawing--;
  if (sample->lane != NULL)
    sample->lane->n_drawing--;
  if (!server->closing)
    settle(sample);
  local_sample_free(sample);
  if (!server->closing)
    pump(server);
}

static void draw(local_sample_t *sample, local_lane_t *lane) {
  local_server_t *server = sample->server;

  tnk__list_remove(&sample->link);
  tnk__list_append(&server->drawing, &sample->link);
  sample->lane = lane;
  sample->begin_ms = local_now_ms(server);
  lane->n_drawing++;
  server->n_drawing++;
  sample->job.lane = 1;
  sample->job.run = on_thread;
  sample->job.done = on_done;
  local_job_start(&server->work, &sample->job);
}

#define LANE(p) tnk__container_of(p, local_lane_t, link)

/* The next lane; it is moved behind the others. NULL: no lane may start a
 * sample. */
static local_lane_t *next_lane(local_server_t *server) {
  if (server->n_drawing >= MAX_DRAWING + MAX_EXTRA)
    return NULL;
  TNK__LIST_FOREACH_SAFE (node, next, &server->lanes) {
    local_lane_t *lane = LANE(node);

    if (tnk__list_empty(&lane->samples)) {
      tnk__list_remove(node);
      continue;
    }
    if (server->n_drawing >= MAX_DRAWING && lane->n_drawing > 0)
      continue;
    tnk__list_remove(node);
    tnk__list_append(&server->lanes, node);
    return lane;
  }
  return NULL;
}

static void pump(local_server_t *server) {
  local_lane_t *lane;

  while ((lane = next_lane(server)) != NULL) {
    local_sample_t *sample = SAMPLE(lane->samples.next);

    if (sample->weights->lm != NULL) {
      draw(sample, lane);
      continue;
    }
    tnk__list_remove(&lane->link);
    tnk__list_append(&sample->weights->waiting, &lane->link);
    local_weights_load(sample->weights, on_loaded);
  }
}

static void enter_lane(local_server_t *server, local_lane_t *lane,
                       local_sample_t *sample) {
  tnk__list_remove(&sample->link);
  tnk__list_append(&lane->samples, &sample->link);
  if (tnk__list_empty(&lane->link))
    tnk__list_append(&server->lanes, &lane->link);
}

void local_lane_end(local_server_t *server, local_lane_t *lane) {
  tnk__list_remove(&lane->link);
  while (!tnk__list_empty(&lane->samples))
    enter_lane(server, &server->loose, SAMPLE(lane->samples.next));
  TNK__LIST_FOREACH (node, &server->drawing) {
    if (SAMPLE(node)->lane == lane)
      SAMPLE(node)->lane = NULL;
  }
}

static void cancel(void *owner) {
  local_sample_t *sample = owner;

  if (sample->job.active) {
    local_job_cancel(&sample->server->work, &sample->job);
    return;
  }
  settle(sample);
  local_sample_free(sample);
}

void local_sample_start(local_sample_t *sample, local_lane_t *lane) {
  sample->future->cancel = cancel;
  sample->future->owner = sample;
  enter_lane(sample->server, lane, sample);
  pump(sample->server);
}

/* Fail the samples of a lane that need weights which could not be loaded. */
static void fail_lane(local_lane_t *lane, const local_weights_t *weights) {
  int err = weights->err;
  tnk__lm_why_t why = weights->why;

  TNK__LIST_FOREACH_SAFE (node, next, &lane->samples) {
    local_sample_t *sample = SAMPLE(node);

    if (sample->weights != weights)
      continue;
    sample->err = err;
    sample->why = why;
    settle(sample);
    local_sample_free(sample);
  }
}

static void on_loaded(local_weights_t *weights) {
  local_server_t *server = weights->server;
  tnk__list_t *node;

  /* The reference keeps it alive when the last failing sample is freed. */
  weights->refs++;
  while ((node = tnk__list_pop(&weights->waiting)) != NULL) {
    tnk__list_append(&server->lanes, node);
    if (weights->err != TNK_OK)
      fail_lane(LANE(node), weights);
  }
  local_weights_unref(weights);
  pump(server);
}

void local_samples_free(local_server_t *server) {
  while (!tnk__list_empty(&server->loose.samples))
    local_sample_free(SAMPLE(server->loose.samples.next));
}
