/* SPDX-License-Identifier: MIT */
/* The entry points of include/tnk/push.h. */
#include "lib/files/push/push.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/hub.h"
#include "lib/base/misuse.h"
#include "lib/base/options.h"
#include "lib/files/push/card.h"
#include "lib/wire/format/relative.h"

enum { MAX_PATTERNS = 256, MAX_TEXT = 512 };

/* The strings go into a model card and into lines of JSON. A line end could add
 * to the card. */
static int is_line(const char *text) {
  if (text == NULL)
    return 1;
  return strlen(text) <= MAX_TEXT && text[0] != '\0' &&
         strcspn(text, "\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b\x0c\r\x1b`") ==
             strlen(text);
}

/* Accepts "tinker://RUN/KIND/NAME" with a kind that can be downloaded. */
static const char *check_checkpoint(const char *path) {
  static const char scheme[] = "tinker://";
  const char *kind;

  if (path == NULL)
    return "no checkpoint was given";
  if (!is_line(path) || strncmp(path, scheme, sizeof(scheme) - 1) != 0 ||
      strchr(path, ' ') != NULL ||
      tnk__relative_check(path + sizeof(scheme) - 1,
                          strlen(path) - (sizeof(scheme) - 1)) != NULL)
    return "the checkpoint is no tinker:// path";
  kind = strchr(path + sizeof(scheme) - 1, '/');
  if (kind == NULL || (strncmp(kind, "/weights/", 9) != 0 &&
                       strncmp(kind, "/external_weights/", 18) != 0))
    return "only weights and external weights can be pushed";
  return NULL;
}

static int is_repo(const char *repo) {
  const char *slash = strchr(repo, '/');
  char owner[TNK__PUSH_NAME + 1];
  const size_t n = slash != NULL ? (size_t)(slash - repo) : 0;

  if (slash == NULL)
    return tnk__push_is_name(repo);
  if (n > TNK__PUSH_NAME)
    return 0;
  memcpy(owner, repo, n);
  owner[n] = '\0';
  return tnk__push_is_name(owner) && tnk__push_is_name(slash + 1);
}

static int are_patterns(const char *const *patterns, size_t n) {
  if (n > MAX_PATTERNS || (n > 0 && patterns == NULL))
    return 0;
  for (size_t i = 0; i < n; i++)
    if (patterns[i] == NULL || strlen(patterns[i]) > TNK__RELATIVE_MAX)
      return 0;
  return 1;
}

static const char *check(const tnk_push_options_t *o, const char *directory) {
  const char *why = check_checkpoint(o->checkpoint);

  if (why != NULL)
    return why;
  if (o->only_checks != TNK_YES && (directory == NULL || directory[0] == '\0'))
    return "no directory was given";
  if (o->repo != NULL && !is_repo(o->repo))
    return "the repository is no NAME or OWNER/NAME";
  if (o->revision != NULL &&
      (!is_line(o->revision) ||
       tnk__relative_check(o->revision, strlen(o->revision)) != NULL))
    return "the revision is no name of a branch";
  if (!is_line(o->message) || !is_line(o->base_model))
    return "the message or the model is no line of text";
  if (!are_patterns(o->allow, o->n_allow) ||
      !are_patterns(o->ignore, o->n_ignore))
    return "patterns are missing, too many or too long";
  return NULL;
}

/* Check the hub, after the arguments of the call. */
static const char *check_hub(const tnk_hub_t *hub, int *err) {
  *err = hub->config.is_offline ? TNK_EINVAL : TNK_ECREDENTIAL;
  if (hub->config.is_offline)
    return "the hub is offline";
  if (hub->config.token == NULL)
    return "the hub has no token; `hf auth login` stores one";
  *err = TNK_OK;
  return NULL;
}

tnk_promise_t *tnk_hub_push(tnk_hub_t *hub, const char *directory,
                            const tnk_push_options_t *options) {
  tnk_push_options_t own = TNK_PUSH_OPTIONS_INIT;
  char said[TNK__MAX_WHY];
  const char *why = said;
  tnk__context_t *context;
  int err;

  if (!TNK__HANDLE_AT(hub, root.magic, HUB))
    return NULL;
  context = &hub->root.context;
  err = tnk__context_check_caller(context);
  if (err == TNK_OK && hub->root.closing)
    err = TNK_ECLOSED;
  if (err != TNK_OK)
    return tnk__root_reject(context, err, "push", NULL);
  err = TNK__LOAD(tnk_push_options_t, &own, options, said, sizeof(said));
  if (err == TNK_OK) {
    why = check(&own, directory);
    err = why != NULL ? TNK_EINVAL : TNK_OK;
  }
  if (err == TNK_OK)
    why = check_hub(hub, &err);
  if (err != TNK_OK)
    return tnk__root_reject(context, err, "push", why);
  return tnk__push(&hub->core, directory, &own);
}
