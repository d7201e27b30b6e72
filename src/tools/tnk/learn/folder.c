/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/common/base/input.h"

/* ---- Paths ---- */

static char *join(const char *folder, const char *name) {
  const size_t n = strlen(folder) + strlen(name) + 2;
  char *path = malloc(n);

  if (path != NULL)
    snprintf(path, n, "%s/%s", folder, name);
  return path;
}

char *learn_folder_file(const learn_folder_t *folder, const char *name) {
  return join(folder->path, name);
}

/* Make a folder and its missing parents. */
static int make_folders(const char *path) {
  char *copy = strdup(path);
  int is_made;

  for (char *at = copy; copy != NULL && *at != '\0'; at++)
    if (*at == '/' && at > copy) {
      *at = '\0';
      (void)mkdir(copy, 0777);
      *at = '/';
    }
  is_made = copy != NULL && (mkdir(copy, 0777) == 0 || errno == EEXIST);
  free(copy);
  return is_made;
}

#define NEW ".new-"

/* Returns whether the folder has files of others. A process that was killed may
 * have left its own new configuration. */
static int has_others(const char *path) {
  static const char own[] = "config.json" NEW;
  DIR *dir = opendir(path);
  struct dirent *entry;
  int has = 0;

  while (dir != NULL && !has && (entry = readdir(dir)) != NULL)
    has = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
          strncmp(entry->d_name, own, sizeof(own) - 1) != 0;
  if (dir != NULL)
    closedir(dir);
  return has;
}

/* ---- Reading ---- */

static int is_of(const json_t *json, const char *command) {
  const char *by = tnk__json_str(json, "command");

  return by != NULL && strcmp(by, command) == 0;
}

static int read_config(learn_folder_t *folder) {
  json_t *json = NULL;
  char why[512];
  size_t n;
  char *text = cli_read_file(folder->config, &n, why, sizeof(why));
  int err;

  if (text == NULL)
    return cli_fail(folder->cli, CLI_EXIT_FILE, "%s", why);
  err = tnk__json_parse_object(&json, text, n);
  free(text);
  if (err != TNK_OK || !is_of(json, folder->command) ||
      tnk__json_get_int(json, "began_s", 1, INT64_MAX, &folder->now_s) !=
          TNK__JSON_FOUND ||
      tnk__json_obj(json, "options") == NULL) {
    json_decref(json);
    return cli_fail(folder->cli, CLI_EXIT_FILE,
                    "%s: this is not a configuration of %s", folder->config,
                    folder->command);
  }
  folder->found = json;
  return CLI_EXIT_OK;
}

int learn_folder_open(learn_folder_t *folder, const cli_t *cli,
                      const char *command, const char *path) {
  *folder = (learn_folder_t){.cli = cli,
                             .command = command,
                             .path = path,
                             .now_s = (int64_t)time(NULL)};
  if (path == NULL)
    return CLI_EXIT_OK;
  folder->config = join(path, "config.json");
  folder->metrics = join(path, "metrics.jsonl");
  folder->served = join(path, "served");
  if (folder->config == NULL || folder->metrics == NULL ||
      folder->served == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  if (access(folder->config, F_OK) == 0)
    return read_config(folder);
  if (errno != ENOENT)
    return cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  if (has_others(path))
    return cli_fail(cli, CLI_EXIT_FILE,
                    "%s is not the folder of a run: it has files, but no "
                    "config.json",
                    path);
  return CLI_EXIT_OK;
}

/* ---- Comparing ---- */

/* Write a value for people; NULL is an option that was not given. */
static void put_value(char *out, size_t n, const json_t *value) {
  char *text = value == NULL || json_is_null(value)
                   ? NULL
                   : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                           JSON_REAL_PRECISION(6));

  snprintf(out, n, "%s", text != NULL ? text : "not set");
  tnk__json_free_string(text);
}

static int compare_option(const learn_folder_t *folder, const char *name,
                          const json_t *before, const json_t *value) {
  char here[200], there[200];

  if (json_equal(before, value) || ((before == NULL || json_is_null(before)) &&
                                    (value == NULL || json_is_null(value))))
    return CLI_EXIT_OK;
  put_value(there, sizeof(there), before);
  put_value(here, sizeof(here), value);
  return cli_fail(folder->cli, CLI_EXIT_FILE,
                  "%s is the folder of another run: --%s is %s there and %s "
                  "here",
                  folder->path, name, there, here);
}

/* An option that only one of them has was not given in the other one. */
static int compare_options(const learn_folder_t *folder, json_t *options) {
  json_t *old = json_object_get(folder->found, "options");
  int status = CLI_EXIT_OK;
  const char *name;
  json_t *value;

  json_object_foreach(options, name, value) {
    status = compare_option(folder, name, json_object_get(old, name), value);
    if (status != CLI_EXIT_OK)
      return status;
  }
  json_object_foreach(old, name, value) {
    if (json_object_get(options, name) == NULL)
      status = compare_option(folder, name, value, NULL);
    if (status != CLI_EXIT_OK)
      return status;
  }
  return CLI_EXIT_OK;
}

/* ---- Writing ---- */

/* Write a file completely, to the disk. */
static int write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  int is_ok;

  if (file == NULL)
    return 0;
  is_ok = fputs(text, file) >= 0 && fputc('\n', file) != EOF &&
          fflush(file) == 0 && fsync(fileno(file)) == 0;
  return (fclose(file) == 0) && is_ok;
}

/* The name appears only with the whole file. It does not replace the
 * configuration of a command that was started at the same time, except on a
 * file system without links. */
static int write_config(learn_folder_t *folder, const char *text) {
  char suffix[64];
  char *path;
  int is_ok;

  snprintf(suffix, sizeof(suffix), "config.json" NEW "%ld", (long)getpid());
  if (!make_folders(folder->path))
    return 0;
  path = join(folder->path, suffix);
  is_ok = path != NULL && write_file(path, text);
  if (is_ok && link(path, folder->config) != 0 && errno != EEXIST)
    is_ok = rename(path, folder->config) == 0;
  if (path != NULL)
    unlink(path);
  free(path);
  return is_ok;
}

json_t *learn_folder_texts(const cli_texts_t *list) {
  json_t *array = json_array();

  for (size_t i = 0; i < list->n; i++)
    json_array_append_new(array, json_string(list->items[i]));
  return array;
}

static int keep(learn_folder_t *folder, json_t *config) {
  char *text;
  int is_written;
  int status = CLI_EXIT_OK;

  if (folder->found == NULL) {
    text = json_dumps(config, JSON_INDENT(2));
    is_written = text != NULL && write_config(folder, text);
    tnk__json_free_string(text);
    if (!is_written)
      return cli_fail(folder->cli, CLI_EXIT_FILE, "%s: %s", folder->config,
                      strerror(errno));
    status = read_config(folder);
  }
  return status == CLI_EXIT_OK
             ? compare_options(folder, json_object_get(config, "options"))
             : status;
}

int learn_folder_keep(learn_folder_t *folder, json_t *options, json_t *settings,
                      json_t *files) {
  json_t *config =
      json_pack("{s:s, s:I, s:o, s:o, s:o*}", "command", folder->command,
                "began_s", (json_int_t)folder->now_s, "options", options,
                "settings", settings, "files", files);
  int status;

  if (config == NULL)
    return cli_fail(folder->cli, CLI_EXIT_FAILED,
                    "the configuration cannot be written as JSON");
  status = keep(folder, config);
  json_decref(config);
  return status;
}

void learn_folder_free(learn_folder_t *folder) {
  json_decref(folder->found);
  free(folder->config);
  free(folder->metrics);
  free(folder->served);
}
