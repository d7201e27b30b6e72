/* What was recorded, as examples to train on. */
#include <string.h>

#include "base/alloc.h"
#include "gateway/record/datum.h"
#include "gateway/send.h"
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

static int put_line(void *user, const char *line, size_t n) {
  return tnk__buf_append(user, line, n);
}

/* Of the session that is named; of all, where none is. */
void tnk__gw_export(const tnk__gw_call_t *call) {
  int is_rewarded;
  char text[8];
  tnk__buf_t body;
  size_t n = 0;
  uint8_t *data;
  int err;

  is_rewarded = tnk__srv_req_query(call->req, "rewarded", text, sizeof(text)) &&
                strcmp(text, "1") == 0;
  tnk__buf_init(&body, &call->gateway->alloc, MAX_DATUMS);
  err = tnk_gateway_datums(call->gateway,
                           call->session[0] != '\0' ? call->session : NULL,
                           is_rewarded, put_line, &body);
  if (err == TNK_OK) {
    data = tnk__buf_take(&body, &n);
    tnk__srv_req_reply(call->req, 200, "application/jsonl", NULL, data,
                       data != NULL ? n : 0);
    return;
  }
  tnk__buf_deinit(&body);
  if (err == TNK_ENOTFOUND)
    tnk__gw_call_refuse(call, 404, NULL, "there is no session \"%s\"",
                        call->session);
  else
    tnk__gw_call_refuse(call, 500, NULL, "%s", tnk_strerror(err));
}
