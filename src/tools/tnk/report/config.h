/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_CONFIG_H
#define TNK_TOOLS_TNK_REPORT_CONFIG_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
  REPORT_MAX_CONFIG = 4 << 20, /* bytes of a file */
  REPORT_MAX_SETTINGS = 1000,
  REPORT_MAX_DEPTH = 8
};

/* A value of a configuration: the names on the way to it, with dots. */
typedef struct {
  char *name;
  char *value;
} report_setting_t;

typedef struct {
  json_t *root; /* NULL: there is no configuration */
  report_setting_t *settings;
  size_t n;
  int is_cut; /* there are more settings */
  int is_bad; /* the file is not a JSON object, or too long */
} report_config_t;

/*
 * Read config.json. A missing file has no settings. Values that look like
 * secrets are replaced, because a report is meant to be shown: those with names
 * such as "api_key", those that begin like a key, and passwords in URLs.
 *
 * Returns TNK_OK, TNK_EFILE with errno set, or TNK_ENOMEM. Free it in any case.
 */
int report_config_read(report_config_t *config, const char *path);
void report_config_free(report_config_t *config);
/* The value of a setting, or NULL. */
const char *report_config_find(const report_config_t *config, const char *name);

#endif
