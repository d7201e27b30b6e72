/* SPDX-License-Identifier: MIT */
/*
 * Lists of int as arrays. A batch has millions of tokens, and two calls of the
 * stable ABI for each of them take longer than the rest of a pass. So ints of
 * one digit are read from memory. The stable ABI does not promise their layout:
 * ints_learn() finds out, on known versions of Python only, whether it is the
 * expected one. Otherwise, and for all other objects, the calls are used.
 */
#include <string.h>

#include "bindings/python/native/native.h"

/* Since 3.12 `tag` has the sign and the number of digits, before only a number
 * with a sign. A positive int of one digit has one of two tags. */
typedef struct {
  PyObject base;
  uintptr_t tag;
  uint32_t digit;
} int_object_t;

typedef struct {
  PyVarObject base;
  PyObject **items;
} list_object_t;

static struct {
  int is_known;
  uintptr_t zero;
  uintptr_t cached; /* of an int that lives as long as the process */
  uintptr_t plain;
} layout;

/* Read ints from the place `i` on; return the place of the first other one. */
static Py_ssize_t read_digits(int32_t *out, const PyObject *list, Py_ssize_t i,
                              Py_ssize_t n) {
  PyObject *const *items = ((const list_object_t *)list)->items;
  const PyTypeObject *const type = &PyLong_Type;
  const uintptr_t cached = layout.cached;
  const uintptr_t plain = layout.plain;

  for (; i < n; i++) {
    const int_object_t *item = (const int_object_t *)items[i];

    if (item->base.ob_type != type)
      break;
    if (item->tag == plain || item->tag == cached)
      out[i] = (int32_t)item->digit;
    else if (item->tag == layout.zero)
      out[i] = 0;
    else
      break;
  }
  return i;
}

static int append(PyObject *list, PyObject *item) {
  int err = item != NULL ? PyList_Append(list, item) : -1;

  Py_XDECREF(item);
  return err;
}

static uintptr_t tag_at(PyObject *list, Py_ssize_t i) {
  return ((const int_object_t *)PyList_GetItem(list, i))->tag;
}

#define N_SAMPLES 8

/* Whether all samples are read, and each of the other objects ends a read. */
static int is_expected(PyObject *samples, PyObject *others,
                       const int32_t *values) {
  int32_t out[N_SAMPLES];
  Py_ssize_t i;

  layout.zero = tag_at(samples, 0);
  layout.cached = tag_at(samples, 1);
  layout.plain = tag_at(samples, N_SAMPLES - 1);
  if (layout.zero == layout.cached || layout.zero == layout.plain ||
      read_digits(out, samples, 0, N_SAMPLES) != N_SAMPLES ||
      memcmp(out, values, sizeof(out)) != 0)
    return 0;
  for (i = 0; i < N_SAMPLES; i++)
    if (read_digits(out, others, i, i + 1) != i)
      return 0;
  return 1;
}

/* Every int and every list has the members that this reads, whatever they mean
 * there. */
int ints_learn(void) {
  static const int32_t values[N_SAMPLES] = {0,   1,     2,      256,
                                            257, 65536, 150000, (1 << 30) - 1};
  static const long long others[] = {-1,        -256,      -150000,
                                     1LL << 30, 1LL << 31, 1LL << 60};
  PyObject *samples = PyList_New(0);
  PyObject *rest = PyList_New(0);
  int err = samples != NULL && rest != NULL ? 0 : -1;
  size_t i;

  for (i = 0; err == 0 && i < N_SAMPLES; i++)
    err = append(samples, PyLong_FromLong(values[i]));
  for (i = 0; err == 0 && i < sizeof(others) / sizeof(*others); i++)
    err = append(rest, PyLong_FromLongLong(others[i]));
  if (err == 0)
    err = append(rest, Py_NewRef(Py_True));
  if (err == 0)
    err = append(rest, PyFloat_FromDouble(1.0));
  if (err == 0 && Py_Version >= 0x030b0000 && Py_Version < 0x030f0000)
    layout.is_known = is_expected(samples, rest, values);
  Py_XDECREF(samples);
  Py_XDECREF(rest);
  return err;
}

/* The int at a place of a list, with calls. */
int int_at(int64_t *out, PyObject *list, Py_ssize_t i) {
  PyObject *item = PyList_GetItem(list, i);

  if (item == NULL)
    return -1;
  *out = PyLong_AsLongLong(item);
  if (*out != -1 || !PyErr_Occurred())
    return 0;
  /* Integers of numpy are not of Python's type. */
  PyErr_Clear();
  item = PyNumber_Index(item);
  if (item == NULL)
    return -1;
  *out = PyLong_AsLongLong(item);
  Py_DECREF(item);
  return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

int read_tokens(op_t *op, const int32_t **out, size_t *n, PyObject *list) {
  const Py_ssize_t length = PyList_Size(list);
  int32_t *tokens = op_take(op, (size_t)length + 1, sizeof(*tokens));
  Py_ssize_t i = 0;
  int64_t token;

  if (tokens == NULL)
    return -1;
  for (; i < length; i++) {
    /* A call of __index__() may have changed the list. */
    if (layout.is_known && PyList_Size(list) == length)
      i = read_digits(tokens, list, i, length);
    if (i == length)
      break;
    if (int_at(&token, list, i) != 0)
      return -1;
    if (token != (int32_t)token) {
      PyErr_Format(PyExc_OverflowError, "token %zd does not fit 32 bits", i);
      return -1;
    }
    tokens[i] = (int32_t)token;
  }
  *out = tokens;
  *n = (size_t)length;
  return 0;
}
