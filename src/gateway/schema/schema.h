/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_SCHEMA_SCHEMA_H
#define TNK_GATEWAY_SCHEMA_SCHEMA_H

#include <jansson.h>
#include <stddef.h>

/*
 * A part of JSON Schema, draft 2020-12. Keywords without an effect on validity,
 * such as `title`, are accepted. Other unknown keywords are rejected by name,
 * so a schema that was read is checked completely.
 */
enum {
  TNK__GW_MAX_SCHEMA = 65536,   /* values in a schema */
  TNK__GW_MAX_CHECKS = 1 << 17, /* comparisons in a check of a value */
  TNK__GW_SCHEMA_WHY = 200      /* bytes of a reason */
};

/* Check that a schema can be used. Returns 0, or -1 with a reason that names
 * the keyword and its place. `why` has TNK__GW_SCHEMA_WHY bytes. */
int tnk__gw_schema_read(const json_t *schema, char *why);

typedef enum {
  TNK__GW_FITS = 0,
  TNK__GW_MISFIT,   /* `why` says where and why */
  TNK__GW_UNDECIDED /* the check needs too much work */
} tnk__gw_fit_t;

/* Check a value against a schema that was read. `why` receives the first
 * difference. It has TNK__GW_SCHEMA_WHY bytes. */
tnk__gw_fit_t tnk__gw_schema_fit(const json_t *schema, const json_t *value,
                                 char *why);

#endif
