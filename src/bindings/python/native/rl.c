/* SPDX-License-Identifier: MIT */
/* The arithmetic of tnk/rl.h on buffers of Python, which are read and written
 * in place if they have the type float32. */
#include <stdlib.h>
#include <string.h>

#include "bindings/python/native/native.h"

enum { MAX_ARRAYS = 8, MAX_NUMBERS = 5, MAX_RESULTS = 11 };
/* From so many values on, other threads run meanwhile. */
#define LONG_CALL 4096

typedef enum {
  NEEDED,
  OPTIONAL,
  GRADIENT, /* added to; optional */
  OUTPUT    /* written; None makes a new one */
} use_t;

typedef struct {
  const char *name;
  use_t use;
  int group; /* arrays of one group have the same length */
} slot_t;

typedef struct {
  Py_buffer view;
  PyObject *made; /* of an OUTPUT */
  float *copy;    /* of values that are not float32 */
  float *data;
  size_t n;
  int has_view;
} floats_t;

typedef struct {
  float *a[MAX_ARRAYS];
  double x[MAX_NUMBERS];
  size_t n;  /* of the first group */
  size_t n2; /* of the second one */
  double out[MAX_RESULTS];
  int n_out; /* 1 unless the function says otherwise */
} math_t;

typedef struct {
  const char *name;
  slot_t arrays[MAX_ARRAYS];
  int n_numbers;
  int (*run)(math_t *math);
} formula_t;

/* ---- The functions ---- */

static int group_advantages(math_t *m) {
  m->n_out = 0;
  return tnk_rl_group_advantages(m->a[0], m->a[1], m->n, (size_t)m->x[0],
                                 (tnk_advantage_t)m->x[1]);
}

static int discounted_sums(math_t *m) {
  m->n_out = 0;
  tnk_rl_discounted_sums(m->a[0], m->a[1], m->n, m->x[0]);
  return TNK_OK;
}

static int kl(math_t *m) {
  m->out[0] = tnk_rl_kl(m->a[0], m->a[1], m->a[2], m->n, (tnk_kl_t)m->x[0]);
  return TNK_OK;
}

static int kl_tokens(math_t *m) {
  m->n_out = 0;
  tnk_rl_kl_tokens(m->a[0], m->a[1], m->a[2], m->n, (tnk_kl_t)m->x[0]);
  return TNK_OK;
}

static int ratios(math_t *m) {
  m->n_out = 0;
  tnk_rl_ratios(m->a[0], m->a[1], m->a[2], m->n);
  return TNK_OK;
}

static int drift(math_t *m) {
  tnk_drift_t d = TNK_DRIFT_INIT;
  const int err = tnk_rl_drift(&d, m->a[0], m->a[1], m->a[2], m->n);
  const double out[] = {(double)d.n,
                        d.log_ratio,
                        d.abs_log_ratio,
                        d.max_abs_log_ratio,
                        d.k2,
                        d.k3,
                        d.ratio,
                        d.min_ratio,
                        d.max_ratio,
                        d.ratio_variance,
                        d.effective_tokens};

  memcpy(m->out, out, sizeof(out));
  m->n_out = (int)(sizeof(out) / sizeof(*out));
  return err;
}

static int effective_sample_size(math_t *m) {
  m->out[0] = tnk_rl_effective_sample_size(m->a[0], m->n);
  return TNK_OK;
}

static int sampled_entropy(math_t *m) {
  m->out[0] = tnk_rl_sampled_entropy(m->a[0], m->a[1], m->n);
  return TNK_OK;
}

static int entropy(math_t *m) {
  m->out[0] = tnk_rl_entropy(m->a[0], m->n);
  return TNK_OK;
}

/* Arrays: logprobs, reference, weights, gradient. */
static tnk_rl_tokens_t tokens_of(float *const *a, size_t n) {
  const tnk_rl_tokens_t tokens = {.n = n,
                                  .logprobs = a[0],
                                  .reference = a[1],
                                  .weights = a[2],
                                  .gradient = a[3]};

  return tokens;
}

static int importance_sampling(math_t *m) {
  const tnk_rl_tokens_t tokens = tokens_of(m->a, m->n);

  m->out[0] = tnk_rl_importance_sampling(&tokens, m->a[4], m->x[0]);
  return TNK_OK;
}

static int ppo(math_t *m) {
  const tnk_rl_tokens_t tokens = tokens_of(m->a, m->n);

  m->out[0] = tnk_rl_ppo(&tokens, m->a[4], m->x[0], m->x[1], m->x[2]);
  return TNK_OK;
}

static int cispo(math_t *m) {
  const tnk_rl_tokens_t tokens = tokens_of(m->a, m->n);

  m->out[0] = tnk_rl_cispo(&tokens, m->a[4], m->x[0], m->x[1], m->x[2]);
  return TNK_OK;
}

static int dpo(math_t *m) {
  const tnk_rl_tokens_t chosen = tokens_of(m->a, m->n);
  const tnk_rl_tokens_t rejected = tokens_of(m->a + 4, m->n2);

  m->out[0] = tnk_rl_dpo(&chosen, &rejected, m->x[0], m->x[1], &m->out[1]);
  m->n_out = 2;
  return TNK_OK;
}

static int kl_penalty(math_t *m) {
  const tnk_rl_tokens_t tokens = tokens_of(m->a, m->n);

  m->out[0] = tnk_rl_kl_penalty(&tokens, (tnk_kl_t)m->x[0], m->x[1]);
  return TNK_OK;
}

static int kl_exact(math_t *m) {
  m->out[0] = tnk_rl_kl_exact(m->a[0], m->a[1], m->a[2], m->n,
                              (tnk_kl_direction_t)m->x[0], m->x[1]);
  return TNK_OK;
}

static int entropy_penalty(math_t *m) {
  m->out[0] = tnk_rl_entropy_penalty(m->a[0], m->a[1], m->n, m->x[0], m->x[1]);
  return TNK_OK;
}

static int elastic_net(math_t *m) {
  m->out[0] = tnk_rl_elastic_net(m->a[0], m->a[1], m->a[2], m->a[3], m->n,
                                 m->x[0], m->x[1]);
  return TNK_OK;
}

static int l2_centered(math_t *m) {
  m->out[0] = tnk_rl_l2_centered(m->a[0], m->a[1], m->n, m->x[0]);
  return TNK_OK;
}

static int orthogonality(math_t *m) {
  const size_t n_rows = (size_t)m->x[0];

  if (n_rows == 0 || m->n % n_rows != 0)
    return TNK_EINVAL;
  m->out[0] =
      tnk_rl_orthogonality(m->a[0], m->a[1], n_rows, m->n / n_rows, m->x[1]);
  return TNK_OK;
}

static int gradient_penalty(math_t *m) {
  m->out[0] = tnk_rl_gradient_penalty(m->a[0], m->a[1], m->a[2], m->n, m->x[0],
                                      m->x[1]);
  return TNK_OK;
}

static int norm(math_t *m) {
  m->out[0] = tnk_rl_norm(m->a[0], m->n);
  return TNK_OK;
}

#define SAMPLED                                                                \
  { "sampled", NEEDED, 0 }
#define TRAINED                                                                \
  { "trained", NEEDED, 0 }
#define WEIGHTS                                                                \
  { "weights", OPTIONAL, 0 }
#define ADDED                                                                  \
  { "gradient", GRADIENT, 0 }
#define VALUES                                                                 \
  { "values", NEEDED, 0 }
#define TOKENS {"logprobs", NEEDED, 0}, {"reference", NEEDED, 0}, WEIGHTS, ADDED
#define ADVANTAGES                                                             \
  { "advantages", NEEDED, 0 }
#define OUT                                                                    \
  { "out", OUTPUT, 0 }

static const formula_t formulas[] = {
    {"group_advantages", {OUT, {"rewards", NEEDED, 0}}, 2, group_advantages},
    {"discounted_sums", {OUT, {"rewards", NEEDED, 0}}, 1, discounted_sums},
    {"kl", {SAMPLED, TRAINED, WEIGHTS}, 1, kl},
    {"kl_tokens", {OUT, SAMPLED, TRAINED}, 1, kl_tokens},
    {"ratios", {OUT, SAMPLED, TRAINED}, 0, ratios},
    {"drift", {SAMPLED, TRAINED, WEIGHTS}, 0, drift},
    {"effective_sample_size",
     {{"log_weights", NEEDED, 0}},
     0,
     effective_sample_size},
    {"sampled_entropy", {SAMPLED, WEIGHTS}, 0, sampled_entropy},
    {"entropy", {{"logprobs", NEEDED, 0}}, 0, entropy},
    {"importance_sampling", {TOKENS, ADVANTAGES}, 1, importance_sampling},
    {"ppo", {TOKENS, ADVANTAGES}, 3, ppo},
    {"cispo", {TOKENS, ADVANTAGES}, 3, cispo},
    {"dpo",
     {{"logprobs of chosen", NEEDED, 0},
      {"reference of chosen", NEEDED, 0},
      {"weights of chosen", OPTIONAL, 0},
      {"gradient of chosen", GRADIENT, 0},
      {"logprobs of rejected", NEEDED, 1},
      {"reference of rejected", NEEDED, 1},
      {"weights of rejected", OPTIONAL, 1},
      {"gradient of rejected", GRADIENT, 1}},
     2,
     dpo},
    {"kl_penalty", {TOKENS}, 2, kl_penalty},
    {"kl_exact",
     {ADDED, {"logprobs", NEEDED, 0}, {"reference", NEEDED, 0}},
     2,
     kl_exact},
    {"entropy_penalty", {ADDED, {"logits", NEEDED, 0}}, 2, entropy_penalty},
    {"elastic_net",
     {ADDED, VALUES, {"reference", OPTIONAL, 0}, WEIGHTS},
     2,
     elastic_net},
    {"l2_centered", {ADDED, VALUES}, 1, l2_centered},
    {"orthogonality", {ADDED, VALUES}, 2, orthogonality},
    {"gradient_penalty",
     {ADDED, {"slope", NEEDED, 0}, {"curvature", OPTIONAL, 0}},
     2,
     gradient_penalty},
    {"norm", {VALUES}, 0, norm}};

/* ---- Arrays ---- */

static char format_at(const Py_buffer *view) {
  const char *format = view->format != NULL ? view->format : "B";

  if (*format == '<' || *format == '=' || *format == '@')
    format++;
  return format[0] != '\0' && format[1] == '\0' ? format[0] : '\0';
}

/* One value as a float; 0 for a type that is no number. */
static int read_value(float *out, const char *at, char format, size_t size) {
  union {
    double number;
    float f32;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    int8_t i8;
  } value;

  memcpy(&value, at, size);
  if (format == 'd' && size == 8)
    *out = (float)value.number;
  else if (format == 'f' && size == 4)
    *out = value.f32;
  else if (strchr("lqn", format) != NULL && size == 8)
    *out = (float)value.i64;
  else if (strchr("il", format) != NULL && size == 4)
    *out = (float)value.i32;
  else if (format == 'h' && size == 2)
    *out = (float)value.i16;
  else if (format == 'b' && size == 1)
    *out = (float)value.i8;
  else if ((format == 'B' || format == '?') && size == 1)
    *out = (float)(uint8_t)value.i8;
  else
    return 0;
  return 1;
}

static int wrong_type(const slot_t *slot, const Py_buffer *view) {
  const int is_written = slot->use == GRADIENT || slot->use == OUTPUT;

  PyErr_Format(PyExc_TypeError, "%s must have the type float32%s, not %s",
               slot->name, is_written ? "" : " or another number",
               view->format != NULL ? view->format : "B");
  return -1;
}

static int convert_values(floats_t *out, const slot_t *slot,
                          const char *values) {
  const Py_buffer *view = &out->view;
  const char format = format_at(view);
  const size_t size = (size_t)view->itemsize;
  size_t i;

  if (format == '\0' || size > 8 || size == 0)
    return wrong_type(slot, view);
  out->n = (size_t)view->len / size;
  out->copy = malloc((out->n + 1) * sizeof(float));
  if (out->copy == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (i = 0; i < out->n; i++)
    if (!read_value(&out->copy[i], values + i * size, format, size))
      return wrong_type(slot, view);
  out->data = out->copy;
  return 0;
}

/* Values that are not adjacent are moved together first. */
static int convert_buffer(floats_t *out, const slot_t *slot) {
  char *flat;
  int err = -1;

  if (PyBuffer_IsContiguous(&out->view, 'C'))
    return convert_values(out, slot, out->view.buf);
  flat = malloc((size_t)out->view.len + 1);
  if (flat == NULL)
    PyErr_NoMemory();
  else if (PyBuffer_ToContiguous(flat, &out->view, out->view.len, 'C') == 0)
    err = convert_values(out, slot, flat);
  free(flat);
  return err;
}

static int read_buffer(floats_t *out, const slot_t *slot, PyObject *object) {
  const int is_written = slot->use == GRADIENT || slot->use == OUTPUT;
  const int flags = is_written
                        ? PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE
                        : PyBUF_FULL_RO;

  if (PyObject_GetBuffer(object, &out->view, flags) != 0) {
    if (is_written && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
      PyErr_Clear();
      PyErr_Format(PyExc_ValueError, "%s must be contiguous and writable",
                   slot->name);
    }
    return -1;
  }
  out->has_view = 1;
  if (format_at(&out->view) == 'f' && out->view.itemsize == 4 &&
      PyBuffer_IsContiguous(&out->view, 'C')) {
    out->data = out->view.buf;
    out->n = (size_t)out->view.len / 4;
    return 0;
  }
  return is_written ? wrong_type(slot, &out->view) : convert_buffer(out, slot);
}

static int read_sequence(floats_t *out, const slot_t *slot, PyObject *object) {
  PyObject *list = PyUnicode_Check(object) ? NULL : PySequence_List(object);
  Py_ssize_t i;

  if (list == NULL) {
    if (PyErr_Occurred() == NULL ||
        !PyErr_ExceptionMatches(PyExc_MemoryError)) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "%s must be numbers, not %R", slot->name,
                   (PyObject *)Py_TYPE(object));
    }
    return -1;
  }
  out->n = (size_t)PyList_Size(list);
  out->copy = malloc((out->n + 1) * sizeof(float));
  if (out->copy == NULL)
    PyErr_NoMemory();
  for (i = 0; out->copy != NULL && i < (Py_ssize_t)out->n; i++) {
    out->copy[i] = (float)PyFloat_AsDouble(PyList_GetItem(list, i));
    if (PyErr_Occurred())
      break;
  }
  Py_DECREF(list);
  if (PyErr_Occurred() != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s[%zd] is no number", slot->name, i);
  }
  out->data = out->copy;
  return PyErr_Occurred() ? -1 : 0;
}

static int read_floats(floats_t *out, const slot_t *slot, PyObject *object) {
  if (object == Py_None && slot->use != NEEDED)
    return 0;
  if (PyObject_CheckBuffer(object))
    return read_buffer(out, slot, object);
  if (slot->use == GRADIENT || slot->use == OUTPUT) {
    PyErr_Format(PyExc_TypeError, "%s must be a buffer of float32, not %R",
                 slot->name, (PyObject *)Py_TYPE(object));
    return -1;
  }
  return read_sequence(out, slot, object);
}

/* ---- Calls ---- */

/* The lengths of the groups; an error names the array that differs. */
static int measure(math_t *math, const formula_t *formula, floats_t *floats) {
  size_t *const sizes[] = {&math->n, &math->n2};
  const char *names[] = {NULL, NULL};
  int i;

  for (i = 0; i < MAX_ARRAYS; i++) {
    const slot_t *slot = &formula->arrays[i];
    if (slot->name == NULL || floats[i].data == NULL)
      continue;
    if (names[slot->group] == NULL) {
      names[slot->group] = slot->name;
      *sizes[slot->group] = floats[i].n;
    } else if (floats[i].n != *sizes[slot->group]) {
      PyErr_Format(PyExc_ValueError, "%s has %zu values, but %s has %zu",
                   slot->name, floats[i].n, names[slot->group],
                   *sizes[slot->group]);
      return -1;
    }
  }
  return 0;
}

static int make_output(floats_t *out, const slot_t *slot, size_t n) {
  if (slot->name == NULL || slot->use != OUTPUT || out->data != NULL)
    return 0;
  out->made = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(n * 4));
  if (out->made == NULL)
    return -1;
  out->data = (float *)(void *)PyByteArray_AsString(out->made);
  return 0;
}

/* The new output, or the numbers of the result as a tuple. */
static PyObject *result_of(const math_t *math, const floats_t *floats) {
  PyObject *tuple;
  int i;

  if (math->n_out == 0)
    return Py_NewRef(floats[0].made != NULL ? floats[0].made : Py_None);
  tuple = PyTuple_New(math->n_out);
  for (i = 0; tuple != NULL && i < math->n_out; i++) {
    PyObject *number = PyFloat_FromDouble(math->out[i]);
    if (number == NULL || PyTuple_SetItem(tuple, i, number) != 0)
      Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *compute(const formula_t *formula, math_t *math,
                         floats_t *floats) {
  int err;
  int i;

  if (measure(math, formula, floats) != 0)
    return NULL;
  for (i = 0; i < MAX_ARRAYS; i++) {
    if (make_output(&floats[i], &formula->arrays[i], math->n) != 0)
      return NULL;
    math->a[i] = floats[i].data;
  }
  math->n_out = 1;
  if (math->n + math->n2 < LONG_CALL) {
    err = formula->run(math);
  } else {
    Py_BEGIN_ALLOW_THREADS
    err = formula->run(math);
    Py_END_ALLOW_THREADS
  }
  return err == TNK_OK ? result_of(math, floats) : raise_code(err);
}

static int read_all(const formula_t *formula, math_t *math, floats_t *floats,
                    PyObject *arrays, PyObject *numbers) {
  Py_ssize_t i;

  for (i = 0; i < MAX_ARRAYS && formula->arrays[i].name != NULL; i++)
    if (i >= PyTuple_Size(arrays) ||
        read_floats(&floats[i], &formula->arrays[i],
                    PyTuple_GetItem(arrays, i)) != 0)
      return -1;
  for (i = 0; i < formula->n_numbers; i++) {
    if (i >= PyTuple_Size(numbers))
      return -1;
    math->x[i] = PyFloat_AsDouble(PyTuple_GetItem(numbers, i));
    if (PyErr_Occurred())
      return -1;
  }
  return 0;
}

static const formula_t *find_formula(const char *name) {
  size_t i;

  for (i = 0; i < sizeof(formulas) / sizeof(*formulas); i++)
    if (strcmp(formulas[i].name, name) == 0)
      return &formulas[i];
  PyErr_Format(PyExc_ValueError, "there is no function %s", name);
  return NULL;
}

/* rl(function, arrays, numbers): a tuple of numbers, a bytearray of a new
 * output, or None if the output was given. */
PyObject *rl_call(PyObject *module, PyObject *args) {
  floats_t floats[MAX_ARRAYS] = {{.n = 0}};
  math_t math = {.n = 0};
  const formula_t *formula;
  const char *name;
  PyObject *arrays;
  PyObject *numbers;
  PyObject *result = NULL;
  int i;

  (void)module;
  if (!PyArg_ParseTuple(args, "sO!O!", &name, &PyTuple_Type, &arrays,
                        &PyTuple_Type, &numbers))
    return NULL;
  formula = find_formula(name);
  if (formula == NULL)
    return NULL;
  if (read_all(formula, &math, floats, arrays, numbers) == 0)
    result = compute(formula, &math, floats);
  else if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "%s needs more arguments", name);
  for (i = 0; i < MAX_ARRAYS; i++) {
    if (floats[i].has_view)
      PyBuffer_Release(&floats[i].view);
    free(floats[i].copy);
    Py_XDECREF(floats[i].made);
  }
  return result;
}
