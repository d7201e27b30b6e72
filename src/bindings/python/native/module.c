/* SPDX-License-Identifier: MIT */
/* The module tnk._native: services, the end of the process, and the rest. */
#include <stdlib.h>
#include <string.h>

#include "bindings/python/native/native.h"

/* (status, sentence); the sentence may be empty. */
PyObject *raise_text(int status, const char *why) {
  PyObject *value;

  if (status == TNK_ENOMEM)
    return PyErr_NoMemory();
  value = Py_BuildValue("(is)", status,
                        why[0] != '\0' ? why : tnk_strerror(status));
  if (value != NULL)
    PyErr_SetObject(PyExc_OSError, value);
  Py_XDECREF(value);
  return NULL;
}

/* Call a function whose last two arguments are a sentence and its size. */
static int call_with_why(queue_t *queue, op_t *op, uint32_t n, char *why,
                         size_t size) {
  int err;

  op->call.args[n].pointer = why;
  op->call.args[n + 1].integer = (int64_t)size;
  op->call.n_args = n + 2;
  Py_BEGIN_ALLOW_THREADS
  err = tnk_queue_call(queue->native, &op->call, 1);
  Py_END_ALLOW_THREADS
  return err != TNK_OK ? err : (int)op->call.result.integer;
}

/* open_service(queue, options, key): its handle. The key is that of the
 * observer, or 0. */
static PyObject *open_service(PyObject *module, PyObject *args) {
  tnk_service_options_t *options;
  tnk_service_t *service = NULL;
  unsigned long long key;
  char why[512] = "";
  queue_t *queue;
  PyObject *values;
  op_t *op;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&O!K", to_queue, &queue, &PyDict_Type, &values,
                        &key))
    return NULL;
  op = op_new(NULL, "tnk_service_open", 0);
  if (op == NULL)
    return NULL;
  options = pack_record(op, "tnk_service_options_t", values);
  if (options == NULL) {
    op_unref(op);
    return NULL;
  }
  options->keep_loop_alive = TNK_YES;
  if (key != 0) {
    options->observer = observe_event;
    options->observer_user = (void *)(uintptr_t)key;
  }
  op->call.args[0].pointer = &service;
  op->call.args[1].pointer = tnk_runtime_loop(engine.runtime);
  op->call.args[2].pointer = options;
  err = call_with_why(queue, op, 3, why, sizeof(why));
  op_unref(op);
  return err == TNK_OK ? PyLong_FromVoidPtr(service) : raise_text(err, why);
}

/* set_budget(queue, service, budget) */
static PyObject *set_budget(PyObject *module, PyObject *args) {
  char why[512] = "";
  queue_t *queue;
  PyObject *values;
  long long service;
  op_t *op;
  int err = TNK_EINVAL;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&LO!", to_queue, &queue, &service, &PyDict_Type,
                        &values))
    return NULL;
  op = op_new(NULL, "tnk_service_set_budget", 0);
  if (op == NULL)
    return NULL;
  op->call.args[0].integer = service;
  op->call.args[1].pointer = pack_record(op, "tnk_budget_t", values);
  if (op->call.args[1].pointer != NULL)
    err = call_with_why(queue, op, 2, why, sizeof(why));
  op_unref(op);
  if (PyErr_Occurred())
    return NULL;
  if (err != TNK_OK)
    return raise_text(err, why);
  Py_RETURN_NONE;
}

/* ---- Dump ---- */

typedef struct {
  char *text;
  size_t length;
} dump_t;

static void on_dump(const char *text, size_t length, void *user) {
  dump_t *dump = user;

  dump->text = malloc(length + 1);
  if (dump->text != NULL) {
    memcpy(dump->text, text, length);
    dump->length = length;
  }
}

/* dump(queue, service, is_json): the text. */
static PyObject *dump_service(PyObject *module, PyObject *args) {
  tnk_call_t call = {.function = "tnk_service_dump", .n_args = 4};
  dump_t dump = {NULL, 0};
  PyObject *result;
  queue_t *queue;
  long long service;
  int is_json;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&Lp", to_queue, &queue, &service, &is_json))
    return NULL;
  call.args[0].integer = service;
  call.args[1].integer = is_json ? TNK_DUMP_JSON : TNK_DUMP_TEXT;
  call.args[2].function = (void (*)(void))on_dump;
  call.args[3].pointer = &dump;
  Py_BEGIN_ALLOW_THREADS
  err = tnk_queue_call(queue->native, &call, 1);
  Py_END_ALLOW_THREADS
  if (err == TNK_OK)
    err = (int)call.result.integer;
  if (err == TNK_OK && dump.text == NULL)
    err = TNK_ENOMEM;
  result =
      err == TNK_OK
          ? PyUnicode_DecodeUTF8(dump.text, (Py_ssize_t)dump.length, "replace")
          : raise_code(err);
  free(dump.text);
  return result;
}

/* ---- Closing ---- */

/* The object that an operation closes has closed. */
void op_closed(void *user) {
  op_t *op = user;

  queue_extra(op, TNK_OK);
  op_unref(op);
}

static void run_close(op_t *op) {
  void *handle = op->call.args[0].pointer;

  op_ref(op);
  switch (op->call.args[1].integer) {
  case 0:
    gateways_close_service(op);
    break;
  case 1:
    tnk_training_close(handle, op_closed, op);
    break;
  case 2:
    tnk_sampling_close(handle, op_closed, op);
    break;
  default:
    tnk_ledger_close(handle, op_closed, op);
  }
}

/* close(queue, tag, handle, kind): delivers the tag when it has closed. */
static PyObject *close_handle(PyObject *module, PyObject *args) {
  unsigned long long tag;
  long long handle;
  queue_t *queue;
  int kind;
  op_t *op;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&KLi", to_queue, &queue, &tag, &handle, &kind))
    return NULL;
  op = op_new(queue, NULL, tag);
  if (op == NULL)
    return NULL;
  op->run = run_close;
  op->call.args[0].integer = handle;
  op->call.args[1].integer = kind;
  err = engine_submit(op);
  if (err == TNK_OK)
    Py_RETURN_NONE;
  op_unref(op);
  return raise_code(err);
}

/* ---- Records that a function returns or fills ---- */

/* A handle is a number or a promise. */
static int to_handle(PyObject *object, void *out) {
  void **handle = out;

  *handle = promise_of(object);
  if (*handle == NULL)
    *handle = PyLong_AsVoidPtr(object);
  return PyErr_Occurred() ? 0 : 1;
}

/* record(queue, type, function, handle): a copy of what it points to. */
static PyObject *get_record(PyObject *module, PyObject *args) {
  tnk_call_t call = {.n_args = 1};
  const char *type;
  void *handle;
  queue_t *queue;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&ssO&", to_queue, &queue, &type, &call.function,
                        to_handle, &handle))
    return NULL;
  call.args[0].pointer = handle;
  Py_BEGIN_ALLOW_THREADS
  err = tnk_queue_call(queue->native, &call, 1);
  Py_END_ALLOW_THREADS
  if (err != TNK_OK)
    return raise_code(err);
  return strcmp(type, "string") == 0 ? Py_BuildValue("z", call.result.pointer)
                                     : unpack_record(type, call.result.pointer);
}

/* filled(queue, type, function, handle): a struct that it fills. */
static PyObject *get_filled(PyObject *module, PyObject *args) {
  PyObject *result = NULL;
  PyObject *none = PyDict_New();
  const char *function;
  const char *type;
  void *handle;
  queue_t *queue;
  void *record;
  op_t *op;
  int err;

  (void)module;
  if (none == NULL || !PyArg_ParseTuple(args, "O&ssO&", to_queue, &queue, &type,
                                        &function, to_handle, &handle)) {
    Py_XDECREF(none);
    return NULL;
  }
  op = op_new(queue, function, 0);
  record = op != NULL ? pack_record(op, type, none) : NULL;
  Py_DECREF(none);
  if (record != NULL) {
    op->call.n_args = 2;
    op->call.args[0].pointer = record;
    op->call.args[1].pointer = handle;
    Py_BEGIN_ALLOW_THREADS
    err = tnk_queue_call(op->queue->native, &op->call, 1);
    Py_END_ALLOW_THREADS
    result = err == TNK_OK ? unpack_record(type, record) : raise_code(err);
  }
  if (op != NULL)
    op_unref(op);
  return result;
}

/* page(promise): the records of a page whose promise is kept. */
static PyObject *get_page(PyObject *module, PyObject *promise) {
  (void)module;
  if (promise_of(promise) == NULL)
    return PyErr_Format(PyExc_TypeError, "a Promise is needed");
  return read_result(promise_of(promise), READ_PAGE);
}

/* ---- The end ---- */

/* close_losses(): no more losses for Python; next_loss() ends. */
static PyObject *close_losses(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  pthread_mutex_lock(&engine.lock);
  engine.is_closing = 1;
  pthread_cond_broadcast(&engine.loss_wanted);
  pthread_mutex_unlock(&engine.lock);
  Py_RETURN_NONE;
}

/* stop(): end the runtime. Operations that have not ended fail. */
static PyObject *stop(PyObject *module, PyObject *unused) {
  tnk_runtime_t *runtime;

  (void)module;
  (void)unused;
  engine_collect();
  gateways_end();
  pthread_mutex_lock(&engine.lock);
  runtime = engine.runtime;
  engine.runtime = NULL;
  engine.is_stopped = 1;
  pthread_mutex_unlock(&engine.lock);
  Py_BEGIN_ALLOW_THREADS
  tnk_runtime_stop(runtime);
  Py_END_ALLOW_THREADS
  pthread_mutex_lock(&engine.lock);
  engine.is_ended = 1;
  pthread_cond_broadcast(&engine.event_wanted);
  pthread_mutex_unlock(&engine.lock);
  engine_collect();
  Py_RETURN_NONE;
}

static PyObject *error_name(PyObject *module, PyObject *args) {
  int code;

  (void)module;
  if (!PyArg_ParseTuple(args, "i", &code))
    return NULL;
  return PyUnicode_FromString(tnk_err_name(code));
}

static PyMethodDef functions[] = {
    {"open_service", open_service, METH_VARARGS, NULL},
    {"set_budget", set_budget, METH_VARARGS, NULL},
    {"dump", dump_service, METH_VARARGS, NULL},
    {"close", close_handle, METH_VARARGS, NULL},
    {"record", get_record, METH_VARARGS, NULL},
    {"filled", get_filled, METH_VARARGS, NULL},
    {"page", get_page, METH_O, NULL},
    {"next_loss", next_loss, METH_NOARGS, NULL},
    {"finish_loss", finish_loss, METH_VARARGS, NULL},
    {"close_losses", close_losses, METH_NOARGS, NULL},
    {"rl", rl_call, METH_VARARGS, NULL},
    {"stop", stop, METH_NOARGS, NULL},
    {"error_name", error_name, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "tnk._native",
                                        "libtnk for the package tnk.",
                                        -1,
                                        functions,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void) {
  PyObject *module;

  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "tnk cannot be imported in a subinterpreter: its runtime "
                    "belongs to the main interpreter");
    return NULL;
  }
  module = PyModule_Create(&definition);
  if (module == NULL)
    return NULL;
  if (ints_learn() != 0 || add_types(module) != 0 ||
      PyModule_AddFunctions(module, tokenizer_methods) != 0 ||
      PyModule_AddFunctions(module, chat_methods) != 0 ||
      PyModule_AddFunctions(module, parser_methods) != 0 ||
      PyModule_AddFunctions(module, gateway_methods) != 0 ||
      PyModule_AddFunctions(module, event_methods) != 0 ||
      PyModule_AddStringConstant(module, "version", tnk_version()) != 0 ||
      pthread_atfork(NULL, NULL, engine_after_fork) != 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
