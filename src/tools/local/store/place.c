#include <stdio.h>
#include <string.h>

#include "tools/local/store/store.h"

/* Names of checkpoints, their paths and their directories. */

static const char *const kinds[] = {"weights", "sampler_weights",
                                    "external_weights", "ephemeral"};

const char *local_kind_name(local_place_kind_t kind) {
  return kinds[kind];
}

static int is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

int local_name_ok(const char *name, int strict) {
  size_t n = strlen(name);

  if (n < 1 || n > 255 || name[0] == '.')
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!is_name_char(name[i]) && (strict || name[i] != '.'))
      return 0;
  return 1;
}

/* Ids of runs contain no part that leads out of the directory. */
int local_run_ok(const char *run) {
  size_t n = strlen(run);

  if (n < 1 || n >= LOCAL_ID)
    return 0;
  for (size_t i = 0; i < n; i++)
    if (!is_name_char(run[i]) && run[i] != ':')
      return 0;
  return 1;
}

int local_place_make(local_place_t *place, const char *run, const char *kind,
                     const char *name) {
  *place = (local_place_t){0};
  if (!local_run_ok(run) || !local_name_ok(name, 0))
    return 0;
  for (int i = LOCAL_WEIGHTS; i <= LOCAL_EXTERNAL_WEIGHTS; i++)
    if (strcmp(kind, kinds[i]) == 0) {
      place->kind = (local_place_kind_t)i;
      snprintf(place->run, sizeof(place->run), "%s", run);
      snprintf(place->name, sizeof(place->name), "%s", name);
      return 1;
    }
  return 0;
}

int local_place_parse(local_place_t *place, const char *path) {
  static const char scheme[] = "tinker://";
  char copy[LOCAL_PATH];
  char *kind;
  char *name;

  if (strncmp(path, scheme, sizeof(scheme) - 1) != 0 ||
      strlen(path) >= sizeof(copy))
    return 0;
  snprintf(copy, sizeof(copy), "%s", path + sizeof(scheme) - 1);
  kind = strchr(copy, '/');
  if (kind == NULL)
    return 0;
  *kind++ = '\0';
  name = strchr(kind, '/');
  if (name == NULL)
    return local_place_make(place, copy, kinds[LOCAL_SAMPLER_WEIGHTS], kind);
  *name++ = '\0';
  return local_place_make(place, copy, kind, name);
}

void local_place_text(const local_place_t *place, char *out) {
  snprintf(out, LOCAL_PATH, "tinker://%s/%s/%s", place->run, kinds[place->kind],
           place->name);
}

int local_place_dir(const local_server_t *server, const local_place_t *place,
                    char *out) {
  int n = snprintf(out, LOCAL_FILE, "%s/%s/%s/%s", server->data, place->run,
                   kinds[place->kind], place->name);

  if (n < 0 || n >= LOCAL_FILE - 64) /* space for the files' names */
    return 0;
  /* Not every file system or archive allows colons in names. */
  for (char *p = out + strlen(server->data); *p != '\0'; p++)
    if (*p == ':')
      *p = '_';
  return 1;
}

void local_place_note(const local_server_t *server, const char *event,
                      const local_place_t *place) {
  char path[LOCAL_PATH];

  local_place_text(place, path);
  local_ledger_note(server, event, path);
}
