/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/lua/native/native.h"

void event_append(state_t *state, event_t *event) {
  event->next = NULL;
  *state->last = event;
  state->last = &event->next;
}

char *copy_text(const char *text) {
  size_t size = text != NULL ? strlen(text) + 1 : 0;
  char *copy = text != NULL ? malloc(size) : NULL;

  if (copy != NULL)
    memcpy(copy, text, size);
  return copy;
}

event_t *event_new(event_kind_t kind, proxy_t *proxy) {
  event_t *event = calloc(1, sizeof(*event));

  if (event == NULL)
    return NULL;
  event->kind = kind;
  event->proxy = proxy;
  if (proxy != NULL)
    proxy_ref(proxy);
  return event;
}

static void event_free(state_t *state, event_t *event) {
  state->first = event->next;
  if (state->first == NULL)
    state->last = &state->first;
  free(event->texts[0]);
  free(event->texts[1]);
  switch (event->kind) {
  case EVENT_SETTLED:
    state->n_busy--;
    operation_free(event->operation);
    return;
  case EVENT_CLOSED:
    state->n_busy--;
    proxy_unref(event->proxy);
    return;
  case EVENT_TOKEN:
  case EVENT_QUEUE_STATE:
  case EVENT_LOG:
    break;
  }
  if (event->proxy != NULL)
    proxy_unref(event->proxy);
  free(event);
}

void events_drop(state_t *state) {
  while (state->first != NULL)
    event_free(state, state->first);
}

/* "done", id, result | "failed", id, error */
static int push_settled(lua_State *L, operation_t *operation) {
  int is_ok = operation->status == TNK_OK && !operation->is_short;

  lua_pushstring(L, is_ok ? "done" : "failed");
  lua_pushinteger(L, operation->id);
  if (operation->is_short)
    push_error(L, TNK_ENOMEM, "out of memory", NULL);
  else if (!is_ok)
    push_error(L, operation->status, tnk_promise_text(operation->promise),
               tnk_promise_error(operation->promise));
  else if (operation->convert != NULL)
    operation->convert(L, operation->owner, operation->promise);
  else
    lua_pushnil(L);
  return 3;
}

/* "token", id, token, index, text, logprob */
static int push_token(lua_State *L, const event_t *event) {
  lua_pushliteral(L, "token");
  lua_pushinteger(L, event->operation->id);
  lua_pushinteger(L, event->number);
  lua_pushinteger(L, (lua_Integer)event->index + 1);
  if (event->texts[0] != NULL)
    lua_pushstring(L, event->texts[0]);
  else
    lua_pushnil(L);
  if (isnan(event->logprob))
    lua_pushnil(L);
  else
    lua_pushnumber(L, (lua_Number)event->logprob);
  return 6;
}

/* "queue_state" or "log", the address of the service, a table */
static int push_report(lua_State *L, const event_t *event) {
  static const char *const states[] = {
      "unknown", "active",       "paused_capacity", "paused_rate_limit",
      "stalled", "session_lost", "unreachable",     "memory_lost"};
  static const char *const levels[] = {"none", "error", "warn",
                                       "info", "debug", "trace"};
  int is_log = event->kind == EVENT_LOG;
  size_t n = is_log ? COUNT(levels) : COUNT(states);
  size_t number = (size_t)event->number < n ? (size_t)event->number : 0;

  lua_pushstring(L, is_log ? "log" : "queue_state");
  lua_pushlightuserdata(L, event->proxy);
  lua_newtable(L);
  put_text(L, is_log ? "level" : "state",
           is_log ? levels[number] : states[number]);
  put_text(L, is_log ? "subject" : "client", event->texts[0]);
  put_text(L, is_log ? "message" : "reason", event->texts[1]);
  return 3;
}

int native_take(lua_State *L) {
  state_t *state = state_of(L);
  event_t *event = state->first;
  int n = 0;

  if (event == NULL || state->is_ended)
    return 0;
  /* The event stays in the list until its values are on the stack, so an error
   * of memory loses nothing. */
  switch (event->kind) {
  case EVENT_SETTLED:
    n = push_settled(L, event->operation);
    break;
  case EVENT_TOKEN:
    n = push_token(L, event);
    break;
  case EVENT_CLOSED:
    lua_pushliteral(L, "closed");
    lua_pushlightuserdata(L, event->proxy);
    n = 2;
    break;
  case EVENT_QUEUE_STATE:
  case EVENT_LOG:
    n = push_report(L, event);
    break;
  }
  event_free(state, event);
  return n;
}
