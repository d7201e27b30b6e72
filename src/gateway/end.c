/* SPDX-License-Identifier: MIT */
#include "gateway/again.h"
#include "gateway/response.h"
#include "gateway/state.h"
#include "lib/base/alloc.h"

/* Last callback of a gateway. Everything except its record has been closed. */

static void on_record_closed(void *user) {
  tnk_gateway_t *gateway = user;
  tnk_allocator_t alloc = gateway->alloc;
  tnk_close_cb closed = gateway->closed;
  void *closed_user = gateway->closed_user;

  tnk__gw_grants_deinit(&gateway->grants);
  tnk__gw_again_deinit(&gateway->again);
  tnk__gw_responses_deinit(gateway);
  tnk_chat_template_unref(gateway->template_);
  json_decref(gateway->variables);
  tnk__free_secret(&alloc, gateway->key);
  tnk__free_secret(&alloc, gateway->admin_key);
  tnk__free(&alloc, gateway->model);
  tnk__free(&alloc, gateway);
  if (closed != NULL)
    closed(closed_user);
}

void tnk__gw_release(tnk_gateway_t *gateway) {
  if (--gateway->n_open > 0 || !gateway->is_closing)
    return;
  if (gateway->record != NULL)
    tnk__gw_record_close(gateway->record, on_record_closed, gateway);
  else
    on_record_closed(gateway);
}
