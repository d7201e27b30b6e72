#include "lib/api/hub_config.h"

#include <string.h>
#include <strings.h>

#include "lib/api/env.h"
#include "lib/api/proxy.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/files/fetch/files.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/url.h"

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

/* ---- Folders ---- */

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

/* ---- The token ---- */

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
    *why = "the token holds a character that cannot be sent";
    err = TNK_EINVAL;
  }
  return err;
}

/* ---- The rest ---- */

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
    *why = "the endpoint is no http:// or https:// URL";
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
