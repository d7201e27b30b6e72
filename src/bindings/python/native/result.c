/* SPDX-License-Identifier: MIT */
/* Results of promises as objects of Python. */
#include <math.h>
#include <string.h>

#include "bindings/python/native/native.h"

static PyObject *array_of(const void *data, size_t n, size_t size) {
  if (data == NULL)
    Py_RETURN_NONE;
  return PyByteArray_FromStringAndSize(data, (Py_ssize_t)(n * size));
}

static PyObject *text_or_none(const char *text) {
  if (text == NULL)
    Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *i64s_or_none(const int64_t *values, size_t n) {
  PyObject *list;
  size_t i;

  if (values == NULL)
    Py_RETURN_NONE;
  list = PyList_New((Py_ssize_t)n);
  for (i = 0; list != NULL && i < n; i++) {
    PyObject *item = PyLong_FromLongLong(values[i]);
    if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
      Py_CLEAR(list);
  }
  return list;
}

/* (dtype, shape, values, crow, col); the shape of a vector is its length. */
PyObject *tensor_of(const tnk_tensor_t *tensor) {
  const int64_t length = tensor != NULL ? (int64_t)tensor->n_values : 0;
  size_t size;

  if (tensor == NULL)
    Py_RETURN_NONE;
  size = tensor->dtype == TNK_I64 ? sizeof(int64_t) : sizeof(float);
  return Py_BuildValue(
      "(sNNNN)", tensor->dtype == TNK_I64 ? "int64" : "float32",
      tensor->n_dims > 0 ? i64s_or_none(tensor->shape, tensor->n_dims)
                         : i64s_or_none(&length, 1),
      array_of(tensor->data, tensor->n_values, size),
      i64s_or_none(tensor->crow,
                   tensor->crow != NULL ? (size_t)tensor->shape[0] + 1 : 0),
      i64s_or_none(tensor->col, tensor->n_values));
}

/* Put a new reference into a dict. */
static int put(PyObject *dict, const char *key, PyObject *value) {
  int err = value != NULL ? PyDict_SetItemString(dict, key, value) : -1;

  Py_XDECREF(value);
  return err;
}

static PyObject *metrics_of(const tnk_metrics_t *metrics) {
  const size_t n = metrics != NULL ? tnk_metrics_count(metrics) : 0;
  PyObject *dict = PyDict_New();
  size_t i;

  for (i = 0; dict != NULL && i < n; i++) {
    const char *key = tnk_metrics_key(metrics, i);
    uint64_t hash;
    PyObject *value = tnk_metrics_hash(&hash, metrics, key)
                          ? PyLong_FromUnsignedLongLong(hash)
                          : PyFloat_FromDouble(tnk_metrics_value(metrics, i));
    if (put(dict, key, value) != 0)
      Py_CLEAR(dict);
  }
  return dict;
}

static PyObject *fields_of(const tnk_pass_t *pass, size_t index) {
  const size_t n = tnk_pass_field_count(pass, index);
  PyObject *dict = PyDict_New();
  size_t i;

  for (i = 0; dict != NULL && i < n; i++) {
    const char *name = tnk_pass_field_name(pass, index, i);
    if (put(dict, name, tensor_of(tnk_pass_tensor(pass, index, name))) != 0)
      Py_CLEAR(dict);
  }
  return dict;
}

static PyObject *pass_of(const tnk_pass_t *pass) {
  const size_t n = tnk_pass_count(pass);
  PyObject *list = PyList_New((Py_ssize_t)n);
  size_t i;

  for (i = 0; list != NULL && i < n; i++) {
    PyObject *fields = fields_of(pass, i);
    if (fields == NULL || PyList_SetItem(list, (Py_ssize_t)i, fields) != 0)
      Py_CLEAR(list);
  }
  return list == NULL
             ? NULL
             : Py_BuildValue("(NNN)", text_or_none(tnk_pass_output_type(pass)),
                             list, metrics_of(tnk_pass_metrics(pass)));
}

static PyObject *topk_of(const tnk_topk_t *topk) {
  size_t n;

  if (topk == NULL)
    Py_RETURN_NONE;
  n = (size_t)topk->k * topk->length;
  return Py_BuildValue("(IINN)", topk->length, topk->k,
                       array_of(topk->ids, n, sizeof(*topk->ids)),
                       array_of(topk->logprobs, n, sizeof(*topk->logprobs)));
}

/* (stop reason, id, tokens, logprobs, top-k) */
static PyObject *sequence_of(const tnk_samples_t *samples, size_t index) {
  size_t n_tokens;
  size_t n_logprobs;
  const int32_t *tokens = tnk_samples_tokens(samples, index, &n_tokens);
  const float *logprobs = tnk_samples_logprobs(samples, index, &n_logprobs);
  const int is_length =
      tnk_samples_stop_reason(samples, index) == TNK_STOP_LENGTH;

  return Py_BuildValue("(sNNNN)", is_length ? "length" : "stop",
                       text_or_none(tnk_samples_sequence_id(samples, index)),
                       tokens != NULL
                           ? array_of(tokens, n_tokens, sizeof(*tokens))
                           : PyByteArray_FromStringAndSize(NULL, 0),
                       array_of(logprobs, n_logprobs, sizeof(*logprobs)),
                       topk_of(tnk_samples_topk(samples, index)));
}

/* (sequences, cache hits, None or what else was asked for) */
static PyObject *samples_of(const tnk_samples_t *samples) {
  const size_t n = tnk_samples_count(samples);
  PyObject *list = PyList_New((Py_ssize_t)n);
  size_t n_prompt = 0;
  const float *prompt = tnk_samples_prompt_logprobs(samples, &n_prompt);
  const tnk_topk_t *topk = tnk_samples_prompt_topk(samples);
  const tnk_tensor_t *target = tnk_samples_target_logprobs(samples);
  const tnk_tensor_t *alt = tnk_samples_alt_tokens(samples);
  PyObject *more;
  size_t i;

  for (i = 0; list != NULL && i < n; i++) {
    PyObject *sequence = sequence_of(samples, i);
    if (sequence == NULL || PyList_SetItem(list, (Py_ssize_t)i, sequence) != 0)
      Py_CLEAR(list);
  }
  if (list == NULL)
    return NULL;
  if (prompt == NULL && topk == NULL && target == NULL && alt == NULL)
    more = Py_NewRef(Py_None);
  else
    more = Py_BuildValue("(NNNNN)", array_of(prompt, n_prompt, sizeof(*prompt)),
                         topk_of(topk), tensor_of(target), tensor_of(alt),
                         tensor_of(tnk_samples_alt_logprobs(samples)));
  return Py_BuildValue("(NiN)", list, tnk_samples_cache_hit_tokens(samples),
                       more);
}

static PyObject *logprobs_of(const tnk_promise_t *promise) {
  size_t n = 0;
  const float *values = tnk_promise_logprobs(promise, &n);
  PyObject *list = PyList_New((Py_ssize_t)n);
  size_t i;

  for (i = 0; list != NULL && i < n; i++) {
    PyObject *item = isnan(values[i]) ? Py_NewRef(Py_None)
                                      : PyFloat_FromDouble((double)values[i]);
    if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *capabilities_of(const tnk_capabilities_t *capabilities) {
  const size_t n = tnk_capabilities_count(capabilities);
  PyObject *list = PyList_New((Py_ssize_t)n);
  size_t i;

  for (i = 0; list != NULL && i < n; i++) {
    PyObject *row =
        unpack_record("tnk_model_t", tnk_capabilities_model(capabilities, i));
    if (row == NULL || PyList_SetItem(list, (Py_ssize_t)i, row) != 0)
      Py_CLEAR(list);
  }
  return list;
}

/* A record of a page, whatever its kind. */
static PyObject *row_of(const tnk_page_t *page, size_t i) {
  const void *record;

#define TRY(accessor, type)                                                    \
  record = accessor(page, i);                                                  \
  if (record != NULL)                                                          \
  return unpack_record(type, record)
  TRY(tnk_page_run, "tnk_run_t");
  TRY(tnk_page_checkpoint, "tnk_checkpoint_t");
  TRY(tnk_page_weights_info, "tnk_weights_info_t");
  TRY(tnk_page_external_files, "tnk_external_files_t");
  TRY(tnk_page_session, "tnk_session_t");
  TRY(tnk_page_sampler, "tnk_sampler_t");
  TRY(tnk_page_identity, "tnk_identity_t");
  TRY(tnk_page_usage, "tnk_usage_t");
  TRY(tnk_page_storage, "tnk_storage_t");
  TRY(tnk_page_audit_entry, "tnk_audit_entry_t");
#undef TRY
  Py_RETURN_NONE;
}

/* (rows, total, time of costs, price of storage, is last) */
static PyObject *page_of(const tnk_page_t *page) {
  const size_t n = tnk_page_count(page);
  PyObject *list = PyList_New((Py_ssize_t)n);
  size_t i;

  for (i = 0; list != NULL && i < n; i++) {
    PyObject *row = row_of(page, i);
    if (row == NULL || PyList_SetItem(list, (Py_ssize_t)i, row) != 0)
      Py_CLEAR(list);
  }
  if (list == NULL)
    return NULL;
  return Py_BuildValue("(NLLdi)", list, (long long)tnk_page_total(page),
                       (long long)tnk_page_cost_through_us(page),
                       tnk_page_storage_rate(page), tnk_page_is_last(page));
}

static PyObject *saved_of(const tnk_saved_t *saved) {
  if (saved == NULL)
    Py_RETURN_NONE;
  return Py_BuildValue("(NKK)", text_or_none(saved->path),
                       (unsigned long long)saved->n_steps,
                       (unsigned long long)saved->n_passes);
}

PyObject *read_result(tnk_promise_t *promise, unsigned reader) {
  switch (reader) {
  case READ_HANDLE:
    return promise_object(promise);
  case READ_PASS:
    return pass_of(tnk_promise_pass(promise));
  case READ_SAMPLES:
    return samples_of(tnk_promise_samples(promise));
  case READ_METRICS:
    return metrics_of(tnk_promise_metrics(promise));
  case READ_PATH:
    return text_or_none(tnk_promise_path(promise));
  case READ_LOGPROBS:
    return logprobs_of(promise);
  case READ_PAGE:
    return page_of(tnk_promise_page(promise));
  case READ_CAPABILITIES:
    return capabilities_of(tnk_promise_capabilities(promise));
  case READ_SAVED:
    return saved_of(tnk_promise_saved(promise));
  default:
    Py_RETURN_NONE;
  }
}

/* (code, text, HTTP status, request id, category, ran, message) */
PyObject *read_error(const tnk_promise_t *promise) {
  const tnk_error_t *error = tnk_promise_error(promise);

  if (error == NULL)
    return Py_BuildValue("(is)", tnk_promise_status(promise),
                         tnk_promise_text(promise));
  return Py_BuildValue("(iNiNiiN)", error->code, text_or_none(error->text),
                       error->http_status, text_or_none(error->request_id),
                       (int)error->category, (int)error->ran,
                       text_or_none(error->message));
}
