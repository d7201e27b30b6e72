/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gateway/schema/keyword.h"
#include "gateway/schema/pattern.h"
#include "gateway/schema/schema.h"

/*
 * Checks a value against a schema. The work is bounded: each comparison counts,
 * and each turn of a loop over a part of the schema or of the value.
 * References may be cyclic, so their depth is bounded too. Both schema and
 * value come from strangers.
 */

enum { MAX_DEPTH = 512, MAX_PATH = 120 };

typedef struct {
  const json_t *root;
  size_t n_checks;
  int depth;
  int is_undecided;
  int is_quiet; /* a branch is tried, so its misfits do not count */
  size_t n_path;
  char path[MAX_PATH]; /* of the current value, from "$" */
  char *why;
} fitter_t;

/* All functions return whether something fits. */
static int fit(fitter_t *f, const json_t *schema, const json_t *value);

static int is_spent(fitter_t *f) {
  if (++f->n_checks > TNK__GW_MAX_CHECKS)
    f->is_undecided = 1;
  return f->is_undecided;
}

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
misfit(fitter_t *f, const char *format, ...) {
  int n;
  va_list args;

  if (f->is_quiet > 0 || f->why[0] != '\0')
    return 0;
  n = snprintf(f->why, TNK__GW_SCHEMA_WHY, "%s: ", f->path);
  va_start(args, format);
  (void)vsnprintf(f->why + n, (size_t)(TNK__GW_SCHEMA_WHY - n), format, args);
  va_end(args);
  return 0;
}

/* Check a member or an item, whose place is added to the path meanwhile. */
static int fit_at(fitter_t *f, const json_t *schema, const json_t *value,
                  const char *name, size_t index) {
  size_t n = f->n_path;
  int added = name != NULL
                  ? snprintf(f->path + n, MAX_PATH - n, ".%s", name)
                  : snprintf(f->path + n, MAX_PATH - n, "[%zu]", index);
  int fits;

  if (added > 0)
    f->n_path = (size_t)added < MAX_PATH - n ? n + (size_t)added : MAX_PATH - 1;
  fits = fit(f, schema, value);
  f->path[n] = '\0';
  f->n_path = n;
  return fits;
}

/* ---- Equality: 1 and 1.0 are equal ---- */

static int is_equal(fitter_t *f, const json_t *a, const json_t *b) {
  const char *name;
  json_t *child;

  if (is_spent(f))
    return 0;
  if (json_is_integer(a) && json_is_integer(b))
    return json_integer_value(a) == json_integer_value(b);
  if (json_is_number(a) && json_is_number(b))
    return json_number_value(a) == json_number_value(b);
  if (json_typeof(a) != json_typeof(b))
    return 0;
  if (json_is_string(a))
    return json_string_length(a) == json_string_length(b) &&
           memcmp(json_string_value(a), json_string_value(b),
                  json_string_length(a)) == 0;
  if (json_array_size(a) != json_array_size(b) ||
      json_object_size(a) != json_object_size(b))
    return 0;
  for (size_t i = 0; i < json_array_size(a); i++)
    if (!is_equal(f, json_array_get(a, i), json_array_get(b, i)))
      return 0;
  json_object_foreach((json_t *)(uintptr_t)a, name, child) {
    const json_t *other = json_object_get(b, name);

    if (other == NULL || !is_equal(f, child, other))
      return 0;
  }
  return 1;
}

static int is_one_of(fitter_t *f, const json_t *list, const json_t *value) {
  for (size_t i = 0; i < json_array_size(list); i++)
    if (is_equal(f, json_array_get(list, i), value))
      return 1;
  return 0;
}

static int is_unique(fitter_t *f, const json_t *list) {
  size_t n = json_array_size(list);

  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n && !f->is_undecided; k++)
      if (is_equal(f, json_array_get(list, i), json_array_get(list, k)))
        return 0;
  return 1;
}

/* ---- Keywords ---- */

static int fit_types(fitter_t *f, const json_t *types, const json_t *value) {
  const char *name = json_string_value(types);

  if (name != NULL)
    return tnk__gw_is_type(value, name) ? 1
                                        : misfit(f, "must be of type %s", name);
  for (size_t i = 0; i < json_array_size(types) && !is_spent(f); i++)
    if (tnk__gw_is_type(value, json_string_value(json_array_get(types, i))))
      return 1;
  return types == NULL ? 1 : misfit(f, "has none of the types");
}

/* Check whether a number, if there is one, is on the right side of a bound. */
static int fit_bound(fitter_t *f, const json_t *schema, const char *name,
                     double value, int sign, int may_equal) {
  const json_t *bound = json_object_get(schema, name);
  double distance;

  if (bound == NULL)
    return 1;
  distance = sign * (value - json_number_value(bound));
  return distance > 0 || (distance == 0 && may_equal)
             ? 1
             : misfit(f, "violates %s", name);
}

static int fit_counts(fitter_t *f, const json_t *schema, size_t n,
                      const char *least, const char *most) {
  return fit_bound(f, schema, least, (double)n, 1, 1) &&
         fit_bound(f, schema, most, (double)n, -1, 1);
}

static int fit_number(fitter_t *f, const json_t *schema, const json_t *value) {
  const json_t *step = json_object_get(schema, "multipleOf");
  double number = json_number_value(value);

  if (!fit_bound(f, schema, "minimum", number, 1, 1) ||
      !fit_bound(f, schema, "maximum", number, -1, 1) ||
      !fit_bound(f, schema, "exclusiveMinimum", number, 1, 0) ||
      !fit_bound(f, schema, "exclusiveMaximum", number, -1, 0))
    return 0;
  if (step != NULL) {
    double n = number / json_number_value(step);

    /* 0.3 is a multiple of 0.1, although not in binary. */
    if (!(fabs(n - floor(n + 0.5)) <= 1e-9 * (fabs(n) > 1 ? fabs(n) : 1)))
      return misfit(f, "violates multipleOf");
  }
  return 1;
}

/* The number of characters in valid UTF-8. */
static size_t n_chars(const json_t *text) {
  const char *bytes = json_string_value(text);
  size_t n = 0;

  for (size_t i = 0; i < json_string_length(text); i++)
    n += ((unsigned char)bytes[i] & 0xc0) != 0x80;
  return n;
}

static int fit_pattern(fitter_t *f, const json_t *schema, const json_t *value) {
  const json_t *text = json_object_get(schema, "pattern");
  tnk__gw_pattern_t pattern;
  size_t all, left;
  int is_there;

  if (text == NULL)
    return 1;
  if (tnk__gw_pattern_read(&pattern, json_string_value(text),
                           json_string_length(text)) != NULL)
    return misfit(f, "has an unknown pattern");
  f->n_checks += tnk__gw_pattern_cost(&pattern);
  if (is_spent(f))
    return 0;
  all = left = (TNK__GW_MAX_CHECKS - f->n_checks) * TNK__GW_VISITS;
  is_there = tnk__gw_pattern_find(&pattern, json_string_value(value),
                                  json_string_length(value), &left);
  f->n_checks += (all - left) / TNK__GW_VISITS;
  if (is_there < 0)
    f->is_undecided = 1;
  return is_there > 0 ? 1 : misfit(f, "violates pattern");
}

static int fit_text(fitter_t *f, const json_t *schema, const json_t *value) {
  const char *format = json_string_value(json_object_get(schema, "format"));

  f->n_checks += json_string_length(value) / 64; /* as it is read whole */
  if (!fit_counts(f, schema, n_chars(value), "minLength", "maxLength"))
    return 0;
  if (!fit_pattern(f, schema, value))
    return 0;
  return format == NULL ||
                 tnk__gw_has_format(format, json_string_value(value)) == 1
             ? 1
             : misfit(f, "is not a text of format %s", format);
}

static int fit_items(fitter_t *f, const json_t *schema, const json_t *value) {
  const json_t *first = json_object_get(schema, "prefixItems");
  const json_t *rest = json_object_get(schema, "items");
  size_t n = json_array_size(value);

  /* The tuple of the drafts up to 2019-09. */
  if (json_is_array(rest)) {
    first = rest;
    rest = json_object_get(schema, "additionalItems");
  }
  if (!fit_counts(f, schema, n, "minItems", "maxItems"))
    return 0;
  for (size_t i = 0; i < n && !is_spent(f); i++) {
    const json_t *own = json_array_get(first, i);

    own = own != NULL ? own : rest;
    if (own != NULL && !fit_at(f, own, json_array_get(value, i), NULL, i))
      return 0;
  }
  return !json_is_true(json_object_get(schema, "uniqueItems")) ||
                 is_unique(f, value)
             ? 1
             : misfit(f, "has equal items");
}

static int fit_members(fitter_t *f, const json_t *schema, const json_t *value) {
  const json_t *known = json_object_get(schema, "properties");
  const json_t *others = json_object_get(schema, "additionalProperties");
  const json_t *required = json_object_get(schema, "required");
  const char *name;
  json_t *member;

  if (!fit_counts(f, schema, json_object_size(value), "minProperties",
                  "maxProperties"))
    return 0;
  for (size_t i = 0; i < json_array_size(required) && !is_spent(f); i++) {
    name = json_string_value(json_array_get(required, i));
    if (json_object_get(value, name) == NULL)
      return misfit(f, "lacks %.60s", name);
  }
  json_object_foreach((json_t *)(uintptr_t)value, name, member) {
    const json_t *own = json_object_get(known, name);

    if (is_spent(f))
      return 0;
    if (own == NULL && json_is_false(others))
      return misfit(f, "has %.60s, which is not in the schema", name);
    own = own != NULL ? own : others;
    if (own != NULL && !fit_at(f, own, member, name, 0))
      return 0;
  }
  return 1;
}

/* The number of schemas of a list that the value fits, at most `most`. */
static size_t n_fits(fitter_t *f, const json_t *list, const json_t *value,
                     size_t most) {
  size_t n = 0;

  f->is_quiet++;
  for (size_t i = 0; i < json_array_size(list) && n < most; i++)
    n += fit(f, json_array_get(list, i), value) != 0;
  f->is_quiet--;
  return n;
}

static int fit_branches(fitter_t *f, const json_t *schema,
                        const json_t *value) {
  const json_t *any = json_object_get(schema, "anyOf");
  const json_t *one = json_object_get(schema, "oneOf");
  const json_t *all = json_object_get(schema, "allOf");
  const json_t *other = json_object_get(schema, "not");
  int fits_other;

  for (size_t i = 0; i < json_array_size(all); i++)
    if (!fit(f, json_array_get(all, i), value))
      return 0;
  if (any != NULL && n_fits(f, any, value, 1) == 0)
    return misfit(f, "fits nothing of anyOf");
  if (one != NULL && n_fits(f, one, value, 2) != 1)
    return misfit(f, "does not fit exactly one schema of oneOf");
  if (other == NULL)
    return 1;
  f->is_quiet++;
  fits_other = fit(f, other, value);
  f->is_quiet--;
  return fits_other ? misfit(f, "fits what it must not") : 1;
}

static int fit_values(fitter_t *f, const json_t *schema, const json_t *value) {
  const json_t *list = json_object_get(schema, "enum");
  const json_t *only = json_object_get(schema, "const");

  if (list != NULL && !is_one_of(f, list, value))
    return misfit(f, "is no value of enum");
  if (only != NULL && !is_equal(f, only, value))
    return misfit(f, "is not the value of const");
  return 1;
}

static int fit_object(fitter_t *f, const json_t *schema, const json_t *value) {
  const char *ref = json_string_value(json_object_get(schema, "$ref"));

  if (ref != NULL && !fit(f, tnk__gw_schema_at(f->root, ref), value))
    return 0;
  if (!fit_types(f, json_object_get(schema, "type"), value) ||
      !fit_values(f, schema, value) || !fit_branches(f, schema, value))
    return 0;
  if (json_is_number(value))
    return fit_number(f, schema, value);
  if (json_is_string(value))
    return fit_text(f, schema, value);
  if (json_is_array(value))
    return fit_items(f, schema, value);
  return !json_is_object(value) || fit_members(f, schema, value);
}

static int fit(fitter_t *f, const json_t *schema, const json_t *value) {
  int fits;

  if (is_spent(f))
    return 0;
  if (f->depth == MAX_DEPTH) {
    f->is_undecided = 1;
    return 0;
  }
  if (json_is_boolean(schema))
    return json_is_true(schema) ? 1 : misfit(f, "is not allowed");
  f->depth++;
  fits = fit_object(f, schema, value);
  f->depth--;
  return fits;
}

tnk__gw_fit_t tnk__gw_schema_fit(const json_t *schema, const json_t *value,
                                 char *why) {
  fitter_t f = {.root = schema, .n_path = 1, .path = "$", .why = why};
  int fits;

  why[0] = '\0';
  fits = fit(&f, schema, value);
  if (f.is_undecided) {
    (void)snprintf(why, TNK__GW_SCHEMA_WHY, "the check needs too much work");
    return TNK__GW_UNDECIDED;
  }
  return fits ? TNK__GW_FITS : TNK__GW_MISFIT;
}
