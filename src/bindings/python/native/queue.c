/* SPDX-License-Identifier: MIT */
/* The types Queue, Operation and Promise. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bindings/python/native/native.h"

/* The number of promises that a queue may hold: as many as a service. */
#define MAX_HELD 1048576
#define BATCH 512

typedef struct {
  PyObject_HEAD queue_t *queue;
} queue_object_t;

typedef struct {
  PyObject_HEAD op_t *op;
} op_object_t;

typedef struct {
  PyObject_HEAD op_t *release; /* of its one promise, ready to run */
} promise_object_t;

static PyTypeObject *queue_type;
static PyTypeObject *op_type;
static PyTypeObject *promise_type;

queue_t *queue_of(PyObject *object) {
  return ((queue_object_t *)object)->queue;
}

/* A converter of PyArg_ParseTuple(). */
int to_queue(PyObject *object, void *out) {
  if (!PyObject_TypeCheck(object, queue_type)) {
    PyErr_SetString(PyExc_TypeError, "a Queue is needed");
    return 0;
  }
  *(queue_t **)out = queue_of(object);
  return 1;
}

/* ---- Promise: keeps a client's handle valid ---- */

/* An operation that releases up to `n` promises. It is made before there is
 * something to release, because that must not fail. */
static op_t *release_new(size_t n) {
  op_t *op = op_new(NULL, NULL, 0);

  if (op == NULL)
    return NULL;
  op->call.args[0].pointer = op_alloc(op, n, sizeof(tnk_promise_t *));
  if (op->call.args[0].pointer == NULL) {
    op_unref(op);
    return NULL;
  }
  return op;
}

static void release_add(op_t *op, tnk_promise_t *promise) {
  tnk_promise_t **promises = op->call.args[0].pointer;

  promises[op->call.args[1].integer++] = promise;
}

static void run_release(op_t *op) {
  tnk_promise_t **promises = op->call.args[0].pointer;
  const int64_t n = op->call.args[1].integer;
  int64_t i;

  for (i = 0; i < n; i++)
    tnk_promise_unref(promises[i]);
}

/* Release references on the runtime's thread, or here after its end. */
static void release(op_t *op) {
  op->run = run_release;
  if (op->call.args[1].integer > 0 && !engine.is_ended) {
    engine_must_submit(op);
    return;
  }
  run_release(op);
  op_unref(op);
}

PyObject *promise_object(tnk_promise_t *promise) {
  op_t *op = release_new(1);
  promise_object_t *self;

  if (op == NULL)
    return NULL;
  self = PyObject_New(promise_object_t, promise_type);
  if (self == NULL) {
    op_unref(op);
    return NULL;
  }
  release_add(op, promise);
  self->release = op;
  return (PyObject *)self;
}

tnk_promise_t *promise_of(PyObject *object) {
  if (!PyObject_TypeCheck(object, promise_type))
    return NULL;
  return *(tnk_promise_t **)((promise_object_t *)object)
              ->release->call.args[0]
              .pointer;
}

static void promise_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);

  release(((promise_object_t *)object)->release);
  PyObject_Free(object);
  Py_DECREF(type);
}

static PyType_Slot promise_slots[] = {
    {Py_tp_dealloc, promise_dealloc},
    {Py_tp_doc, "A settled promise; its client is valid as long as this."},
    {0, NULL}};
static PyType_Spec promise_spec = {
    "tnk._native.Promise", sizeof(promise_object_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, promise_slots};

/* ---- Operation: one that can be canceled and explained ---- */

PyObject *op_object(op_t *op) {
  op_object_t *self = PyObject_New(op_object_t, op_type);

  if (self == NULL)
    return NULL;
  op_ref(op);
  self->op = op;
  return (PyObject *)self;
}

static void op_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);

  op_unref(((op_object_t *)object)->op);
  PyObject_Free(object);
  Py_DECREF(type);
}

static void cancel_target(op_t *op) {
  tnk_promise_cancel(op->target->call.result.pointer);
}

static PyObject *op_cancel(PyObject *object, PyObject *unused) {
  op_t *target = ((op_object_t *)object)->op;
  op_t *op = op_new(NULL, NULL, 0);
  int err;

  (void)unused;
  if (op == NULL)
    return NULL;
  op_ref(target);
  op->target = target;
  op->run = cancel_target;
  err = engine_submit(op);
  if (err != TNK_OK)
    op_unref(op);
  if (err == TNK_ENOMEM)
    return PyErr_NoMemory();
  Py_RETURN_NONE;
}

static PyObject *op_explain(PyObject *object, PyObject *queue) {
  op_t *op = ((op_object_t *)object)->op;
  tnk_call_t call = {.function = "tnk_promise_explain", .n_args = 3};
  char text[1024] = "";
  queue_t *by;
  int err;

  if (!to_queue(queue, &by))
    return NULL;
  if (op->call.result.pointer == NULL)
    return PyUnicode_FromString("it is about to start");
  call.args[0].pointer = op->call.result.pointer;
  call.args[1].pointer = text;
  call.args[2].integer = sizeof(text);
  Py_BEGIN_ALLOW_THREADS
  err = tnk_queue_call(by->native, &call, 1);
  Py_END_ALLOW_THREADS
  return err == TNK_OK
             ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
             : raise_code(err);
}

static PyMethodDef op_methods[] = {
    {"cancel", op_cancel, METH_NOARGS,
     "Ask to cancel. The result must not have been released."},
    {"explain", op_explain, METH_O,
     "What it waits for. The result must not have been released."},
    {NULL, NULL, 0, NULL}};
static PyType_Slot op_slots[] = {{Py_tp_dealloc, op_dealloc},
                                 {Py_tp_methods, op_methods},
                                 {Py_tp_doc, "An operation."},
                                 {0, NULL}};
static PyType_Spec op_spec = {
    "tnk._native.Operation", sizeof(op_object_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, op_slots};

/* ---- Queue ---- */

static int open_queue(queue_t *queue) {
  int err;
  int i;

  if (pipe(queue->pipe) != 0)
    return TNK_ESYSTEM;
  for (i = 0; i < 2; i++) {
    fcntl(queue->pipe[i], F_SETFD, FD_CLOEXEC);
    fcntl(queue->pipe[i], F_SETFL, O_NONBLOCK);
  }
  err = tnk_queue_new(&queue->native, engine.runtime, MAX_HELD);
  if (err != TNK_OK) {
    close(queue->pipe[0]);
    close(queue->pipe[1]);
  }
  return err;
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args,
                           PyObject *named) {
  queue_object_t *self;
  queue_t *queue = calloc(1, sizeof(*queue));
  int err;

  (void)args;
  (void)named;
  if (queue == NULL)
    return PyErr_NoMemory();
  err = engine_start();
  if (err == TNK_OK)
    err = open_queue(queue);
  if (err != TNK_OK) {
    free(queue);
    return raise_code(err);
  }
  queue->refs = 1;
  self = PyObject_New(queue_object_t, type);
  if (self == NULL)
    queue_unref(queue);
  else
    self->queue = queue;
  return (PyObject *)self;
}

static void queue_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  queue_t *queue = queue_of(object);

  tnk_queue_close(queue->native);
  queue_unref(queue);
  PyObject_Free(object);
  Py_DECREF(type);
}

/* Submit an operation that is ready; its object, or NULL. */
PyObject *submit_op(op_t *op) {
  PyObject *object = op_object(op);
  int err;

  engine_collect();
  if (object == NULL) {
    op_unref(op);
    return NULL;
  }
  err = engine_submit(op);
  if (err == TNK_OK)
    return object;
  op_unref(op);
  Py_DECREF(object);
  return raise_code(err);
}

static int read_arguments(op_t *op, PyObject *values) {
  const Py_ssize_t n = PyTuple_Size(values);
  Py_ssize_t i;

  if (n < 0 || n > TNK_CALL_ARGS) {
    PyErr_SetString(PyExc_ValueError, "too many arguments");
    return -1;
  }
  op->call.n_args = (uint32_t)n;
  for (i = 0; i < n; i++)
    if (read_argument(op, &op->call.args[i], PyTuple_GetItem(values, i)) != 0)
      return -1;
  return 0;
}

/* start(tag, function, arguments): the function's name must be a literal. */
static PyObject *queue_start(PyObject *self, PyObject *args) {
  unsigned long long tag;
  const char *name;
  PyObject *values;
  op_t *op;

  if (!PyArg_ParseTuple(args, "KsO!", &tag, &name, &PyTuple_Type, &values))
    return NULL;
  op = op_new(queue_of(self), NULL, tag);
  if (op == NULL)
    return NULL;
  op->call.is_watched = 1;
  op->call.function = op_alloc(op, strlen(name) + 1, 1);
  if (op->call.function == NULL || read_arguments(op, values) != 0) {
    op_unref(op);
    return NULL;
  }
  memcpy((char *)op->call.function, name, strlen(name) + 1);
  return submit_op(op);
}

/* call(function, arguments): the result of a call that returns at once. */
static PyObject *queue_call(PyObject *self, PyObject *args) {
  queue_t *queue = queue_of(self);
  const char *name;
  PyObject *values;
  PyObject *result = NULL;
  op_t *op;
  int err;

  if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &values))
    return NULL;
  op = op_new(queue, name, 0);
  if (op == NULL)
    return NULL;
  if (read_arguments(op, values) == 0) {
    Py_BEGIN_ALLOW_THREADS
    err = tnk_queue_call(queue->native, &op->call, 1);
    Py_END_ALLOW_THREADS
    result = err == TNK_OK ? PyLong_FromLongLong(op->call.result.integer)
                           : raise_code(err);
  }
  op_unref(op);
  return result;
}

/* The numbers of sample(): absent ones are None. */
static int read_number(double *out, PyObject *value) {
  if (value == Py_None)
    return 0;
  *out = PyFloat_AsDouble(value);
  return *out == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int read_integer(int64_t *out, PyObject *value) {
  if (value == Py_None)
    return 0;
  *out = PyLong_AsLongLong(value);
  return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int read_small(int32_t *out, PyObject *value) {
  int64_t number = *out;

  if (read_integer(&number, value) != 0)
    return -1;
  if (number < INT32_MIN || number > INT32_MAX) {
    PyErr_SetString(PyExc_OverflowError, "a sampling parameter is too large");
    return -1;
  }
  *out = (int32_t)number;
  return 0;
}

/* (max_tokens, seed, temperature, top_k, top_p, stop) */
static int read_params(op_t *op, tnk_sampling_params_t *out, PyObject *values) {
  *out = (tnk_sampling_params_t)TNK_SAMPLING_PARAMS_INIT;
  return read_small(&out->max_tokens, PyTuple_GetItem(values, 0)) != 0 ||
                 read_integer(&out->seed, PyTuple_GetItem(values, 1)) != 0 ||
                 read_number(&out->temperature, PyTuple_GetItem(values, 2)) ||
                 read_small(&out->top_k, PyTuple_GetItem(values, 3)) != 0 ||
                 read_number(&out->top_p, PyTuple_GetItem(values, 4)) != 0 ||
                 read_stop(op, out, PyTuple_GetItem(values, 5)) != 0
             ? -1
             : 0;
}

static int read_sample(op_t *op, PyObject *prompt, PyObject *params,
                       PyObject *options, PyObject *target) {
  tnk_sample_options_t *more = pack_record(op, "tnk_sample_options_t", options);
  tnk_model_input_t *input = op_alloc(op, 1, sizeof(*input));
  tnk_sampling_params_t *numbers = op_alloc(op, 1, sizeof(*numbers));
  tnk_tensor_t *tensor = NULL;

  if (more == NULL || input == NULL || numbers == NULL)
    return -1;
  if (target != Py_None) {
    tensor = op_alloc(op, 1, sizeof(*tensor));
    if (tensor == NULL || read_tensor(op, tensor, target) != 0)
      return -1;
  }
  more->target_prompt_logprobs = tensor;
  if (read_input(op, input, prompt) != 0 ||
      read_params(op, numbers, params) != 0)
    return -1;
  op->call.args[1].pointer = input;
  op->call.args[2].pointer = numbers;
  op->call.args[3].pointer = more;
  return 0;
}

/* sample(tag, handle, prompt, params, options, target) */
static PyObject *queue_sample(PyObject *self, PyObject *args) {
  unsigned long long tag;
  long long handle;
  PyObject *prompt;
  PyObject *params;
  PyObject *options;
  PyObject *target;
  op_t *op;

  if (!PyArg_ParseTuple(args, "KLOO!O!O", &tag, &handle, &prompt, &PyTuple_Type,
                        &params, &PyDict_Type, &options, &target))
    return NULL;
  op = op_new(queue_of(self), "tnk_sampling_sample", tag);
  if (op == NULL)
    return NULL;
  op->call.is_watched = 1;
  op->call.n_args = 4;
  op->call.args[0].integer = handle;
  if (read_sample(op, prompt, params, options, target) != 0) {
    op_unref(op);
    return NULL;
  }
  return submit_op(op);
}

/* logprobs(tag, handle, prompt, options) */
static PyObject *queue_logprobs(PyObject *self, PyObject *args) {
  tnk_model_input_t *input;
  unsigned long long tag;
  long long handle;
  PyObject *prompt;
  PyObject *options;
  op_t *op;

  if (!PyArg_ParseTuple(args, "KLOO!", &tag, &handle, &prompt, &PyDict_Type,
                        &options))
    return NULL;
  op = op_new(queue_of(self), "tnk_sampling_compute_logprobs", tag);
  if (op == NULL)
    return NULL;
  input = op_alloc(op, 1, sizeof(*input));
  op->call.is_watched = 1;
  op->call.n_args = 3;
  op->call.args[0].integer = handle;
  op->call.args[1].pointer = input;
  op->call.args[2].pointer = pack_record(op, "tnk_logprobs_options_t", options);
  if (input == NULL || op->call.args[2].pointer == NULL ||
      read_input(op, input, prompt) != 0) {
    op_unref(op);
    return NULL;
  }
  return submit_op(op);
}

/* start_pass(tag, is_backward, handle, data, options): reads arrays in place.
 */
static PyObject *queue_pass(PyObject *self, PyObject *args) {
  tnk_pass_options_t *options;
  tnk_datum_t *data;
  unsigned long long tag;
  long long handle;
  int is_backward;
  PyObject *list;
  PyObject *values;
  op_t *op;

  if (!PyArg_ParseTuple(args, "KpLO!O!", &tag, &is_backward, &handle,
                        &PyList_Type, &list, &PyDict_Type, &values))
    return NULL;
  op = op_new(queue_of(self),
              is_backward ? "tnk_training_forward_backward"
                          : "tnk_training_forward",
              tag);
  if (op == NULL)
    return NULL;
  data = op_alloc(op, (size_t)PyList_Size(list), sizeof(*data));
  options = pack_record(op, "tnk_pass_options_t", values);
  if (data == NULL || options == NULL || read_data(op, data, list) != 0) {
    op_unref(op);
    return NULL;
  }
  options->release = op_release;
  options->release_user = op;
  op->is_borrowing = 1;
  op->call.is_watched = 1;
  op->call.n_args = 4;
  op->call.args[0].integer = handle;
  op->call.args[1].pointer = data;
  op->call.args[2].integer = PyList_Size(list);
  op->call.args[3].pointer = options;
  return submit_op(op);
}

static PyObject *queue_filenos(PyObject *self, PyObject *unused) {
  queue_t *queue = queue_of(self);

  (void)unused;
  return Py_BuildValue("(ii)", tnk_queue_fd(queue->native), queue->pipe[0]);
}

/* wait(timeout_ms): until there is something to take, or a signal. */
static PyObject *queue_wait(PyObject *self, PyObject *args) {
  queue_t *queue = queue_of(self);
  struct pollfd fds[2] = {{.fd = tnk_queue_fd(queue->native), .events = POLLIN},
                          {.fd = queue->pipe[0], .events = POLLIN}};
  int timeout_ms;

  if (!PyArg_ParseTuple(args, "i", &timeout_ms))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  poll(fds, 2, timeout_ms);
  Py_END_ALLOW_THREADS
  if (PyErr_CheckSignals() != 0)
    return NULL;
  Py_RETURN_NONE;
}

static int add(PyObject *list, uint64_t tag, int64_t status, PyObject *value) {
  PyObject *row;
  int err;

  if (value == NULL) {
    /* The result could not be made; the error goes to the operation. */
    PyObject *type;
    PyObject *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    status = 1;
  }
  row =
      Py_BuildValue("(KLN)", (unsigned long long)tag, (long long)status, value);
  if (row == NULL)
    return -1;
  err = PyList_Append(list, row);
  Py_DECREF(row);
  return err;
}

static int take_extras(queue_t *queue, PyObject *list) {
  extra_t *extra;
  extra_t *next;
  char byte;
  int err = 0;

  pthread_mutex_lock(&engine.lock);
  extra = queue->extras;
  queue->extras = NULL;
  if (extra != NULL)
    while (read(queue->pipe[0], &byte, 1) < 0 && errno == EINTR)
      ;
  pthread_mutex_unlock(&engine.lock);
  for (; extra != NULL; extra = next) {
    next = extra->next;
    if (err == 0)
      err = add(list, extra->tag, extra->status,
                extra->status == TNK_OK
                    ? Py_NewRef(Py_None)
                    : Py_BuildValue("(is)", extra->status,
                                    tnk_strerror(extra->status)));
    free(extra);
  }
  return err;
}

static int take_promises(PyObject *list, op_t *released,
                         const tnk_completion_t *done, int n) {
  int err = 0;
  int i;

  for (i = 0; i < n; i++) {
    tnk_promise_t *promise = done[i].promise;
    const unsigned reader = done[i].tag & ((1u << READ_BITS) - 1);
    PyObject *value;

    if (done[i].status != TNK_OK)
      value = read_error(promise);
    else
      value = read_result(promise, reader);
    if (value == NULL || done[i].status != TNK_OK || reader != READ_HANDLE)
      release_add(released, promise);
    if (add(list, done[i].tag, done[i].status, value) != 0)
      err = -1;
  }
  return err;
}

/* Take the items that have arrived. Their promises are added to `released`. */
static PyObject *take_all(queue_t *queue, size_t max, op_t *released) {
  tnk_completion_t done[BATCH];
  PyObject *list = PyList_New(0);
  int n;

  if (list == NULL)
    return NULL;
  n = tnk_queue_take(queue->native, done, max, 0);
  if (take_extras(queue, list) != 0 ||
      take_promises(list, released, done, n) != 0) {
    Py_DECREF(list);
    return NULL;
  }
  if (n == TNK_ECLOSED && PyList_Size(list) == 0) {
    Py_DECREF(list);
    Py_RETURN_NONE;
  }
  if (n == TNK_EFORKED) {
    Py_DECREF(list);
    return raise_code(n);
  }
  return list;
}

/* take(max): a list of (tag, status, value); None after the end. Their promises
 * are released: cancel and explain nothing of them afterwards. */
static PyObject *queue_take(PyObject *self, PyObject *args) {
  PyObject *list;
  op_t *released;
  int max;

  if (!PyArg_ParseTuple(args, "i", &max))
    return NULL;
  max = max < 1 ? 1 : max > BATCH ? BATCH : max;
  engine_collect();
  released = release_new((size_t)max);
  if (released == NULL)
    return NULL;
  list = take_all(queue_of(self), (size_t)max, released);
  release(released);
  return list;
}

static PyMethodDef queue_methods[] = {
    {"start", queue_start, METH_VARARGS, "start(tag, function, arguments)"},
    {"call", queue_call, METH_VARARGS, "call(function, arguments)"},
    {"sample", queue_sample, METH_VARARGS,
     "sample(tag, handle, prompt, params, options, target)"},
    {"logprobs", queue_logprobs, METH_VARARGS,
     "logprobs(tag, handle, prompt, options)"},
    {"start_pass", queue_pass, METH_VARARGS,
     "start_pass(tag, is_backward, handle, data, options)"},
    {"start_custom", start_custom, METH_VARARGS,
     "start_custom(tag, handle, data, key)"},
    {"filenos", queue_filenos, METH_NOARGS, "Two descriptors to wait for."},
    {"take", queue_take, METH_VARARGS,
     "take(max): a list of (tag, status, value), or None"},
    {"wait", queue_wait, METH_VARARGS, "wait(timeout_ms)"},
    {NULL, NULL, 0, NULL}};
static PyType_Slot queue_slots[] = {{Py_tp_new, queue_new},
                                    {Py_tp_dealloc, queue_dealloc},
                                    {Py_tp_methods, queue_methods},
                                    {Py_tp_doc, "Results of operations."},
                                    {0, NULL}};
static PyType_Spec queue_spec = {"tnk._native.Queue", sizeof(queue_object_t), 0,
                                 Py_TPFLAGS_DEFAULT, queue_slots};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec,
                              const char *name) {
  PyObject *type = PyType_FromSpec(spec);

  if (type == NULL || PyModule_AddObjectRef(module, name, type) != 0) {
    Py_XDECREF(type);
    return NULL;
  }
  return (PyTypeObject *)type;
}

int add_types(PyObject *module) {
  promise_type = add_type(module, &promise_spec, "Promise");
  op_type = add_type(module, &op_spec, "Operation");
  queue_type = add_type(module, &queue_spec, "Queue");
  return promise_type != NULL && op_type != NULL && queue_type != NULL ? 0 : -1;
}
