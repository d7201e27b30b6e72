#include "api/hub.h"

#include <stdio.h>
#include <string.h>

#include "api/hub_config.h"
#include "base/alloc.h"
#include "base/options.h"
#include "hub/get.h"

/* So that a runtime can close what is left open on its loop. */
static _Thread_local tnk__list_t open_hubs;

static tnk__list_t *hubs(void) {
  if (open_hubs.next == NULL)
    tnk__list_init(&open_hubs);
  return &open_hubs;
}

/* ---- Opening ---- */

static int say(char *text, size_t size, int err, const char *what) {
  if (text != NULL && size > 0)
    snprintf(text, size, "%s", what != NULL ? what : tnk_strerror(err));
  return err;
}

/* The last of it, when opening failed and when everything is closed. */
static void free_hub(tnk_hub_t *hub) {
  const tnk_allocator_t alloc = hub->alloc;

  tnk__hub_config_deinit(&hub->config);
  tnk__free(&alloc, hub);
}

static void on_open_undone(void *user) {
  free_hub(user);
}

static int open_http(tnk_hub_t *hub) {
  const tnk_hub_options_t *o = &hub->config.options;
  tnk__http_options_t options = {0};

  options.ca_file = o->ca_file;
  options.load_trust = o->ca_file != NULL;
  options.connect_timeout_ms = o->connect_timeout_ms;
  options.max_in_flight[TNK__LANE_POLL] = 1; /* there are none */
  return tnk__http_open(&hub->http, &hub->loop, &options);
}

static int open_parts(tnk_hub_t *hub, uv_loop_t *loop,
                      const tnk_hub_options_t *options, const char **why) {
  int err = tnk__hub_config_load(&hub->config, &hub->alloc, options, why);

  if (err != TNK_OK) {
    tnk__free(&hub->alloc, hub);
    return err;
  }
  err = tnk__loop_open(&hub->loop, loop, &hub->alloc, options->logger);
  if (err != TNK_OK) {
    free_hub(hub);
    return err;
  }
  err = open_http(hub);
  if (err != TNK_OK) {
    /* libuv frees the context in a later turn. */
    tnk__loop_close(&hub->loop, on_open_undone, hub);
    *why = err == TNK_ECERT ? "ca_file cannot be read as certificates" : NULL;
    return err;
  }
  tnk__hub_open(&hub->core, &hub->loop, &hub->http, &hub->config);
  return TNK_OK;
}

int tnk_hub_open(tnk_hub_t **out, uv_loop_t *loop,
                 const tnk_hub_options_t *options, char *text,
                 size_t text_size) {
  tnk_hub_options_t own = TNK_HUB_OPTIONS_INIT;
  const tnk_allocator_t *alloc = tnk__allocator_default();
  const char *why = NULL;
  tnk_hub_t *hub;
  int err;

  *out = NULL;
  say(text, text_size, TNK_OK, "");
  if (loop == NULL)
    return say(text, text_size, TNK_EINVAL, "no loop was given");
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err != TNK_OK)
    return say(text, text_size, err,
               "options: size is wrong, or a field is "
               "set that this library does not know");
  if (own.allocator != NULL)
    alloc = own.allocator;
  hub = tnk__calloc(alloc, 1, sizeof(*hub));
  if (hub == NULL)
    return say(text, text_size, TNK_ENOMEM, NULL);
  hub->alloc = *alloc;
  err = open_parts(hub, loop, &own, &why);
  if (err != TNK_OK)
    return say(text, text_size, err, why);
  tnk__list_append(hubs(), &hub->link);
  *out = hub;
  return TNK_OK;
}

/* ---- Closing ---- */

static void on_closed(void *user) {
  tnk_hub_t *hub = user;
  tnk_close_cb cb = hub->close_cb;
  void *cb_user = hub->close_user;

  free_hub(hub);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(cb_user);
    tnk__callout_end();
  }
}

void tnk_hub_close(tnk_hub_t *hub, tnk_close_cb cb, void *user) {
  if (hub == NULL || hub->closing || tnk__loop_is_forked(&hub->loop))
    return;
  hub->closing = 1;
  hub->close_cb = cb;
  hub->close_user = user;
  tnk__list_remove(&hub->link);
  tnk__hub_close(&hub->core);
  tnk__http_close(&hub->http);
  tnk__loop_close(&hub->loop, on_closed, hub);
}

size_t tnk__hubs_close_on(uv_loop_t *uv) {
  size_t n = 0;

  TNK__LIST_FOREACH_SAFE (node, next, hubs()) {
    tnk_hub_t *hub = tnk__container_of(node, tnk_hub_t, link);
    if (hub->loop.uv != uv)
      continue;
    tnk_hub_close(hub, NULL, NULL);
    n++;
  }
  return n;
}

/* ---- Beginning ---- */

/* NULL, or the promise of why the call does not begin. What is wrong with the
 * hub comes before what is wrong with the call. */
static tnk_promise_t *refuses(tnk_hub_t *hub, const char *name, int err,
                              const char *text) {
  int hub_err = tnk__loop_check_caller(&hub->loop);
  tnk__error_t *error;

  if (hub_err == TNK_OK && hub->closing)
    hub_err = TNK_ECLOSED;
  if (hub_err != TNK_OK)
    text = NULL;
  else if (err == TNK_OK)
    return NULL;
  else
    hub_err = err;
  error =
      text != NULL
          ? tnk__error_new(&hub->alloc, hub_err, "%s: %s", name, text)
          : tnk__error_from(&hub->alloc, name, &(tnk_error_t){.code = hub_err});
  return tnk__promise_rejected(&hub->loop, error);
}

/* A SHA-256 in lower-case digits. 0: it is none. */
static int normal_sum(char out[65], const char *text) {
  for (size_t i = 0; i < 64; i++) {
    const char c = text[i];
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))
      out[i] = c;
    else if (c >= 'A' && c <= 'F')
      out[i] = (char)(c - 'A' + 'a');
    else
      return 0;
  }
  out[64] = '\0';
  return text[64] == '\0';
}

tnk_promise_t *tnk_hub_download(tnk_hub_t *hub, const char *url,
                                const char *path,
                                const tnk_download_options_t *options) {
  tnk_download_options_t own = TNK_DOWNLOAD_OPTIONS_INIT;
  const char *why = NULL;
  tnk_promise_t *refusal;
  char sum[65] = "";
  int err;

  if (hub == NULL)
    return NULL;
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err == TNK_EINVAL)
    why = "the size of the options is wrong";
  else if (url == NULL)
    why = "no URL was given";
  else if (path == NULL || path[0] == '\0')
    why = "no path was given";
  else if (own.sha256 != NULL && !normal_sum(sum, own.sha256))
    why = "sha256 is not 64 hexadecimal digits";
  if (err == TNK_OK && why != NULL)
    err = TNK_EINVAL;
  refusal = refuses(hub, "download", err, why);
  if (refusal != NULL)
    return refusal;
  return tnk__hub_get(&hub->core, url, path, sum[0] != '\0' ? sum : NULL, &own);
}
