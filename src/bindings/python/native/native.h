/* SPDX-License-Identifier: MIT */
#ifndef TNK_PYTHON_NATIVE_H
#define TNK_PYTHON_NATIVE_H

/*
 * The extension module of the package `tnk`. Python threads build operations
 * and hand them to the thread of a runtime, which never takes the interpreter's
 * lock. Results come back through queues (tnk/bindings.h).
 */
#include <Python.h>
#include <pthread.h>

#include "tnk/bindings.h"
#include "tnk/chat.h"
#include "tnk/gateway.h"
#include "tnk/tnk.h"
#include "tnk/tokenizers.h"

typedef struct block block_t;
typedef struct extra extra_t;
typedef struct op op_t;
typedef struct queue queue_t;

/* An operation on its way to the runtime's thread, with the memory of its
 * arguments. References: the runtime's, and Python's object of it. */
struct op {
  op_t *next;
  void (*run)(op_t *op); /* on the runtime's thread */
  queue_t *queue;
  tnk_call_t call;
  op_t *target;   /* of a cancellation */
  extra_t *extra; /* for queue_extra(), which cannot fail then */
  block_t *blocks;
  Py_buffer *buffers; /* exporters whose memory the arguments point into */
  size_t n_buffers;
  size_t max_buffers;
  int refs;
  int is_borrowing; /* the library calls release_op() when it has read them */
};

/* Work on the runtime's thread for which a thread of Python waits. */
typedef struct job job_t;

struct job {
  void (*run)(job_t *job); /* engine_done() ends it, then or later */
  int is_done;
};

/* An item of a queue that is not a promise. */
struct extra {
  extra_t *next;
  uint64_t tag;
  int status;
};

/* Where results of one event loop, or of all threads without one, go. */
struct queue {
  tnk_queue_t *native;
  int pipe[2]; /* readable while `extras` is not empty */
  extra_t *extras;
  int refs;
};

/* The process's runtime. `lock` protects everything here, the queues' extras,
 * and the counts of references. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t loss_wanted;
  pthread_cond_t job_done;
  pthread_cond_t event_wanted;
  tnk_runtime_t *runtime;
  op_t *first; /* not yet run */
  op_t **last;
  int is_posted; /* 0 with a `first`: memory was out, and it is tried again */
  op_t *garbage; /* to be freed by a thread with the interpreter's lock */
  struct loss *losses;
  int is_closing; /* no more losses are taken */
  int is_stopped; /* nothing is submitted any more */
  int is_ended;   /* the runtime's thread is gone */
} engine_t;

extern engine_t engine;

/* The kind of a promise's result: the low bits of a tag. */
enum {
  READ_NONE,
  READ_HANDLE,
  READ_PASS,
  READ_SAMPLES,
  READ_METRICS,
  READ_PATH,
  READ_LOGPROBS,
  READ_PAGE,
  READ_CAPABILITIES,
  READ_SAVED,
  READ_BITS = 4
};

/* engine.c */
int engine_start(void);
int engine_submit(op_t *op);
void engine_must_submit(op_t *op);
int engine_run(job_t *job, op_t *op);
void engine_done(job_t *job);
void engine_collect(void);
void engine_after_fork(void);
op_t *op_make(void);
op_t *op_new(queue_t *queue, const char *function, uint64_t tag);
void *op_alloc(op_t *op, size_t n, size_t size);
void *op_take(op_t *op, size_t n, size_t size);
Py_buffer *op_buffer(op_t *op);
void op_ref(op_t *op);
void op_unref(op_t *op);
void op_release(void *op);
void queue_unref(queue_t *queue);
void queue_extra(op_t *op, int status);
PyObject *raise_code(int code);
PyObject *raise_text(int status, const char *why);
void op_closed(void *op);

/* ints.c */
int ints_learn(void);
int int_at(int64_t *out, PyObject *list, Py_ssize_t i);
int read_tokens(op_t *op, const int32_t **out, size_t *n, PyObject *list);

/* data.c */
int read_input(op_t *op, tnk_model_input_t *out, PyObject *input);
int read_ids(op_t *op, const int32_t **out, size_t *n, PyObject *tokens);
int read_tensor(op_t *op, tnk_tensor_t *out, PyObject *tensor);
int read_data(op_t *op, tnk_datum_t *out, PyObject *data);
int read_stop(op_t *op, tnk_sampling_params_t *out, PyObject *stop);

/* result.c */
PyObject *read_result(tnk_promise_t *promise, unsigned reader);
PyObject *read_error(const tnk_promise_t *promise);
PyObject *tensor_of(const tnk_tensor_t *tensor);

/* record.c */
void *pack_record(op_t *op, const char *type, PyObject *values);
PyObject *unpack_record(const char *type, const void *record);
int pack_pairs(op_t *op, const void **out, size_t *n, PyObject *dict);
int pack_texts(op_t *op, const void **out, size_t *n, PyObject *list);
int read_argument(op_t *op, tnk_value_t *out, PyObject *value);
const char *op_string(op_t *op, PyObject *text);

/* rl.c */
PyObject *rl_call(PyObject *module, PyObject *args);

/* text.c, chat.c, parser.c */
extern PyMethodDef tokenizer_methods[];
extern PyMethodDef chat_methods[];
extern PyMethodDef parser_methods[];
int read_tokenizer(tnk_chat_tokenizer_t *out, PyObject *capsule);
int read_template(tnk_chat_template_t **out, PyObject *capsule);
int read_texts(op_t *op, const char *const **out, PyObject *list);
tnk_chat_t *read_conversation(op_t *op, PyObject *tuple);

/* observe.c */
extern PyMethodDef event_methods[];
void observe_event(const tnk_event_t *is, void *user);
void events_after_fork(void);

/* gateway.c */
extern PyMethodDef gateway_methods[];
void gateways_close_service(op_t *op);
void gateways_end(void);
void gateways_after_fork(void);

/* queue.c, loss.c */
PyObject *promise_object(tnk_promise_t *promise);
PyObject *op_object(op_t *op);
PyObject *submit_op(op_t *op);
tnk_promise_t *promise_of(PyObject *object);
PyObject *start_custom(PyObject *self, PyObject *args);
PyObject *next_loss(PyObject *self, PyObject *args);
PyObject *finish_loss(PyObject *self, PyObject *args);
queue_t *queue_of(PyObject *object);
int to_queue(PyObject *object, void *out);
int add_types(PyObject *module);

#endif
