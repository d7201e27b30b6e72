/* SPDX-License-Identifier: MIT */
#include "gateway/wire/form.h"

#include <string.h>

#include "gateway/schema/schema.h"
#include "lib/wire/format/json_read.h"

/* Where a format can be requested: a member, or a member of an object. */
static const struct {
  const char *outer;
  const char *inner;
  const char *name;
} places[] = {
    [TNK__GW_CHAT] = {NULL, "response_format", "response_format"},
    [TNK__GW_COMPLETION] = {NULL, "response_format", "response_format"},
    [TNK__GW_RESPONSE] = {"text", "format", "text.format"},
    [TNK__GW_MESSAGE] = {"output_config", "format", "output_config.format"}};

static int read_schema(tnk__gw_form_t *form, tnk__gw_api_t api,
                       const json_t *asked, tnk__gw_fault_t *fault) {
  char why[TNK__GW_SCHEMA_WHY];

  if (api == TNK__GW_CHAT)
    asked = json_object_get(asked, "json_schema");
  form->schema = json_object_get(asked, "schema");
  if (form->schema == NULL)
    return tnk__gw_fault(fault, 400, form->name, "%s: the schema is missing",
                         form->name);
  if (tnk__gw_schema_read(form->schema, why) != 0)
    return tnk__gw_fault(fault, 400, form->name, "%s: %s", form->name, why);
  form->kind = TNK__GW_FORM_SCHEMA;
  return 0;
}

/* Find the format that is asked for. `form->name` receives its place. */
static const json_t *find(tnk__gw_form_t *form, tnk__gw_api_t api,
                          const json_t *body) {
  const char *outer = places[api].outer;
  const json_t *older =
      api == TNK__GW_MESSAGE ? json_object_get(body, "output_format") : NULL;

  if (older != NULL && !json_is_null(older)) {
    form->name = "output_format";
    return older;
  }
  form->name = places[api].name;
  return json_object_get(outer != NULL ? json_object_get(body, outer) : body,
                         places[api].inner);
}

int tnk__gw_form_read(tnk__gw_form_t *form, tnk__gw_api_t api,
                      const json_t *body, tnk__gw_fault_t *fault) {
  const json_t *asked = find(form, api, body);
  const char *kind = tnk__json_str(asked, "type");

  if (asked == NULL || json_is_null(asked))
    return 0;
  if (kind == NULL)
    return tnk__gw_fault(fault, 400, form->name, "%s: the type is missing",
                         form->name);
  if (strcmp(kind, "text") == 0)
    return 0;
  if (api != TNK__GW_COMPLETION && strcmp(kind, "json_schema") == 0)
    return read_schema(form, api, asked, fault);
  if ((api == TNK__GW_CHAT || api == TNK__GW_RESPONSE) &&
      strcmp(kind, "json_object") == 0) {
    form->kind = TNK__GW_FORM_OBJECT;
    return 0;
  }
  return tnk__gw_fault(fault, 400, form->name,
                       "%s: \"%.40s\" is not supported here", form->name, kind);
}
