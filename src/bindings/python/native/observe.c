/* SPDX-License-Identifier: MIT */
/* Events of operations: the runtime's thread copies them into a list, from
 * which a thread of Python takes them. */
#include <stdlib.h>
#include <string.h>

#include "bindings/python/native/native.h"

/* Events that may wait for Python. Further ones are counted only. */
#define MAX_WAITING 16384
#define TAKEN_AT_ONCE 256

typedef struct event event_t;

struct event {
  event_t *next;
  uint64_t key; /* of the function that Python calls */
  int is_end;   /* the service has closed: nothing follows */
  uint64_t n_lost;
  tnk_event_t is; /* its strings are copies, which follow */
};

/* Protected by the engine's lock. */
static event_t *first;
static event_t **last = &first;
static size_t n_waiting;
static uint64_t n_lost; /* since the last event in the list */

static size_t length_of(const char *text) {
  return text != NULL ? strlen(text) + 1 : 0;
}

static const char *copy_text(char **to, const char *text) {
  const size_t n = length_of(text);
  char *copy = *to;

  if (n == 0)
    return NULL;
  memcpy(copy, text, n);
  *to += n;
  return copy;
}

static event_t *event_new(const tnk_event_t *is, uint64_t key) {
  event_t *event = malloc(sizeof(*event) + length_of(is->name) +
                          length_of(is->client) + length_of(is->request_id));
  char *to;

  if (event == NULL)
    return NULL;
  to = (char *)(event + 1);
  event->next = NULL;
  event->key = key;
  event->is_end = 0;
  event->is = *is;
  event->is.name = copy_text(&to, is->name);
  event->is.client = copy_text(&to, is->client);
  event->is.request_id = copy_text(&to, is->request_id);
  return event;
}

static void append(event_t *event) {
  event->n_lost = 0;
  /* No observer sees the end of a service, which is no event. */
  if (!event->is_end) {
    event->n_lost = n_lost;
    n_lost = 0;
  }
  *last = event;
  last = &event->next;
  n_waiting++;
  pthread_cond_signal(&engine.event_wanted);
}

/* A tnk_observe_cb, on the runtime's thread. */
void observe_event(const tnk_event_t *is, void *user) {
  event_t *event = NULL;

  pthread_mutex_lock(&engine.lock);
  if (n_waiting < MAX_WAITING)
    event = event_new(is, (uint64_t)(uintptr_t)user);
  if (event != NULL)
    append(event);
  else
    n_lost++;
  pthread_mutex_unlock(&engine.lock);
}

/* end_events(key): the last item of a service. */
static PyObject *end_events(PyObject *module, PyObject *args) {
  const tnk_event_t none = {.name = NULL};
  unsigned long long key;
  event_t *event;

  (void)module;
  if (!PyArg_ParseTuple(args, "K", &key))
    return NULL;
  event = event_new(&none, key);
  if (event == NULL)
    return PyErr_NoMemory();
  event->is_end = 1;
  pthread_mutex_lock(&engine.lock);
  append(event);
  pthread_mutex_unlock(&engine.lock);
  Py_RETURN_NONE;
}

/* The first events, as a list of their own. With the lock. */
static event_t *take_events(void) {
  event_t *taken = first;
  event_t **end = &first;
  size_t n = 0;

  while (*end != NULL && n < TAKEN_AT_ONCE) {
    end = &(*end)->next;
    n++;
  }
  first = *end;
  *end = NULL;
  if (first == NULL)
    last = &first;
  n_waiting -= n;
  return taken == NULL || n == 0 ? NULL : taken;
}

static PyObject *text_of(const char *text) {
  if (text == NULL)
    Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *row_of(const event_t *event) {
  const tnk_event_t *is = &event->is;

  if (event->is_end)
    return Py_BuildValue("(KO)", (unsigned long long)event->key, Py_None);
  return Py_BuildValue(
      "(K(iiKKNNIIKiiNKK))", (unsigned long long)event->key, (int)is->phase,
      (int)is->waits_for, (unsigned long long)is->operation,
      (unsigned long long)is->time_ns, text_of(is->name), text_of(is->client),
      (unsigned)is->part, (unsigned)is->attempt, (unsigned long long)is->bytes,
      is->status, is->code, text_of(is->request_id),
      (unsigned long long)is->span, (unsigned long long)event->n_lost);
}

/* next_events(): waits for some: (key, members or None); None at the end. */
static PyObject *next_events(PyObject *module, PyObject *unused) {
  PyObject *list;
  event_t *taken;
  event_t *next;

  (void)module;
  (void)unused;
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(&engine.lock);
  while (first == NULL && !engine.is_ended)
    pthread_cond_wait(&engine.event_wanted, &engine.lock);
  taken = take_events();
  pthread_mutex_unlock(&engine.lock);
  Py_END_ALLOW_THREADS
  if (taken == NULL)
    Py_RETURN_NONE;
  list = PyList_New(0);
  for (; taken != NULL; taken = next) {
    PyObject *row = list != NULL ? row_of(taken) : NULL;

    next = taken->next;
    free(taken);
    if (list != NULL && (row == NULL || PyList_Append(list, row) != 0))
      Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/* The parent's events are not the child's. */
void events_after_fork(void) {
  first = NULL;
  last = &first;
  n_waiting = 0;
  n_lost = 0;
}

PyMethodDef event_methods[] = {
    {"end_events", end_events, METH_VARARGS, "end_events(key)"},
    {"next_events", next_events, METH_NOARGS,
     "next_events(): a list of (key, members or None), or None"},
    {NULL, NULL, 0, NULL}};
