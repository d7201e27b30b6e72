/* SPDX-License-Identifier: MIT */
#ifndef TNK_NODE_ADDON_H
#define TNK_NODE_ADDON_H

#include <node_api.h>
#include <stdbool.h>
#include <uv.h>

#include "tnk/chat.h"
#include "tnk/gateway.h"
#include "tnk/tnk.h"
#include "tnk/tokenizers.h"

/*
 * libtnk for Node, on Node's own loop. JavaScript in ../lib makes the classes;
 * this addon makes handles, promises and plain objects. Everything runs on the
 * thread of its environment: the main thread or one worker.
 */

struct object;

/* Numbers of objects that exist. Tests use them to find leaks. */
typedef struct {
  uint32_t n_objects;  /* handles of the library that JavaScript holds */
  uint32_t n_promises; /* operations that have not settled */
  uint32_t n_streams;
  uint32_t n_controls; /* handles that cancel an operation */
  uint32_t n_lent;     /* passes that read the memory of typed arrays */
  uint32_t n_buffers;  /* results that typed arrays point to */
} counts_t;

/* The state of one environment. */
typedef struct {
  napi_env env;
  uv_loop_t *loop;
  napi_async_context async;
  napi_async_cleanup_hook_handle hook;
  napi_ref make_error; /* (code, message, details) -> Error */
  struct object *open; /* services and gateways that are open */
  uint32_t n_services; /* of these */
  uint32_t n_gateways;
  uint32_t n_refs; /* the environment, and each object */
  int is_ending;   /* no JavaScript runs any more */
  counts_t counts;
} addon_t;

typedef enum {
  OBJECT_SERVICE = 1,
  OBJECT_TRAINING,
  OBJECT_SAMPLING,
  OBJECT_LEDGER,
  OBJECT_GATEWAY,
  OBJECT_PAGE,
  OBJECT_TOKENIZER,
  OBJECT_TEMPLATE,
  OBJECT_PARSER
} kind_t;

/*
 * A handle of the library. JavaScript holds an external with a reference to it.
 * The external is kept alive while `n_uses` is not 0, because a collected
 * object closes its handle, which would end the operations in progress.
 */
typedef struct object {
  addon_t *addon;
  kind_t kind;
  void *handle;           /* NULL after the close */
  tnk_promise_t *promise; /* that returned the handle and keeps it valid */
  struct object *service; /* of a client; one reference and one use */
  struct object *needed;  /* another object, as `service` */
  struct object *next;    /* in addon_t.open */
  struct object **prev;
  napi_ref external;
  napi_ref emit; /* the function for events of a service, or NULL */
  uint32_t n_uses;
  uint32_t n_refs;
  uint32_t n_pending;   /* operations of a service that have not settled */
  uint32_t max_pending; /* of a service */
  int is_waited;        /* a call waits for room */
  int is_closing;
  napi_deferred closing;
} object_t;

/* ---- object.c ---- */

/* Make an object with its external; NULL with an exception pending. The
 * `handle` is not taken after a failure. */
object_t *object_new(addon_t *addon, kind_t kind, void *handle,
                     object_t *service, napi_value *external);
void object_ref(object_t *object);
void object_unref(object_t *object);
void object_use(object_t *object);
void object_unuse(object_t *object);
/* The service of an object, which may be the object itself. */
object_t *object_service(object_t *object);
/* Keep the object that another one borrows. NULL does nothing. */
void object_need(object_t *object, object_t *needed);
/* Add an open service or gateway to the list of the environment. */
void object_list(object_t *object);
/* Close the handle. A service and a gateway remain until their callback. */
void object_close(object_t *object);
/* Runs when the environment ends. */
void addon_cleanup(napi_async_cleanup_hook_handle hook, void *arg);
void addon_unref(addon_t *addon);

/* ---- value.c ---- */

/* Memory for the arguments of one call. */
typedef struct {
  void *first;
} scratch_t;
void *scratch_take(scratch_t *scratch, size_t size);
void scratch_free(scratch_t *scratch);

typedef enum {
  FIELD_TEXT,    /* const char * */
  FIELD_TEXTS,   /* const char *const *, and a size_t after it */
  FIELD_PAIRS,   /* const tnk_pair_t *, and a size_t after it */
  FIELD_I32S,    /* const int32_t *, and a size_t after it */
  FIELD_CHOICE,  /* tnk_choice_t from and to a boolean */
  FIELD_BOOL,    /* int */
  FIELD_U32,     /* uint32_t; infinity is its maximum */
  FIELD_I32,     /* int32_t */
  FIELD_U64,     /* uint64_t; infinity is its maximum */
  FIELD_I64,     /* int64_t */
  FIELD_COUNT,   /* int64_t; negative values are left out */
  FIELD_DOUBLE,  /* double */
  FIELD_TIME_US, /* int64_t to a Date; 0 is left out */
  FIELD_TIME_S,  /* the same in seconds */
  FIELD_ENUM,    /* uint32_t from and to a name in `names` */
  FIELD_JSON     /* const char * */
} field_type_t;

/* A member of a struct, and the property that has its value. */
typedef struct {
  const char *name;
  size_t offset;
  field_type_t type;
  const char *const *names; /* of FIELD_ENUM, up to a NULL */
} field_t;

#define FIELD(type, member, name, kind)                                        \
  { name, offsetof(type, member), kind, NULL }
#define FIELD_NAMED(type, member, name, names)                                 \
  { name, offsetof(type, member), FIELD_ENUM, names }
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Get a property; 0 if it is absent, undefined or null. */
int get_property(napi_env env, napi_value object, const char *name,
                 napi_value *out);
/* Read the properties of an object into a struct. Absent ones leave the member.
 * Returns 0 with an exception pending. */
int read_fields(napi_env env, napi_value object, const field_t *fields,
                size_t n, void *out, scratch_t *scratch);
/* Read one value into the member `at`. Returns 0 with an exception pending. */
int read_field(napi_env env, napi_value value, const field_t *field, void *at,
               scratch_t *scratch);
/* An object with the members of a struct, as properties. */
napi_value write_fields(napi_env env, const field_t *fields, size_t n,
                        const void *from);
/* A string in scratch; NULL with an exception pending, which names `what`. */
char *read_text(napi_env env, napi_value value, const char *what,
                size_t *length, scratch_t *scratch);
/* The elements of a typed array; 0 with an exception pending. */
int read_array(napi_env env, napi_value value, napi_typedarray_type type,
               const char *what, const void **data, size_t *n);
int is_given(napi_env env, napi_value value);
napi_value make_text(napi_env env, const char *text);
napi_value make_number(napi_env env, double number);
napi_value make_undefined(napi_env env);
void set_number(napi_env env, napi_value object, const char *name,
                double number);
void set_text(napi_env env, napi_value object, const char *name,
              const char *text);
/* A typed array with a copy of the elements. */
napi_value make_array(napi_env env, napi_typedarray_type type, const void *data,
                      size_t n);
/* A typed array with the elements of a result, without a copy if there are
 * many. It then holds a reference to the promise. */
napi_value make_view(addon_t *addon, tnk_promise_t *promise,
                     napi_typedarray_type type, const void *data, size_t n);
/* An array of JavaScript that grows. */
typedef struct {
  napi_env env;
  napi_value value;
  uint32_t n;
} array_t;
void array_begin(array_t *array, napi_env env);
void array_add(array_t *array, napi_value value);
napi_value make_metrics(napi_env env, const tnk_metrics_t *metrics);
napi_value make_totals(napi_env env, const tnk_totals_t *totals);

/* ---- promise.c ---- */

/* The value of a resolved promise. */
typedef napi_value (*convert_t)(addon_t *addon, object_t *owner,
                                tnk_promise_t *promise);

/* Throw an object of the class that suits the code. */
void throw_error(addon_t *addon, int code, const char *text);
/* Enter and leave JavaScript from the loop. */
typedef struct {
  napi_handle_scope handles;
  napi_callback_scope callback;
  int is_open;
} scope_t;
int scope_enter(addon_t *addon, scope_t *scope);
void scope_leave(addon_t *addon, scope_t *scope);
/* Call the event function of a service. */
void emit(object_t *service, const char *event, napi_value value);

/* ---- Calls ---- */

#define MAX_ARGS 8

/* The arguments of a call. */
typedef struct {
  addon_t *addon;
  napi_env env;
  object_t *object; /* the first argument, if a kind was asked for */
  napi_value args[MAX_ARGS];
  scratch_t scratch;
  convert_t convert;       /* of an operation; NULL resolves with undefined */
  void (*end)(void *user); /* called after it has settled; or NULL */
  void *user;
} call_t;

/* Read the arguments. If `kind` is not 0, the first one must be an open object
 * of this kind. Returns 0 with an exception pending. */
int call_begin(call_t *call, napi_env env, napi_callback_info info,
               kind_t kind);
/* The object of an argument; NULL with an exception pending. */
object_t *call_object(call_t *call, size_t index, kind_t kind);
/* Memory until the end of the call; NULL with an exception pending. */
void *call_alloc(call_t *call, size_t size);
/* Read an argument as read_fields() does. */
int read_options(call_t *call, size_t index, const field_t *fields, size_t n,
                 void *out);
/* Free the scratch memory, and return the value. */
napi_value call_end(call_t *call, napi_value value);
/* Throw an error as throw_error(), and end the call. */
napi_value call_fail(call_t *call, int code, const char *text);

typedef struct {
  const char *name;
  napi_callback call;
} function_t;

/*
 * A function that starts an operation of its first argument. Behind `n_args`
 * further ones come the options, with `timeout`, and an object for cancel().
 * Each may be undefined. Returns a promise, or undefined if the service has no
 * room: it emits "room" when an operation has ended.
 */
typedef struct {
  const char *name;
  kind_t kind;
  uint32_t n_args;
  tnk_promise_t *(*start)(call_t *call); /* NULL with an exception pending */
  convert_t convert;
} operation_t;

/* The function of each operation, whose row is its data. */
napi_value js_operate(napi_env env, napi_callback_info info);

extern const operation_t service_operations[];
extern const operation_t training_operations[];
extern const operation_t sampling_operations[];
extern const operation_t rest_operations[];
extern const operation_t ledger_operations[];
extern const operation_t gateway_operations[];

extern const function_t promise_functions[];
extern const function_t service_functions[];
extern const function_t training_functions[];
extern const function_t sampling_functions[];
extern const function_t ledger_functions[];
extern const function_t text_functions[];
extern const function_t gateway_functions[];

/* The names of enums that several options have. */
extern const char *const optimizer_values[];
extern const char *const family_values[];

/* Make the object of a handle that a promise has returned. */
napi_value convert_handle(addon_t *addon, object_t *owner,
                          tnk_promise_t *promise, kind_t kind, void *handle);
napi_value convert_training(addon_t *addon, object_t *owner,
                            tnk_promise_t *promise);
napi_value convert_sampling(addon_t *addon, object_t *owner,
                            tnk_promise_t *promise);
napi_value convert_path(addon_t *addon, object_t *owner,
                        tnk_promise_t *promise);
/* The options of a sampler. */
int read_sampling_options(call_t *call, napi_value value,
                          tnk_sampling_options_t *out);
/* A model input, as `tokens` or `chunks`; 0 with an exception pending. */
int read_model_input(call_t *call, napi_value value, tnk_model_input_t *out);
/* The tokenizer that an object has. */
tnk_chat_tokenizer_t object_tokenizer(const object_t *object);

#endif
