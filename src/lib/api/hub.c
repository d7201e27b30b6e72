/* SPDX-License-Identifier: MIT */
#include "lib/api/hub.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/options.h"
#include "lib/files/fetch/files.h"
#include "lib/files/hub/cache.h"
#include "lib/files/hub/hub.h"
#include "lib/files/hub/tokenizer.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/url.h"

/* ---- Configuration ---- */

/* The variables and their meanings are those of Hugging Face's Python
 * library. */

enum { MAX_CONFIG = 1024 * 1024, MAX_TOKEN = 4096, MAX_PATH = 4096 };

enum { MAX_RULES = 1024 };

/* Parse a switch as the Python library does. */
static int is_true(const char *name) {
  static const char *const yes[] = {"1", "on", "yes", "true"};
  const char *value = tnk__env(name);

  for (size_t i = 0; value != NULL && i < sizeof(yes) / sizeof(yes[0]); i++)
    if (strcasecmp(value, yes[i]) == 0)
      return 1;
  return 0;
}

/* ---- Configuration: folders ---- */

/* Join a folder and a path, or expand a leading ~. NULL without memory or
 * without a home folder. */
static const char *join(tnk__hub_config_t *config, const char *folder,
                        const char *below) {
  const char *home = tnk__env("HOME");
  const int is_home = folder[0] == '~' && (folder[1] == '/' || !folder[1]);
  tnk__buf_t path;
  const char *text;

  if (is_home && home == NULL)
    return NULL;
  tnk__buf_init(&path, config->alloc, MAX_PATH);
  if (is_home)
    tnk__buf_text(&path, home);
  tnk__buf_text(&path, is_home ? folder + 1 : folder);
  tnk__buf_text(&path, below);
  text = tnk__buf_cstr(&path);
  text = text != NULL ? tnk__arena_strdup(&config->arena, text) : NULL;
  tnk__buf_deinit(&path);
  return text;
}

static const char *home_of_hub(tnk__hub_config_t *config, const char *below) {
  const char *folder = tnk__env("HF_HOME");
  char rest[64];

  if (folder != NULL)
    return join(config, folder, below);
  rest[0] = '\0';
  if (strlen(below) < sizeof(rest) - sizeof("/huggingface")) {
    memcpy(rest, "/huggingface", sizeof("/huggingface"));
    memcpy(rest + sizeof("/huggingface") - 1, below, strlen(below) + 1);
  }
  folder = tnk__env("XDG_CACHE_HOME");
  return join(config, folder != NULL ? folder : "~/.cache", rest);
}

static int load_cache(tnk__hub_config_t *config, const char **why) {
  tnk_hub_options_t *o = &config->options;
  const char *folder = o->cache_dir;

  if (folder == NULL || folder[0] == '\0')
    folder = tnk__env("HF_HUB_CACHE");
  if (folder == NULL)
    folder = tnk__env("HUGGINGFACE_HUB_CACHE");
  o->cache_dir =
      folder != NULL ? join(config, folder, "") : home_of_hub(config, "/hub");
  if (o->cache_dir != NULL)
    return TNK_OK;
  if (tnk__env("HOME") != NULL)
    return TNK_ENOMEM;
  *why = "no folder for the cache: set cache_dir or HF_HOME";
  return TNK_EINVAL;
}

/* ---- Configuration: the token ---- */

/* Copy a token without surrounding whitespace, as the Python library does.
 * Secrets of containers often end with a newline. NULL without memory; ""
 * counts as no token. */
static char *clean_token(const tnk_allocator_t *alloc, const char *text) {
  char *token = tnk__strdup(alloc, text);
  const size_t n_all = strlen(text);
  size_t n = 0;

  for (size_t i = 0; token != NULL && token[i] != '\0'; i++)
    if (strchr("\r\n", token[i]) == NULL && (n > 0 || token[i] != ' '))
      token[n++] = token[i];
  while (n > 0 && token[n - 1] == ' ')
    n--;
  if (token != NULL)
    memset(token + n, 0, n_all - n);
  return token;
}

static int read_token(tnk__hub_config_t *config) {
  const char *path = tnk__env("HF_TOKEN_PATH");
  char text[MAX_TOKEN] = "";

  path = path != NULL ? join(config, path, "") : home_of_hub(config, "/token");
  if (path == NULL && tnk__env("HOME") != NULL)
    return TNK_ENOMEM;
  /* An unreadable file counts as no token: most files need none. */
  if (path == NULL || tnk__files_read(path, text, sizeof(text)) != 0)
    text[0] = '\0';
  config->token = clean_token(config->alloc, text);
  tnk__wipe(text, sizeof(text));
  return config->token != NULL ? TNK_OK : TNK_ENOMEM;
}

/* The first token that is set, in the order of the Python library. */
static int find_token(tnk__hub_config_t *config) {
  const char *token = tnk__env("HF_TOKEN");

  if (token == NULL)
    token = tnk__env("HUGGING_FACE_HUB_TOKEN");
  if (token == NULL)
    return read_token(config);
  config->token = clean_token(config->alloc, token);
  if (config->token == NULL)
    return TNK_ENOMEM;
  if (config->token[0] != '\0')
    return TNK_OK;
  tnk__free(config->alloc, config->token);
  return read_token(config);
}

static int load_token(tnk__hub_config_t *config, const char **why) {
  const char *token = config->options.token;
  int err = TNK_OK;

  config->options.token = NULL;
  if (token != NULL) {
    config->token = tnk__strdup(config->alloc, token);
    err = config->token != NULL ? TNK_OK : TNK_ENOMEM;
  } else if (!is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
    err = find_token(config);
  }
  if (err != TNK_OK || config->token == NULL)
    return err;
  if (config->token[0] == '\0') {
    tnk__free(config->alloc, config->token);
    config->token = NULL;
  } else if (!tnk__http_is_field_value(config->token)) {
    *why = "the token has a character that cannot be sent";
    err = TNK_EINVAL;
  }
  return err;
}

/* ---- Configuration: the rest ---- */

static int load_proxies(tnk__hub_config_t *config, const tnk__url_t *endpoint,
                        const char **why) {
  tnk_hub_options_t *o = &config->options;
  const tnk__proxy_options_t options = {o->proxy, o->no_proxy, o->proxy_headers,
                                        o->n_proxy_headers};

  o->proxy = o->no_proxy = NULL;
  o->proxy_headers = NULL;
  o->n_proxy_headers = 0;
  return tnk__proxies_load(&config->proxies, config->alloc, &options, endpoint,
                           why);
}

static int load_endpoint(tnk__hub_config_t *config, const char **why) {
  tnk_hub_options_t *o = &config->options;
  const char *text = o->endpoint;
  tnk__url_t url;
  int err;

  if (text == NULL || text[0] == '\0')
    text = tnk__env("HF_ENDPOINT");
  if (text == NULL)
    text = "https://huggingface.co";
  err = tnk__url_parse(&url, &config->arena, text, why);
  if (err == TNK_OK)
    o->endpoint = url.text;
  else if (err == TNK_EINVAL)
    *why = "the endpoint is not an http:// or https:// URL";
  return err == TNK_OK ? load_proxies(config, &url, why) : err;
}

/* Replace a string by a copy in the arena; NULL stays NULL. Returns 0 without
 * memory. */
static int keep(tnk__hub_config_t *config, const char **text) {
  if (*text == NULL)
    return 1;
  *text = tnk__arena_strdup(&config->arena, *text);
  return *text != NULL;
}

static int load_rules(tnk__hub_config_t *config, const char **why) {
  tnk_hub_options_t *o = &config->options;
  const size_t n = o->n_tokenizer_rules;
  tnk_tokenizer_rule_t *rules;

  *why = NULL;
  if (n > MAX_RULES || (n > 0 && o->tokenizer_rules == NULL)) {
    *why = "tokenizer_rules are missing or too many";
    return TNK_EINVAL;
  }
  rules = tnk__arena_calloc(&config->arena, n + 1, sizeof(*rules));
  for (size_t i = 0; rules != NULL && i < n; i++) {
    rules[i] = o->tokenizer_rules[i];
    if (rules[i].model == NULL) {
      *why = "a rule of tokenizer_rules has no model";
      return TNK_EINVAL;
    }
    if (!keep(config, &rules[i].model) || !keep(config, &rules[i].tokenizer) ||
        !keep(config, &rules[i].revision) || !keep(config, &rules[i].directory))
      return TNK_ENOMEM;
  }
  o->tokenizer_rules = rules;
  return rules != NULL ? TNK_OK : TNK_ENOMEM;
}

static void load_numbers(tnk__hub_config_t *config) {
  tnk_hub_options_t *o = &config->options;

  if (o->max_retries == 0)
    o->max_retries = 4;
  else if (o->max_retries == UINT32_MAX)
    o->max_retries = 0;
  if (o->silence_timeout_ms == 0)
    o->silence_timeout_ms = 30000;
  if (o->max_tokenizers == 0)
    o->max_tokenizers = 32; /* the official client's number */
  config->is_offline =
      o->offline == TNK_YES ||
      (o->offline == TNK_DEFAULT &&
       is_true(tnk__env("HF_HUB_OFFLINE") != NULL ? "HF_HUB_OFFLINE"
                                                  : "TRANSFORMERS_OFFLINE"));
}

int tnk__hub_config_load(tnk__hub_config_t *config,
                         const tnk_allocator_t *alloc,
                         const tnk_hub_options_t *options, const char **why) {
  int err;

  memset(config, 0, sizeof(*config));
  config->alloc = alloc;
  config->options = *options;
  tnk__arena_init(&config->arena, alloc, MAX_CONFIG);
  err = load_token(config, why);
  if (err == TNK_OK)
    err = load_endpoint(config, why);
  if (err == TNK_OK)
    err = load_cache(config, why);
  if (err == TNK_OK)
    err = load_rules(config, why);
  if (err == TNK_OK && !keep(config, &config->options.ca_file))
    err = TNK_ENOMEM;
  load_numbers(config);
  if (err != TNK_OK)
    tnk__hub_config_deinit(config);
  return err;
}

void tnk__hub_config_deinit(tnk__hub_config_t *config) {
  tnk__free_secret(config->alloc, config->token);
  config->token = NULL;
  tnk__proxies_deinit(&config->proxies, config->alloc);
  tnk__arena_deinit(&config->arena);
}

/* ---- The hub ---- */

/* ---- The hub: opening ---- */

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

/* ---- The hub: closing ---- */

void tnk_hub_close(tnk_hub_t *hub, tnk_close_cb cb, void *user) {
  if (!TNK__HANDLE_AT(hub, root.magic, HUB) ||
      !tnk__root_begin_close(&hub->root, cb, user))
    return;
  tnk__hub_close(&hub->core);
  tnk__tokenizers_close(&hub->core);
  tnk__root_end_close(&hub->root);
}

/* ---- The hub: beginning ---- */

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

/* ---- The hub: tokenizers ---- */

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
