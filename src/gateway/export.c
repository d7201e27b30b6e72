/* SPDX-License-Identifier: MIT */
/* Export of the record as training examples. */
#include <string.h>

#include "gateway/record/datum.h"
#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { MAX_DATUMS = 512 << 20 };

int tnk_gateway_datums(tnk_gateway_t *gateway, const char *session,
                       int rewarded, tnk_gateway_line_cb cb, void *user) {
  const tnk__gw_datum_options_t options = {.only_rewarded = rewarded != 0};
  const tnk__gw_session_t *found = NULL;

  if (gateway == NULL || gateway->is_closing || cb == NULL)
    return TNK_EINVAL;
  if (session != NULL) {
    found = tnk__gw_record_session(gateway->record, session);
    if (found == NULL)
      return TNK_ENOTFOUND;
  }
  return tnk__gw_datums(gateway->record, found, &options, cb, user);
}

/* ---- Requests of clients ---- */

/* An export in progress. Each turn of the loop writes some of its branches, so
 * that other requests are served meanwhile. */
struct tnk__gw_export {
  tnk__list_t link; /* in tnk_gateway_t.exports */
  tnk__gw_call_t call;
  tnk__buf_t branches; /* tnk__gw_branch_t */
  size_t n_done;       /* bytes of `branches` that are written */
  tnk__buf_t body;
};

typedef struct tnk__gw_export export_t;

static void free_export(export_t *export) {
  tnk_gateway_t *gateway = export->call.gateway;

  tnk__list_remove(&export->link);
  if (tnk__list_empty(&gateway->exports))
    uv_idle_stop(&gateway->exporter);
  tnk__buf_deinit(&export->branches);
  tnk__buf_deinit(&export->body);
  tnk__free(&gateway->alloc, export);
}

static void on_export_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  free_export(user);
}

static int put_line(void *user, const char *line, size_t n) {
  return tnk__buf_append(user, line, n);
}

static void end_export(export_t *export, int err) {
  const tnk__gw_call_t call = export->call;
  size_t n = 0;
  uint8_t *data = err == TNK_OK ? tnk__buf_take(&export->body, &n) : NULL;

  free_export(export);
  if (err == TNK_OK)
    tnk__srv_req_reply(call.req, 200, "application/jsonl", NULL, data,
                       data != NULL ? n : 0);
  else
    tnk__gw_call_refuse(&call, 500, NULL, "%s", tnk_strerror(err));
}

/* Write as much of the response as one turn of the loop may take. */
static void go_on(export_t *export) {
  const tnk_gateway_t *gateway = export->call.gateway;
  size_t enough = export->body.len + gateway->export_bytes;
  int err = TNK_OK;

  while (err == TNK_OK && export->n_done < export->branches.len &&
         export->body.len < enough) {
    err = tnk__gw_datum(gateway->record,
                        (const void *)(export->branches.data + export->n_done),
                        put_line, &export->body);
    export->n_done += sizeof(tnk__gw_branch_t);
  }
  if (err != TNK_OK || export->n_done == export->branches.len)
    end_export(export, err);
}

/* Exports take turns. */
static void on_idle(uv_idle_t *idle) {
  tnk_gateway_t *gateway = tnk__container_of(idle, tnk_gateway_t, exporter);
  export_t *export = tnk__container_of(gateway->exports.next, export_t, link);

  tnk__list_remove(&export->link);
  tnk__list_append(&gateway->exports, &export->link);
  go_on(export);
}

/* Returns 0 or 1, or -1 for any other value. */
static int read_flag(const tnk__srv_req_t *req, const char *name) {
  char text[8];

  if (!tnk__srv_req_query(req, name, text, sizeof(text)))
    return 0;
  if (strcmp(text, "1") == 0 || strcmp(text, "true") == 0)
    return 1;
  return strcmp(text, "0") == 0 || strcmp(text, "false") == 0 ? 0 : -1;
}

/* Export the session that the request names, or all sessions. */
void tnk__gw_export(const tnk__gw_call_t *call) {
  tnk_gateway_t *gateway = call->gateway;
  const tnk__gw_session_t *session =
      tnk__gw_record_session(gateway->record, call->session);
  tnk__gw_datum_options_t options = {0};
  int only_rewarded = read_flag(call->req, "rewarded");
  export_t *export;
  int err;

  if (only_rewarded < 0) {
    tnk__gw_call_refuse(call, 400, NULL, "rewarded must be 0 or 1");
    return;
  }
  if (call->session[0] != '\0' && session == NULL) {
    tnk__gw_call_refuse(call, 404, NULL, "there is no session \"%s\"",
                        call->session);
    return;
  }
  export = tnk__calloc(&gateway->alloc, 1, sizeof(*export));
  if (export == NULL) {
    tnk__gw_call_refuse(call, 500, NULL, "out of memory");
    return;
  }
  options.only_rewarded = only_rewarded;
  export->call = *call;
  tnk__buf_init(&export->branches, &gateway->alloc, SIZE_MAX);
  tnk__buf_init(&export->body, &gateway->alloc, MAX_DATUMS);
  tnk__list_append(&gateway->exports, &export->link);
  err = tnk__gw_branches(gateway->record, session, &options, &export->branches);
  if (err != TNK_OK) {
    end_export(export, err);
    return;
  }
  uv_idle_start(&gateway->exporter, on_idle);
  tnk__srv_req_park(call->req, on_export_gone, export);
}

void tnk__gw_exports_drop(tnk_gateway_t *gateway) {
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->exports) {
    export_t *export = tnk__container_of(node, export_t, link);
    tnk__srv_req_t *req = export->call.req;

    free_export(export);
    tnk__srv_req_drop(req);
  }
}
