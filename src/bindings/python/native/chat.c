/* SPDX-License-Identifier: MIT */
/* Conversations to tokens: templates are capsules, conversations are read for
 * each call. */
#include <stdint.h>
#include <string.h>

#include "bindings/python/native/native.h"

#define TEMPLATE "tnk.template"

static void free_template(PyObject *capsule) {
  tnk_chat_template_unref(PyCapsule_GetPointer(capsule, TEMPLATE));
}

/* NULL without an error for None. */
int read_template(tnk_chat_template_t **out, PyObject *capsule) {
  *out = NULL;
  if (capsule == Py_None)
    return 0;
  *out = PyCapsule_GetPointer(capsule, TEMPLATE);
  return *out != NULL ? 0 : -1;
}

/* A list of strings that ends with NULL; NULL for None. */
int read_texts(op_t *op, const char *const **out, PyObject *list) {
  const void *texts;
  size_t n;

  *out = NULL;
  if (list == Py_None)
    return 0;
  if (pack_texts(op, &texts, &n, list) != 0)
    return -1;
  *out = texts;
  return 0;
}

/* ---- Templates ---- */

static int open_it(tnk_chat_template_t **out, const char *path,
                   const char *text, Py_ssize_t n,
                   const tnk_chat_template_options_t *options,
                   tnk_chat_error_t *error) {
  int err;

  Py_BEGIN_ALLOW_THREADS
  err = path != NULL
            ? tnk_chat_template_load(out, path, options, error)
            : tnk_chat_template_open(out, text, (size_t)n, options, error);
  Py_END_ALLOW_THREADS
  return err;
}

/* template_open(path, text, config, name, stops) */
static PyObject *open_template(PyObject *module, PyObject *args) {
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_error_t error = {0};
  tnk_chat_template_t *template_ = NULL;
  PyObject *capsule = NULL;
  PyObject *stops;
  const char *path;
  const char *text;
  Py_ssize_t n;
  Py_ssize_t n_config;
  op_t *op;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "zz#z#zO", &path, &text, &n, &options.config,
                        &n_config, &options.name, &stops))
    return NULL;
  op = op_new(NULL, NULL, 0);
  if (op == NULL)
    return NULL;
  options.n_config = (size_t)n_config;
  if (read_texts(op, &options.stops, stops) == 0) {
    err = open_it(&template_, path, text, n, &options, &error);
    if (err != TNK_OK)
      raise_text(err, error.text);
    else
      capsule = PyCapsule_New(template_, TEMPLATE, free_template);
    if (capsule == NULL)
      tnk_chat_template_unref(template_);
  }
  op_unref(op);
  return capsule;
}

static PyObject *list_of(const char *const *texts) {
  PyObject *list = PyList_New(0);
  size_t i;

  for (i = 0; list != NULL && texts != NULL && texts[i] != NULL; i++) {
    PyObject *text = PyUnicode_FromString(texts[i]);
    if (text == NULL || PyList_Append(list, text) != 0)
      Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

/* template_stops(template) */
static PyObject *template_stops(PyObject *module, PyObject *capsule) {
  tnk_chat_template_t *template_ = PyCapsule_GetPointer(capsule, TEMPLATE);

  (void)module;
  return template_ != NULL ? list_of(tnk_chat_template_stops(template_)) : NULL;
}

/* ---- Conversations ---- */

/* A conversation of (shape, json, variables); NULL with an error. */
tnk_chat_t *read_conversation(op_t *op, PyObject *tuple) {
  tnk_chat_error_t error = {0};
  const tnk_pair_t *variables;
  const void *pairs;
  const char *json;
  PyObject *dict;
  Py_ssize_t n;
  tnk_chat_t *chat;
  size_t n_pairs = 0;
  size_t i;
  int shape;
  int err;

  if (!PyArg_ParseTuple(tuple, "is#O!", &shape, &json, &n, &PyDict_Type,
                        &dict) ||
      pack_pairs(op, &pairs, &n_pairs, dict) != 0)
    return NULL;
  variables = pairs;
  chat = tnk_chat_new(NULL);
  if (chat == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  err = tnk_chat_read(chat, (tnk_chat_shape_t)shape, json, (size_t)n, &error);
  for (i = 0; err == TNK_OK && i < n_pairs; i++)
    err = tnk_chat_set(chat, variables[i].name, variables[i].value, &error);
  if (err == TNK_OK)
    return chat;
  raise_text(err, error.text);
  tnk_chat_free(chat);
  return NULL;
}

/* The arguments of a rendering. `op` owns their memory. */
typedef struct {
  op_t *op;
  tnk_chat_template_t *template_;
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_t *chat;
  tnk_chat_options_t options;
  int64_t now_s;
  const int32_t *ids;
  size_t n_ids;
} work_t;

static int64_t now_of(void *user) {
  return ((const work_t *)user)->now_s;
}

static int read_weights(work_t *work, PyObject *weights) {
  const Py_ssize_t n = PyList_Check(weights) ? PyList_Size(weights) : 0;
  float *out;
  Py_ssize_t i;

  if (weights == Py_None)
    return 0;
  out = op_alloc(work->op, (size_t)n + 1, sizeof(*out));
  for (i = 0; out != NULL && i < n; i++)
    out[i] = (float)PyFloat_AsDouble(PyList_GetItem(weights, i));
  work->options.message_weights = out;
  work->options.n_message_weights = (size_t)n;
  return PyErr_Occurred() ? -1 : 0;
}

/* (generation_prompt, by_parts, train_on, roles, weights, text_roles, now_s) */
static int read_options(work_t *work, PyObject *tuple) {
  tnk_chat_options_t *options = &work->options;
  const void *texts = NULL;
  PyObject *roles;
  PyObject *weights;
  PyObject *text_roles;
  long long now_s;
  size_t n = 0;
  int prompt;
  int by_parts;
  int train_on;

  if (!PyArg_ParseTuple(tuple, "iiiOOOL", &prompt, &by_parts, &train_on, &roles,
                        &weights, &text_roles, &now_s))
    return -1;
  options->generation_prompt = (tnk_choice_t)prompt;
  options->by_parts = (tnk_choice_t)by_parts;
  options->train_on = (tnk_chat_train_t)train_on;
  if (roles != Py_None && pack_texts(work->op, &texts, &n, roles) != 0)
    return -1;
  options->roles = texts;
  options->n_roles = (uint32_t)n;
  if (read_weights(work, weights) != 0)
    return -1;
  texts = NULL;
  n = 0;
  if (text_roles != Py_None &&
      pack_texts(work->op, &texts, &n, text_roles) != 0)
    return -1;
  options->text_roles = texts;
  options->n_text_roles = n;
  work->now_s = now_s;
  options->now_s = now_of;
  options->user = work;
  return 0;
}

static int begin_work(work_t *work, PyObject *template_, PyObject *tokenizer,
                      PyObject *conversation, PyObject *options) {
  memset(work, 0, sizeof(*work));
  work->options = (tnk_chat_options_t)TNK_CHAT_OPTIONS_INIT;
  work->op = op_new(NULL, NULL, 0);
  if (work->op == NULL || read_tokenizer(&work->tokenizer, tokenizer) != 0 ||
      read_template(&work->template_, template_) != 0 ||
      read_options(work, options) != 0)
    return -1;
  work->chat = read_conversation(work->op, conversation);
  return work->chat != NULL ? 0 : -1;
}

static void end_work(work_t *work) {
  tnk_chat_free(work->chat);
  if (work->op != NULL)
    op_unref(work->op);
}

/* chat_text(template, conversation, options) */
static PyObject *chat_text(PyObject *module, PyObject *args) {
  tnk_chat_error_t error = {0};
  PyObject *template_;
  PyObject *conversation;
  PyObject *options;
  PyObject *result = NULL;
  char *text = NULL;
  size_t n = 0;
  work_t work;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "OO!O!", &template_, &PyTuple_Type, &conversation,
                        &PyTuple_Type, &options))
    return NULL;
  if (begin_work(&work, template_, Py_None, conversation, options) == 0) {
    Py_BEGIN_ALLOW_THREADS
    err = tnk_chat_text(&text, &n, work.template_, work.chat, &work.options,
                        &error);
    Py_END_ALLOW_THREADS
    if (err != TNK_OK)
      raise_text(err, error.text);
    else
      result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
    tnk_chat_free_text(work.chat, text);
  }
  end_work(&work);
  return result;
}

/* What is encoded. */
enum { WHOLE, ANSWER, CONTINUATION };

static int encode_work(tnk_chat_tokens_t *tokens, work_t *work, int mode,
                       size_t index, tnk_chat_error_t *error) {
  switch (mode) {
  case WHOLE:
    return tnk_chat_encode(tokens, work->template_, &work->tokenizer,
                           work->chat, &work->options, error);
  case ANSWER:
    return tnk_chat_encode_answer(tokens, work->template_, &work->tokenizer,
                                  work->chat, index, &work->options, error);
  default:
    return tnk_chat_continue(tokens, work->template_, &work->tokenizer,
                             work->ids, work->n_ids, work->chat, index,
                             &work->options, error);
  }
}

static PyObject *bytes_of_tokens(const tnk_chat_tokens_t *tokens) {
  size_t n;
  const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);
  const Py_ssize_t size = (Py_ssize_t)(n * 4);

  return Py_BuildValue(
      "(NNN)", PyByteArray_FromStringAndSize((const char *)ids, size),
      PyByteArray_FromStringAndSize(
          (const char *)tnk_chat_tokens_weights(tokens), size),
      PyByteArray_FromStringAndSize(
          (const char *)tnk_chat_tokens_messages(tokens), size));
}

static PyObject *run_work(work_t *work, int mode, Py_ssize_t index) {
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(NULL);
  tnk_chat_error_t error = {0};
  PyObject *result = NULL;
  int err;

  if (tokens == NULL)
    return PyErr_NoMemory();
  Py_BEGIN_ALLOW_THREADS
  err = encode_work(tokens, work, mode, (size_t)index, &error);
  Py_END_ALLOW_THREADS
  if (err != TNK_OK)
    raise_text(err, error.text);
  else
    result = bytes_of_tokens(tokens);
  tnk_chat_tokens_free(tokens);
  return result;
}

/* chat_encode(template, tokenizer, conversation, options, mode, index, ids):
 * the ids, weights and messages, as bytes */
static PyObject *chat_encode(PyObject *module, PyObject *args) {
  PyObject *template_;
  PyObject *tokenizer;
  PyObject *conversation;
  PyObject *options;
  PyObject *ids;
  PyObject *result = NULL;
  Py_ssize_t index;
  work_t work;
  int mode;

  (void)module;
  if (!PyArg_ParseTuple(args, "OOO!O!inO", &template_, &tokenizer,
                        &PyTuple_Type, &conversation, &PyTuple_Type, &options,
                        &mode, &index, &ids))
    return NULL;
  if (begin_work(&work, template_, tokenizer, conversation, options) == 0 &&
      (ids == Py_None || read_ids(work.op, &work.ids, &work.n_ids, ids) == 0))
    result = run_work(&work, mode, index);
  end_work(&work);
  return result;
}

/* chat_write(conversation, shape): JSON */
static PyObject *chat_write(PyObject *module, PyObject *args) {
  tnk_chat_error_t error = {0};
  PyObject *conversation;
  PyObject *result = NULL;
  tnk_chat_t *chat;
  char *json = NULL;
  size_t n = 0;
  op_t *op;
  int shape;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "O!i", &PyTuple_Type, &conversation, &shape))
    return NULL;
  op = op_new(NULL, NULL, 0);
  if (op == NULL)
    return NULL;
  chat = read_conversation(op, conversation);
  if (chat != NULL) {
    err = tnk_chat_write(chat, (tnk_chat_shape_t)shape, &json, &n, &error);
    if (err != TNK_OK)
      raise_text(err, error.text);
    else
      result = PyUnicode_DecodeUTF8(json, (Py_ssize_t)n, "replace");
    tnk_chat_free_text(chat, json);
    tnk_chat_free(chat);
  }
  op_unref(op);
  return result;
}

/* chat_answers(conversation): the indices of the assistant's messages */
static PyObject *chat_answers(PyObject *module, PyObject *conversation) {
  op_t *op = op_new(NULL, NULL, 0);
  PyObject *list = NULL;
  tnk_chat_t *chat;
  size_t i = 0;

  (void)module;
  if (op == NULL)
    return NULL;
  chat = read_conversation(op, conversation);
  if (chat != NULL)
    list = PyList_New(0);
  while (list != NULL && (i = tnk_chat_next_answer(chat, i)) != SIZE_MAX) {
    PyObject *index = PyLong_FromSize_t(i);
    if (index == NULL || PyList_Append(list, index) != 0)
      Py_CLEAR(list);
    Py_XDECREF(index);
    i++;
  }
  tnk_chat_free(chat);
  op_unref(op);
  return list;
}

/* ---- Settings of renderers ---- */

/* renderer(name): (family, variables, stops, note), or None */
static PyObject *find_renderer(PyObject *module, PyObject *args) {
  const tnk_chat_renderer_t *found;
  const char *name;
  PyObject *variables;
  uint32_t i;

  (void)module;
  if (!PyArg_ParseTuple(args, "s", &name))
    return NULL;
  found = tnk_chat_find(name);
  if (found == NULL)
    Py_RETURN_NONE;
  variables = PyDict_New();
  for (i = 0; variables != NULL && i < found->n_variables; i++) {
    PyObject *value = PyUnicode_FromString(found->variables[i].value);
    if (value == NULL ||
        PyDict_SetItemString(variables, found->variables[i].name, value) != 0)
      Py_CLEAR(variables);
    Py_XDECREF(value);
  }
  return Py_BuildValue("(iNNz)", (int)found->family, variables,
                       list_of(found->stops), found->note);
}

/* renderers(): all names */
static PyObject *list_renderers(PyObject *module, PyObject *unused) {
  size_t n;
  const tnk_chat_renderer_t *all = tnk_chat_renderers(&n);
  PyObject *list = PyList_New(0);
  size_t i;

  (void)module;
  (void)unused;
  for (i = 0; list != NULL && i < n; i++) {
    PyObject *name = PyUnicode_FromString(all[i].name);
    if (name == NULL || PyList_Append(list, name) != 0)
      Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

PyMethodDef chat_methods[] = {
    {"template_open", open_template, METH_VARARGS, NULL},
    {"template_stops", template_stops, METH_O, NULL},
    {"chat_text", chat_text, METH_VARARGS, NULL},
    {"chat_encode", chat_encode, METH_VARARGS, NULL},
    {"chat_write", chat_write, METH_VARARGS, NULL},
    {"chat_answers", chat_answers, METH_O, NULL},
    {"renderer", find_renderer, METH_VARARGS, NULL},
    {"renderers", list_renderers, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
