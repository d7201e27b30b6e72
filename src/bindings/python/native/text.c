/* SPDX-License-Identifier: MIT */
/* Tokenizers, as capsules. */
#include <string.h>

#include "bindings/python/native/native.h"

#define TOKENIZER "tnk.tokenizer"

static void free_tokenizer(PyObject *capsule) {
  tnk_tokenizer_unref(PyCapsule_GetPointer(capsule, TOKENIZER));
}

/* The tokenizer of a capsule, with the tokenizer of bytes for None. */
int read_tokenizer(tnk_chat_tokenizer_t *out, PyObject *capsule) {
  out->plugin = tnk_chat_bytes_plugin();
  out->tokenizer = NULL;
  if (capsule == Py_None)
    return 0;
  out->plugin = tnk_tokenizer_plugin();
  out->tokenizer = PyCapsule_GetPointer(capsule, TOKENIZER);
  return out->tokenizer != NULL ? 0 : -1;
}

static const tnk_tokenizer_t *tokenizer_of(PyObject *capsule) {
  return PyCapsule_GetPointer(capsule, TOKENIZER);
}

static PyObject *wrap_tokenizer(int err, tnk_tokenizer_t *tokenizer,
                                const tnk_tokenizer_error_t *error) {
  PyObject *capsule;

  if (err != TNK_OK)
    return raise_text(err, error->text);
  capsule = PyCapsule_New(tokenizer, TOKENIZER, free_tokenizer);
  if (capsule == NULL)
    tnk_tokenizer_unref(tokenizer);
  return capsule;
}

/* tokenizer_load(path, pattern) */
static PyObject *load_tokenizer(PyObject *module, PyObject *args) {
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_error_t error = {0};
  tnk_tokenizer_t *tokenizer = NULL;
  const char *path;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "sz", &path, &options.pattern))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  err = tnk_tokenizer_load(&tokenizer, path, &options, &error);
  Py_END_ALLOW_THREADS
  return wrap_tokenizer(err, tokenizer, &error);
}

/* tokenizer_read(data, config, pattern) */
static PyObject *load_bytes(PyObject *module, PyObject *args) {
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_error_t error = {0};
  tnk_tokenizer_t *tokenizer = NULL;
  const char *data;
  const char *config;
  Py_ssize_t n;
  Py_ssize_t n_config;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "y#z#z", &data, &n, &config, &n_config,
                        &options.pattern))
    return NULL;
  options.config = config;
  options.n_config = (size_t)n_config;
  Py_BEGIN_ALLOW_THREADS
  err =
      tnk_tokenizer_load_memory(&tokenizer, data, (size_t)n, &options, &error);
  Py_END_ALLOW_THREADS
  return wrap_tokenizer(err, tokenizer, &error);
}

/* tokenizer_encode(tokenizer, text, flags): the ids, as bytes of int32 */
static PyObject *encode_text(PyObject *module, PyObject *args) {
  tnk_tokenizer_error_t error = {0};
  const tnk_tokenizer_t *tokenizer;
  tnk_tokens_t *tokens;
  PyObject *capsule;
  PyObject *result = NULL;
  const char *text;
  const int32_t *ids;
  Py_ssize_t length;
  unsigned flags;
  size_t n;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "Os#I", &capsule, &text, &length, &flags))
    return NULL;
  tokenizer = tokenizer_of(capsule);
  if (tokenizer == NULL)
    return NULL;
  tokens = tnk_tokens_new(NULL);
  if (tokens == NULL)
    return PyErr_NoMemory();
  Py_BEGIN_ALLOW_THREADS
  err = tnk_tokenizer_encode(tokenizer, tokens, text, (size_t)length, flags,
                             &error);
  Py_END_ALLOW_THREADS
  ids = tnk_tokens_ids(tokens, &n);
  if (err == TNK_OK)
    result = PyByteArray_FromStringAndSize((const char *)ids,
                                           (Py_ssize_t)(n * sizeof(*ids)));
  else
    raise_text(err, error.text);
  tnk_tokens_free(tokens);
  return result;
}

/* tokenizer_decode(tokenizer, ids, flags) */
static PyObject *decode_ids(PyObject *module, PyObject *args) {
  const tnk_tokenizer_t *tokenizer;
  const int32_t *ids;
  PyObject *capsule;
  PyObject *values;
  PyObject *result = NULL;
  op_t *op;
  char *text = NULL;
  unsigned flags;
  size_t n;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "OOI", &capsule, &values, &flags))
    return NULL;
  tokenizer = tokenizer_of(capsule);
  op = tokenizer != NULL ? op_new(NULL, NULL, 0) : NULL;
  if (op == NULL)
    return NULL;
  if (read_ids(op, &ids, &n, values) == 0) {
    err = tnk_tokenizer_decode(tokenizer, &text, &n, ids, n, flags);
    if (err != TNK_OK)
      raise_code(err);
    else
      result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    tnk_tokenizer_free_text(tokenizer, text);
  }
  op_unref(op);
  return result;
}

/* tokenizer_info(tokenizer): (vocab_size, bos, eos) */
static PyObject *tokenizer_info(PyObject *module, PyObject *capsule) {
  const tnk_tokenizer_t *tokenizer = tokenizer_of(capsule);

  (void)module;
  if (tokenizer == NULL)
    return NULL;
  return Py_BuildValue("(nii)", (Py_ssize_t)tnk_tokenizer_vocab_size(tokenizer),
                       (int)tnk_tokenizer_bos(tokenizer),
                       (int)tnk_tokenizer_eos(tokenizer));
}

/* tokenizer_id(tokenizer, text): -1 if there is none */
static PyObject *token_id(PyObject *module, PyObject *args) {
  const tnk_tokenizer_t *tokenizer;
  PyObject *capsule;
  const char *text;
  Py_ssize_t n;

  (void)module;
  if (!PyArg_ParseTuple(args, "Os#", &capsule, &text, &n))
    return NULL;
  tokenizer = tokenizer_of(capsule);
  return tokenizer != NULL
             ? PyLong_FromLong(tnk_tokenizer_id(tokenizer, text, (size_t)n))
             : NULL;
}

PyMethodDef tokenizer_methods[] = {
    {"tokenizer_load", load_tokenizer, METH_VARARGS, NULL},
    {"tokenizer_read", load_bytes, METH_VARARGS, NULL},
    {"tokenizer_encode", encode_text, METH_VARARGS, NULL},
    {"tokenizer_decode", decode_ids, METH_VARARGS, NULL},
    {"tokenizer_info", tokenizer_info, METH_O, NULL},
    {"tokenizer_id", token_id, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
