/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/lua/native/native.h"

#define PROXY_NAME "tnk.proxy"

/* ---- References ---- */

void state_unref(state_t *state) {
  if (--state->n_refs == 0)
    free(state);
}

void proxy_ref(proxy_t *proxy) {
  proxy->n_refs++;
}

void proxy_unref(proxy_t *proxy) {
  state_t *state = proxy->state;

  if (--proxy->n_refs > 0)
    return;
  *proxy->prev = proxy->next;
  if (proxy->next != NULL)
    proxy->next->prev = proxy->prev;
  if (proxy->promise != NULL)
    tnk_promise_unref(proxy->promise);
  if (proxy->service != NULL)
    proxy_unref(proxy->service);
  free(proxy);
  state_unref(state);
}

/* ---- Userdata ---- */

proxy_t *proxy_push(lua_State *L, state_t *state, kind_t kind,
                    proxy_t *service) {
  proxy_t **box = lua_newuserdata(L, sizeof(proxy_t *));

  *box = NULL;
  luaL_getmetatable(L, PROXY_NAME);
  lua_setmetatable(L, -2);
  proxy_t *proxy = calloc(1, sizeof(*proxy));
  if (proxy == NULL)
    raise_error(L, TNK_ENOMEM, "out of memory");
  proxy->state = state;
  proxy->kind = kind;
  proxy->n_refs = 1;
  proxy->next = state->proxies;
  proxy->prev = &state->proxies;
  if (proxy->next != NULL)
    proxy->next->prev = &proxy->next;
  state->proxies = proxy;
  state->n_refs++;
  if (service != NULL)
    proxy_ref(service);
  proxy->service = service;
  proxy->closed.kind = EVENT_CLOSED;
  *box = proxy;
  proxy->box = box;
  return proxy;
}

proxy_t *proxy_check(lua_State *L, int index, kind_t kind) {
  static const char *const names[] = {"", "service", "training client",
                                      "sampling client"};
  proxy_t **box = luaL_checkudata(L, index, PROXY_NAME);

  if (*box == NULL || (*box)->kind != kind)
    raise_error(L, TNK_EINVAL, "expected a %s", names[kind]);
  if ((*box)->handle == NULL || (*box)->is_closing ||
      ((*box)->service != NULL &&
       ((*box)->service->handle == NULL || (*box)->service->is_closing)))
    raise_error(L, TNK_ECLOSED, "the %s is closed", names[kind]);
  return *box;
}

static int collect(lua_State *L) {
  proxy_t **box = luaL_checkudata(L, 1, PROXY_NAME);
  proxy_t *proxy = *box;

  *box = NULL;
  if (proxy != NULL) {
    if (proxy->handle != NULL && !proxy->state->is_ended)
      uv_async_send(&proxy->state->awake);
    proxy->box = NULL;
    proxy_close(proxy);
    proxy_unref(proxy);
  }
  return 0;
}

void proxy_setup(lua_State *L) {
  luaL_newmetatable(L, PROXY_NAME);
  lua_pushcfunction(L, collect);
  lua_setfield(L, -2, "__gc");
  lua_pop(L, 1);
}

/* ---- Closing ---- */

static void on_closed(void *user) {
  proxy_t *service = user;

  service->handle = NULL;
  /* The event has the reference of the close. */
  service->closed.proxy = service;
  event_append(service->state, &service->closed);
}

void proxy_close(proxy_t *proxy) {
  void *handle = proxy->handle;

  if (handle == NULL || proxy->is_closing)
    return;
  proxy->is_closing = 1;
  if (proxy->kind == PROXY_SERVICE) {
    proxy_ref(proxy);
    proxy->state->n_busy++;
    tnk_service_close(handle, on_closed, proxy);
    return;
  }
  proxy->handle = NULL;
  /* The handles of a service that has closed are closed. */
  if (proxy->service->handle == NULL)
    return;
  if (proxy->kind == PROXY_TRAINING)
    tnk_training_close(handle, NULL, NULL);
  else
    tnk_sampling_close(handle, NULL, NULL);
}

/* Userdata that a finalizer made at the end of a Lua state may have no
 * finalizer call of their own. */
static void release_boxed(state_t *state) {
  proxy_t *dropped = NULL;

  for (proxy_t *proxy = state->proxies; proxy != NULL; proxy = proxy->next) {
    if (proxy->box == NULL)
      continue;
    *proxy->box = NULL;
    proxy->box = NULL;
    proxy->dropped = dropped;
    dropped = proxy;
  }
  while (dropped != NULL) {
    proxy_t *proxy = dropped;
    dropped = proxy->dropped;
    proxy_unref(proxy);
  }
}

void state_end(state_t *state) {
  state->is_ended = 1;
  for (proxy_t *proxy = state->proxies; proxy != NULL; proxy = proxy->next)
    if (proxy->kind == PROXY_SERVICE)
      proxy_close(proxy);
  uv_close((uv_handle_t *)&state->awake, NULL);
  uv_run(&state->loop, UV_RUN_DEFAULT);
  events_drop(state);
  release_boxed(state);
  uv_loop_close(&state->loop);
}
