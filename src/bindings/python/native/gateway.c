/* SPDX-License-Identifier: MIT */
/* Gateways. They live on the runtime's thread, and Python has their numbers. A
 * service is closed after its gateways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/python/native/native.h"

typedef struct gateway gateway_t;

struct gateway {
  gateway_t *next;
  uint64_t id;
  tnk_gateway_t *native;
  tnk_service_t *service;
  tnk_tokenizer_t *tokenizer; /* borrowed by `native`; a reference, or NULL */
  op_t *closing;              /* of close_gateway() */
  int is_closing;
};

/* A call, whose caller waits. */
typedef struct {
  job_t job;
  uint64_t id;
  tnk_service_t *service;
  tnk_gateway_options_t *options;
  tnk_gateway_key_options_t *key_options;
  const char *text; /* a session, or the id of a key */
  const char *response;
  tnk_tokenizer_t *tokenizer;
  gateway_t *made;
  double reward;
  uint32_t choice;
  int is_rewarded;
  char key[TNK_GATEWAY_KEY_SIZE];
  char key_id[TNK_GATEWAY_KEY_ID_SIZE];
  char why[512];
  char *lines; /* JSON with newlines */
  size_t n_lines;
  size_t max_lines;
  tnk_gateway_stats_t stats;
  int status;
} gateway_call_t;

/* Only the runtime's thread uses these. */
static gateway_t *gateways;
static op_t *waiting_services; /* they are closed after their gateways */
static job_t *waiting_end;
static uint64_t last_id;

void gateways_after_fork(void) {
  gateways = NULL;
  waiting_services = NULL;
  waiting_end = NULL;
}

static gateway_t *find(uint64_t id) {
  gateway_t *gateway = gateways;

  while (gateway != NULL && gateway->id != id)
    gateway = gateway->next;
  return gateway != NULL && !gateway->is_closing ? gateway : NULL;
}

/* ---- Closing ---- */

static int has_gateways(const tnk_service_t *service) {
  const gateway_t *gateway = gateways;

  while (gateway != NULL && gateway->service != service)
    gateway = gateway->next;
  return gateway != NULL;
}

/* Close the services whose last gateway has gone. */
static void close_services(void) {
  op_t **link = &waiting_services;

  while (*link != NULL) {
    op_t *op = *link;
    if (has_gateways(op->call.args[0].pointer)) {
      link = &op->next;
    } else {
      *link = op->next;
      tnk_service_close(op->call.args[0].pointer, op_closed, op);
    }
  }
}

static void on_gone(void *user) {
  gateway_t *gateway = user;
  gateway_t **link = &gateways;

  while (*link != gateway)
    link = &(*link)->next;
  *link = gateway->next;
  tnk_tokenizer_unref(gateway->tokenizer);
  if (gateway->closing != NULL)
    op_closed(gateway->closing);
  free(gateway);
  close_services();
  if (gateways == NULL && waiting_end != NULL) {
    engine_done(waiting_end);
    waiting_end = NULL;
  }
}

static void begin_close(gateway_t *gateway) {
  if (gateway->is_closing)
    return;
  gateway->is_closing = 1;
  tnk_gateway_close(gateway->native, on_gone, gateway);
}

/* With a reference to the operation, for op_closed(). */
void gateways_close_service(op_t *op) {
  op->next = waiting_services;
  waiting_services = op;
  for (gateway_t *gateway = gateways; gateway != NULL; gateway = gateway->next)
    if (gateway->service == op->call.args[0].pointer)
      begin_close(gateway);
  close_services();
}

/* A gateway that has gone is closed. */
static void run_close(op_t *op) {
  gateway_t *gateway = find((uint64_t)op->call.args[0].integer);

  op_ref(op);
  if (gateway == NULL) {
    op_closed(op);
    return;
  }
  gateway->closing = op;
  begin_close(gateway);
}

/* gateway_close(queue, tag, gateway): delivers the tag when it has closed. */
static PyObject *close_gateway(PyObject *module, PyObject *args) {
  unsigned long long tag;
  unsigned long long id;
  queue_t *queue;
  op_t *op;
  int err;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&KK", to_queue, &queue, &tag, &id))
    return NULL;
  op = op_new(queue, NULL, tag);
  if (op == NULL)
    return NULL;
  op->run = run_close;
  op->call.args[0].integer = (int64_t)id;
  err = engine_submit(op);
  if (err == TNK_OK)
    Py_RETURN_NONE;
  op_unref(op);
  return raise_code(err);
}

static void end_all(job_t *job) {
  if (gateways == NULL) {
    engine_done(job);
    return;
  }
  waiting_end = job;
  for (gateway_t *gateway = gateways; gateway != NULL; gateway = gateway->next)
    begin_close(gateway);
}

/* Close all of them, at the end of the process. */
void gateways_end(void) {
  static op_t op = {.refs = 1 << 30}; /* it is never freed */
  job_t job = {.run = end_all};

  while (last_id > 0 && engine_run(&job, &op) == TNK_ENOMEM)
    ;
}

/* ---- Calls ---- */

/* Make a call on the runtime's thread; 0 or -1 with an error of Python. */
static int make_call(gateway_call_t *call, void (*run)(job_t *job)) {
  op_t *op = op_new(NULL, NULL, 0);
  int err;

  if (op == NULL)
    return -1;
  call->job.run = run;
  err = engine_run(&call->job, op);
  if (err == TNK_OK)
    err = call->status;
  if (err == TNK_OK)
    return 0;
  raise_text(err, call->why);
  return -1;
}

static void set_why(gateway_call_t *call, const char *why) {
  (void)snprintf(call->why, sizeof(call->why), "%s", why);
}

static gateway_t *begin(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  gateway_t *gateway = find(call->id);

  if (gateway == NULL) {
    call->status = TNK_ECLOSED;
    set_why(call, "the gateway is closed");
  }
  return gateway;
}

static void run_open(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  gateway_t *gateway = call->made;

  call->status = tnk_gateway_open(
      &gateway->native, tnk_runtime_loop(engine.runtime), call->service,
      call->options, call->why, sizeof(call->why));
  if (call->status == TNK_OK) {
    gateway->id = ++last_id;
    gateway->service = call->service;
    gateway->next = gateways;
    gateways = gateway;
    call->id = gateway->id;
  }
  engine_done(job);
}

/* gateway_open(service, tokenizer, template, options): its number */
static PyObject *open_gateway(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  PyObject *tokenizer;
  PyObject *template_;
  PyObject *values;
  long long service;
  op_t *op;
  int err = -1;

  (void)module;
  if (!PyArg_ParseTuple(args, "LOOO!", &service, &tokenizer, &template_,
                        &PyDict_Type, &values))
    return NULL;
  op = op_new(NULL, NULL, 0);
  if (op == NULL)
    return NULL;
  call.service = (tnk_service_t *)(intptr_t)service;
  call.made = calloc(1, sizeof(*call.made));
  if (call.made == NULL)
    PyErr_NoMemory();
  else
    call.options = pack_record(op, "tnk_gateway_options_t", values);
  if (call.options != NULL &&
      read_tokenizer(&call.options->tokenizer, tokenizer) == 0 &&
      read_template(&call.options->template_, template_) == 0) {
    call.made->tokenizer =
        tnk_tokenizer_ref((tnk_tokenizer_t *)call.options->tokenizer.tokenizer);
    err = make_call(&call, run_open);
  }
  if (err != 0 && call.made != NULL)
    tnk_tokenizer_unref(call.made->tokenizer);
  if (err != 0)
    free(call.made);
  op_unref(op);
  return err == 0 ? PyLong_FromUnsignedLongLong(call.id) : NULL;
}

static void run_address(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL) {
    set_why(call, tnk_gateway_address(gateway->native));
    tnk_gateway_stats(&call->stats, gateway->native);
  }
  engine_done(job);
}

/* gateway_info(gateway): (address, stats) */
static PyObject *gateway_info(PyObject *module, PyObject *args) {
  gateway_call_t call = {.stats = TNK_GATEWAY_STATS_INIT};
  unsigned long long id;

  (void)module;
  if (!PyArg_ParseTuple(args, "K", &id))
    return NULL;
  call.id = id;
  if (make_call(&call, run_address) != 0)
    return NULL;
  return Py_BuildValue("(sN)", call.why,
                       unpack_record("tnk_gateway_stats_t", &call.stats));
}

/* Of an operation: (gateway, options). */
static void run_use(op_t *op) {
  const gateway_t *gateway = find((uint64_t)op->call.args[0].integer);
  tnk_promise_t *promise = NULL;
  int err = TNK_ECLOSED;

  if (gateway != NULL) {
    promise = tnk_gateway_use(gateway->native, op->call.args[1].pointer);
    err = promise != NULL
              ? tnk_queue_watch(op->queue->native, promise, op->call.tag)
              : TNK_ENOMEM;
  }
  op->call.result.pointer = promise;
  if (err != TNK_OK)
    queue_extra(op, err);
  if (err != TNK_OK && promise != NULL)
    tnk_promise_unref(promise);
}

/* gateway_use(queue, tag, gateway, options): an Operation */
static PyObject *use_weights(PyObject *module, PyObject *args) {
  unsigned long long tag;
  unsigned long long id;
  queue_t *queue;
  PyObject *values;
  op_t *op;

  (void)module;
  if (!PyArg_ParseTuple(args, "O&KKO!", to_queue, &queue, &tag, &id,
                        &PyDict_Type, &values))
    return NULL;
  op = op_new(queue, NULL, tag);
  if (op == NULL)
    return NULL;
  op->run = run_use;
  op->call.args[0].integer = (int64_t)id;
  op->call.args[1].pointer = pack_record(op, "tnk_sampling_options_t", values);
  if (op->call.args[1].pointer == NULL) {
    op_unref(op);
    return NULL;
  }
  return submit_op(op);
}

static void run_reward(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    call->status =
        tnk_gateway_reward(gateway->native, call->text, call->response,
                           call->choice, call->reward);
  if (call->status == TNK_ENOTFOUND)
    set_why(call, "there is no such response");
  else if (call->status == TNK_EINVAL)
    set_why(call, "reward must be finite and within the range of a float");
  engine_done(job);
}

/* gateway_reward(gateway, reward, session, id, choice) */
static PyObject *set_reward(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;
  unsigned choice;

  (void)module;
  if (!PyArg_ParseTuple(args, "KdzzI", &id, &call.reward, &call.text,
                        &call.response, &choice))
    return NULL;
  call.id = id;
  call.choice = choice;
  if (make_call(&call, run_reward) != 0)
    return NULL;
  Py_RETURN_NONE;
}

/* ---- Keys ---- */

static void run_key_create(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    call->status = tnk_gateway_key_create(gateway->native, call->key_options,
                                          call->key, sizeof(call->key),
                                          call->key_id, sizeof(call->key_id));
  if (call->status == TNK_EINVAL)
    set_why(call, "an option of the key is out of range, or the gateway "
                  "has neither a key nor an admin_key, or max_usd has no "
                  "prices");
  engine_done(job);
}

static void run_key_rotate(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    call->status = tnk_gateway_key_rotate(gateway->native, call->text,
                                          call->key, sizeof(call->key));
  if (call->status == TNK_ENOTFOUND)
    set_why(call, "there is no key with this id");
  engine_done(job);
}

static void run_key_revoke(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    call->status = tnk_gateway_key_revoke(gateway->native, call->text);
  if (call->status == TNK_ENOTFOUND)
    set_why(call, "there is no key with this id");
  engine_done(job);
}

static void wipe(char *key) {
  volatile char *at = key;
  size_t i;

  for (i = 0; i < TNK_GATEWAY_KEY_SIZE; i++)
    at[i] = 0;
}

/* gateway_key_create(gateway, options): (id, key) */
static PyObject *create_key(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;
  PyObject *values;
  PyObject *result = NULL;
  op_t *op;

  (void)module;
  if (!PyArg_ParseTuple(args, "KO!", &id, &PyDict_Type, &values))
    return NULL;
  call.id = id;
  op = op_new(NULL, NULL, 0);
  if (op == NULL)
    return NULL;
  call.key_options = pack_record(op, "tnk_gateway_key_options_t", values);
  if (call.key_options != NULL && make_call(&call, run_key_create) == 0)
    result = Py_BuildValue("(ss)", call.key_id, call.key);
  wipe(call.key);
  op_unref(op);
  return result;
}

/* gateway_key_rotate(gateway, id): a key */
static PyObject *rotate_key(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;
  PyObject *result = NULL;

  (void)module;
  if (!PyArg_ParseTuple(args, "Ks", &id, &call.text))
    return NULL;
  call.id = id;
  if (make_call(&call, run_key_rotate) == 0)
    result = PyUnicode_FromString(call.key);
  wipe(call.key);
  return result;
}

/* gateway_key_revoke(gateway, id) */
static PyObject *revoke_key(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;

  (void)module;
  if (!PyArg_ParseTuple(args, "Ks", &id, &call.text))
    return NULL;
  call.id = id;
  if (make_call(&call, run_key_revoke) != 0)
    return NULL;
  Py_RETURN_NONE;
}

/* ---- Lines ---- */

static int on_line(void *user, const char *line, size_t n) {
  gateway_call_t *call = user;

  if (call->max_lines - call->n_lines < n) {
    const size_t max = (call->n_lines + n) * 2;
    char *grown = realloc(call->lines, max);

    if (grown == NULL)
      return TNK_ENOMEM;
    call->lines = grown;
    call->max_lines = max;
  }
  memcpy(call->lines + call->n_lines, line, n);
  call->n_lines += n;
  return TNK_OK;
}

static void run_keys(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    call->status = tnk_gateway_keys(gateway->native, on_line, call);
  engine_done(job);
}

static void run_datums(job_t *job) {
  gateway_call_t *call = (gateway_call_t *)job;
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    call->status = tnk_gateway_datums(gateway->native, call->text,
                                      call->is_rewarded, on_line, call);
  if (call->status == TNK_ENOTFOUND)
    set_why(call, "there is no such session");
  engine_done(job);
}

static PyObject *get_lines(gateway_call_t *call, void (*run)(job_t *job)) {
  PyObject *result = NULL;

  if (make_call(call, run) == 0)
    result = PyBytes_FromStringAndSize(call->lines, (Py_ssize_t)call->n_lines);
  free(call->lines);
  return result;
}

/* gateway_keys(gateway): lines of JSON */
static PyObject *list_keys(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;

  (void)module;
  if (!PyArg_ParseTuple(args, "K", &id))
    return NULL;
  call.id = id;
  return get_lines(&call, run_keys);
}

/* gateway_datums(gateway, session, rewarded): lines of JSON */
static PyObject *list_datums(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;

  (void)module;
  if (!PyArg_ParseTuple(args, "Kzp", &id, &call.text, &call.is_rewarded))
    return NULL;
  call.id = id;
  return get_lines(&call, run_datums);
}

/* ---- The end of a gateway's service ---- */

static void run_leave(job_t *job) {
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    tnk_gateway_leave(gateway->native);
  engine_done(job);
}

static void run_drain(job_t *job) {
  const gateway_t *gateway = begin(job);

  if (gateway != NULL)
    tnk_gateway_drain(gateway->native);
  engine_done(job);
}

/* gateway_leave(gateway, drain) */
static PyObject *leave_gateway(PyObject *module, PyObject *args) {
  gateway_call_t call = {.status = TNK_OK};
  unsigned long long id;
  int is_drained;

  (void)module;
  if (!PyArg_ParseTuple(args, "Kp", &id, &is_drained))
    return NULL;
  call.id = id;
  if (make_call(&call, is_drained ? run_drain : run_leave) != 0)
    return NULL;
  Py_RETURN_NONE;
}

PyMethodDef gateway_methods[] = {
    {"gateway_open", open_gateway, METH_VARARGS, NULL},
    {"gateway_info", gateway_info, METH_VARARGS, NULL},
    {"gateway_use", use_weights, METH_VARARGS, NULL},
    {"gateway_reward", set_reward, METH_VARARGS, NULL},
    {"gateway_key_create", create_key, METH_VARARGS, NULL},
    {"gateway_key_rotate", rotate_key, METH_VARARGS, NULL},
    {"gateway_key_revoke", revoke_key, METH_VARARGS, NULL},
    {"gateway_keys", list_keys, METH_VARARGS, NULL},
    {"gateway_datums", list_datums, METH_VARARGS, NULL},
    {"gateway_leave", leave_gateway, METH_VARARGS, NULL},
    {"gateway_close", close_gateway, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};
