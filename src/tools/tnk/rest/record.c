/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rest/record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/wire/format/time_text.h"

/* ---- Members ---- */

static const void *member(const void *record, const tnk__field_t *field) {
  return (const char *)record + field->offset;
}

static const char *text_of(const void *record, const tnk__field_t *field) {
  return *(const char *const *)member(record, field);
}

static int64_t int_of(const void *record, const tnk__field_t *field) {
  return *(const int64_t *)member(record, field);
}

static double number_of(const void *record, const tnk__field_t *field) {
  return *(const double *)member(record, field);
}

/* The length of a list, which follows the pointer to it. */
static size_t count_of(const void *record, const tnk__field_t *field) {
  const void *at = (const char *)member(record, field) + sizeof(void *);

  return *(const size_t *)at;
}

/* Known numbers are above the value of an absent one. */
static int is_known(const tnk__shape_t *shape, const void *record,
                    const tnk__field_t *field) {
  const int64_t absent = shape->blank != NULL ? int_of(shape->blank, field) : 0;

  return int_of(record, field) > absent;
}

/* ---- JSON ---- */

void cli_put_metadata(cli_json_t *json, const tnk_pair_t *pairs, size_t n) {
  if (n > 0)
    cli_json_put_pairs(json, "user_metadata", pairs, n);
  else
    tnk__json_put_text(&json->w, "user_metadata", NULL);
}

static void put_texts(cli_json_t *json, const char *const *texts, size_t n) {
  tnk__json_begin_array(&json->w);
  for (size_t i = 0; i < n; i++)
    tnk__json_text(&json->w, texts[i]);
  tnk__json_end(&json->w);
}

static void put_member(cli_json_t *json, const tnk__shape_t *shape,
                       const void *record, const tnk__field_t *field) {
  const void *at = member(record, field);
  const char *key = field->key;

  switch ((tnk__field_type_t)field->type) {
  case TNK__FIELD_TEXT:
  case TNK__FIELD_ID:
    tnk__json_put_text(&json->w, key, text_of(record, field));
    break;
  case TNK__FIELD_INT:
    cli_json_put_number(json, key, int_of(record, field),
                        is_known(shape, record, field));
    break;
  case TNK__FIELD_BOOL:
    tnk__json_put_bool(&json->w, key, *(const int *)at);
    break;
  case TNK__FIELD_NUMBER:
    tnk__json_put_double(&json->w, key, number_of(record, field));
    break;
  case TNK__FIELD_TIME:
    cli_json_put_time(json, key, int_of(record, field));
    break;
  case TNK__FIELD_PAIRS:
    cli_put_metadata(json, *(const tnk_pair_t *const *)at,
                     count_of(record, field));
    break;
  case TNK__FIELD_TEXTS:
    tnk__json_key(&json->w, key);
    put_texts(json, *(const char *const *const *)at, count_of(record, field));
    break;
  case TNK__FIELD_RECORD:
    tnk__json_key(&json->w, key);
    cli_put_record(json, field->shape, *(const void *const *)at);
    break;
  case TNK__FIELD_JSON:
    tnk__json_put_raw(&json->w, key,
                      text_of(record, field) != NULL ? text_of(record, field)
                                                     : "{}");
    break;
  default: /* no command prints the others */
    break;
  }
}

void cli_put_members(cli_json_t *json, const tnk__shape_t *shape,
                     const void *record) {
  /* The members of a sparse record are pointers. */
  for (size_t i = 0; i < shape->n_fields; i++)
    if (!shape->is_sparse || text_of(record, &shape->fields[i]) != NULL)
      put_member(json, shape, record, &shape->fields[i]);
}

int cli_print_record(const cli_t *cli, const tnk__shape_t *shape,
                     const void *record) {
  cli_json_t json;

  cli_json_begin(&json);
  cli_put_members(&json, shape, record);
  return cli_json_end(&json, cli);
}

void cli_put_record(cli_json_t *json, const tnk__shape_t *shape,
                    const void *record) {
  const tnk__field_t raw = {.offset = shape->raw_at};

  if (record == NULL) {
    tnk__json_null(&json->w);
  } else if (shape->raw_at > 0) {
    tnk__json_raw(&json->w, text_of(record, &raw),
                  strlen(text_of(record, &raw)));
  } else {
    tnk__json_begin_object(&json->w);
    cli_put_members(json, shape, record);
    tnk__json_end(&json->w);
  }
}

/* ---- CSV ---- */

void cli_csv_put_names(cli_csv_t *csv, const tnk__shape_t *shape) {
  for (size_t i = 0; i < shape->n_fields; i++)
    if (shape->fields[i].type != TNK__FIELD_RECORD)
      cli_csv_text(csv, shape->fields[i].key);
}

void cli_csv_put_record(cli_csv_t *csv, const tnk__shape_t *shape,
                        const void *record) {
  for (size_t i = 0; i < shape->n_fields; i++) {
    const tnk__field_t *field = &shape->fields[i];
    char time[TNK__TIME_TEXT];

    if (field->type == TNK__FIELD_INT) {
      cli_csv_int(csv, int_of(record, field));
    } else if (field->type == TNK__FIELD_NUMBER) {
      cli_csv_double(csv, number_of(record, field));
    } else if (field->type == TNK__FIELD_TIME) {
      tnk__time_write(time, int_of(record, field));
      cli_csv_text(csv, time);
    } else if (field->type != TNK__FIELD_RECORD) {
      cli_csv_text(csv, text_of(record, field));
    }
  }
}

/* ---- Tables ---- */

void cli_table_add_metadata(cli_table_t *table, const tnk_pair_t *pairs,
                            size_t n) {
  for (size_t i = 0; i < n; i++) {
    cli_table_add(table, "Metadata %s", pairs[i].name);
    cli_table_add(table, "%s", pairs[i].value);
  }
}

void cli_table_add_lora(cli_table_t *table, const tnk_run_t *run) {
  if (run->is_lora && run->lora_rank > 0)
    cli_table_add(table, "Rank %" PRId64, run->lora_rank);
  else
    cli_table_add(table, "%s", run->is_lora ? "Yes" : "No");
}

void cli_table_add_usd(cli_table_t *table, double amount) {
  if (isnan(amount))
    cli_table_add(table, "N/A");
  else
    cli_table_add(table, "%.4f", amount);
}
