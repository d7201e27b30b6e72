/* SPDX-License-Identifier: MIT */
/* Inputs: model inputs and examples of Python as those of libtnk. */
#include <string.h>

#include "bindings/python/native/native.h"

static PyObject *names[16];
enum {
  CHUNKS,
  TOKENS,
  NUMPY,
  SHAPE,
  CROW,
  COL,
  INPUT,
  INPUTS,
  INPUT_SPANS,
  LOSS_SPANS,
  DATA,
  FORMAT,
  EXPECTED,
  LOCATION,
  DMEL,
  N_NAMES
};

static PyObject *attribute(PyObject *object, int name) {
  static const char *const texts[N_NAMES] = {"chunks",
                                             "tokens",
                                             "_numpy",
                                             "shape",
                                             "sparse_crow_indices",
                                             "sparse_col_indices",
                                             "model_input",
                                             "loss_fn_inputs",
                                             "model_input_spans",
                                             "loss_fn_input_spans",
                                             "data",
                                             "format",
                                             "expected_tokens",
                                             "location",
                                             "dmel"};

  if (names[name] == NULL)
    names[name] = PyUnicode_InternFromString(texts[name]);
  return names[name] != NULL ? PyObject_GetAttr(object, names[name]) : NULL;
}

/* The attribute, or NULL without an error if there is none or it is None. */
static PyObject *optional(PyObject *object, int name) {
  PyObject *value = attribute(object, name);

  if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError))
    PyErr_Clear();
  if (value == Py_None) {
    Py_DECREF(value);
    value = NULL;
  }
  return value;
}

/* The last character of a format such as "<q" or "l"; 0 for others. */
static char format_of(const Py_buffer *view) {
  const char *format = view->format != NULL ? view->format : "B";

  if (*format == '<' || *format == '=' || *format == '@')
    format++;
  return format[0] != '\0' && format[1] == '\0' ? format[0] : '\0';
}

static int is_signed(const Py_buffer *view) {
  return strchr("bhilqn", format_of(view)) != NULL && format_of(view) != '\0';
}

/* A buffer that lives as long as the operation. */
static Py_buffer *view_of(op_t *op, PyObject *object) {
  Py_buffer *view = op_buffer(op);

  if (view == NULL ||
      PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0)
    return NULL;
  op->n_buffers++;
  return view;
}

/* ---- Lists ---- */

static int as_list(PyObject **out, PyObject *sequence) {
  *out =
      PyList_Check(sequence) ? Py_NewRef(sequence) : PySequence_List(sequence);
  return *out != NULL ? 0 : -1;
}

/* Token ids: a buffer of 32-bit integers is read in place. */
int read_ids(op_t *op, const int32_t **out, size_t *n, PyObject *tokens) {
  PyObject *list;
  int err;

  if (!PyList_Check(tokens) && PyObject_CheckBuffer(tokens)) {
    Py_buffer *view = view_of(op, tokens);
    if (view == NULL)
      return -1;
    if (is_signed(view) && view->itemsize == 4) {
      *out = view->buf;
      *n = (size_t)view->len / 4;
      return 0;
    }
  }
  if (as_list(&list, tokens) != 0)
    return -1;
  err = read_tokens(op, out, n, list);
  Py_DECREF(list);
  return err;
}

static int read_i64s(op_t *op, const int64_t **out, size_t *n,
                     PyObject *sequence) {
  PyObject *list;
  int64_t *values;
  Py_ssize_t i = 0;
  Py_ssize_t length;

  if (as_list(&list, sequence) != 0)
    return -1;
  length = PyList_Size(list);
  values = op_alloc(op, (size_t)length + 1, sizeof(*values));
  while (values != NULL && i < length && int_at(&values[i], list, i) == 0)
    i++;
  Py_DECREF(list);
  *out = values;
  *n = (size_t)length;
  return values != NULL && i == length ? 0 : -1;
}

/* ---- Tensors ---- */

static int set_shape(tnk_tensor_t *out, PyObject *shape) {
  PyObject *list;
  Py_ssize_t i;
  int err = 0;

  if (as_list(&list, shape) != 0)
    return -1;
  if (PyList_Size(list) > TNK_MAX_DIMS) {
    PyErr_SetString(PyExc_ValueError, "a tensor has too many dimensions");
    err = -1;
  }
  for (i = 0; err == 0 && i < PyList_Size(list); i++)
    err = int_at(&out->shape[i], list, i);
  out->n_dims = (uint32_t)i;
  Py_DECREF(list);
  return err;
}

static int set_values(op_t *op, tnk_tensor_t *out, PyObject *buffer) {
  Py_buffer *view = view_of(op, buffer);
  int i;

  if (view == NULL)
    return -1;
  if (format_of(view) == 'f' || format_of(view) == 'd') {
    out->dtype = view->itemsize == 4 ? TNK_F32 : TNK_F64;
  } else if (is_signed(view) && view->itemsize >= 4) {
    out->dtype = view->itemsize == 4 ? TNK_I32 : TNK_I64;
  } else {
    PyErr_Format(PyExc_ValueError, "a tensor has values of the format %s",
                 view->format != NULL ? view->format : "B");
    return -1;
  }
  out->data = view->buf;
  out->n_values = (size_t)(view->len / view->itemsize);
  out->n_dims = (uint32_t)view->ndim;
  if (view->ndim > TNK_MAX_DIMS) {
    PyErr_SetString(PyExc_ValueError, "a tensor has too many dimensions");
    return -1;
  }
  for (i = 0; i < view->ndim; i++)
    out->shape[i] = view->shape[i];
  return 0;
}

static int set_sparse(op_t *op, tnk_tensor_t *out, PyObject *crow,
                      PyObject *tensor) {
  PyObject *col = attribute(tensor, COL);
  size_t n;
  int err = col != NULL && read_i64s(op, &out->crow, &n, crow) == 0 &&
                    read_i64s(op, &out->col, &n, col) == 0
                ? 0
                : -1;

  Py_XDECREF(col);
  return err;
}

/* A TensorData, or a buffer. */
int read_tensor(op_t *op, tnk_tensor_t *out, PyObject *tensor) {
  PyObject *values;
  PyObject *shape;
  PyObject *crow;
  int err;

  if (PyObject_CheckBuffer(tensor))
    return set_values(op, out, tensor);
  values = attribute(tensor, NUMPY);
  if (values == NULL)
    return -1;
  err = set_values(op, out, values);
  Py_DECREF(values);
  crow = err == 0 ? optional(tensor, CROW) : NULL;
  shape = err == 0 ? optional(tensor, SHAPE) : NULL;
  if (PyErr_Occurred())
    err = -1;
  if (err == 0 && crow != NULL)
    err = set_sparse(op, out, crow, tensor);
  if (err == 0 && shape != NULL)
    err = set_shape(out, shape);
  Py_XDECREF(crow);
  Py_XDECREF(shape);
  return err;
}

/* ---- Model inputs ---- */

static int read_bytes(op_t *op, tnk_chunk_t *out, PyObject *bytes) {
  Py_buffer *view = view_of(op, bytes);

  if (view == NULL)
    return -1;
  out->bytes = view->buf;
  out->n_bytes = (size_t)view->len;
  return 0;
}

static int read_format(tnk_chunk_t *out, PyObject *chunk) {
  PyObject *format = attribute(chunk, FORMAT);
  PyObject *expected = format != NULL ? optional(chunk, EXPECTED) : NULL;

  if (expected != NULL)
    out->expected_tokens = (int32_t)PyLong_AsLong(expected);
  if (format != NULL && PyUnicode_Check(format))
    out->format = PyUnicode_CompareWithASCIIString(format, "png") == 0
                      ? TNK_PNG
                      : TNK_JPEG;
  Py_XDECREF(format);
  Py_XDECREF(expected);
  return PyErr_Occurred() ? -1 : 0;
}

static int read_media(op_t *op, tnk_chunk_t *out, PyObject *chunk) {
  PyObject *value;
  int err;

  if ((value = optional(chunk, DMEL)) != NULL) {
    out->kind = TNK_CHUNK_DMEL;
    err = read_bytes(op, out, value);
  } else if ((value = optional(chunk, LOCATION)) != NULL) {
    out->kind = TNK_CHUNK_IMAGE_POINTER;
    out->location = op_string(op, value);
    err = out->location == NULL ? -1 : read_format(out, chunk);
  } else if ((value = attribute(chunk, DATA)) != NULL) {
    out->kind = TNK_CHUNK_IMAGE;
    err = read_bytes(op, out, value) != 0 ? -1 : read_format(out, chunk);
  } else {
    err = -1;
  }
  Py_XDECREF(value);
  return err;
}

static int read_chunk(op_t *op, tnk_chunk_t *out, PyObject *chunk) {
  PyObject *tokens = optional(chunk, TOKENS);
  int err;

  if (tokens == NULL)
    return PyErr_Occurred() ? -1 : read_media(op, out, chunk);
  out->kind = TNK_CHUNK_TEXT;
  err = read_ids(op, &out->tokens, &out->n_tokens, tokens);
  Py_DECREF(tokens);
  return err;
}

static int read_chunks(op_t *op, tnk_model_input_t *out, PyObject *list) {
  const Py_ssize_t n = PyList_Size(list);
  tnk_chunk_t *chunks = op_alloc(op, (size_t)n + 1, sizeof(*chunks));
  Py_ssize_t i;

  if (chunks == NULL)
    return -1;
  for (i = 0; i < n; i++)
    if (read_chunk(op, &chunks[i], PyList_GetItem(list, i)) != 0)
      return -1;
  if (n == 1 && chunks->kind == TNK_CHUNK_TEXT) {
    out->tokens = chunks->tokens;
    out->n_tokens = chunks->n_tokens;
  } else {
    out->chunks = chunks;
    out->n_chunks = (size_t)n;
  }
  return 0;
}

/* A ModelInput, or token ids. */
int read_input(op_t *op, tnk_model_input_t *out, PyObject *input) {
  PyObject *chunks;
  PyObject *list = NULL;
  int err;

  if (PyList_Check(input) || PyObject_CheckBuffer(input))
    return read_ids(op, &out->tokens, &out->n_tokens, input);
  chunks = attribute(input, CHUNKS);
  err = chunks != NULL && as_list(&list, chunks) == 0
            ? read_chunks(op, out, list)
            : -1;
  Py_XDECREF(list);
  Py_XDECREF(chunks);
  return err;
}

/* ---- Examples ---- */

static int read_loss_inputs(op_t *op, tnk_datum_t *out, PyObject *inputs) {
  tnk_loss_input_t *rows;
  Py_ssize_t position = 0;
  size_t n = 0;
  PyObject *name;
  PyObject *value;

  if (!PyDict_Check(inputs)) {
    PyErr_SetString(PyExc_TypeError, "loss_fn_inputs must be a dict");
    return -1;
  }
  rows = op_alloc(op, (size_t)PyDict_Size(inputs) + 1, sizeof(*rows));
  if (rows == NULL)
    return -1;
  while (PyDict_Next(inputs, &position, &name, &value)) {
    rows[n].name = op_string(op, name);
    if (rows[n].name == NULL || read_tensor(op, &rows[n].tensor, value) != 0)
      return -1;
    n++;
  }
  out->loss_inputs = rows;
  out->n_loss_inputs = n;
  return 0;
}

static int read_span(op_t *op, tnk_span_t *out, PyObject *span) {
  PyObject *type = (PyObject *)Py_TYPE(span);
  PyObject *kind = PyObject_GetAttrString(type, "__name__");
  PyObject *id = PyObject_GetAttrString(span, "sequence_id");
  PyObject *offset = PyObject_GetAttrString(span, "offset");
  PyObject *length = PyObject_GetAttrString(span, "length");

  if (kind != NULL && id != NULL && offset != NULL && length != NULL) {
    out->kind =
        PyUnicode_CompareWithASCIIString(kind, "PromptProvenanceSpan") == 0
            ? TNK_SPAN_PROMPT
            : TNK_SPAN_SAMPLED;
    out->sequence_id = op_string(op, id);
    out->offset = PyLong_AsLongLong(offset);
    out->length = PyLong_AsLongLong(length);
  }
  Py_XDECREF(kind);
  Py_XDECREF(id);
  Py_XDECREF(offset);
  Py_XDECREF(length);
  return PyErr_Occurred() ? -1 : 0;
}

static int read_spans(op_t *op, const tnk_span_t **out, size_t *n,
                      PyObject *datum, int name) {
  PyObject *sequence = optional(datum, name);
  PyObject *list;
  tnk_span_t *spans;
  Py_ssize_t i = 0;
  Py_ssize_t length;

  if (sequence == NULL)
    return PyErr_Occurred() ? -1 : 0;
  if (as_list(&list, sequence) != 0) {
    Py_DECREF(sequence);
    return -1;
  }
  length = PyList_Size(list);
  spans = op_alloc(op, (size_t)length + 1, sizeof(*spans));
  while (spans != NULL && i < length &&
         read_span(op, &spans[i], PyList_GetItem(list, i)) == 0)
    i++;
  Py_DECREF(list);
  Py_DECREF(sequence);
  *out = spans;
  *n = (size_t)length;
  return spans != NULL && i == length ? 0 : -1;
}

static int read_datum(op_t *op, tnk_datum_t *out, PyObject *datum) {
  PyObject *input = attribute(datum, INPUT);
  PyObject *inputs = input != NULL ? attribute(datum, INPUTS) : NULL;
  int err = inputs != NULL && read_input(op, &out->input, input) == 0 &&
                    read_loss_inputs(op, out, inputs) == 0
                ? 0
                : -1;

  Py_XDECREF(input);
  Py_XDECREF(inputs);
  if (err == 0)
    err = read_spans(op, &out->input_spans, &out->n_input_spans, datum,
                     INPUT_SPANS);
  if (err == 0)
    err = read_spans(op, &out->loss_input_spans, &out->n_loss_input_spans,
                     datum, LOSS_SPANS);
  return err;
}

int read_data(op_t *op, tnk_datum_t *out, PyObject *data) {
  const Py_ssize_t n = PyList_Size(data);
  Py_ssize_t i;

  for (i = 0; i < n; i++)
    if (read_datum(op, &out[i], PyList_GetItem(data, i)) != 0)
      return -1;
  return 0;
}

/* ---- Stops ---- */

static int stop_texts(op_t *op, tnk_sampling_params_t *out, PyObject *list) {
  const Py_ssize_t n = PyList_Size(list);
  const char **texts = op_alloc(op, (size_t)n + 1, sizeof(*texts));
  Py_ssize_t i;

  if (texts == NULL)
    return -1;
  for (i = 0; i < n; i++) {
    texts[i] = op_string(op, PyList_GetItem(list, i));
    if (texts[i] == NULL)
      return -1;
  }
  out->stop_texts = texts;
  out->n_stop_texts = (size_t)n;
  return 0;
}

/* None, a string, strings, or tokens. An empty list disables all stops. */
int read_stop(op_t *op, tnk_sampling_params_t *out, PyObject *stop) {
  PyObject *list;
  PyObject *first;
  int err;

  if (stop == Py_None)
    return 0;
  if (PyUnicode_Check(stop)) {
    list = PyList_New(0);
    if (list != NULL && PyList_Append(list, stop) != 0)
      Py_CLEAR(list);
  } else {
    as_list(&list, stop);
  }
  if (list == NULL)
    return -1;
  first = PyList_Size(list) > 0 ? PyList_GetItem(list, 0) : NULL;
  if (first != NULL && PyUnicode_Check(first))
    err = stop_texts(op, out, list);
  else
    err = read_tokens(op, &out->stop_tokens, &out->n_stop_tokens, list);
  Py_DECREF(list);
  return err;
}
