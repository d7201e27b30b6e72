/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_SCHEMA_KEYWORD_H
#define TNK_GATEWAY_SCHEMA_KEYWORD_H

#include <jansson.h>

/* The type of a keyword's value. */
typedef enum {
  TNK__GW_UNKNOWN = 0,
  TNK__GW_NO_EFFECT, /* an annotation */
  TNK__GW_A_SCHEMA,
  TNK__GW_SCHEMA_LIST,
  TNK__GW_SCHEMA_OR_LIST,
  TNK__GW_SCHEMA_MAP, /* by name */
  TNK__GW_TYPES,      /* a name of a type, or a list of them */
  TNK__GW_NAMES,
  TNK__GW_VALUES,
  TNK__GW_ANY_VALUE,
  TNK__GW_COUNT, /* a whole number from 0 */
  TNK__GW_NUMBER,
  TNK__GW_POSITIVE, /* a number above 0 */
  TNK__GW_BOOL,
  TNK__GW_REF,
  TNK__GW_FORMAT,
  TNK__GW_PATTERN
} tnk__gw_keyword_t;

tnk__gw_keyword_t tnk__gw_keyword(const char *name);
/* Returns whether a value has the type of this name. */
int tnk__gw_is_type(const json_t *value, const char *name);
/* Returns whether the type is known. */
int tnk__gw_knows_type(const char *name);
/* Find the schema that a $ref names, or NULL. Only places that
 * tnk__gw_schema_read() has checked are found. */
const json_t *tnk__gw_schema_at(const json_t *root, const char *ref);
/* Returns whether a text has a format: 1, 0, or -1 if the format is unknown. */
int tnk__gw_has_format(const char *format, const char *text);

#endif
