#include "lib/api/hub.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/hub_config.h"
#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "lib/files/hub/cache.h"
#include "lib/files/hub/operations.h"
#include "lib/files/hub/tokenizer.h"

/* ---- Opening ---- */

static tnk_hub_t *hub_of(tnk__root_t *root) {
  return tnk__container_of(root, tnk_hub_t, root);
}

static void close_left(tnk__root_t *root) {
  tnk_hub_close(hub_of(root), NULL, NULL);
}

static void free_rest(tnk__root_t *root) {
  tnk__hub_config_deinit(&hub_of(root)->config);
}

static const tnk__root_kind_t kind = {.magic = TNK__MAGIC_HUB,
                                      .size = sizeof(tnk_hub_t),
                                      .close = close_left,
                                      .free_rest = free_rest};

static int open_parts(tnk_hub_t *hub, uv_loop_t *loop,
                      const tnk_hub_options_t *options, const char **why) {
  const tnk_hub_options_t *o = &hub->config.options;
  tnk__root_t *root = &hub->root;
  tnk__http_options_t http = {0};
  int err = tnk__hub_config_load(&hub->config, &root->alloc, options, why);

  if (err != TNK_OK)
    return err;
  http.ca_file = o->ca_file;
  http.proxies = &hub->config.proxies;
  http.load_trust = o->ca_file != NULL;
  http.connect_timeout_ms = o->connect_timeout_ms;
  /* Large files use one connection each, for full speed. */
  http.version = TNK__HTTP_1_1;
  http.max_in_flight[TNK__LANE_POLL] = 1; /* not used */
  http.max_in_flight[TNK__LANE_TRAIN_POLL] = 1;
  err = tnk__root_start(root, loop, options->logger, &http, why);
  root->context.observer = o->observer;
  root->context.observer_user = o->observer_user;
  if (err == TNK_OK)
    tnk__hub_open(&hub->core, &root->context, &root->http, &hub->config);
  return err;
}

int tnk_hub_open(tnk_hub_t **out, uv_loop_t *loop,
                 const tnk_hub_options_t *options, char *why, size_t why_size) {
  tnk_hub_options_t own = TNK_HUB_OPTIONS_INIT;
  char text[TNK__MAX_WHY];
  const char *said = text;
  tnk__root_t *root = NULL;
  int err;

  if (out == NULL)
    return tnk__root_say(why, why_size, TNK_EINVAL, "out is NULL");
  err = TNK__LOAD(tnk_hub_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__root_new(&root, &kind, loop, own.allocator, &said);
  if (err == TNK_OK)
    err = open_parts(hub_of(root), loop, &own, &said);
  tnk__root_finish(root, err, said, why, why_size);
  *out = err == TNK_OK ? hub_of(root) : NULL;
  return err;
}

/* ---- Closing ---- */

void tnk_hub_close(tnk_hub_t *hub, tnk_close_cb cb, void *user) {
  if (!TNK__HANDLE_AT(hub, root.magic, HUB) ||
      !tnk__root_begin_close(&hub->root, cb, user))
    return;
  tnk__hub_close(&hub->core);
  tnk__tokenizers_close(&hub->core);
  tnk__root_end_close(&hub->root);
}

/* ---- Beginning ---- */

static int check_hub(const tnk_hub_t *hub) {
  const int err = tnk__context_check_caller(&hub->root.context);

  return err == TNK_OK && hub->root.closing ? TNK_ECLOSED : err;
}

/* The promise that rejects a call, or NULL if the call may start. Errors of the
 * hub have priority over errors of the call. */
static tnk_promise_t *refuses(tnk_hub_t *hub, const char *name, int err,
                              const char *why) {
  tnk__context_t *context = &hub->root.context;
  const int hub_err = check_hub(hub);

  if (hub_err != TNK_OK)
    return tnk__root_reject(context, hub_err, name, NULL);
  return err != TNK_OK ? tnk__root_reject(context, err, name, why) : NULL;
}

/* Convert a SHA-256 to lower-case digits. Returns 0 if it is not valid. */
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
  char said[TNK__MAX_WHY];
  const char *why = said;
  tnk_promise_t *refusal;
  char sum[65] = "";
  int err;

  if (!TNK__HANDLE_AT(hub, root.magic, HUB))
    return NULL;
  err = TNK__LOAD(tnk_download_options_t, &own, options, said, sizeof(said));
  if (err == TNK_OK) {
    why = NULL;
    if (url == NULL)
      why = "no URL was given";
    else if (path == NULL || path[0] == '\0')
      why = "no path was given";
    else if (own.sha256 != NULL && !normal_sum(sum, own.sha256))
      why = "sha256 is not 64 hexadecimal digits";
    if (why != NULL)
      err = TNK_EINVAL;
  }
  refusal = refuses(hub, "download", err, why);
  if (refusal != NULL)
    return refusal;
  return tnk__hub_download(&hub->core, url, path, sum[0] != '\0' ? sum : NULL,
                           &own);
}

tnk_promise_t *tnk_hub_file(tnk_hub_t *hub, const char *model, const char *file,
                            const tnk_hub_file_options_t *options) {
  tnk_hub_file_options_t own = TNK_HUB_FILE_OPTIONS_INIT;
  tnk__cache_key_t key = {.model = model, .file = file, .revision = "main"};
  char said[TNK__MAX_WHY];
  const char *why = said;
  tnk_promise_t *refusal;
  int err;

  if (!TNK__HANDLE_AT(hub, root.magic, HUB))
    return NULL;
  err = TNK__LOAD(tnk_hub_file_options_t, &own, options, said, sizeof(said));
  if (own.revision != NULL)
    key.revision = own.revision;
  if (err == TNK_OK) {
    why = model == NULL || file == NULL ? "no model or no file was given"
                                        : tnk__cache_check(&key);
    if (why != NULL)
      err = TNK_EINVAL;
  }
  refusal = refuses(hub, "hub_file", err, why);
  if (refusal != NULL)
    return refusal;
  return tnk__hub_file(&hub->core, model, key.revision, file);
}

/* ---- Tokenizers ---- */

enum { MAX_OVERRIDES = 64 };

/* The files of a plug-in must pass the same checks as those of a caller. */
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
  if (plugin->open == NULL || plugin->close == NULL)
    return "the plug-in cannot open or close a tokenizer";
  if (plugin->main_files == NULL || plugin->main_files[0] == NULL)
    return "the plug-in names no file";
  return NULL;
}

/* The plug-in may have been built with an older or newer version of the
 * struct. */
static int load_plugin(tnk_tokenizer_plugin_t *own,
                       const tnk_tokenizer_plugin_t *plugin, char *why,
                       size_t why_size) {
  if (plugin == NULL) {
    snprintf(why, why_size, "no plug-in was given");
    return TNK_EINVAL;
  }
  return TNK__LOAD(tnk_tokenizer_plugin_t, own, plugin, why, why_size);
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

/* Returns TNK_OK with the source in `name`, or an error with *why. */
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
  tnk_tokenizer_plugin_t calls = TNK_TOKENIZER_PLUGIN_INIT;
  char said[TNK__MAX_WHY];
  const char *why = said;
  tnk__tokenizer_request_t request;
  tnk_promise_t *refusal;
  tnk__name_t name;
  char what[224];
  int err;

  if (!TNK__HANDLE_AT(hub, root.magic, HUB))
    return NULL;
  err =
      TNK__LOAD(tnk_hub_tokenizer_options_t, &own, options, said, sizeof(said));
  if (err == TNK_OK)
    err = load_plugin(&calls, plugin, said, sizeof(said));
  if (err == TNK_OK)
    err = check_tokenizer(hub, &calls, model, &own, &name, &why);
  snprintf(what, sizeof(what), "tokenizer of %.200s",
           model != NULL ? model : "nothing");
  refusal = refuses(hub, what, err, why);
  if (refusal != NULL)
    return refusal;
  request = (tnk__tokenizer_request_t){.plugin = plugin,
                                       .calls = calls,
                                       .name = &name,
                                       .overrides = own.overrides,
                                       .n_overrides = own.n_overrides};
  return tnk__tokenizer_get(&hub->core, &request);
}

int tnk_hub_forget(tnk_hub_t *hub, const void *tokenizer) {
  const int err =
      TNK__HANDLE_AT(hub, root.magic, HUB) ? check_hub(hub) : TNK_EINVAL;

  if (err == TNK_OK)
    tnk__tokenizers_forget(&hub->core, tokenizer);
  return err;
}
