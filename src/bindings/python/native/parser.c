/* SPDX-License-Identifier: MIT */
/* Parsers of answers, as capsules. They are used with the interpreter's lock,
 * so by one thread at a time. */
#include <string.h>

#include "bindings/python/native/native.h"

#define PARSER "tnk.parser"

/* The parser borrows the tokenizer, whose capsule is the context. */
static void free_parser(PyObject *capsule) {
  PyObject *tokenizer = PyCapsule_GetContext(capsule);

  tnk_chat_parser_free(PyCapsule_GetPointer(capsule, PARSER));
  Py_XDECREF(tokenizer);
}

static PyObject *wrap_parser(tnk_chat_parser_t *parser, PyObject *tokenizer) {
  PyObject *capsule = PyCapsule_New(parser, PARSER, free_parser);

  if (capsule == NULL) {
    tnk_chat_parser_free(parser);
    return NULL;
  }
  if (PyCapsule_SetContext(capsule, Py_NewRef(tokenizer)) != 0) {
    Py_DECREF(tokenizer);
    Py_DECREF(capsule);
    return NULL;
  }
  return capsule;
}

/* With the arguments in `op`. */
static PyObject *make_parser(op_t *op, PyObject *tokenizer, int family,
                             PyObject *conversation, PyObject *prompt,
                             PyObject *stops) {
  tnk_chat_tokenizer_t plugin;
  tnk_chat_error_t error = {0};
  tnk_chat_parser_t *parser = NULL;
  const char *const *texts;
  const int32_t *ids;
  tnk_chat_t *chat = NULL;
  size_t n;
  int err;

  if (read_tokenizer(&plugin, tokenizer) != 0 ||
      read_texts(op, &texts, stops) != 0 || read_ids(op, &ids, &n, prompt) != 0)
    return NULL;
  if (conversation != Py_None) {
    chat = read_conversation(op, conversation);
    if (chat == NULL)
      return NULL;
  }
  err = tnk_chat_parser_open(&parser, (tnk_chat_family_t)family, &plugin, chat,
                             NULL, &error);
  tnk_chat_free(chat);
  if (err != TNK_OK)
    return raise_text(err, error.text);
  err = tnk_chat_parser_prompt(parser, ids, n, texts);
  if (err != TNK_OK) {
    tnk_chat_parser_free(parser);
    return raise_text(err,
                      err == TNK_EINVAL ? "stops has an empty string" : "");
  }
  return wrap_parser(parser, tokenizer);
}

/* parser_open(tokenizer, family, conversation, prompt, stops) */
static PyObject *open_parser(PyObject *module, PyObject *args) {
  PyObject *tokenizer;
  PyObject *conversation;
  PyObject *prompt;
  PyObject *stops;
  PyObject *parser;
  op_t *op;
  int family;

  (void)module;
  if (!PyArg_ParseTuple(args, "OiOOO", &tokenizer, &family, &conversation,
                        &prompt, &stops))
    return NULL;
  op = op_new(NULL, NULL, 0);
  if (op == NULL)
    return NULL;
  parser = make_parser(op, tokenizer, family, conversation, prompt, stops);
  op_unref(op);
  return parser;
}

/* NULL after an error of Python, which is then pending. */
typedef struct {
  PyObject *list;
} deltas_t;

static void on_delta(const tnk_chat_delta_t *delta, void *user) {
  deltas_t *deltas = user;
  PyObject *row;

  if (deltas->list == NULL)
    return;
  row = Py_BuildValue("(iIs#zz)", (int)delta->kind, (unsigned)delta->call,
                      delta->text != NULL ? delta->text : "",
                      (Py_ssize_t)delta->n, delta->name, delta->id);
  if (row == NULL || PyList_Append(deltas->list, row) != 0)
    Py_CLEAR(deltas->list);
  Py_XDECREF(row);
}

/* parser_feed(parser, ids): a list of (kind, call, text, name, id) */
static PyObject *feed_parser(PyObject *module, PyObject *args) {
  tnk_chat_parser_t *parser;
  const int32_t *ids;
  PyObject *capsule;
  PyObject *values;
  deltas_t deltas = {NULL};
  op_t *op;
  size_t n;
  int err = TNK_OK;

  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &values))
    return NULL;
  parser = PyCapsule_GetPointer(capsule, PARSER);
  op = parser != NULL ? op_new(NULL, NULL, 0) : NULL;
  if (op == NULL)
    return NULL;
  if (read_ids(op, &ids, &n, values) == 0 &&
      (deltas.list = PyList_New(0)) != NULL)
    err = tnk_chat_parser_feed(parser, ids, n, on_delta, &deltas);
  op_unref(op);
  if (err != TNK_OK && !PyErr_Occurred())
    raise_code(err);
  if (err != TNK_OK)
    Py_CLEAR(deltas.list);
  return deltas.list;
}

/* parser_finish(parser): (deltas, JSON of the message) */
static PyObject *finish_parser(PyObject *module, PyObject *capsule) {
  tnk_chat_parser_t *parser = PyCapsule_GetPointer(capsule, PARSER);
  deltas_t deltas;
  const char *json = NULL;
  size_t n = 0;
  int err;

  (void)module;
  deltas.list = parser != NULL ? PyList_New(0) : NULL;
  if (deltas.list == NULL)
    return NULL;
  err = tnk_chat_parser_finish(parser, on_delta, &deltas, &json, &n);
  if (deltas.list == NULL)
    return NULL;
  if (err != TNK_OK) {
    Py_DECREF(deltas.list);
    return raise_code(err);
  }
  return Py_BuildValue("(Ns#)", deltas.list, json, (Py_ssize_t)n);
}

PyMethodDef parser_methods[] = {
    {"parser_open", open_parser, METH_VARARGS, NULL},
    {"parser_feed", feed_parser, METH_VARARGS, NULL},
    {"parser_finish", finish_parser, METH_O, NULL},
    {NULL, NULL, 0, NULL}};
