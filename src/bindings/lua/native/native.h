/* SPDX-License-Identifier: MIT */
#ifndef TNK_LUA_NATIVE_H
#define TNK_LUA_NATIVE_H

#include <lauxlib.h>
#include <lua.h>
#include <stddef.h>
#include <uv.h>

#include "tnk/tnk.h"

/*
 * libtnk for LuaJIT and Lua 5.4, on a loop of its own. ../lua/tnk.lua turns
 * this loop with the host's libuv. Callbacks of the library never call Lua:
 * they append events to a list, which Lua takes after each turn. So no error
 * and no coroutine of Lua crosses a frame of the library or of libuv.
 *
 * Memory of a call is Lua's, on its stack, so an error may be raised anywhere.
 */

#if LUA_VERSION_NUM < 502
#define lua_rawlen lua_objlen
#endif

struct proxy;
struct operation;

typedef enum {
  EVENT_SETTLED,
  EVENT_TOKEN,
  EVENT_CLOSED,
  EVENT_QUEUE_STATE,
  EVENT_LOG
} event_kind_t;

/* An event that Lua has not taken yet. */
typedef struct event {
  struct event *next;
  struct operation *operation; /* of SETTLED and TOKEN */
  struct proxy *proxy;         /* of the other kinds; one reference */
  event_kind_t kind;
  int32_t number; /* the token, the state or the level */
  uint32_t index;
  float logprob;
  char *texts[2]; /* owned; may be NULL */
} event_t;

/* The loop of one Lua state. */
typedef struct {
  uv_loop_t loop;
  uv_async_t awake; /* a turn is due without a call from Lua */
  event_t *first;   /* events, oldest first */
  event_t **last;
  struct proxy *proxies;
  uint32_t n_busy; /* operations and closing services */
  uint32_t n_refs; /* the userdata, each proxy and operation */
  int is_ended;    /* the Lua state closes, and the loop is gone */
} state_t;

typedef enum { PROXY_SERVICE = 1, PROXY_TRAINING, PROXY_SAMPLING } kind_t;

/* A handle of the library. Lua has a userdata with a pointer to it. */
typedef struct proxy {
  state_t *state;
  kind_t kind;
  void *handle;           /* NULL after the close */
  tnk_promise_t *promise; /* that returned the handle and keeps it valid */
  struct proxy *service;  /* of a client; one reference */
  struct proxy **box;     /* the userdata, which has one reference; or NULL */
  struct proxy *next;     /* in state_t.proxies */
  struct proxy *dropped;  /* the next one to release, see state_end() */
  struct proxy **prev;
  uint32_t n_refs;
  int is_closing;
  event_t closed; /* of a service */
} proxy_t;

/* Push the result of a resolved promise. */
typedef void (*convert_t)(lua_State *L, proxy_t *owner, tnk_promise_t *promise);

/* An operation that has not been taken by Lua yet. */
typedef struct operation {
  state_t *state;
  proxy_t *owner; /* one reference */
  convert_t convert;
  tnk_promise_t *promise; /* one reference */
  struct operation **box; /* the userdata that cancels it, or NULL */
  lua_Integer id;
  int status;
  int is_short; /* a token was lost, because memory was out */
  event_t settled;
} operation_t;

/* ---- proxy.c ---- */

/* Push a userdata; the handle is taken. */
proxy_t *proxy_push(lua_State *L, state_t *state, kind_t kind,
                    proxy_t *service);
proxy_t *proxy_check(lua_State *L, int index, kind_t kind);
void proxy_ref(proxy_t *proxy);
void proxy_unref(proxy_t *proxy);
void proxy_close(proxy_t *proxy);
void state_unref(state_t *state);
/* Close everything and run the loop until it is empty. */
void state_end(state_t *state);
/* Make the metatable of the userdata. */
void proxy_setup(lua_State *L);

/* ---- event.c ---- */

void event_append(state_t *state, event_t *event);
/* An event in new memory; NULL if there is none. */
event_t *event_new(event_kind_t kind, proxy_t *proxy);
/* Copy a string; NULL for NULL, or without memory. */
char *copy_text(const char *text);
/* Free the events that Lua will not take. */
void events_drop(state_t *state);
/* take() -> kind, id or proxy, ...; nothing if there is no event. */
int native_take(lua_State *L);

/* ---- value.c ---- */

typedef enum {
  FIELD_TEXT,   /* const char * */
  FIELD_TEXTS,  /* const char *const *, and a size_t after it */
  FIELD_PAIRS,  /* const tnk_pair_t *, and a size_t after it */
  FIELD_I32S,   /* const int32_t *, and a size_t after it */
  FIELD_CHOICE, /* tnk_choice_t from a boolean */
  FIELD_U32,    /* uint32_t */
  FIELD_I32,    /* int32_t */
  FIELD_U64,    /* uint64_t */
  FIELD_I64,    /* int64_t */
  FIELD_DOUBLE, /* double */
  FIELD_ENUM    /* uint32_t from a name in `names` */
} field_type_t;

/* A member of a struct, and the option that has its value. */
typedef struct {
  const char *name;
  size_t offset;
  field_type_t type;
  const char *const *names; /* of FIELD_ENUM, up to a NULL */
} field_t;

#define FIELD(type, member, kind)                                              \
  { #member, offsetof(type, member), kind, NULL }
#define FIELD_NAMED(type, member, name, kind)                                  \
  { name, offsetof(type, member), kind, NULL }
#define FIELD_CHOSEN(type, member, names)                                      \
  { #member, offsetof(type, member), FIELD_ENUM, names }
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* A struct that options are read into. Several structs that share one table of
 * options form a list. */
typedef struct target {
  const field_t *fields;
  size_t n_fields;
  void *out;
  const struct target *next; /* or NULL */
} target_t;

/* The optimizers, in the order of tnk_optimizer_t. */
extern const char *const optimizer_names[];

/* The subject of an error message: a name, and 1 + the index of a datum, or 0
 * for none. Messages count datums from 0, as those of the library do. */
typedef struct {
  const char *what;
  size_t datum;
} where_t;

/* The first arguments of a call, and the index of the table that keeps its
 * memory. */
#define MAX_ARGS 6
#define ANCHOR (MAX_ARGS + 1)

/* Set the stack up as described above. */
void call_setup(lua_State *L);
/* Raise an error with a code of tnk_err_t and a text as lua_pushfstring(). */
_Noreturn void raise_error(lua_State *L, int code, const char *format, ...);
/* Raise TNK_EINVAL with `where` before the text. */
_Noreturn void fail(lua_State *L, where_t where, const char *format, ...);
/* Push an error object. `details` may be NULL. */
void push_error(lua_State *L, int code, const char *text,
                const tnk_error_t *details);
/* Zeroed memory that lives until the call returns. */
void *scratch(lua_State *L, size_t n, size_t size);
/* Read the table of options at `index` into a list of structs. An unknown name
 * raises an error. `others` has the names that the caller reads, up to a NULL;
 * it may be NULL. nil is a table without options. */
void arg_options(lua_State *L, int index, const char *what,
                 const target_t *target, const char *const *others);
/* Push a member of a table without its metatable, so that the table keeps it.
 */
void push_member(lua_State *L, int index, const char *name);
/* A table, or an error. */
size_t arg_list(lua_State *L, int index, where_t where, const char *expected);
int64_t arg_whole(lua_State *L, int index, where_t where, double low,
                  double high);
/* Token ids from a table of numbers. Never NULL. */
const int32_t *arg_ids(lua_State *L, int index, where_t where, size_t *n);
/* A string without NUL; NULL for nil. */
const char *arg_text(lua_State *L, int index, where_t where);
void put_text(lua_State *L, const char *name, const char *text);
void put_number(lua_State *L, const char *name, double number);
void put_whole(lua_State *L, const char *name, int64_t number);

/* ---- data.c ---- */

void arg_input(lua_State *L, int index, where_t where, tnk_model_input_t *out);
const tnk_datum_t *arg_data(lua_State *L, int index, size_t *n);
/* The settings of a loss, from the table at `index`. */
void arg_settings(lua_State *L, int index, tnk_pass_options_t *out);

/* ---- result.c ---- */

void result_training(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_sampling(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_models(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_pass(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_metrics(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_saved(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_samples(lua_State *L, proxy_t *owner, tnk_promise_t *promise);
void result_logprobs(lua_State *L, proxy_t *owner, tnk_promise_t *promise);

/* ---- operation.c, client.c ---- */

/* The state of the module: an upvalue of each function. */
state_t *state_of(lua_State *L);
/* A function that starts an operation calls the next four in this order. Its
 * first argument is the id of the operation, and its second one the owner. */

/* Set the stack up, and return the owner. */
proxy_t *operation_owner(lua_State *L, kind_t kind);
/* Read options as arg_options() does. Returns the option timeout_ms, which
 * every operation has. */
uint64_t operation_options(lua_State *L, int index, const char *what,
                           const target_t *target, const char *const *others);
/* Push the userdata that cancels an operation. Call it before the operation
 * starts, because it may raise an error. */
operation_t *operation_push(lua_State *L, proxy_t *owner, convert_t convert);
/* Wait for a promise, which is taken. Raises no error. */
void operation_start(operation_t *operation, tnk_promise_t *promise,
                     uint64_t timeout_ms);
void operation_free(operation_t *operation);

/* Open the module. require "tnk.native" calls this function. */
TNK_API int luaopen_tnk_native(lua_State *L);

extern const luaL_Reg native_service[];
extern const luaL_Reg native_client[];

#endif
