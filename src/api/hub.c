#include "api/hub.h"

#include <stdio.h>
#include <string.h>

#include "api/hub_config.h"
#include "base/alloc.h"
#include "base/options.h"
#include "task/hub/cache.h"
#include "task/hub/get.h"
#include "task/hub/tokenizer.h"

/* ---- Opening ---- */

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

static void close_left(tnk__opened_t *opened) {
  tnk_hub_close(tnk__container_of(opened, tnk_hub_t, opened), NULL, NULL);
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
  tnk__opened_say(text, text_size, TNK_OK, "");
  if (loop == NULL)
    return tnk__opened_say(text, text_size, TNK_EINVAL, "no loop was given");
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err != TNK_OK)
    return tnk__opened_say(text, text_size, err,
                           "options: size is wrong, or a field is "
                           "set that this library does not know");
  if (own.allocator != NULL)
    alloc = own.allocator;
  hub = tnk__calloc(alloc, 1, sizeof(*hub));
  if (hub == NULL)
    return tnk__opened_say(text, text_size, TNK_ENOMEM, NULL);
  hub->alloc = *alloc;
  err = open_parts(hub, loop, &own, &why);
  if (err != TNK_OK)
    return tnk__opened_say(text, text_size, err, why);
  tnk__opened_add(&hub->opened, loop, close_left);
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
  tnk__opened_remove(&hub->opened);
  tnk__hub_close(&hub->core);
  tnk__tokenizers_close(&hub->core);
  tnk__http_close(&hub->http);
  tnk__loop_close(&hub->loop, on_closed, hub);
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

tnk_promise_t *tnk_hub_file(tnk_hub_t *hub, const char *model, const char *file,
                            const tnk_hub_file_options_t *options) {
  tnk_hub_file_options_t own = TNK_HUB_FILE_OPTIONS_INIT;
  tnk__cache_key_t key = {.model = model, .file = file, .revision = "main"};
  const char *why = NULL;
  tnk_promise_t *refusal;
  int err;

  if (hub == NULL)
    return NULL;
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (own.revision != NULL)
    key.revision = own.revision;
  if (err == TNK_EINVAL)
    why = "the size of the options is wrong";
  else if (model == NULL || file == NULL)
    why = "no model or no file was given";
  else
    why = tnk__cache_check(&key);
  if (err == TNK_OK && why != NULL)
    err = TNK_EINVAL;
  refusal = refuses(hub, "hub_file", err, why);
  if (refusal != NULL)
    return refusal;
  return tnk__hub_get_file(&hub->core, model, key.revision, file);
}

/* ---- Tokenizers ---- */

enum { MAX_OVERRIDES = 64 };

/* Files of a plug-in go by the same rules as those of a caller. */
static const char *check_files(const tnk__name_t *name,
                               const char *const *files) {
  tnk__cache_key_t key = {.model = name->id, .revision = name->revision};
  const char *why = NULL;

  for (; why == NULL && files != NULL && *files != NULL; files++) {
    key.file = *files;
    why = tnk__cache_check(&key);
  }
  return why;
}

static const char *check_plugin(const tnk_tokenizer_plugin_t *plugin) {
  if (plugin == NULL || plugin->size < sizeof(*plugin) ||
      plugin->open == NULL || plugin->close == NULL ||
      plugin->main_files == NULL || plugin->main_files[0] == NULL)
    return "the plug-in is none that this library knows";
  return NULL;
}

static const char *check_overrides(const tnk_hub_tokenizer_options_t *o) {
  if (o->n_overrides > MAX_OVERRIDES ||
      (o->n_overrides > 0 && o->overrides == NULL))
    return "overrides are missing or too many";
  for (size_t i = 0; i < o->n_overrides; i++)
    if (o->overrides[i].name == NULL || o->overrides[i].value == NULL)
      return "an override has no name or no value";
  return NULL;
}

/* TNK_OK with the source in `name`, or a code with *why. */
static int check_tokenizer(const tnk_hub_t *hub,
                           const tnk_tokenizer_plugin_t *plugin,
                           const char *model,
                           const tnk_hub_tokenizer_options_t *o,
                           tnk__name_t *name, const char **why) {
  const tnk_hub_options_t *config = &hub->config.options;
  int err;

  *why = model == NULL ? "no model was given" : check_plugin(plugin);
  if (*why == NULL)
    *why = check_overrides(o);
  if (*why != NULL)
    return TNK_EINVAL;
  err = tnk__name_resolve(name, model, o->tokenizer_id, o->revision,
                          config->tokenizer_rules, config->n_tokenizer_rules,
                          why);
  if (o->directory != NULL)
    name->directory = o->directory;
  if (err == TNK_EUNSUPPORTED && name->directory != NULL)
    err = TNK_OK;
  if (err != TNK_OK || name->directory != NULL)
    return err;
  *why = check_files(name, plugin->main_files);
  if (*why == NULL)
    *why = check_files(name, plugin->more_files);
  return *why == NULL ? TNK_OK : TNK_EINVAL;
}

tnk_promise_t *tnk_hub_tokenizer(tnk_hub_t *hub,
                                 const tnk_tokenizer_plugin_t *plugin,
                                 const char *model,
                                 const tnk_hub_tokenizer_options_t *options) {
  tnk_hub_tokenizer_options_t own = TNK_HUB_TOKENIZER_OPTIONS_INIT;
  const char *why = "the size of the options is wrong";
  tnk__tokenizer_request_t request;
  tnk_promise_t *refusal;
  tnk__name_t name;
  char what[224];
  int err;

  if (hub == NULL)
    return NULL;
  err = tnk__options_load(&own, sizeof(own), options, sizeof(own));
  if (err == TNK_OK)
    err = check_tokenizer(hub, plugin, model, &own, &name, &why);
  else if (err != TNK_EINVAL)
    why = NULL;
  snprintf(what, sizeof(what), "tokenizer of %.200s",
           model != NULL ? model : "nothing");
  refusal = refuses(hub, what, err, why);
  if (refusal != NULL)
    return refusal;
  request = (tnk__tokenizer_request_t){.plugin = plugin,
                                       .name = &name,
                                       .overrides = own.overrides,
                                       .n_overrides = own.n_overrides};
  return tnk__tokenizer_get(&hub->core, &request);
}
