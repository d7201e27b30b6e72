/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/lua/native/native.h"

#define OPERATION_NAME "tnk.operation"
#define STATE_NAME "tnk.state"

state_t *state_of(lua_State *L) {
  state_t **box = lua_touserdata(L, lua_upvalueindex(1));

  if (*box == NULL)
    raise_error(L, TNK_ECLOSED, "the Lua state closes");
  return *box;
}

/* ---- Operations ---- */

proxy_t *operation_owner(lua_State *L, kind_t kind) {
  call_setup(L);
  return proxy_check(L, 2, kind);
}

uint64_t operation_options(lua_State *L, int index, const char *what,
                           const target_t *target, const char *const *others) {
  static const field_t field = {"timeout_ms", 0, FIELD_U64, NULL};
  uint64_t timeout_ms = 0;
  const target_t with_timeout = {&field, 1, &timeout_ms, target};

  arg_options(L, index, what, &with_timeout, others);
  return timeout_ms;
}

operation_t *operation_push(lua_State *L, proxy_t *owner, convert_t convert) {
  operation_t **box = lua_newuserdata(L, sizeof(operation_t *));

  *box = NULL;
  luaL_getmetatable(L, OPERATION_NAME);
  lua_setmetatable(L, -2);
  operation_t *operation = calloc(1, sizeof(*operation));
  if (operation == NULL)
    raise_error(L, TNK_ENOMEM, "out of memory");
  *box = operation;
  operation->box = box;
  operation->state = owner->state;
  operation->owner = owner;
  operation->convert = convert;
  operation->id = lua_tointeger(L, 1);
  operation->settled.kind = EVENT_SETTLED;
  operation->settled.operation = operation;
  operation->state->n_refs++;
  operation->state->n_busy++;
  proxy_ref(owner);
  return operation;
}

void operation_free(operation_t *operation) {
  state_t *state = operation->state;

  if (operation->box != NULL)
    *operation->box = NULL;
  if (operation->promise != NULL)
    tnk_promise_unref(operation->promise);
  proxy_unref(operation->owner);
  free(operation);
  state_unref(state);
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  operation_t *operation = user;

  (void)promise;
  operation->status = status;
  event_append(operation->state, &operation->settled);
}

void operation_start(operation_t *operation, tnk_promise_t *promise,
                     uint64_t timeout_ms) {
  if (timeout_ms > 0)
    promise = tnk_with_timeout(promise, timeout_ms);
  operation->promise = tnk_promise_ref(promise);
  int err = tnk_then(promise, on_settled, operation);
  if (err != TNK_OK)
    on_settled(promise, err, operation);
}

static int cancel(lua_State *L) {
  operation_t **box = luaL_checkudata(L, 1, OPERATION_NAME);

  if (*box != NULL && (*box)->promise != NULL)
    tnk_promise_cancel((*box)->promise);
  return 0;
}

/* The operation continues. */
static int collect(lua_State *L) {
  operation_t **box = luaL_checkudata(L, 1, OPERATION_NAME);

  if (*box != NULL)
    (*box)->box = NULL;
  *box = NULL;
  return 0;
}

/* ---- The loop ---- */

/* turn(): what is due */
static int turn(lua_State *L) {
  uv_run(&state_of(L)->loop, UV_RUN_NOWAIT);
  return 0;
}

/* timeout() -> milliseconds until the next turn or -1, whether it is busy */
static int timeout(lua_State *L) {
  state_t *state = state_of(L);
  int timeout_ms = -1;

  if (uv_loop_alive(&state->loop))
    timeout_ms = uv_backend_timeout(&state->loop);
  lua_pushinteger(L, timeout_ms);
  lua_pushboolean(L, state->n_busy > 0);
  return 2;
}

/* fd() -> the descriptor that is readable when a turn is due */
static int backend_fd(lua_State *L) {
  lua_pushinteger(L, uv_backend_fd(&state_of(L)->loop));
  return 1;
}

static int version(lua_State *L) {
  lua_pushstring(L, tnk_version());
  return 1;
}

static int libuv_version(lua_State *L) {
  lua_pushstring(L, tnk_libuv_version());
  return 1;
}

static const luaL_Reg operation_functions[] = {{"cancel", cancel},
                                               {"turn", turn},
                                               {"timeout", timeout},
                                               {"fd", backend_fd},
                                               {"take", native_take},
                                               {"version", version},
                                               {"libuv_version", libuv_version},
                                               {NULL, NULL}};

/* ---- The module ---- */

static int collect_state(lua_State *L) {
  state_t **box = luaL_checkudata(L, 1, STATE_NAME);
  state_t *state = *box;

  *box = NULL;
  if (state != NULL) {
    state_end(state);
    state_unref(state);
  }
  return 0;
}

static void on_awake(uv_async_t *awake) {
  (void)awake;
}

static void push_state(lua_State *L) {
  state_t **box = lua_newuserdata(L, sizeof(state_t *));

  *box = NULL;
  if (luaL_newmetatable(L, STATE_NAME)) {
    lua_pushcfunction(L, collect_state);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  state_t *state = calloc(1, sizeof(*state));
  if (state == NULL)
    raise_error(L, TNK_ENOMEM, "out of memory");
  if (uv_loop_init(&state->loop) != 0) {
    free(state);
    raise_error(L, TNK_ESYSTEM, "the system refused an event loop");
  }
  if (uv_async_init(&state->loop, &state->awake, on_awake) != 0) {
    uv_loop_close(&state->loop);
    free(state);
    raise_error(L, TNK_ESYSTEM, "the system refused an event loop");
  }
  uv_unref((uv_handle_t *)&state->awake);
  state->last = &state->first;
  state->n_refs = 1;
  *box = state;
}

/* Add functions to the table below the state, which is on top. */
static void add_functions(lua_State *L, const luaL_Reg *functions) {
  for (; functions->name != NULL; functions++) {
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, functions->func, 1);
    lua_setfield(L, -3, functions->name);
  }
}

int luaopen_tnk_native(lua_State *L) {
  proxy_setup(L);
  if (luaL_newmetatable(L, OPERATION_NAME)) {
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
  }
  lua_pop(L, 1);
  lua_newtable(L);
  luaL_newmetatable(L, "tnk.error");
  lua_setfield(L, -2, "error");
  push_state(L);
  add_functions(L, operation_functions);
  add_functions(L, native_service);
  add_functions(L, native_client);
  lua_pop(L, 1);
  return 1;
}
