#include <stdio.h>

#include "tools/local/base/clock.h"
#include "tools/local/fault/calls.h"
#include "tools/local/links/link.h"

/* Links to the files of external weights. */

/* The name of a file in the answer, or another name if a fault requires it. */
static void write_name(const local_fault_t *fault, const char *name, char *out,
                       size_t size) {
  static const struct {
    const char *arg;
    const char *before;
  } ways[] = {
      {LOCAL_NAME_OTHER, "other-"},
      {LOCAL_NAME_PARENT, "../"},
      {LOCAL_NAME_ABSOLUTE, "/tmp/"},
  };

  snprintf(out, size, "%s", name);
  for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
    if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, ways[i].arg))
      snprintf(out, size, "%s%s", ways[i].before, name);
  if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, LOCAL_NAME_EMPTY))
    out[0] = '\0';
  else if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, LOCAL_NAME_DOT))
    snprintf(out, size, ".");
  else if (local_fault_is(fault, LOCAL_FAULT_OTHER_NAMES, LOCAL_NAME_LONG))
    snprintf(out, size, "%0300d-%s", 0, name);
}

static void put_files(tnk__json_writer_t *w, const local_call_t *call,
                      const local_place_t *place,
                      const local_listing_t *listing, int64_t expires_s) {
  char link[LOCAL_LINK];
  char name[512];

  tnk__json_key(w, "urls");
  tnk__json_begin_object(w);
  for (size_t i = 0; i < listing->n; i++)
    if (local_link_write(call->server, call->req, place, listing->files[i].name,
                         expires_s, link)) {
      write_name(local_fault_of(call->req), listing->files[i].name, name,
                 sizeof(name));
      tnk__json_put_text(w, name, link);
    }
  tnk__json_end(w);
}

void local_external_urls(local_call_t *call) {
  const int64_t expires_s = local_link_end(call->server);
  local_listing_t listing;
  local_meta_t meta;
  char dir[LOCAL_FILE];
  char text[32];
  local_out_t out;

  if (!local_need_checkpoint(call, &meta))
    return;
  local_meta_free(call->server, &meta);
  if (meta.place.kind != LOCAL_EXTERNAL_WEIGHTS) {
    local_reply_error(call->req, 400,
                      "Only external weights have files to download, not %s/%s",
                      call->args[1], call->args[2]);
    return;
  }
  if (!local_place_dir(call->server, &meta.place, dir) ||
      local_store_files(dir, &listing) != TNK_OK) {
    local_reply_error(call->req, 404, "Checkpoint not found: %s/%s",
                      call->args[1], call->args[2]);
    return;
  }
  local_place_note(call->server, "checkpoint_read", &meta.place);
  local_out_init(&out, call->server->alloc);
  tnk__json_begin_object(&out.w);
  put_files(&out.w, call, &meta.place, &listing, expires_s);
  local_time_text(expires_s * 1000, text);
  tnk__json_put_text(&out.w, "expires", text);
  tnk__json_end(&out.w);
  local_out_reply(&out, call->req, 200);
}
