/* SPDX-License-Identifier: MIT */
/* Custom losses: the runtime's thread defers them, a thread of Python computes
 * them. */
#include <stdlib.h>
#include <string.h>

#include "bindings/python/native/native.h"

typedef struct loss {
  struct loss *next;
  uint64_t key;
  tnk_custom_loss_t *io;
  op_t *finish; /* made here, because the end of a loss must not fail */
  int status;
} loss_t;

/* On the runtime's thread, between the two passes. close_losses() waits for the
 * lock, so it finds the loss in the list or nothing is deferred. */
static int on_loss(tnk_custom_loss_t *io, void *user) {
  loss_t *loss = calloc(1, sizeof(*loss));
  loss_t **last = &engine.losses;
  int err;

  if (loss != NULL)
    loss->finish = op_make();
  if (loss == NULL || loss->finish == NULL) {
    free(loss);
    return TNK_ENOMEM;
  }
  loss->key = (uint64_t)(uintptr_t)user;
  loss->io = io;
  pthread_mutex_lock(&engine.lock);
  /* At the end no thread would compute it, and the runtime would wait. */
  err = engine.is_closing ? TNK_ECLOSED : tnk_custom_loss_defer(io);
  if (err == TNK_OK) {
    while (*last != NULL)
      last = &(*last)->next;
    *last = loss;
    pthread_cond_signal(&engine.loss_wanted);
  }
  pthread_mutex_unlock(&engine.lock);
  if (err != TNK_OK) {
    free(loss->finish);
    free(loss);
  }
  return err;
}

/* start_custom(tag, handle, data, key) */
PyObject *start_custom(PyObject *self, PyObject *args) {
  unsigned long long tag;
  unsigned long long key;
  long long handle;
  tnk_datum_t *data;
  PyObject *object;
  PyObject *list;
  op_t *op;
  int err;

  if (!PyArg_ParseTuple(args, "KLO!K", &tag, &handle, &PyList_Type, &list,
                        &key))
    return NULL;
  op = op_new(queue_of(self), "tnk_training_forward_backward_custom", tag);
  if (op == NULL)
    return NULL;
  data = op_alloc(op, (size_t)PyList_Size(list), sizeof(*data));
  if (data == NULL || read_data(op, data, list) != 0) {
    op_unref(op);
    return NULL;
  }
  op->call.is_watched = 1;
  op->call.n_args = 6;
  op->call.args[0].integer = handle;
  op->call.args[1].pointer = data;
  op->call.args[2].integer = PyList_Size(list);
  op->call.args[3].function = (void (*)(void))on_loss;
  op->call.args[4].pointer = (void *)(uintptr_t)key;
  object = op_object(op);
  err = object != NULL ? engine_submit(op) : TNK_ENOMEM;
  if (err == TNK_OK)
    return object;
  Py_XDECREF(object);
  op_unref(op);
  return PyErr_Occurred() ? NULL : raise_code(err);
}

static PyObject *logprobs_of(const tnk_custom_loss_t *io) {
  PyObject *list = PyList_New((Py_ssize_t)io->n_data);
  size_t i;

  for (i = 0; list != NULL && i < io->n_data; i++) {
    PyObject *tensor = tensor_of(&io->logprobs[i]);
    if (tensor == NULL || PyList_SetItem(list, (Py_ssize_t)i, tensor) != 0)
      Py_CLEAR(list);
  }
  return list;
}

static void run_finish(op_t *op) {
  loss_t *loss = op->call.args[0].pointer;

  tnk_custom_loss_finish(loss->io, loss->status);
  free(loss);
}

static void finish(loss_t *loss, int status) {
  loss->status = status;
  loss->finish->run = run_finish;
  loss->finish->call.args[0].pointer = loss;
  engine_must_submit(loss->finish);
}

/* next_loss(): waits for one: (loss, key, logprobs); None at the end. */
PyObject *next_loss(PyObject *self, PyObject *args) {
  PyObject *row;
  loss_t *loss;

  (void)self;
  (void)args;
  engine_collect();
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(&engine.lock);
  while (engine.losses == NULL && !engine.is_closing)
    pthread_cond_wait(&engine.loss_wanted, &engine.lock);
  loss = engine.losses;
  if (loss != NULL)
    engine.losses = loss->next;
  pthread_mutex_unlock(&engine.lock);
  Py_END_ALLOW_THREADS
  if (loss == NULL)
    Py_RETURN_NONE;
  row = Py_BuildValue("(NKN)", PyLong_FromVoidPtr(loss),
                      (unsigned long long)loss->key, logprobs_of(loss->io));
  if (row == NULL)
    finish(loss, 1);
  return row;
}

/* Copy the gradient of one example, an array of f32. */
static int set_gradient(const tnk_custom_loss_t *io, size_t i,
                        PyObject *gradient) {
  Py_buffer view;
  int is_right;

  if (PyObject_GetBuffer(gradient, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS))
    return -1;
  is_right = view.itemsize == sizeof(float) && view.format != NULL &&
             view.format[0] == 'f' &&
             (size_t)view.len == io->logprobs[i].n_values * sizeof(float);
  if (is_right)
    memcpy(io->gradients[i], view.buf, (size_t)view.len);
  else
    PyErr_Format(PyExc_ValueError, "gradient %zu has another size", i);
  PyBuffer_Release(&view);
  return is_right ? 0 : -1;
}

static int set_metrics(op_t *op, tnk_custom_loss_t *io, PyObject *metrics) {
  tnk_custom_metric_t *rows =
      op_alloc(op, (size_t)PyDict_Size(metrics) + 1, sizeof(*rows));
  Py_ssize_t position = 0;
  PyObject *name;
  PyObject *value;
  size_t n = 0;

  while (rows != NULL && PyDict_Next(metrics, &position, &name, &value)) {
    rows[n].name = op_string(op, name);
    rows[n].value = PyFloat_AsDouble(value);
    if (rows[n].name == NULL || PyErr_Occurred())
      return -1;
    n++;
  }
  io->metrics = rows;
  io->n_metrics = n;
  return rows != NULL ? 0 : -1;
}

static int set_outputs(op_t *op, tnk_custom_loss_t *io, PyObject *gradients,
                       double value, PyObject *metrics) {
  size_t i;

  if ((size_t)PyList_Size(gradients) != io->n_data) {
    PyErr_SetString(PyExc_ValueError, "one gradient per example is needed");
    return -1;
  }
  for (i = 0; i < io->n_data; i++)
    if (set_gradient(io, i, PyList_GetItem(gradients, (Py_ssize_t)i)) != 0)
      return -1;
  io->loss = value;
  return set_metrics(op, io, metrics);
}

/* finish_loss(loss, gradients, value, metrics); gradients of None fail it. The
 * loss is finished in any case, once. */
PyObject *finish_loss(PyObject *self, PyObject *args) {
  PyObject *number;
  PyObject *gradients;
  PyObject *metrics;
  double value;
  loss_t *loss;

  (void)self;
  if (!PyArg_ParseTuple(args, "OOdO!", &number, &gradients, &value,
                        &PyDict_Type, &metrics))
    return NULL;
  loss = PyLong_AsVoidPtr(number);
  if (loss == NULL)
    return NULL;
  finish(loss,
         gradients == Py_None || set_outputs(loss->finish, loss->io, gradients,
                                             value, metrics) != 0);
  if (PyErr_Occurred())
    return NULL;
  Py_RETURN_NONE;
}
