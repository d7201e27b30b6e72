/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/lua/native/native.h"

#define OBJECT_NAME "tnk.object"

/* ---- References ---- */

void state_unref(state_t *state) {
  if (--state->n_refs == 0)
    free(state);
}

void object_ref(object_t *object) {
  object->n_refs++;
}

void object_unref(object_t *object) {
  state_t *state = object->state;
  if (--object->n_refs > 0)
    return;
  *object->prev = object->next;
  if (object->next != NULL)
    object->next->prev = object->prev;
  if (object->promise != NULL)
    tnk_promise_unref(object->promise);
  if (object->service != NULL)
    object_unref(object->service);
  free(object);
  state_unref(state);
}

/* ---- Userdata ---- */

object_t *object_push(lua_State *L, state_t *state, kind_t kind,
                      object_t *service) {
  object_t **box = lua_newuserdata(L, sizeof(object_t *));
  *box = NULL;
  luaL_getmetatable(L, OBJECT_NAME);
  lua_setmetatable(L, -2);
  object_t *object = calloc(1, sizeof(*object));
  if (object == NULL)
    raise_error(L, TNK_ENOMEM, "out of memory");
  object->state = state;
  object->kind = kind;
  object->n_refs = 1;
  object->next = state->objects;
  object->prev = &state->objects;
  if (object->next != NULL)
    object->next->prev = &object->next;
  state->objects = object;
  state->n_refs++;
  if (service != NULL)
    object_ref(service);
  object->service = service;
  object->closed.kind = EVENT_CLOSED;
  *box = object;
  return object;
}

object_t *object_check(lua_State *L, int index, kind_t kind) {
  static const char *const names[] = {"", "service", "training client",
                                      "sampling client"};
  object_t **box = luaL_checkudata(L, index, OBJECT_NAME);
  if (*box == NULL || (*box)->kind != kind)
    raise_error(L, TNK_EINVAL, "expected a %s", names[kind]);
  if ((*box)->handle == NULL || (*box)->is_closing ||
      ((*box)->service != NULL &&
       ((*box)->service->handle == NULL || (*box)->service->is_closing)))
    raise_error(L, TNK_ECLOSED, "the %s is closed", names[kind]);
  return *box;
}

static int collect(lua_State *L) {
  object_t **box = luaL_checkudata(L, 1, OBJECT_NAME);
  object_t *object = *box;
  *box = NULL;
  if (object != NULL) {
    if (object->handle != NULL && !object->state->is_ended)
      uv_async_send(&object->state->awake);
    object_close(object);
    object_unref(object);
  }
  return 0;
}

void object_setup(lua_State *L) {
  luaL_newmetatable(L, OBJECT_NAME);
  lua_pushcfunction(L, collect);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
}

/* ---- Closing ---- */

static void on_closed(void *user) {
  object_t *service = user;
  service->handle = NULL;
  /* The event has the reference of the close. */
  service->closed.object = service;
  event_append(service->state, &service->closed);
}

void object_close(object_t *object) {
  void *handle = object->handle;
  if (handle == NULL || object->is_closing)
    return;
  object->is_closing = 1;
  if (object->kind == OBJECT_SERVICE) {
    object_ref(object);
    object->state->n_busy++;
    tnk_service_close(handle, on_closed, object);
    return;
  }
  object->handle = NULL;
  /* The handles of a service that has closed are closed. */
  if (object->service->handle == NULL)
    return;
  if (object->kind == OBJECT_TRAINING)
    tnk_training_close(handle, NULL, NULL);
  else
    tnk_sampling_close(handle, NULL, NULL);
}

void state_end(state_t *state) {
  state->is_ended = 1;
  for (object_t *object = state->objects; object != NULL; object = object->next)
    if (object->kind == OBJECT_SERVICE)
      object_close(object);
  uv_close((uv_handle_t *)&state->awake, NULL);
  uv_run(&state->loop, UV_RUN_DEFAULT);
  events_drop(state);
  for (object_t *object = state->objects; object != NULL;
       object = object->next) {
    if (object->promise != NULL)
      tnk_promise_unref(object->promise);
    object->promise = NULL;
    object->handle = NULL;
  }
  uv_loop_close(&state->loop);
}
