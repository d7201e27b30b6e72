#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"
#include "tools/local/fault/state.h"
#include "tools/local/fault/calls.h"
#include "tnk/error.h"

/* The endpoint that lists injected faults and sets the next ones. */

/* Takes the buffer's contents. */
static void reply(tnk__srv_req_t *req, int status, tnk__buf_t *buf,
                  tnk__json_writer_t *w) {
  size_t len = 0;
  uint8_t *body;

  if (tnk__json_finish(w) != TNK_OK)
    tnk__buf_deinit(buf);
  body = tnk__buf_take(buf, &len);
  if (body == NULL) {
    tnk__buf_deinit(buf);
    tnk__srv_req_reply_text(req, 500, "text/plain", "Internal Server Error");
    return;
  }
  tnk__srv_req_reply(req, status, "application/json", NULL, body, len);
}

static void begin(tnk__srv_req_t *req, tnk__buf_t *buf, tnk__json_writer_t *w) {
  tnk__buf_init(buf, req->http->config.alloc, (size_t)1 << 30);
  tnk__json_writer_init(w, buf);
  tnk__json_begin_object(w);
}

/* The message may quote arbitrary bytes from the client. */
static void reply_error(tnk__srv_req_t *req, int status, const char *sentence) {
  char text[512];
  tnk__json_writer_t w;
  tnk__buf_t buf;

  snprintf(text, sizeof(text), "%s", sentence);
  tnk__utf8_repair(text);
  begin(req, &buf, &w);
  tnk__json_put_text(&w, "detail", text);
  tnk__json_end(&w);
  reply(req, status, &buf, &w);
}

static void list(const local_faults_t *faults, tnk__srv_req_t *req) {
  const local_fault_entry_t *entry;
  tnk__json_writer_t w;
  tnk__buf_t buf;

  begin(req, &buf, &w);
  tnk__json_put_text(&w, "faults", faults->text);
  tnk__json_put_int(&w, "n", (int64_t)faults->n_logged);
  tnk__json_key(&w, "counts");
  tnk__json_begin_object(&w);
  for (size_t i = 0; i < faults->n_counts; i++)
    tnk__json_put_int(&w, faults->counts[i].name, (int64_t)faults->counts[i].n);
  tnk__json_end(&w);
  tnk__json_key(&w, "last");
  tnk__json_begin_array(&w);
  for (size_t i = 0; (entry = local_faults_entry(faults, i)) != NULL; i++)
    local_fault_write_entry(&w, entry);
  tnk__json_end(&w);
  tnk__json_end(&w);
  reply(req, 200, &buf, &w);
}

static void set(local_faults_t *faults, tnk__srv_req_t *req) {
  char why[512] = "out of memory";
  const char *text = tnk__buf_cstr(&req->body);

  if (text != NULL &&
      local_faults_set(faults, text, why, sizeof(why)) == TNK_OK)
    list(faults, req);
  else
    reply_error(req, text != NULL ? 400 : 503, why);
}

int local_faults_control(local_faults_t *faults, tnk__srv_req_t *req) {
  if (faults == NULL || !faults->is_open ||
      strcmp(req->path, LOCAL_FAULTS_PATH) != 0)
    return 0;
  if (strcmp(req->method, "GET") == 0)
    list(faults, req);
  else if (strcmp(req->method, "PUT") == 0)
    set(faults, req);
  else
    reply_error(req, 405, "Method Not Allowed");
  return 1;
}
