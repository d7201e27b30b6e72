#include <stdio.h>
#include <string.h>

#include "tools/local/fault/state.h"

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

const local_fault_kind_info_t *local_fault_kind_at(size_t i) {
  return i < N_KINDS ? &kinds[i] : NULL;
}

const local_fault_t *local_fault_group(const char *name, size_t *n) {
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
