/* SPDX-License-Identifier: MIT */
#include "tools/local/fault/state.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "tnk/error.h"

/* ---- Kinds ---- */

/* The kinds of faults. */

static const local_fault_kind_info_t kinds[] = {
    {"refuse", LOCAL_FAULT_REFUSE, NULL, 0, 0},
    {"reset", LOCAL_FAULT_RESET, NULL, 0, 0},
    {"goaway", LOCAL_FAULT_GOAWAY, NULL, 0, 0},
    {"drop_after_commit", LOCAL_FAULT_DROP, NULL, 0, 0},
    {"cut_body", LOCAL_FAULT_CUT, NULL, 1, 0},
    {"slow_body", LOCAL_FAULT_SLOW, NULL, 1, 1000},
    {"try_again", LOCAL_FAULT_TRY_AGAIN, "retrieve_future", 0, 0},
    {"bad_json", LOCAL_FAULT_BAD_JSON, NULL, 0, 0},
    {"bad_proto", LOCAL_FAULT_BAD_PROTO, "retrieve_future", 0, 0},
    {"wrong_type", LOCAL_FAULT_WRONG_TYPE, NULL, 0, 0},
    {"other_answer", LOCAL_FAULT_OTHER_ANSWER, NULL, 0, 0},
    {"extra_answer", LOCAL_FAULT_EXTRA_ANSWER, NULL, 0, 0},
    {"duplicate_header", LOCAL_FAULT_TWICE_HEADER, NULL, 0, 0},
    {"oversized", LOCAL_FAULT_OVERSIZED, NULL, 1, (int64_t)1 << 40},
    {"no_range", LOCAL_FAULT_NO_RANGE, "files", 0, 0},
    {"other_range", LOCAL_FAULT_OTHER_RANGE, "files", 0, 0},
    {"short_body", LOCAL_FAULT_SHORT, NULL, 1, 1},
    {"redirect", LOCAL_FAULT_REDIRECT, "files", 0, 0},
    {"other_names", LOCAL_FAULT_OTHER_NAMES, "external_weights_urls", 0, 0},
    {"pending", LOCAL_FAULT_PENDING, "trace_export", 0, 0},
};

#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

/* The faults of "all". The first ones are "mild": a client recovers from them
 * by a retry or another poll, and its user does not notice. The others may
 * reject a promise, because the answer is lost. */
static const local_fault_t all[] = {
    /* clang-format off */
  {.kind = LOCAL_FAULT_REFUSE},
  {.kind = LOCAL_FAULT_RESET},
  {.kind = LOCAL_FAULT_RESET, .arg = LOCAL_ARG_CONNECTION},
  {.kind = LOCAL_FAULT_RESET, .arg = LOCAL_RESET_REFUSED},
  {.kind = LOCAL_FAULT_GOAWAY},
  {.kind = LOCAL_FAULT_GOAWAY, .after = 1},
  {.kind = LOCAL_FAULT_DROP, .after = 1},
  {.kind = LOCAL_FAULT_DROP, .after = 1, .arg = LOCAL_ARG_CONNECTION},
  {.kind = LOCAL_FAULT_CUT, .after = 1},
  {.kind = LOCAL_FAULT_CUT, .after = 1, .n = 7},
  {.kind = LOCAL_FAULT_SLOW, .after = 1, .n = 20000},
  {.kind = LOCAL_FAULT_STATUS, .status = 400, .body = LOCAL_BODY_EMPTY},
  {.kind = LOCAL_FAULT_STATUS, .status = 402},
  {.kind = LOCAL_FAULT_STATUS, .status = 408},
  {.kind = LOCAL_FAULT_STATUS, .status = 408, .after = 1},
  {.kind = LOCAL_FAULT_STATUS, .status = 409},
  {.kind = LOCAL_FAULT_STATUS, .status = 409, .expect = LOCAL_EXPECT_RELATIVE},
  {.kind = LOCAL_FAULT_STATUS, .status = 429},
  {.kind = LOCAL_FAULT_STATUS, .status = 429,
   .retry = LOCAL_RETRY_MS, .n = 20},
  {.kind = LOCAL_FAULT_STATUS, .status = 429,
   .retry = LOCAL_RETRY_SECONDS, .n = 1},
  {.kind = LOCAL_FAULT_STATUS, .status = 429,
   .retry = LOCAL_RETRY_DATE, .n = 1},
  {.kind = LOCAL_FAULT_STATUS, .status = 429,
   .retry = LOCAL_RETRY_RFC850, .n = 1},
  {.kind = LOCAL_FAULT_STATUS, .status = 429,
   .retry = LOCAL_RETRY_ASCTIME, .n = 1},
  {.kind = LOCAL_FAULT_STATUS, .status = 500},
  {.kind = LOCAL_FAULT_STATUS, .status = 500, .body = LOCAL_BODY_HTML},
  {.kind = LOCAL_FAULT_STATUS, .status = 502, .body = LOCAL_BODY_HTML},
  {.kind = LOCAL_FAULT_STATUS, .status = 502, .after = 1},
  {.kind = LOCAL_FAULT_STATUS, .status = 503},
  {.kind = LOCAL_FAULT_STATUS, .status = 503, .after = 1,
   .body = LOCAL_BODY_HTML},
  {.kind = LOCAL_FAULT_STATUS, .status = 504, .body = LOCAL_BODY_HTML},
  {.kind = LOCAL_FAULT_STATUS, .status = 504, .after = 1},
  {.kind = LOCAL_FAULT_TRY_AGAIN, .arg = "active"},
  {.kind = LOCAL_FAULT_TRY_AGAIN, .arg = "paused_capacity"},
  {.kind = LOCAL_FAULT_TRY_AGAIN, .arg = "paused_rate_limit"},
  {.kind = LOCAL_FAULT_TRY_AGAIN, .arg = "strange"},
  {.kind = LOCAL_FAULT_EXTRA_ANSWER, .after = 1},
  {.kind = LOCAL_FAULT_NO_RANGE, .after = 1},
    /* The faults from here on are not mild. */
  {.kind = LOCAL_FAULT_STATUS, .status = 404},
  {.kind = LOCAL_FAULT_STATUS, .status = 410},
  {.kind = LOCAL_FAULT_BAD_JSON, .after = 1},
  {.kind = LOCAL_FAULT_BAD_PROTO, .after = 1},
  {.kind = LOCAL_FAULT_WRONG_TYPE, .after = 1},
  {.kind = LOCAL_FAULT_OTHER_ANSWER, .after = 1},
  {.kind = LOCAL_FAULT_TWICE_HEADER, .after = 1, .arg = "content-type"},
  {.kind = LOCAL_FAULT_TWICE_HEADER, .after = 1, .arg = "content-length"},
  {.kind = LOCAL_FAULT_OVERSIZED, .after = 1, .n = (int64_t)1 << 40},
  {.kind = LOCAL_FAULT_OTHER_RANGE, .after = 1},
  {.kind = LOCAL_FAULT_REDIRECT, .after = 1, .arg = LOCAL_TO_ORIGIN},
  {.kind = LOCAL_FAULT_OTHER_NAMES, .after = 1, .arg = LOCAL_NAME_PARENT},
    /* clang-format on */
};
/* Number of faults before the comment in the list above. */
enum { N_MILD = 37 };

/* The i-th kind; NULL after the last. */
static const local_fault_kind_info_t *fault_kind_at(size_t i) {
  return i < N_KINDS ? &kinds[i] : NULL;
}

/* The faults of "mild" or "all"; NULL for other names. */
static const local_fault_t *fault_group(const char *name, size_t *n) {
  *n = strcmp(name, "mild") == 0  ? N_MILD
       : strcmp(name, "all") == 0 ? sizeof(all) / sizeof(*all)
                                  : 0;
  return *n > 0 ? all : NULL;
}

const char *local_fault_name(const local_fault_t *fault, char out[32]) {
  out[0] = '\0';
  if (fault->kind == LOCAL_FAULT_STATUS)
    snprintf(out, 32, "%d", fault->status);
  for (size_t i = 0; i < N_KINDS; i++)
    if (kinds[i].kind == fault->kind)
      snprintf(out, 32, "%s", kinds[i].name);
  return out;
}

int local_fault_is(const local_fault_t *fault, local_fault_kind_t kind,
                   const char *arg) {
  if (fault->kind != kind || (arg == NULL) != (fault->arg == NULL))
    return 0;
  return arg == NULL || strcmp(fault->arg, arg) == 0;
}

int local_fault_is_at_head(const local_fault_t *fault) {
  return fault->kind == LOCAL_FAULT_RESET ||
         (fault->kind == LOCAL_FAULT_GOAWAY && !fault->after);
}

int local_fault_suits(const local_fault_t *fault, const char *call) {
  if (fault->kind == LOCAL_FAULT_REFUSE)
    return call == NULL;
  if (call == NULL)
    return 0;
  /* For a poll a 409 means that the operation has failed. For a save it means
   * that the name exists. Both are final. */
  if (fault->kind == LOCAL_FAULT_STATUS && fault->status == 409)
    return strncmp(call, "retrieve_future", 15) != 0 &&
           strncmp(call, "save_", 5) != 0;
  /* For a poll they mean that the future is gone; for other calls, that the
   * call does not exist. */
  if (fault->kind == LOCAL_FAULT_STATUS &&
      (fault->status == 404 || fault->status == 410))
    return strcmp(call, "retrieve_future") == 0;
  for (size_t i = 0; i < N_KINDS; i++)
    if (kinds[i].kind == fault->kind && kinds[i].call != NULL)
      return strcmp(call, kinds[i].call) == 0;
  return 1;
}

/* ---- A specification ---- */

/*
 * Parses specifications of faults:
 *
 *   TEXT = ITEM { "," ITEM }
 *   ITEM = "seed=" NUMBER
 *        | FAULT [ "/" CALL ] [ "=" SHARE | "@" POSITION ] { ":" ARGUMENT }
 *
 * The result does not refer to the string.
 */

enum { MAX_ITEM = 160, MAX_WHY = 400 };

/* Keeps sums, and conversions to ms, within int64_t. */
#define MAX_NUMBER ((uint64_t)INT64_MAX / 1000)

static const char *const states[] = {"active", "paused_capacity",
                                     "paused_rate_limit", "strange"};
static const char *const resets[] = {
    LOCAL_ARG_CONNECTION, LOCAL_RESET_REFUSED,  LOCAL_RESET_CALM,
    LOCAL_RESET_CANCEL,   LOCAL_RESET_PROTOCOL, LOCAL_RESET_HTTP_1_1};
static const char *const headers[] = {"content-type", "content-length",
                                      "retry-after", "date"};

static const char *const targets[] = {LOCAL_TO_SAME, LOCAL_TO_ORIGIN,
                                      LOCAL_TO_HTTP, LOCAL_TO_FILE};
static const char *const names[] = {LOCAL_NAME_OTHER,    LOCAL_NAME_PARENT,
                                    LOCAL_NAME_ABSOLUTE, LOCAL_NAME_EMPTY,
                                    LOCAL_NAME_DOT,      LOCAL_NAME_LONG};

/* ---- A specification: reading ---- */

typedef struct {
  char item[MAX_ITEM + 1]; /* split in place */
  char whole[MAX_ITEM + 1];
  char *why;
  size_t n_why;
} reader_t;

static int refuse(const reader_t *r, const char *what, const char *about) {
  if (r->why != NULL && r->n_why > 0)
    snprintf(r->why, r->n_why, "in the fault \"%s\", %s \"%s\"", r->whole, what,
             about);
  return TNK_EINVAL;
}

/* Parse a string of digits. Returns 0 if it has other characters. */
static int number(const char *text, uint64_t *out) {
  return tnk__text_u64(text, MAX_NUMBER, out) == TNK_OK;
}

/* Parse "2.5%" or "0.025" in millionths. Returns 0 if it is neither. */
static int share(const char *text, uint32_t *out) {
  uint64_t value = 0;
  uint64_t unit = 1000000;
  int n_digits = 0;
  int has_point = 0;

  for (; (*text >= '0' && *text <= '9') || (*text == '.' && !has_point);
       text++) {
    if (*text == '.') {
      has_point = 1;
      continue;
    }
    if (value > 1000000 || (has_point && unit == 1))
      return 0;
    value = value * 10 + (uint64_t)(*text - '0');
    if (has_point)
      unit /= 10;
    n_digits++;
  }
  value *= unit;
  if (*text == '%') {
    text++;
    value /= 100;
  }
  *out = (uint32_t)value;
  return *text == '\0' && n_digits > 0 && value > 0 && value <= 1000000;
}

/* Parse "12", "3-5" or "7-". */
static int positions(char *text, local_fault_rule_t *rule) {
  char *dash = strchr(text, '-');

  if (dash != NULL)
    *dash = '\0';
  if (!number(text, &rule->first) || rule->first == 0)
    return 0;
  rule->last = rule->first;
  if (dash == NULL)
    return 1;
  rule->last = UINT64_MAX;
  return dash[1] == '\0' ||
         (number(dash + 1, &rule->last) && rule->last >= rule->first);
}

/* The matching word, as a static string. */
static const char *one_of(const char *const *words, size_t n,
                          const char *word) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(words[i], word) == 0)
      return words[i];
  return NULL;
}

static int read_retry(local_fault_t *fault, const char *name,
                      const char *value) {
  static const char *const forms[] = {[LOCAL_RETRY_MS] = "ms",
                                      [LOCAL_RETRY_SECONDS] = "s",
                                      [LOCAL_RETRY_DATE] = "date",
                                      [LOCAL_RETRY_RFC850] = "rfc850",
                                      [LOCAL_RETRY_ASCTIME] = "asctime"};
  uint64_t n;

  for (size_t i = LOCAL_RETRY_MS; i <= LOCAL_RETRY_ASCTIME; i++) {
    if (strcmp(forms[i], name) != 0)
      continue;
    fault->retry = (local_fault_retry_t)i;
    if (!number(value, &n))
      return 0;
    fault->n = (int64_t)n;
    return 1;
  }
  return 0;
}

static int read_expected(local_fault_t *fault, const char *value) {
  int minus = value[0] == '-';
  int relative = minus || value[0] == '+';
  uint64_t n;

  if (!number(value + relative, &n))
    return 0;
  fault->expect = relative ? LOCAL_EXPECT_RELATIVE : LOCAL_EXPECT_NUMBER;
  fault->expected = minus ? -(int64_t)n : (int64_t)n;
  return 1;
}

static int read_status_argument(local_fault_t *fault, const char *name,
                                const char *value) {
  static const char *const bodies[] = {[LOCAL_BODY_JSON] = "json",
                                       [LOCAL_BODY_HTML] = "html",
                                       [LOCAL_BODY_EMPTY] = "empty"};

  if (value != NULL)
    return strcmp(name, "expected") == 0 && fault->status == 409
               ? read_expected(fault, value)
               : read_retry(fault, name, value);
  if (strcmp(name, "after") == 0) {
    fault->after = 1;
    return 1;
  }
  for (size_t i = 0; i < 3; i++)
    if (strcmp(bodies[i], name) == 0) {
      fault->body = (local_fault_body_t)i;
      return 1;
    }
  return 0;
}

/* Returns 0 if the fault does not accept it. */
static int read_argument(local_fault_t *fault, char *text, int takes_n) {
  char *value = strchr(text, '=');
  uint64_t n;

  if (takes_n) {
    if (!number(text, &n) || (n == 0 && fault->kind != LOCAL_FAULT_CUT))
      return 0;
    fault->n = (int64_t)n;
    return 1;
  }
  if (value != NULL)
    *value++ = '\0';
  switch (fault->kind) {
  case LOCAL_FAULT_STATUS:
    return read_status_argument(fault, text, value);
  case LOCAL_FAULT_RESET:
    fault->arg = one_of(resets, sizeof(resets) / sizeof(*resets), text);
    return value == NULL && fault->arg != NULL;
  case LOCAL_FAULT_DROP:
    fault->arg = one_of(resets, 1, text);
    return value == NULL && fault->arg != NULL;
  case LOCAL_FAULT_GOAWAY:
    fault->after = strcmp(text, "after") == 0;
    return value == NULL && fault->after;
  case LOCAL_FAULT_TRY_AGAIN:
    fault->arg = one_of(states, sizeof(states) / sizeof(*states), text);
    return value == NULL && fault->arg != NULL;
  case LOCAL_FAULT_REDIRECT:
    fault->arg = one_of(targets, sizeof(targets) / sizeof(*targets), text);
    return value == NULL && fault->arg != NULL;
  case LOCAL_FAULT_OTHER_NAMES:
    fault->arg = one_of(names, sizeof(names) / sizeof(*names), text);
    return value == NULL && fault->arg != NULL;
  case LOCAL_FAULT_TWICE_HEADER:
    fault->arg = one_of(headers, sizeof(headers) / sizeof(*headers), text);
    return value == NULL && fault->arg != NULL;
  default:
    return 0;
  }
}

static const local_fault_kind_info_t *find_kind(const char *name) {
  const local_fault_kind_info_t *kind;
  size_t i = 0;

  while ((kind = fault_kind_at(i)) != NULL && strcmp(kind->name, name) != 0)
    i++;
  return kind;
}

static int is_served_first(local_fault_kind_t kind) {
  return kind != LOCAL_FAULT_REFUSE && kind != LOCAL_FAULT_RESET &&
         kind != LOCAL_FAULT_GOAWAY && kind != LOCAL_FAULT_STATUS &&
         kind != LOCAL_FAULT_TRY_AGAIN;
}

static int refuse_name(const reader_t *r, const char *name) {
  char what[MAX_WHY];
  size_t n = (size_t)snprintf(what, sizeof(what),
                              "known are mild, all, a status from 400 to 599");

  for (size_t i = 0; fault_kind_at(i) != NULL && n < sizeof(what); i++)
    n += (size_t)snprintf(what + n, sizeof(what) - n, ", %s",
                          fault_kind_at(i)->name);
  if (n < sizeof(what))
    snprintf(what + n, sizeof(what) - n, "; unknown:");
  return refuse(r, what, name);
}

/* Parse the name of an item; *kind stays NULL for statuses and groups. */
static int read_name(const reader_t *r, local_fault_rule_t *rule,
                     const char *name, const local_fault_kind_info_t **kind) {
  local_fault_t *fault = &rule->fault;
  uint64_t status;

  rule->group = fault_group(name, &rule->n_group);
  if (rule->group != NULL)
    return TNK_OK;
  *kind = find_kind(name);
  if (*kind != NULL) {
    fault->kind = (*kind)->kind;
    fault->n = (*kind)->n;
    fault->after = is_served_first(fault->kind);
    if (fault->kind == LOCAL_FAULT_TRY_AGAIN)
      fault->arg = states[0];
    else if (fault->kind == LOCAL_FAULT_TWICE_HEADER)
      fault->arg = headers[0];
    else if (fault->kind == LOCAL_FAULT_REDIRECT)
      fault->arg = LOCAL_TO_ORIGIN;
    else if (fault->kind == LOCAL_FAULT_OTHER_NAMES)
      fault->arg = LOCAL_NAME_PARENT;
  } else if (number(name, &status) && status >= 400 && status <= 599) {
    fault->kind = LOCAL_FAULT_STATUS;
    fault->status = (int)status;
    fault->body = status == 400 ? LOCAL_BODY_EMPTY : LOCAL_BODY_JSON;
  } else {
    return refuse_name(r, name);
  }
  return TNK_OK;
}

static int is_visible(const char *text) {
  while (*text > ' ' && *text <= '~')
    text++;
  return *text == '\0';
}

static int read_call(const reader_t *r, local_fault_rule_t *rule,
                     const char *call) {
  if (rule->fault.kind == LOCAL_FAULT_REFUSE)
    return refuse(r, "refuse concerns connections, not a call such as", call);
  if (call[0] == '\0' || strlen(call) >= LOCAL_FAULT_CALL || !is_visible(call))
    return refuse(r, "not the name of a call:", call);
  memcpy(rule->call, call, strlen(call) + 1);
  return TNK_OK;
}

/* Split off a part that begins with `mark` and ends before one of `ends`. */
static char *cut(char **at, char mark, const char *ends) {
  char *part = *at;
  size_t n;

  if (*part != mark)
    return NULL;
  *part++ = '\0';
  n = strcspn(part, ends);
  *at = part + n;
  return part;
}

/* Split off a share at the end of the item, as in "reset:connection=0.2%". No
 * value of an argument ends with a percent sign. Returns NULL without a share.
 */
static char *cut_share(char *item) {
  char *equals = strrchr(item, '=');
  const size_t n = strlen(item);

  if (equals == NULL || item[n - 1] != '%' || strchr(item, ':') == NULL ||
      equals < strrchr(item, ':'))
    return NULL;
  *equals = '\0';
  return equals + 1;
}

static int read_rule(reader_t *r, local_fault_rule_t *rule) {
  char *last = cut_share(r->item);
  char *at = r->item + strcspn(r->item, "/=@:");
  char *call = cut(&at, '/', "=@:");
  char *often = cut(&at, '=', ":");
  char *where = often == NULL ? cut(&at, '@', ":") : NULL;
  const local_fault_kind_info_t *kind = NULL;
  char *arg;
  int err;

  arg = cut(&at, ':', ":");
  if (arg == NULL && *at != '\0')
    return refuse(r, "this was not expected:", at);
  err = read_name(r, rule, r->item, &kind);
  if (err == TNK_OK && call != NULL)
    err = read_call(r, rule, call);
  if (err != TNK_OK)
    return err;
  if (last != NULL && (often != NULL || where != NULL))
    return refuse(r, "this is a second share or position:", last);
  if (last != NULL)
    often = last;
  if (often != NULL && !share(often, &rule->share))
    return refuse(r, "a share is like 2% or 0.02 and at most 100%, not", often);
  if (where != NULL && !positions(where, rule))
    return refuse(r, "a position is like 12, 3-5 or 7-, not", where);
  if (often == NULL && where == NULL)
    rule->share = 1000000;
  while (arg != NULL) {
    char *next = cut(&at, ':', ":"); /* also terminates this one */

    if (rule->group != NULL ||
        !read_argument(&rule->fault, arg, kind != NULL && kind->takes_n))
      return refuse(r, "the fault does not take the argument", arg);
    arg = next;
  }
  return TNK_OK;
}

static int read_item(reader_t *r, local_fault_spec_t *spec) {
  local_fault_rule_t *rule;

  if (strncmp(r->item, "seed=", 5) == 0)
    return number(r->item + 5, &spec->seed)
               ? TNK_OK
               : refuse(r, "a seed is a number, not", r->item + 5);
  if (spec->n_rules == LOCAL_MAX_FAULT_RULES)
    return refuse(r, "too many faults, after", "64 faults");
  rule = &spec->rules[spec->n_rules++];
  *rule = (local_fault_rule_t){0};
  return read_rule(r, rule);
}

int local_fault_spec_read(local_fault_spec_t *spec, const char *text, char *why,
                          size_t n_why) {
  reader_t r = {.why = why, .n_why = n_why};

  *spec = (local_fault_spec_t){0};
  while (text != NULL && *text != '\0') {
    size_t n = strcspn(text, ",");
    int err;

    snprintf(r.whole, sizeof(r.whole), "%.*s", n < MAX_ITEM ? (int)n : MAX_ITEM,
             text);
    memcpy(r.item, r.whole, sizeof(r.item));
    if (n == 0 || n > MAX_ITEM)
      return refuse(&r, n == 0 ? "empty item before" : "too long, before",
                    text + n);
    err = read_item(&r, spec);
    if (err != TNK_OK)
      return err;
    text += n;
    if (*text == ',' && *++text == '\0')
      return refuse(&r, "nothing follows", ",");
  }
  return TNK_OK;
}
