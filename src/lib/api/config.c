/* SPDX-License-Identifier: MIT */
#include "lib/api/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/options.h"
#include "lib/io/http/client.h"
#include "lib/policy/bounds.h"
#include "lib/policy/retry.h"
#include "lib/wire/data/check.h"
#include "lib/wire/data/credentials.h"
#include "lib/wire/format/jwt.h"
#include "tnk/error.h"

/* ---- The environment ---- */

const char *tnk__env(const char *name) {
  const char *value = getenv(name);

  return value != NULL && value[0] != '\0' ? value : NULL;
}

/* ---- Credentials ---- */

#define FILE_NAME "~/" TNK__CREDENTIALS_FILE

/* Read the whole file, up to the maximum size. */
static int read_all(FILE *file, tnk__buf_t *buf) {
  for (;;) {
    uint8_t *to = tnk__buf_reserve(buf, 4096);
    size_t n;
    if (to == NULL)
      return buf->err == TNK_ENOMEM ? TNK_ENOMEM : TNK_ECREDENTIAL;
    n = fread(to, 1, 4096, file);
    buf->len += n;
    if (n < 4096)
      return ferror(file) ? TNK_ECREDENTIAL : TNK_OK;
  }
}

/* The server of a key is shown in full, because the user may have several
 * servers. */
static int choose_stored(const tnk_allocator_t *alloc, const json_t *store,
                         const tnk__url_t *url, char **key, char *why,
                         size_t size) {
  /* A mixed-up variable may contain a key. */
  const char *server =
      strstr(url->text, "tml-") == NULL ? url->text : "this server";
  tnk__stored_key_t record;

  switch (tnk__credentials_find(&record, store, url)) {
  case TNK__STORED_FOUND:
    *key = tnk__strdup(alloc, record.key);
    return *key != NULL ? TNK_OK : TNK_ENOMEM;
  case TNK__STORED_ELSEWHERE:
    snprintf(why, size,
             "no API key for %.70s: that of " FILE_NAME " is for %.70s", server,
             record.base_url);
    return TNK_ECREDENTIAL;
  case TNK__STORED_EXPOSED:
    snprintf(why, size,
             "the API key of " FILE_NAME " names no server, so it is not sent "
             "to %.70s, without TLS: set TINKER_API_KEY",
             server);
    return TNK_ECREDENTIAL;
  default:
    return TNK_OK;
  }
}

static int take(const tnk_allocator_t *alloc, const tnk__buf_t *buf,
                const tnk__url_t *url, char **key, char *why, size_t size) {
  json_t *store;
  int err = tnk__credentials_open(&store, buf->data, buf->len);

  if (err == TNK_OK)
    err = choose_stored(alloc, store, url, key, why, size);
  else if (err == TNK_ECREDENTIAL)
    snprintf(why, size, FILE_NAME " is no credentials file");
  tnk__credentials_close(store);
  return err;
}

/* Open the file. Returns TNK_OK with NULL if it does not exist. */
static int open_file(FILE **file, char *why, size_t size) {
  const char *home = tnk__env("HOME");
  char path[4096];
  int n;

  *file = NULL;
  if (home == NULL)
    return TNK_OK;
  n = snprintf(path, sizeof(path), "%s/" TNK__CREDENTIALS_FILE, home);
  if (n < 0 || (size_t)n >= sizeof(path))
    return TNK_OK;
  *file = fopen(path, "re");
  if (*file != NULL || errno == ENOENT || errno == ENOTDIR)
    return TNK_OK;
  snprintf(why, size, "cannot read " FILE_NAME ": %.80s", strerror(errno));
  return TNK_ECREDENTIAL;
}

/* Read the stored key for a base URL from ~/.tinker/credentials.json. Returns
 * TNK_OK with *key NULL if no key is stored or the file does not exist. Returns
 * TNK_ECREDENTIAL with the reason in `why` if the file is invalid or its key is
 * for another server. Otherwise returns TNK_ENOMEM. Protocol: transport, stored
 * credentials. */
static int credentials_read(const tnk_allocator_t *alloc, const tnk__url_t *url,
                            char **key, char *why, size_t size) {
  tnk__buf_t buf;
  FILE *file;
  int err = open_file(&file, why, size);

  *key = NULL;
  if (file == NULL)
    return err;
  tnk__buf_init(&buf, alloc, TNK__MAX_CREDENTIALS);
  err = read_all(file, &buf);
  fclose(file);
  if (err == TNK_OK)
    err = take(alloc, &buf, url, key, why, size);
  else
    snprintf(why, size, "cannot read " FILE_NAME);
  if (buf.data != NULL)
    tnk__wipe(buf.data, buf.cap);
  tnk__buf_deinit(&buf);
  return err;
}

int tnk__key_check(const tnk_allocator_t *alloc, const char *key,
                   int64_t *expires_s, const char **why) {
  tnk__jwt_t jwt;

  *expires_s = 0;
  if (!tnk__token_is_sound(key)) {
    *why = "the API key has an invalid character or is too long";
    return TNK_ECREDENTIAL;
  }
  if (strncmp(key, "tml-", 4) == 0)
    return TNK_OK;
  if (!tnk__token_is_jwt(key)) {
    *why = "the API key must start with tml-, or with eyJ if it is a JWT";
    return TNK_ECREDENTIAL;
  }
  if (tnk__jwt_read(&jwt, alloc, key) != TNK_OK)
    return TNK_ENOMEM;
  *expires_s = jwt.expires_s;
  if (*expires_s > 0)
    return TNK_OK;
  *why = "the API key is a JWT without a valid expiry time";
  return TNK_ECREDENTIAL;
}

/* ---- Proxies ---- */

/*
 * The variables and their order are curl's. HTTP_PROXY in capital letters is
 * ignored: in a CGI program it is a header of the request.
 */

static const char *either(const char *small, const char *capital) {
  const char *value = tnk__env(small);

  return value != NULL ? value : tnk__env(capital);
}

static const char *variable(int is_tls) {
  const char *value =
      is_tls ? either("https_proxy", "HTTPS_PROXY") : tnk__env("http_proxy");

  return value != NULL ? value : either("all_proxy", "ALL_PROXY");
}

static int load(tnk__proxy_t *out, const tnk_allocator_t *alloc,
                const tnk__proxy_options_t *o, int is_tls, const char **why) {
  const char *text = o->proxy != NULL ? o->proxy : variable(is_tls);
  int err;

  if (text == NULL || text[0] == '\0')
    return TNK_OK;
  err = tnk__proxy_parse(out, alloc, text, o->headers, o->n_headers, why);
  if (err == TNK_EINVAL && o->proxy == NULL) {
    out->why = *why;
    err = TNK_OK;
  }
  return err;
}

/* Exceptions from the environment apply only to proxies from the
 * environment. */
static int load_exceptions(tnk__proxies_t *out, const tnk_allocator_t *alloc,
                           const tnk__proxy_options_t *o) {
  const char *text = o->no_proxy;

  if (text == NULL && o->proxy == NULL)
    text = either("no_proxy", "NO_PROXY");
  if (text == NULL)
    return TNK_OK;
  out->no_proxy = tnk__strdup(alloc, text);
  return out->no_proxy != NULL ? TNK_OK : TNK_ENOMEM;
}

int tnk__proxies_load(tnk__proxies_t *out, const tnk_allocator_t *alloc,
                      const tnk__proxy_options_t *options,
                      const tnk__url_t *url, const char **why) {
  const tnk__proxy_t *proxy;
  const char *wrong = NULL;
  int err = load(&out->https, alloc, options, 1, &wrong);

  if (err == TNK_OK)
    err = load(&out->http, alloc, options, 0, &wrong);
  if (err == TNK_OK)
    err = load_exceptions(out, alloc, options);
  if (err == TNK_OK) {
    proxy = tnk__proxies_find(out, url->host, url->port, url->is_tls);
    wrong = proxy != NULL ? proxy->why : NULL;
    err = wrong != NULL ? TNK_EINVAL : TNK_OK;
  }
  if (err == TNK_EINVAL)
    *why = wrong;
  return err;
}

/* ---- Configuration ---- */

enum { MAX_CONFIG = 4 * 1024 * 1024, MAX_PAIRS = 1024 };

/* The option, else the variable, else `fallback`. An empty string counts as
 * absent. */
static const char *choose(const char *explicit_text, const char *variable,
                          const char *fallback) {
  const char *value = NULL;

  if (explicit_text != NULL && explicit_text[0] != '\0')
    return explicit_text;
  if (variable != NULL)
    value = tnk__env(variable);
  return value != NULL ? value : fallback;
}

/* Replace a string by a copy in the arena; NULL stays NULL. */
static int keep(tnk__config_t *config, const char **text) {
  if (*text == NULL)
    return TNK_OK;
  *text = tnk__arena_strdup(&config->arena, *text);
  return *text != NULL ? TNK_OK : TNK_ENOMEM;
}

static int keep_pairs(tnk__config_t *config, const tnk_pair_t *from, size_t n,
                      tnk_pair_t *to) {
  size_t i;

  for (i = 0; i < n; i++) {
    to[i] = from[i];
    if (keep(config, &to[i].name) != TNK_OK ||
        keep(config, &to[i].value) != TNK_OK)
      return TNK_ENOMEM;
  }
  return TNK_OK;
}

static int load_metadata(tnk__config_t *config) {
  tnk_service_options_t *o = &config->options;
  tnk_pair_t *copy;
  int err;

  copy =
      tnk__arena_calloc(&config->arena, o->n_user_metadata + 1, sizeof(*copy));
  if (copy == NULL)
    return TNK_ENOMEM;
  err = keep_pairs(config, o->user_metadata, o->n_user_metadata, copy);
  o->user_metadata = copy;
  return err;
}

/* Headers from the environment come first, so that the caller's headers
 * override them. */
static int load_headers(tnk__config_t *config) {
  static const tnk_pair_t variables[] = {
      {"CF-Access-Client-Id", "CLOUDFLARE_ACCESS_CLIENT_ID"},
      {"CF-Access-Client-Secret", "CLOUDFLARE_ACCESS_CLIENT_SECRET"}};
  const size_t n_variables = sizeof(variables) / sizeof(variables[0]);
  tnk_service_options_t *o = &config->options;
  size_t n = 0;
  size_t i;
  int err;

  config->headers = tnk__arena_calloc(
      &config->arena, n_variables + o->n_headers, sizeof(*config->headers));
  if (config->headers == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n_variables; i++) {
    tnk_pair_t header = {variables[i].name, tnk__env(variables[i].value)};
    if (header.value == NULL)
      continue;
    if (keep(config, &header.value) != TNK_OK)
      return TNK_ENOMEM;
    config->headers[n++] = header;
  }
  err = keep_pairs(config, o->headers, o->n_headers, config->headers + n);
  config->n_headers = n + o->n_headers;
  return err;
}

/* Split at commas, trim, and drop empty and repeated tags. */
static int load_tags(tnk__config_t *config) {
  const char *text = choose(config->options.tags, "TINKER_TAGS", "");
  size_t n_max = 1;
  const char *c;
  size_t i;

  for (c = text; *c != '\0'; c++)
    n_max += *c == ',';
  config->tags =
      tnk__arena_calloc(&config->arena, n_max, sizeof(*config->tags));
  if (config->tags == NULL)
    return TNK_ENOMEM;
  while (*text != '\0') {
    size_t n = strcspn(text, ",");
    size_t first = strspn(text, " \t");
    size_t last = n;
    char *tag;
    while (last > first && (text[last - 1] == ' ' || text[last - 1] == '\t'))
      last--;
    if (last > first) {
      tag = tnk__arena_strndup(&config->arena, text + first, last - first);
      if (tag == NULL)
        return TNK_ENOMEM;
      for (i = 0; i < config->n_tags; i++)
        if (strcmp(config->tags[i], tag) == 0)
          break;
      config->tags[i] = tag;
      config->n_tags += i == config->n_tags;
    }
    text += n + (text[n] == ',');
  }
  return TNK_OK;
}

/* An invalid key gives way to the credential command. An unusable JWT is an
 * error, because a JWT has priority over everything else. */
static int check_key(tnk__config_t *config, int64_t now_s, const char **why) {
  int err = tnk__key_check(config->alloc, config->api_key,
                           &config->key_expires_s, why);

  if (err == TNK_OK && config->key_expires_s != 0 &&
      config->key_expires_s <= now_s) {
    *why = "the API key, a JWT, has expired";
    return TNK_ECREDENTIAL;
  }
  if (err != TNK_ECREDENTIAL || config->credential_cmd == NULL ||
      tnk__token_is_jwt(config->api_key))
    return err;
  tnk__free_secret(config->alloc, config->api_key);
  config->api_key = NULL;
  return TNK_OK;
}

static int keep_secret(tnk__config_t *config, char **out, const char *text) {
  if (text != NULL)
    *out = tnk__strdup(config->alloc, text);
  return text == NULL || *out != NULL ? TNK_OK : TNK_ENOMEM;
}

/* The credential from the program or the environment. Protocol: transport,
 * provider selection. */
static int load_credential(tnk__config_t *config, int64_t now_s,
                           const char **why) {
  tnk_service_options_t *o = &config->options;
  const char *key = choose(o->api_key, "TINKER_API_KEY", NULL);
  const char *command =
      choose(o->credential_cmd, "TINKER_CREDENTIAL_CMD", NULL);
  int err;

  o->api_key = o->credential_cmd = NULL;
  err = keep_secret(config, &config->credential_cmd, command);
  if (err == TNK_OK)
    err = keep_secret(config, &config->api_key, key);
  if (err == TNK_OK && key != NULL)
    err = check_key(config, now_s, why);
  return err;
}

/* The last source: the stored key for this server. */
static int load_stored_key(tnk__config_t *config, int64_t now_s,
                           const char **why) {
  int err;

  if (config->api_key != NULL || config->credential_cmd != NULL)
    return TNK_OK;
  err = credentials_read(config->alloc, &config->url, &config->api_key,
                         config->complaint, sizeof(config->complaint));
  if (err == TNK_ECREDENTIAL)
    *why = config->complaint;
  if (err == TNK_OK && config->api_key != NULL)
    return check_key(config, now_s, why);
  if (err != TNK_OK)
    return err;
  *why = "no API key: set api_key or TINKER_API_KEY, or store one with tnk "
         "auth login";
  return TNK_ECREDENTIAL;
}

/* Returns whether a string may be shown. A URL with a user name may contain a
 * password, and a mixed-up variable may contain the key. */
static int is_harmless(const tnk__config_t *config, const char *text) {
  return strchr(text, '@') == NULL && strstr(text, "tml-") == NULL &&
         (config->api_key == NULL || strstr(text, config->api_key) == NULL);
}

/* Stored in normalized form, so that equal services have equal strings. */
static int load_base_url(tnk__config_t *config, const char **why) {
  tnk_service_options_t *o = &config->options;
  const int is_option = o->base_url != NULL && o->base_url[0] != '\0';
  const char *text = choose(o->base_url, "TINKER_BASE_URL", TNK__HOSTED_URL);
  int err = tnk__url_parse(&config->url, &config->arena, text, why);

  if (err == TNK_OK)
    o->base_url = config->url.text;
  if (err != TNK_EINVAL || !is_harmless(config, text))
    return err;
  snprintf(config->complaint, sizeof(config->complaint), "%s: %s is \"%.60s\"",
           *why, is_option ? "base_url" : "TINKER_BASE_URL", text);
  *why = config->complaint;
  return err;
}

static int load_proxies(tnk__config_t *config, const char **why) {
  tnk_service_options_t *o = &config->options;
  const tnk__proxy_options_t options = {o->proxy, o->no_proxy, o->proxy_headers,
                                        o->n_proxy_headers};

  o->proxy = o->no_proxy = NULL;
  o->proxy_headers = NULL;
  o->n_proxy_headers = 0;
  return tnk__proxies_load(&config->proxies, config->alloc, &options,
                           &config->url, why);
}

/* The key of a certificate is in the same file unless another file is named. */
static int load_identity(tnk__config_t *config, const char **why) {
  tnk_service_options_t *o = &config->options;
  const int is_option = o->cert_file != NULL && o->cert_file[0] != '\0';

  o->cert_file = choose(o->cert_file, "TNK_CERT_FILE", NULL);
  o->key_file =
      choose(o->key_file, is_option ? NULL : "TNK_KEY_FILE", o->cert_file);
  if (o->cert_file == NULL && o->key_file != NULL) {
    *why = "key_file or TNK_KEY_FILE is set without cert_file or TNK_CERT_FILE";
    return TNK_EINVAL;
  }
  return keep(config, &o->cert_file) == TNK_OK ? keep(config, &o->key_file)
                                               : TNK_ENOMEM;
}

/* There is no environment variable: the header is not part of the protocol, so
 * only the program can enable it. */
static int load_trace(tnk__config_t *config, const char **why) {
  const char *text = config->options.traceparent;

  if (text == NULL || tnk__traceparent_read(&config->trace, text)) {
    config->options.traceparent = NULL;
    return TNK_OK;
  }
  *why = "traceparent is not 00-<32 digits>-<16 digits>-<2 digits>, "
         "in lowercase hexadecimal, with ids that are not 0";
  return TNK_EINVAL;
}

static int load_texts(tnk__config_t *config) {
  tnk_service_options_t *o = &config->options;

  o->project_id = choose(o->project_id, "TINKER_PROJECT_ID", NULL);
  o->dump_file = choose(o->dump_file, "TNK_DUMP_FILE", NULL);
  if (keep(config, &o->dump_file) != TNK_OK ||
      keep(config, &o->project_id) != TNK_OK ||
      keep(config, &o->display_name) != TNK_OK ||
      keep(config, &o->ca_file) != TNK_OK)
    return TNK_ENOMEM;
  return TNK_OK;
}

static void load_numbers(tnk_service_options_t *o) {
  if (o->connect_timeout_ms == 0)
    o->connect_timeout_ms = TNK__CONNECT_MS;
  if (o->timeout_ms == 0)
    o->timeout_ms = TNK__TIMEOUT_MS;
  if (o->poll_timeout_ms == 0)
    o->poll_timeout_ms = TNK__POLL_TIMEOUT_MS;
  if (o->max_retries == 0)
    o->max_retries = 10;
  else if (o->max_retries == UINT32_MAX)
    o->max_retries = 0;
  if (o->patience_ms == 0)
    o->patience_ms = TNK__RETRY_PATIENCE_MS;
  if (o->recovery_attempts == 0)
    o->recovery_attempts = 3;
  if (o->recovery_delay_ms == 0)
    o->recovery_delay_ms = 5000;
  if (o->recovery_max_delay_ms == 0)
    o->recovery_max_delay_ms = 60000;
  if (o->recovery_poll_ms == 0)
    o->recovery_poll_ms = 30000;
  if (o->recovery_breaker_ms == 0)
    o->recovery_breaker_ms = 30000;
  if (o->max_polls == 0)
    o->max_polls = 2048;
  if (o->max_pending == 0)
    o->max_pending = 1048576;
}

/* The option, or the variable. */
static int load_version(tnk_service_options_t *o, const char **why) {
  static const char *const names[] = {
      [TNK_HTTP_AUTO] = "auto",
      [TNK_HTTP_1_1] = "1.1",
      [TNK_HTTP_2] = "2",
      [TNK_HTTP_2_PRIOR_KNOWLEDGE] = "2-prior-knowledge",
  };
  const char *name = tnk__env("TNK_HTTP_VERSION");
  const int n = sizeof(names) / sizeof(names[0]);
  int i = 0;

  if (o->http_version == TNK_HTTP_AUTO && name != NULL) {
    while (i < n && strcmp(name, names[i]) != 0)
      i++;
    o->http_version = (tnk_http_version_t)i;
    *why = "TNK_HTTP_VERSION is not one of auto, 1.1, 2, 2-prior-knowledge";
  } else {
    *why = "http_version is not a value of tnk_http_version_t";
  }
  if ((int)o->http_version < 0 || (int)o->http_version >= n)
    return TNK_EINVAL;
  *why = "HTTP/2 was requested, but this library was built without nghttp2";
  if (o->http_version >= TNK_HTTP_2 && tnk__http2_library() == NULL)
    return TNK_EINVAL;
  *why = NULL;
  return TNK_OK;
}

/* Check the options that are sent unchanged. The error message is stored in
 * `config`. */
static int check_options(tnk__config_t *config, const char **why) {
  const tnk_service_options_t *o = &config->options;
  char *text = config->complaint;
  const size_t size = sizeof(config->complaint);
  int err;

  if (o->limiter_scope > TNK_LIMITER_PRIVATE) {
    *why = "limiter_scope is not a value of tnk_limiter_scope_t";
    return TNK_EINVAL;
  }
  if (o->n_user_metadata > MAX_PAIRS || o->n_headers > MAX_PAIRS) {
    *why = "more than 1,024 headers or user_metadata";
    return TNK_EINVAL;
  }
  err = tnk__check_headers(o->headers, o->n_headers, text, size);
  if (err == TNK_OK)
    err = tnk__check_pairs("user_metadata", o->user_metadata,
                           o->n_user_metadata, text, size);
  if (err == TNK_OK)
    err = tnk__check_optional("display_name", o->display_name, text, size);
  if (err != TNK_OK)
    *why = text;
  return err;
}

/* As above, for values from the environment. */
static int check_loaded(tnk__config_t *config, const char **why) {
  char *text = config->complaint;
  const size_t size = sizeof(config->complaint);
  size_t i;
  int err = tnk__check_headers(config->headers, config->n_headers, text, size);

  if (err == TNK_OK)
    err = tnk__check_optional("project_id", config->options.project_id, text,
                              size);
  for (i = 0; i < config->n_tags && err == TNK_OK; i++)
    err = tnk__check_optional("a tag", config->tags[i], text, size);
  if (err != TNK_OK)
    *why = text;
  return err;
}

int tnk__config_load(tnk__config_t *config, const tnk_allocator_t *alloc,
                     const tnk_service_options_t *options, int64_t now_s,
                     const char **why) {
  int err;

  memset(config, 0, sizeof(*config));
  config->alloc = alloc;
  config->options = *options;
  tnk__arena_init(&config->arena, alloc, MAX_CONFIG);
  err = load_version(&config->options, why);
  if (err == TNK_OK)
    err = check_options(config, why);
  if (err == TNK_OK)
    err = load_credential(config, now_s, why);
  if (err == TNK_OK)
    err = load_base_url(config, why);
  if (err == TNK_OK)
    err = load_stored_key(config, now_s, why);
  if (err == TNK_OK)
    err = load_proxies(config, why);
  if (err == TNK_OK)
    err = load_identity(config, why);
  if (err == TNK_OK)
    err = load_trace(config, why);
  if (err == TNK_OK)
    err = load_texts(config);
  if (err == TNK_OK)
    err = load_metadata(config);
  if (err == TNK_OK)
    err = load_headers(config);
  if (err == TNK_OK)
    err = load_tags(config);
  if (err == TNK_OK)
    err = check_loaded(config, why);
  load_numbers(&config->options);
  if (err != TNK_OK)
    tnk__config_deinit(config);
  return err;
}

void tnk__config_deinit(tnk__config_t *config) {
  tnk__free_secret(config->alloc, config->api_key);
  tnk__free_secret(config->alloc, config->credential_cmd);
  config->api_key = config->credential_cmd = NULL;
  tnk__proxies_deinit(&config->proxies, config->alloc);
  /* Headers may be secrets too, such as CF-Access-Client-Secret. */
  tnk__arena_deinit_secret(&config->arena);
}
