/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_FORM_H
#define TNK_GATEWAY_WIRE_FORM_H

#include <jansson.h>

#include "gateway/wire/fault.h"

/* The format of the response that a request asks for. */
typedef enum {
  TNK__GW_FORM_TEXT = 0,
  TNK__GW_FORM_OBJECT, /* any JSON object */
  TNK__GW_FORM_SCHEMA  /* JSON that fits a schema */
} tnk__gw_form_kind_t;

typedef struct {
  tnk__gw_form_kind_t kind;
  const char *name;     /* the parameter that asks for it, or NULL */
  const json_t *schema; /* of the body; was read, see gateway/schema; or NULL */
} tnk__gw_form_t;

/* Read the format from a body. Returns 0, or -1 with the reason in `fault`. */
int tnk__gw_form_read(tnk__gw_form_t *form, tnk__gw_api_t api,
                      const json_t *body, tnk__gw_fault_t *fault);

#endif
