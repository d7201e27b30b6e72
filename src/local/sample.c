#include "local/sampler.h"

#include "base/alloc.h"

/*
 * A sample waits in arrival order in the server's `samples`; then in its
 * weights' `waiting` while these are read from the disk; then it is one of the
 * few in `drawing`, which share the threads slice by slice. Few, because each
 * holds a cache of the size of its context.
 */

enum { MAX_DRAWING = 32, SLICE_TOKENS = 64 };

#define SAMPLE(p) tnk__container_of(p, local_sample_t, link)

static void pump(local_server_t *server);

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

  if (sample->draw == NULL)
    sample->err =
        tnk__lm_draw_new(&sample->draw, sample->weights->lm, &sample->options,
                         sample->server->alloc, &sample->why);
  if (sample->err == TNK_OK)
    sample->err = tnk__lm_draw_step(sample->draw, SLICE_TOKENS, &done);
  return done || sample->err != TNK_OK;
}

static void settle(local_sample_t *sample) {
  local_future_t *future = sample->future;
  tnk__buf_t buf;

  if (future->is_cancelled) {
    local_future_fail(future, 410, "user", "The request was cancelled");
    return;
  }
  if (sample->err != TNK_OK) {
    local_future_fail_code(future, sample->err, sample->why.text);
    return;
  }
  tnk__buf_init(&buf, sample->server->alloc, (size_t)1 << 30);
  local_sample_write(&buf, sample);
  local_future_proto(future, &buf);
}

static void on_done(local_job_t *job) {
  local_sample_t *sample = tnk__container_of(job, local_sample_t, job);
  local_server_t *server = sample->server;

  server->n_drawing--;
  if (!server->closing)
    settle(sample);
  local_sample_free(sample);
  if (!server->closing)
    pump(server);
}

static void draw(local_sample_t *sample) {
  local_server_t *server = sample->server;

  tnk__list_append(&server->drawing, &sample->link);
  server->n_drawing++;
  sample->job.lane = 1;
  sample->job.run = on_thread;
  sample->job.done = on_done;
  local_job_start(&server->work, &sample->job);
}

static void pump(local_server_t *server) {
  tnk__list_t *node;

  while (server->n_drawing < MAX_DRAWING &&
         (node = tnk__list_pop(&server->samples)) != NULL) {
    local_sample_t *sample = SAMPLE(node);

    if (sample->weights->lm != NULL) {
      draw(sample);
      continue;
    }
    tnk__list_append(&sample->weights->waiting, &sample->link);
    local_weights_load(sample->weights);
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

void local_sample_start(local_sample_t *sample) {
  sample->future->cancel = cancel;
  sample->future->owner = sample;
  tnk__list_append(&sample->server->samples, &sample->link);
  pump(sample->server);
}

void local_samples_loaded(local_weights_t *weights) {
  local_server_t *server = weights->server;
  int err = weights->err;
  tnk__lm_why_t why = weights->why;
  tnk__list_t waiting;

  tnk__list_move(&waiting, &weights->waiting);
  if (err == TNK_OK) {
    /* They were the oldest when their turn came. */
    while (!tnk__list_empty(&waiting)) {
      tnk__list_t *last = waiting.prev;

      tnk__list_remove(last);
      tnk__list_prepend(&server->samples, last);
    }
    pump(server);
    return;
  }
  for (tnk__list_t *node; (node = tnk__list_pop(&waiting)) != NULL;) {
    local_sample_t *sample = SAMPLE(node);

    sample->err = err;
    sample->why = why;
    settle(sample);
    local_sample_free(sample);
  }
}

void local_samples_free(local_server_t *server) {
  TNK__LIST_FOREACH (node, &server->weight_list) {
    local_weights_t *weights = tnk__container_of(node, local_weights_t, link);
    tnk__list_t *waiting;

    while ((waiting = tnk__list_pop(&weights->waiting)) != NULL)
      tnk__list_append(&server->samples, waiting);
  }
  while (!tnk__list_empty(&server->samples))
    local_sample_free(SAMPLE(server->samples.next));
}
