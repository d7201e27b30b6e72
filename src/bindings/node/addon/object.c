/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "bindings/node/addon/addon.h"

/* ---- References ---- */

void addon_unref(addon_t *addon) {
  if (--addon->n_refs == 0)
    free(addon);
}

void object_ref(object_t *object) {
  object->n_refs++;
}

void object_unref(object_t *object) {
  if (--object->n_refs > 0)
    return;
  if (object->promise != NULL)
    tnk_promise_unref(object->promise);
  if (object->service != NULL)
    object_unref(object->service);
  if (object->needed != NULL)
    object_unref(object->needed);
  addon_unref(object->addon);
  free(object);
}

void object_use(object_t *object) {
  if (object->n_uses++ == 0 && object->external != NULL)
    napi_reference_ref(object->addon->env, object->external, NULL);
}

void object_unuse(object_t *object) {
  if (--object->n_uses == 0 && object->external != NULL)
    napi_reference_unref(object->addon->env, object->external, NULL);
}

object_t *object_service(object_t *object) {
  return object->service != NULL ? object->service : object;
}

/* ---- Making ---- */

/* JavaScript has collected the external, or the environment ends. */
static void finalize(napi_env env, void *data, void *hint) {
  object_t *object = data;

  (void)hint;
  napi_ref external = object->external;
  object->external = NULL;
  if (external != NULL)
    napi_delete_reference(env, external);
  object_close(object);
  if (object->handle == NULL && object->emit != NULL) {
    napi_delete_reference(env, object->emit);
    object->emit = NULL;
  }
  if (object->service != NULL)
    object_unuse(object->service);
  if (object->needed != NULL)
    object_unuse(object->needed);
  object->addon->counts.n_objects--;
  object_unref(object);
}

object_t *object_new(addon_t *addon, kind_t kind, void *handle,
                     object_t *service, napi_value *external) {
  object_t *object = calloc(1, sizeof(*object));

  if (object == NULL) {
    napi_throw_error(addon->env, "TNK_ENOMEM", "out of memory");
    return NULL;
  }
  object->addon = addon;
  object->kind = kind;
  object->n_refs = 1;
  if (napi_create_external(addon->env, object, finalize, NULL, external) !=
      napi_ok) {
    free(object);
    return NULL;
  }
  addon->n_refs++;
  addon->counts.n_objects++;
  object->handle = handle;
  napi_create_reference(addon->env, *external, 0, &object->external);
  if (service != NULL) {
    object->service = service;
    object_ref(service);
    object_use(service);
  }
  return object;
}

void object_need(object_t *object, object_t *needed) {
  if (needed == NULL)
    return;
  object->needed = needed;
  object_ref(needed);
  object_use(needed);
}

/* ---- Closing ---- */

void object_list(object_t *object) {
  addon_t *addon = object->addon;

  object->next = addon->open;
  object->prev = &addon->open;
  if (addon->open != NULL)
    addon->open->prev = &object->next;
  addon->open = object;
  if (object->kind == OBJECT_SERVICE)
    addon->n_services++;
  else
    addon->n_gateways++;
  object_ref(object);
}

static void end_services(addon_t *addon) {
  for (object_t *object = addon->open, *next; object != NULL; object = next) {
    next = object->next;
    if (object->kind == OBJECT_SERVICE)
      object_close(object);
  }
}

/* The environment waits for what is open. */
static void end_if_closed(addon_t *addon) {
  if (!addon->is_ending || addon->n_gateways > 0)
    return;
  if (addon->n_services > 0)
    end_services(addon);
  else if (addon->hook != NULL) {
    napi_async_cleanup_hook_handle hook = addon->hook;
    addon->hook = NULL;
    napi_async_destroy(addon->env, addon->async);
    if (addon->make_error != NULL)
      napi_delete_reference(addon->env, addon->make_error);
    napi_remove_async_cleanup_hook(hook);
  }
}

static void on_closed(void *user) {
  object_t *object = user;
  addon_t *addon = object->addon;
  scope_t scope;

  object->handle = NULL;
  *object->prev = object->next;
  if (object->next != NULL)
    object->next->prev = object->prev;
  if (object->kind == OBJECT_SERVICE)
    addon->n_services--;
  else
    addon->n_gateways--;
  if (object->emit != NULL) {
    napi_delete_reference(addon->env, object->emit);
    object->emit = NULL;
  }
  if (object->closing != NULL && scope_enter(addon, &scope)) {
    napi_resolve_deferred(addon->env, object->closing,
                          make_undefined(addon->env));
    scope_leave(addon, &scope);
  }
  object->closing = NULL;
  if (object->kind == OBJECT_GATEWAY)
    object_unuse(object);
  /* The object holds a reference to the addon. */
  end_if_closed(addon);
  object_unref(object);
}

/* Gateways and ledgers live no longer than their service. */
static int is_alive(const object_t *object) {
  return object->service == NULL || object->service->handle != NULL;
}

void object_close(object_t *object) {
  void *handle = object->handle;

  if (handle == NULL || object->is_closing)
    return;
  object->is_closing = 1;
  switch (object->kind) {
  case OBJECT_SERVICE:
    tnk_service_close(handle, on_closed, object);
    return;
  case OBJECT_GATEWAY:
    tnk_gateway_close(handle, on_closed, object);
    return;
  case OBJECT_TRAINING:
    if (is_alive(object))
      tnk_training_close(handle, NULL, NULL);
    return;
  case OBJECT_SAMPLING:
    if (is_alive(object))
      tnk_sampling_close(handle, NULL, NULL);
    return;
  case OBJECT_LEDGER:
    if (is_alive(object))
      tnk_ledger_close(handle, NULL, NULL);
    break;
  case OBJECT_TOKENIZER:
    tnk_tokenizer_unref(handle);
    break;
  case OBJECT_TEMPLATE:
    tnk_chat_template_unref(handle);
    break;
  case OBJECT_PARSER:
    tnk_chat_parser_free(handle);
    break;
  case OBJECT_PAGE:
    break;
  }
  object->handle = NULL;
}

void addon_cleanup(napi_async_cleanup_hook_handle hook, void *arg) {
  addon_t *addon = arg;

  addon->hook = hook;
  addon->is_ending = 1;
  for (object_t *object = addon->open, *next; object != NULL; object = next) {
    next = object->next;
    if (object->kind == OBJECT_GATEWAY)
      object_close(object);
  }
  end_if_closed(addon);
}
