/* SPDX-License-Identifier: MIT */
/* The calls of tnk/rest.h with arguments of calls.json. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/run.h"

static const char *id_of(const json_t *args) {
  return arg_text(args, "id");
}

static tnk_scope_t scope_of(const json_t *args) {
  const char *scope = arg_text(args, "scope");

  return scope != NULL && strcmp(scope, "accessible") == 0
             ? TNK_SCOPE_ACCESSIBLE
             : TNK_SCOPE_OWNED;
}

static tnk_list_options_t list_options(const json_t *args) {
  tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;

  options.limit = (uint32_t)arg_int(args, "limit", 0);
  options.offset = (uint64_t)arg_int(args, "offset", 0);
  options.scope = scope_of(args);
  options.project_id = arg_text(args, "project_id");
  return options;
}

/* ---- Runs, checkpoints ---- */

static tnk_promise_t *call_list_runs(run_t *run, const json_t *args) {
  const tnk_list_options_t options = list_options(args);

  return tnk_rest_list_runs(run->service, &options);
}

static tnk_promise_t *call_get_run(run_t *run, const json_t *args) {
  return tnk_rest_get_run(run->service, id_of(args), scope_of(args));
}

static tnk_promise_t *call_list_run_checkpoints(run_t *run,
                                                const json_t *args) {
  return tnk_rest_list_run_checkpoints(run->service, id_of(args));
}

static tnk_promise_t *call_list_checkpoints(run_t *run, const json_t *args) {
  const tnk_list_options_t options = list_options(args);

  return tnk_rest_list_checkpoints(run->service, &options);
}

static tnk_promise_t *call_next_page(run_t *run, const json_t *args) {
  (void)args;
  return tnk_rest_next_page(run->service, tnk_promise_page(run->last));
}

static tnk_promise_t *call_weights_info(run_t *run, const json_t *args) {
  return tnk_rest_get_weights_info(run->service, path_of(run, args));
}

static tnk_promise_t *call_external_files(run_t *run, const json_t *args) {
  return tnk_rest_get_external_files(run->service, path_of(run, args));
}

static tnk_promise_t *call_delete(run_t *run, const json_t *args) {
  return tnk_rest_delete_checkpoint(run->service, path_of(run, args));
}

static tnk_promise_t *call_publish(run_t *run, const json_t *args) {
  return tnk_rest_publish_checkpoint(run->service, path_of(run, args));
}

static tnk_promise_t *call_unpublish(run_t *run, const json_t *args) {
  return tnk_rest_unpublish_checkpoint(run->service, path_of(run, args));
}

static tnk_promise_t *call_set_ttl(run_t *run, const json_t *args) {
  return tnk_rest_set_checkpoint_ttl(run->service, path_of(run, args),
                                     arg_int(args, "ttl_seconds", 0));
}

static tnk_promise_t *call_copy(run_t *run, const json_t *args) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;

  options.path = path_of(run, args);
  options.project_id = arg_text(args, "project_id");
  options.ttl_seconds = arg_int(args, "ttl_seconds", 0);
  options.weights_access_token = arg_text(args, "weights_access_token");
  return tnk_rest_copy_weights(run->service, &options);
}

/* Remove a directory with the files in it. */
static void remove_directory(const char *path) {
  char name[PATH_MAX];
  const struct dirent *entry;
  DIR *files = opendir(path);

  while (files != NULL && (entry = readdir(files)) != NULL) {
    snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
    remove(name);
  }
  if (files != NULL)
    closedir(files);
  rmdir(path);
}

/* What comes is not looked at; compared is what is asked for. */
static tnk_promise_t *call_download(run_t *run, const json_t *args) {
  char directory[] = "/tmp/tnk-wire-XXXXXX";
  tnk_promise_t *promise;

  if (mkdtemp(directory) == NULL)
    return NULL;
  promise =
      tnk_weights_download(run->service, path_of(run, args), directory, NULL);
  tnk_wait(promise);
  remove_directory(directory);
  return promise;
}

/* ---- Sessions, samplers ---- */

static tnk_promise_t *call_get_session(run_t *run, const json_t *args) {
  return tnk_rest_get_session(run->service, id_of(args), scope_of(args));
}

static tnk_promise_t *call_list_sessions(run_t *run, const json_t *args) {
  const tnk_list_options_t options = list_options(args);

  return tnk_rest_list_sessions(run->service, &options);
}

static uint32_t states_of(const json_t *args) {
  static const struct {
    const char *name;
    uint32_t state;
  } states[] = {
      {"active", TNK_SESSION_ACTIVE},
      {"cancelled", TNK_SESSION_CANCELED},
      {"failed", TNK_SESSION_FAILED},
      {"success", TNK_SESSION_SUCCESS},
      {"errored", TNK_SESSION_ERRORED},
      {"interrupted", TNK_SESSION_INTERRUPTED},
  };
  uint32_t sum = 0;
  size_t i;
  json_t *name;

  json_array_foreach(json_object_get(args, "states"), i, name) {
    for (size_t k = 0; k < sizeof(states) / sizeof(*states); k++)
      if (strcmp(json_string_value(name), states[k].name) == 0)
        sum |= states[k].state;
  }
  return sum;
}

static tnk_promise_t *call_search_sessions(run_t *run, const json_t *args) {
  tnk_search_options_t options = TNK_SEARCH_OPTIONS_INIT;
  const char *owner = arg_text(args, "owner");

  options.session_id = arg_text(args, "session_id");
  options.display_name = arg_text(args, "display_name");
  options.project_ids =
      arg_texts(&run->pool, args, "project_ids", &options.n_project_ids);
  options.user_metadata =
      arg_pairs(&run->pool, args, "user_metadata", &options.n_user_metadata);
  options.owner_urns =
      arg_texts(&run->pool, args, "owner_urns", &options.n_owner_urns);
  if (options.n_project_ids == 0)
    options.project_ids = NULL;
  if (options.n_owner_urns > 0)
    options.owner = TNK_OWNER_USERS;
  else if (owner != NULL && strcmp(owner, "accessible") == 0)
    options.owner = TNK_OWNER_ANY;
  options.states = states_of(args);
  options.limit = (uint32_t)arg_int(args, "limit", 0);
  return tnk_rest_search_sessions(run->service, &options);
}

static tnk_promise_t *call_move_session(run_t *run, const json_t *args) {
  return tnk_rest_move_session(run->service, id_of(args),
                               arg_text(args, "project_id"));
}

static tnk_promise_t *call_export_trace(run_t *run, const json_t *args) {
  return tnk_rest_export_trace(run->service, id_of(args));
}

static tnk_promise_t *call_get_sampler(run_t *run, const json_t *args) {
  return tnk_rest_get_sampler(run->service, id_of(args));
}

static tnk_promise_t *call_whoami(run_t *run, const json_t *args) {
  (void)args;
  return tnk_rest_whoami(run->service);
}

/* ---- Administration ---- */

/* Seconds in calls.json. */
static tnk_promise_t *call_usage(run_t *run, const json_t *args) {
  return tnk_rest_get_usage(run->service, arg_int(args, "from", 0) * 1000000,
                            arg_int(args, "to", 0) * 1000000);
}

static tnk_promise_t *call_storage(run_t *run, const json_t *args) {
  return tnk_rest_get_storage(run->service, arg_text(args, "project_id"));
}

static tnk_promise_t *call_audit(run_t *run, const json_t *args) {
  return tnk_rest_get_audit_log(run->service, arg_text(args, "event_type"),
                                arg_text(args, "day"));
}

call_fn rest_call(const char *name) {
  static const struct {
    const char *name;
    call_fn call;
  } calls[] = {
      {"list_runs", call_list_runs},
      {"get_run", call_get_run},
      {"list_run_checkpoints", call_list_run_checkpoints},
      {"list_checkpoints", call_list_checkpoints},
      {"next_page", call_next_page},
      {"weights_info", call_weights_info},
      {"external_files", call_external_files},
      {"delete", call_delete},
      {"publish", call_publish},
      {"unpublish", call_unpublish},
      {"set_ttl", call_set_ttl},
      {"copy", call_copy},
      {"download", call_download},
      {"get_session", call_get_session},
      {"list_sessions", call_list_sessions},
      {"search_sessions", call_search_sessions},
      {"move_session", call_move_session},
      {"export_trace", call_export_trace},
      {"get_sampler", call_get_sampler},
      {"whoami", call_whoami},
      {"usage", call_usage},
      {"storage", call_storage},
      {"audit", call_audit},
  };

  for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
    if (strcmp(calls[i].name, name) == 0)
      return calls[i].call;
  return NULL;
}
