/* SPDX-License-Identifier: MIT */
/* The runtime of the process, and operations on their way to its thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bindings/python/native/native.h"

struct block {
  block_t *next;
  max_align_t data[];
};

engine_t engine = {.lock = PTHREAD_MUTEX_INITIALIZER,
                   .loss_wanted = PTHREAD_COND_INITIALIZER,
                   .job_done = PTHREAD_COND_INITIALIZER,
                   .event_wanted = PTHREAD_COND_INITIALIZER,
                   .last = &engine.first};

PyObject *raise_code(int code) {
  PyObject *value;

  if (code == TNK_ENOMEM)
    return PyErr_NoMemory();
  value = Py_BuildValue("(is)", code, tnk_strerror(code));
  if (value != NULL)
    PyErr_SetObject(PyExc_OSError, value);
  Py_XDECREF(value);
  return NULL;
}

static int post_pending(void);

/* ---- Operations ---- */

/* Also without the interpreter's lock: raises nothing. */
op_t *op_make(void) {
  op_t *op = calloc(1, sizeof(*op));

  if (op != NULL)
    op->refs = 1;
  return op;
}

op_t *op_new(queue_t *queue, const char *function, uint64_t tag) {
  op_t *op = op_make();

  if (op == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  op->call.function = function;
  op->call.tag = tag;
  if (queue != NULL) {
    pthread_mutex_lock(&engine.lock);
    queue->refs++;
    pthread_mutex_unlock(&engine.lock);
    op->queue = queue;
  }
  return op;
}

/* Memory that lives as long as the arguments. */
void *op_take(op_t *op, size_t n, size_t size) {
  block_t *block = NULL;

  if (size == 0 || n <= (SIZE_MAX - sizeof(block_t)) / size)
    block = malloc(sizeof(*block) + n * size);
  if (block == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  block->next = op->blocks;
  op->blocks = block;
  return block->data;
}

/* The same, zeroed. */
void *op_alloc(op_t *op, size_t n, size_t size) {
  void *data = op_take(op, n, size);

  return data != NULL ? memset(data, 0, n * size) : NULL;
}

Py_buffer *op_buffer(op_t *op) {
  if (op->n_buffers == op->max_buffers) {
    const size_t max = op->max_buffers > 0 ? op->max_buffers * 2 : 4;
    Py_buffer *grown = realloc(op->buffers, max * sizeof(*grown));

    if (grown == NULL) {
      PyErr_NoMemory();
      return NULL;
    }
    op->buffers = grown;
    op->max_buffers = max;
  }
  return &op->buffers[op->n_buffers];
}

static void free_blocks(op_t *op) {
  block_t *next;

  for (block_t *block = op->blocks; block != NULL; block = next) {
    next = block->next;
    free(block);
  }
  op->blocks = NULL;
}

/* Release the arguments. Exporters need the interpreter's lock. */
static void drop_arguments(op_t *op) {
  size_t i;

  for (i = 0; i < op->n_buffers; i++)
    PyBuffer_Release(&op->buffers[i]);
  free(op->buffers);
  op->buffers = NULL;
  op->n_buffers = op->max_buffers = 0;
  free_blocks(op);
}

void op_ref(op_t *op) {
  pthread_mutex_lock(&engine.lock);
  op->refs++;
  pthread_mutex_unlock(&engine.lock);
}

void op_unref(op_t *op) {
  op_t *target;
  int refs;

  pthread_mutex_lock(&engine.lock);
  refs = --op->refs;
  pthread_mutex_unlock(&engine.lock);
  if (refs > 0)
    return;
  target = op->target;
  drop_arguments(op);
  if (op->queue != NULL)
    queue_unref(op->queue);
  free(op->extra);
  free(op);
  if (target != NULL)
    op_unref(target);
}

/* The runtime's thread is done with an operation. */
static void retire(op_t *op) {
  if (op->n_buffers == 0) {
    free_blocks(op);
    op_unref(op);
    return;
  }
  pthread_mutex_lock(&engine.lock);
  op->next = engine.garbage;
  engine.garbage = op;
  pthread_mutex_unlock(&engine.lock);
}

/* The library has read the arrays of a pass. */
void op_release(void *op) {
  retire(op);
}

/* Free what the runtime's thread could not. Needs the interpreter's lock. */
void engine_collect(void) {
  op_t *next;
  op_t *op;

  pthread_mutex_lock(&engine.lock);
  post_pending();
  op = engine.garbage;
  engine.garbage = NULL;
  pthread_mutex_unlock(&engine.lock);
  for (; op != NULL; op = next) {
    next = op->next;
    drop_arguments(op);
    op_unref(op);
  }
}

/* ---- The way to the runtime's thread ---- */

/* Make the call. 1 if the library has the arrays, and releases them. */
static int make_call(op_t *op) {
  const int err = tnk_queue_call(op->queue->native, &op->call, 1);

  if (err != TNK_OK && op->call.is_watched)
    queue_extra(op, err);
  return op->is_borrowing && (err == TNK_OK || op->call.result.pointer != NULL);
}

static void run_op(op_t *op) {
  int is_borrowed = 0;

  if (op->run != NULL) {
    op->run(op);
  } else if (op->is_borrowing) {
    /* The library may release the arrays inside the call. */
    op_ref(op);
    is_borrowed = make_call(op);
    pthread_mutex_lock(&engine.lock);
    op->refs -= !is_borrowed;
    pthread_mutex_unlock(&engine.lock);
  } else {
    make_call(op);
  }
  if (is_borrowed)
    op_unref(op);
  else
    retire(op);
}

static void run_pending(uv_loop_t *loop, void *user) {
  op_t *next;
  op_t *op;

  (void)loop;
  (void)user;
  pthread_mutex_lock(&engine.lock);
  op = engine.first;
  engine.first = NULL;
  engine.last = &engine.first;
  engine.is_posted = 0;
  pthread_mutex_unlock(&engine.lock);
  for (; op != NULL; op = next) {
    next = op->next;
    run_op(op);
  }
}

/* With the lock. */
static int post_pending(void) {
  int err = TNK_OK;

  if (engine.first != NULL && !engine.is_posted && engine.runtime != NULL) {
    err = tnk_runtime_post(engine.runtime, run_pending, NULL);
    engine.is_posted = err == TNK_OK;
  }
  return err;
}

static int submit(op_t *op, int must_succeed) {
  int err = TNK_ECLOSED;
  op_t **last;

  op->next = NULL;
  pthread_mutex_lock(&engine.lock);
  if (engine.runtime != NULL && !engine.is_stopped) {
    last = engine.last;
    *last = op;
    engine.last = &op->next;
    err = post_pending();
    if (err != TNK_OK && !must_succeed) {
      *last = NULL;
      engine.last = last;
    }
  }
  pthread_mutex_unlock(&engine.lock);
  return err;
}

/* Hand an operation over; the caller's reference goes with it. It runs after
 * those of earlier calls. Does not wait. */
int engine_submit(op_t *op) {
  if (op->queue != NULL && op->extra == NULL)
    op->extra = calloc(1, sizeof(*op->extra));
  return op->queue != NULL && op->extra == NULL ? TNK_ENOMEM : submit(op, 0);
}

/* The same, but without memory it waits for the next call that has some. At the
 * end of the process the operation is dropped. */
void engine_must_submit(op_t *op) {
  if (submit(op, 1) == TNK_ECLOSED)
    op_unref(op);
}

/* ---- Jobs ---- */

static void run_job(op_t *op) {
  job_t *job = op->call.args[0].pointer;

  job->run(job);
}

/* On the runtime's thread: the job has ended, and may be gone then. */
void engine_done(job_t *job) {
  pthread_mutex_lock(&engine.lock);
  job->is_done = 1;
  pthread_cond_broadcast(&engine.job_done);
  pthread_mutex_unlock(&engine.lock);
}

/* Run a job on the runtime's thread and wait for its end, without the
 * interpreter's lock. The caller's reference to the operation goes with it. */
int engine_run(job_t *job, op_t *op) {
  int err;

  op->run = run_job;
  op->call.args[0].pointer = job;
  err = engine_submit(op);
  if (err != TNK_OK) {
    op_unref(op);
    return err;
  }
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(&engine.lock);
  while (!job->is_done)
    pthread_cond_wait(&engine.job_done, &engine.lock);
  pthread_mutex_unlock(&engine.lock);
  Py_END_ALLOW_THREADS
  return TNK_OK;
}

int engine_start(void) {
  int err = TNK_OK;

  pthread_mutex_lock(&engine.lock);
  if (engine.runtime == NULL && !engine.is_stopped)
    err = tnk_runtime_start(&engine.runtime);
  else if (engine.is_stopped)
    err = TNK_ECLOSED;
  pthread_mutex_unlock(&engine.lock);
  return err;
}

/* A child has no runtime's thread. The child does not touch the objects of the
 * parent, and starts a runtime of its own. */
void engine_after_fork(void) {
  pthread_mutex_init(&engine.lock, NULL);
  pthread_cond_init(&engine.loss_wanted, NULL);
  pthread_cond_init(&engine.job_done, NULL);
  pthread_cond_init(&engine.event_wanted, NULL);
  events_after_fork();
  gateways_after_fork();
  engine.runtime = NULL;
  engine.first = NULL;
  engine.last = &engine.first;
  engine.is_posted = 0;
  engine.garbage = NULL;
  engine.losses = NULL;
}

/* ---- Queues ---- */

void queue_unref(queue_t *queue) {
  extra_t *next;
  int refs;

  pthread_mutex_lock(&engine.lock);
  refs = --queue->refs;
  pthread_mutex_unlock(&engine.lock);
  if (refs > 0)
    return;
  tnk_queue_free(queue->native);
  close(queue->pipe[0]);
  close(queue->pipe[1]);
  for (extra_t *extra = queue->extras; extra != NULL; extra = next) {
    next = extra->next;
    free(extra);
  }
  free(queue);
}

/* Deliver a result that has no promise, once for each submitted operation. */
void queue_extra(op_t *op, int status) {
  queue_t *queue = op->queue;
  extra_t *extra = op->extra;
  char byte = 0;

  op->extra = NULL;
  extra->tag = op->call.tag;
  extra->status = status;
  pthread_mutex_lock(&engine.lock);
  extra->next = queue->extras;
  queue->extras = extra;
  while (extra->next == NULL && write(queue->pipe[1], &byte, 1) < 0 &&
         errno == EINTR)
    ;
  pthread_mutex_unlock(&engine.lock);
}
