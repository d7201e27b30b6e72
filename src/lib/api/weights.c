/* SPDX-License-Identifier: MIT */
/* The entry points of include/tnk/weights.h. */
#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/options.h"
#include "lib/files/age/key.h"
#include "lib/store/ask.h"

enum {
  DEFAULT_PARALLEL = 4,
  MAX_PARALLEL = 64,
  DEFAULT_RETRIES = 10,
  DEFAULT_SILENCE_MS = 30000,
  MAX_DIRECTORY = 3072 /* leaves space in the path for the files below */
};

/* Copy the path to `out` without trailing slashes. */
static int check_directory(const char *directory, char out[MAX_DIRECTORY],
                           char *why, size_t size) {
  size_t n = directory != NULL ? strlen(directory) : 0;
  const char *last;

  while (n > 1 && directory[n - 1] == '/')
    n--;
  if (n == 0 || n >= MAX_DIRECTORY) {
    snprintf(why, size, "directory is %s", n == 0 ? "empty" : "too long");
    return TNK_EINVAL;
  }
  memcpy(out, directory, n);
  out[n] = '\0';
  last = strrchr(out, '/');
  last = last != NULL ? last + 1 : out;
  /* Such a directory cannot be replaced by another one. */
  if (last[0] == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
    snprintf(why, size, "directory has no name of its own: \"%.64s\"", out);
    return TNK_EINVAL;
  }
  return TNK_OK;
}

static int check_source(const char *path, int is_archive, char *why,
                        size_t size) {
  tnk_path_t parts = TNK_PATH_INIT;
  const int err = tnk__ask_check_path(path, 0, why, size);

  if (err != TNK_OK || is_archive || tnk_path_parse(&parts, path) != TNK_OK ||
      parts.kind != TNK_PATH_SAMPLER_WEIGHTS)
    return err;
  snprintf(
      why, size,
      "path is of sampler_weights, which cannot be downloaded: weights and "
      "external_weights can");
  return TNK_EINVAL;
}

static int check_options(tnk_weights_options_t *options, char *why,
                         size_t size) {
  if (options->max_parallel > MAX_PARALLEL) {
    snprintf(why, size, "max_parallel is %lu: at most %d",
             (unsigned long)options->max_parallel, MAX_PARALLEL);
    return TNK_EINVAL;
  }
  if (options->archive == TNK_YES && options->identity != NULL) {
    snprintf(why, size, "identity and archive: no archive is encrypted");
    return TNK_EINVAL;
  }
  if (options->max_parallel == 0)
    options->max_parallel = DEFAULT_PARALLEL;
  if (options->max_retries == 0)
    options->max_retries = DEFAULT_RETRIES;
  else if (options->max_retries == UINT32_MAX)
    options->max_retries = 0;
  if (options->silence_timeout_ms == 0)
    options->silence_timeout_ms = DEFAULT_SILENCE_MS;
  return TNK_OK;
}

static int read_identity(const char *text, uint8_t out[TNK__AGE_KEY], char *why,
                         size_t size) {
  const char *wrong = tnk__age_identity_read(out, text);

  if (wrong == NULL)
    return TNK_OK;
  snprintf(why, size, "the identity %s", wrong);
  return TNK_EINVAL;
}

tnk_promise_t *tnk_weights_download(tnk_service_t *service, const char *path,
                                    const char *directory,
                                    const tnk_weights_options_t *options) {
  tnk_weights_options_t own = TNK_WEIGHTS_OPTIONS_INIT;
  char target[MAX_DIRECTORY];
  uint8_t identity[TNK__AGE_KEY];
  char why[TNK__MAX_WHY] = "";
  tnk_promise_t *refusal;
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_weights_options_t, &own, options, why, sizeof(why));
  if (err == TNK_OK)
    err = check_source(path, own.archive == TNK_YES, why, sizeof(why));
  if (err == TNK_OK)
    err = check_directory(directory, target, why, sizeof(why));
  if (err == TNK_OK)
    err = check_options(&own, why, sizeof(why));
  if (err == TNK_OK && own.identity != NULL)
    err = read_identity(own.identity, identity, why, sizeof(why));
  refusal = tnk__service_refuses(&service->session, "download", err, why);
  if (refusal == NULL)
    refusal = tnk__weights_download(&service->weights, path, target, &own,
                                    own.identity != NULL ? identity : NULL);
  tnk__wipe(identity, sizeof(identity));
  return refusal;
}
