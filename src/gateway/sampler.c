/* SPDX-License-Identifier: MIT */
/*
 * Samplers. A sampler that has been replaced is closed when its last request
 * has ended.
 *
 * The gateways of a shared record use the same weights. When one of them has
 * new weights, it writes a line of type "use" with their version, and the
 * others create a sampler of the same name. If two have new weights at the same
 * time, both count the same version, and may keep different weights until the
 * next change.
 */
#include <stdio.h>
#include <string.h>

#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* A sampler that is being created. */
typedef struct {
  tnk__list_t link; /* in the gateway */
  tnk_gateway_t *gateway;
  tnk_promise_t *promise;
  tnk__srv_req_t *req;        /* the request that asked for it, or NULL */
  tnk__gw_sampler_t *sampler; /* allocated first, so that nothing can fail once
                                 the promise is fulfilled; NULL when in use */
  int is_path;                /* the sampler's name is a path */
  int is_fleet; /* another gateway of a shared record uses these weights */
} use_t;

/* ---- Open samplers ---- */

static void on_sampling_closed(void *user) {
  tnk__gw_release(user);
}

static void close_sampler(tnk__gw_sampler_t *sampler) {
  tnk_gateway_t *gateway = sampler->gateway;

  tnk__list_remove(&sampler->link);
  gateway->n_open++;
  tnk_sampling_close(sampler->sampling, on_sampling_closed, gateway);
  tnk__free(&gateway->alloc, sampler);
}

void tnk__gw_sampler_give_back(tnk__gw_sampler_t *sampler) {
  if (--sampler->n_jobs == 0 && sampler->is_old)
    close_sampler(sampler);
}

/* Write a line for readers of the record: each turn has this number too. The
 * other gateways of a shared record follow another one. */
static void tell(const use_t *use, const tnk__gw_sampler_t *sampler) {
  tnk__gw_record_t *record = use->gateway->record;

  (void)tnk__gw_record_note(record, NULL, "weights", "name", sampler->name,
                            sampler->version);
  if (tnk__gw_record_is_shared(record) &&
      strlen(sampler->name) < sizeof(sampler->name) - 1)
    (void)tnk__gw_record_note(record, NULL, TNK__GW_USE,
                              use->is_path ? "path" : "base", sampler->name,
                              sampler->version);
}

static void put_in_use(use_t *use) {
  tnk_gateway_t *gateway = use->gateway;
  tnk__gw_sampler_t *old = gateway->sampler;
  tnk__gw_sampler_t *sampler = use->sampler;

  use->sampler = NULL;
  sampler->sampling = tnk_promise_sampling(use->promise);
  tnk__list_append(&gateway->samplers, &sampler->link);
  /* A sampler that was requested later may have arrived first. */
  if (old != NULL && old->version > sampler->version) {
    close_sampler(sampler);
    return;
  }
  if (!use->is_fleet)
    tell(use, sampler);
  gateway->sampler = sampler;
  if (old == NULL)
    return;
  old->is_old = 1;
  if (old->n_jobs == 0)
    close_sampler(old);
}

/* ---- Samplers that are being created ---- */

static void free_use(use_t *use) {
  tnk__list_remove(&use->link);
  tnk_promise_unref(use->promise);
  tnk__free(&use->gateway->alloc, use->sampler);
  tnk__free(&use->gateway->alloc, use);
}

static void answer(use_t *use, int err, uint32_t version) {
  tnk__srv_req_t *req = use->req;
  tnk__gw_fault_t fault;
  char text[64];

  use->req = NULL;
  if (req == NULL)
    return;
  if (err == TNK_OK) {
    (void)snprintf(text, sizeof(text), "{\"version\":%u}", version);
    tnk__srv_req_reply_text(req, 200, "application/json", text);
    return;
  }
  tnk__gw_service_fault(&fault, use->promise);
  /* The client has named weights that do not exist, so it is the client's
   * error. */
  if (err == TNK_ENOTFOUND)
    fault.status = 404;
  tnk__gw_refuse(use->gateway, req, TNK__GW_CHAT, &fault);
}

static void on_made(tnk_promise_t *promise, int status, void *user) {
  use_t *use = user;
  tnk_gateway_t *gateway = use->gateway;
  uint32_t version = use->sampler->version;

  (void)promise;
  if (status == TNK_OK)
    put_in_use(use);
  answer(use, status, version);
  free_use(use);
  gateway->made(gateway);
}

/* A callback that waited for the promise may run before on_made(). */
tnk__gw_sampler_t *tnk__gw_sampler_take(tnk_gateway_t *gateway) {
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->uses) {
    use_t *use = tnk__container_of(node, use_t, link);

    if (tnk_promise_state(use->promise) != TNK_PENDING &&
        tnk_promise_forget(use->promise, on_made, use) == TNK_OK)
      on_made(use->promise, tnk_promise_status(use->promise), use);
  }
  if (gateway->sampler != NULL)
    gateway->sampler->n_jobs++;
  return gateway->sampler;
}

static void on_use_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  ((use_t *)user)->req = NULL;
}

static use_t *new_use(tnk_gateway_t *gateway,
                      const tnk_sampling_options_t *options) {
  use_t *use = tnk__calloc(&gateway->alloc, 1, sizeof(*use));
  tnk__gw_sampler_t *sampler =
      tnk__calloc(&gateway->alloc, 1, sizeof(*sampler));
  const char *name = NULL;

  if (use == NULL || sampler == NULL) {
    tnk__free(&gateway->alloc, use);
    tnk__free(&gateway->alloc, sampler);
    return NULL;
  }
  if (options != NULL)
    name =
        options->model_path != NULL ? options->model_path : options->base_model;
  sampler->gateway = gateway;
  sampler->version = ++gateway->version;
  (void)snprintf(sampler->name, sizeof(sampler->name), "%s",
                 name != NULL ? name : "");
  use->gateway = gateway;
  use->sampler = sampler;
  use->is_path = options != NULL && options->model_path != NULL;
  tnk__list_append(&gateway->uses, &use->link);
  return use;
}

/* Returns one reference to the promise. NULL: out of memory. */
static tnk_promise_t *begin_use(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                                const tnk_sampling_options_t *options) {
  use_t *use = new_use(gateway, options);

  if (use == NULL)
    return NULL;
  use->promise = tnk_service_create_sampling(gateway->service, options);
  if (tnk_then(tnk_promise_ref(use->promise), on_made, use) != TNK_OK) {
    free_use(use);
    return NULL;
  }
  use->req = req;
  if (req != NULL)
    tnk__srv_req_park(req, on_use_gone, use);
  return tnk_promise_ref(use->promise);
}

/* Use the weights that another gateway uses. Returns a promise as begin_use()
 * does. */
static tnk_promise_t *follow(tnk_gateway_t *gateway,
                             const tnk_sampling_options_t *options) {
  tnk_sampling_options_t own = TNK_SAMPLING_OPTIONS_INIT;
  uint32_t version = gateway->fleet_version;
  tnk_promise_t *promise;
  use_t *use;

  if (options != NULL) /* of the program, which may know fewer members */
    memcpy(&own, options,
           options->size < sizeof(own) ? options->size : sizeof(own));
  own.size = sizeof(own);
  own.model_path = gateway->fleet_is_path ? gateway->fleet_name : NULL;
  own.base_model = gateway->fleet_is_path ? NULL : gateway->fleet_name;
  gateway->version = version - 1; /* new_use() counts */
  promise = begin_use(gateway, NULL, &own);
  if (promise != NULL) {
    use = tnk__container_of(gateway->uses.prev, use_t, link);
    use->is_fleet = 1;
  }
  gateway->version = version;
  return promise;
}

int tnk__gw_sampler_take_use(tnk_gateway_t *gateway, const json_t *line) {
  const char *path = tnk__json_str(line, "path");
  const char *name = path != NULL ? path : tnk__json_str(line, "base");
  int64_t version = 0;

  if (name == NULL || strlen(name) >= sizeof(gateway->fleet_name) ||
      tnk__json_get_int(line, "number", 1, UINT32_MAX, &version) !=
          TNK__JSON_FOUND)
    return TNK_EPROTO;
  if (version <= gateway->fleet_version)
    return TNK_OK;
  gateway->fleet_version = (uint32_t)version;
  gateway->fleet_is_path = path != NULL;
  (void)snprintf(gateway->fleet_name, sizeof(gateway->fleet_name), "%s", name);
  if (gateway->record != NULL && !gateway->is_closing &&
      version > gateway->version)
    tnk_promise_unref(follow(gateway, NULL));
  return TNK_OK;
}

tnk_promise_t *tnk_gateway_use(tnk_gateway_t *gateway,
                               const tnk_sampling_options_t *options) {
  if (gateway == NULL || gateway->is_closing)
    return NULL;
  /* A gateway that joins others begins with their weights. */
  if (gateway->fleet_version > 0 && tnk__list_empty(&gateway->samplers) &&
      tnk__list_empty(&gateway->uses))
    return follow(gateway, options);
  return begin_use(gateway, NULL, options);
}

void tnk__gw_sampler_ask(tnk_gateway_t *gateway, tnk__srv_req_t *req) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk__gw_fault_t fault;
  tnk_promise_t *promise;
  json_t *body = NULL;

  if (tnk__json_parse_object(&body, req->body.data, req->body.len) != TNK_OK ||
      tnk__json_get_text(body, "model_path", &options.model_path) ==
          TNK__JSON_WRONG ||
      tnk__json_get_text(body, "base_model", &options.base_model) ==
          TNK__JSON_WRONG) {
    (void)tnk__gw_fault(&fault, 400, NULL,
                        "the body is no object with model_path or base_model");
    tnk__gw_refuse(gateway, req, TNK__GW_CHAT, &fault);
    json_decref(body);
    return;
  }
  promise = begin_use(gateway, req, &options);
  json_decref(body);
  if (promise == NULL) {
    (void)tnk__gw_fault(&fault, 500, NULL, "out of memory");
    tnk__gw_refuse(gateway, req, TNK__GW_CHAT, &fault);
  }
  tnk_promise_unref(promise);
}

void tnk__gw_samplers_close(tnk_gateway_t *gateway) {
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->uses) {
    use_t *use = tnk__container_of(node, use_t, link);

    (void)tnk_promise_forget(use->promise, on_made, use);
    tnk_promise_cancel(use->promise);
    if (use->req != NULL)
      tnk__srv_req_drop(use->req);
    free_use(use);
  }
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->samplers) {
    close_sampler(tnk__container_of(node, tnk__gw_sampler_t, link));
  }
  gateway->sampler = NULL;
}
