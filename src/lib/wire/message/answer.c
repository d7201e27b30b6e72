/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/answer.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "lib/wire/message/calls.h"
#include "lib/wire/format/number_text.h"
#include "tnk/error.h"

enum {
  MAX_PROBLEMS = 8,       /* problems of a list that are reported */
  MAX_PARSED = 1 << 20,   /* larger error bodies are read as plain text */
  MAX_RETRY_S = 24 * 3600 /* a longer delay counts as none */
};

/* A larger size counts as not stated, so that sums of sizes stay far below
 * 2^63. A body over TNK__MAX_RESPONSE_BODY is rejected anyway. */
#define MAX_RESULT ((int64_t)1 << 50)

/* ---- The text of a failure ---- */

/* Append a server's text on one line: valid UTF-8, blanks for control
 * characters, at most TNK__MAX_ERROR_TEXT bytes. Truncation is not a
 * failure. */
static void add_text(tnk__buf_t *out, const char *text, size_t n) {
  size_t i = 0;

  while (i < n && out->err == TNK_OK) {
    size_t step = tnk__utf8_char(text + i, n - i);
    unsigned char c = (unsigned char)text[i];
    /* The first character that does not fit ends the text, so no character is
     * cut. */
    if (out->len + (step > 1 ? step : 1) > TNK__MAX_ERROR_TEXT)
      return;
    if (step == 0)
      tnk__buf_byte(out, '?');
    else if (c < 0x20 || c == 0x7f)
      tnk__buf_byte(out, ' ');
    else
      tnk__buf_append(out, text + i, step);
    i += step > 0 ? step : 1;
  }
}

static void add_cstr(tnk__buf_t *out, const char *text) {
  add_text(out, text, strlen(text));
}

/* Append the location of a problem in the request: ["body", "seq_id", 0]. */
static void add_place(tnk__buf_t *out, const json_t *place) {
  size_t n = json_array_size(place);
  size_t i;

  for (i = 0; i < n; i++) {
    const json_t *step = json_array_get(place, i);
    char number[TNK__NUMBER_TEXT];
    if (i > 0)
      add_cstr(out, ".");
    if (json_is_string(step))
      add_cstr(out, json_string_value(step));
    else if (json_is_integer(step))
      add_text(out, number, tnk__int_text(number, json_integer_value(step)));
  }
  if (n > 0)
    add_cstr(out, ": ");
}

static int add_value(tnk__buf_t *out, const json_t *value);

static int is_blank(uint8_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int add_list(tnk__buf_t *out, const json_t *list) {
  size_t n = json_array_size(list);
  int n_told = 0;
  size_t i;

  for (i = 0; i < n && i < MAX_PROBLEMS; i++) {
    size_t before = out->len;
    if (n_told > 0)
      add_cstr(out, "; ");
    if (add_value(out, json_array_get(list, i)))
      n_told++;
    else if (out->len > before)
      out->len = before;
  }
  return n_told > 0;
}

/* Append the first member that has a text. */
static int add_object(tnk__buf_t *out, const json_t *object) {
  static const char *const keys[] = {"detail", "error_message", "error",
                                     "message", "msg"};
  size_t before = out->len;
  size_t i;

  add_place(out, tnk__json_arr(object, "loc"));
  for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
    if (add_value(out, json_object_get(object, keys[i])))
      return 1;
  out->len = before;
  return 0;
}

static int is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}

/* The length of a text before the first sign of binary data: a control
 * character, a replacement character, or an escape such as \x01. Some servers
 * repeat the request in their errors, even a protobuf body. */
static size_t words_length(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)text[i];

    if ((c < 0x20 && !is_blank(c)) || c == 0x7f ||
        (n - i >= 3 && memcmp(text + i, "\xef\xbf\xbd", 3) == 0) ||
        (n - i >= 4 && text[i] == '\\' && text[i + 1] == 'x' &&
         is_hex(text[i + 2]) && is_hex(text[i + 3])))
      return i;
  }
  return n;
}

/* Returns 1 if the text had words. */
static int add_words(tnk__buf_t *out, const char *text, size_t n) {
  const size_t n_words = words_length(text, n);

  if (n_words == 0)
    return 0;
  add_text(out, text, n_words);
  if (n_words < n)
    add_cstr(out, "...");
  return 1;
}

/* Append the text of a value. Returns 1 if it had any. TNK__MAX_JSON_DEPTH
 * bounds the recursion. */
static int add_value(tnk__buf_t *out, const json_t *value) {
  if (json_is_object(value))
    return add_object(out, value);
  if (json_is_array(value))
    return add_list(out, value);
  return json_is_string(value) &&
         add_words(out, json_string_value(value), json_string_length(value));
}

/* Returns whether the text is for people: no markup, nothing binary. */
static int is_readable(const char *text, size_t n) {
  size_t i = 0;

  if (n == 0 || text[0] == '<')
    return 0;
  while (i < n && i < TNK__MAX_ERROR_TEXT) {
    size_t step = tnk__utf8_char(text + i, n - i);
    uint8_t c = (uint8_t)text[i];
    if (step == 0 || (c < 0x20 && !is_blank(c)))
      return 0;
    i += step;
  }
  return 1;
}

static void add_plain(tnk__buf_t *out, const uint8_t *body, size_t n) {
  while (n > 0 && is_blank(body[0])) {
    body++;
    n--;
  }
  while (n > 0 && is_blank(body[n - 1]))
    n--;
  if (is_readable((const char *)body, n))
    add_words(out, (const char *)body, n);
}

/* Copy the content of `text` into the arena and free `text`. */
static int keep_text(const char **out, tnk__arena_t *arena, tnk__buf_t *text) {
  char *copy = NULL;
  int err = text->err;

  if (err == TNK_OK && text->len > 0) {
    copy = tnk__arena_strndup(arena, (const char *)text->data, text->len);
    if (copy == NULL)
      err = TNK_ENOMEM;
  }
  tnk__buf_deinit(text);
  if (err == TNK_OK)
    *out = copy;
  return err;
}

/* ---- Other members ---- */

/* Returns whether `text` equals `word`, ignoring case. `word` is in lower case.
 */
static int is_word(const char *text, const char *word) {
  size_t i = 0;

  if (text == NULL)
    return 0;
  for (; word[i] != '\0'; i++)
    if (text[i] != word[i] && text[i] != word[i] - ('a' - 'A'))
      return 0;
  return text[i] == '\0';
}

/* Servers spell it differently. */
static tnk_category_t read_category(const json_t *object) {
  const char *text = tnk__json_str(object, "category");

  if (text == NULL)
    text = tnk__json_str(tnk__json_obj(object, "error"), "category");
  if (text == NULL)
    text = tnk__json_str(tnk__json_obj(object, "detail"), "category");
  if (is_word(text, "user"))
    return TNK_CATEGORY_USER;
  if (is_word(text, "server"))
    return TNK_CATEGORY_SERVER;
  return TNK_CATEGORY_UNKNOWN;
}

static uint64_t read_retry_after_ms(const json_t *object) {
  double ms = 0;

  if (tnk__json_get_double(object, "retry_after_ms", &ms) != TNK__JSON_FOUND &&
      tnk__json_get_double(object, "retry_after", &ms) == TNK__JSON_FOUND)
    ms *= 1000;
  return ms > 0 && ms <= (double)MAX_RETRY_S * 1000.0 ? (uint64_t)ms : 0;
}

/* Read the text of a failure from parsed JSON, or from the raw body. */
static int read_failure(tnk__failure_t *out, tnk__arena_t *arena,
                        const json_t *root, const uint8_t *body, size_t n) {
  tnk__buf_t text;

  out->category = read_category(root);
  out->retry_after_ms = read_retry_after_ms(root);
  tnk__buf_init(&text, arena->alloc, TNK__MAX_ERROR_TEXT);
  if (!add_value(&text, root) && (root == NULL || json_object_size(root) > 0))
    add_plain(&text, body, n);
  return keep_text(&out->message, arena, &text);
}

int tnk__failure_read(tnk__failure_t *out, tnk__arena_t *arena,
                      const uint8_t *body, size_t n) {
  tnk__failure_t read = {0};
  json_t *root = NULL;
  int err = TNK_OK;

  /* A body that is not JSON is accepted, because a proxy's page has text as
   * well. */
  if (n <= MAX_PARSED)
    err = tnk__json_parse(&root, body, n);
  if (err != TNK_ENOMEM)
    err = read_failure(&read, arena, root, body, n);
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

/* ---- Futures ---- */

static int is(const json_t *root, const char *key, const char *value) {
  const char *text = tnk__json_str(root, key);

  return text != NULL && strcmp(text, value) == 0;
}

/* A null counts as absent, as everywhere. */
static int has(const json_t *root, const char *key) {
  const json_t *member = json_object_get(root, key);

  return member != NULL && !json_is_null(member);
}

/* First the forms of the protocol, then the forms of other servers. */
static tnk__answer_kind_t kind_of(const json_t *root) {
  if (is(root, "type", "try_again"))
    return TNK__ANSWER_PENDING;
  if (is(root, "status", "complete_metadata"))
    return TNK__ANSWER_METADATA;
  if (has(root, "error") || is(root, "type", "RequestFailedResponse") ||
      is(root, "status", "failed"))
    return TNK__ANSWER_FAILED;
  if (is(root, "status", "pending") ||
      tnk__json_str(root, "queue_state") != NULL)
    return TNK__ANSWER_PENDING;
  return TNK__ANSWER_RESULT;
}

/* Some servers wrap a result: {"status": "completed", "result": {...}}. */
static int unwrap(tnk__answer_t *out, tnk__arena_t *arena, const json_t *root) {
  const json_t *result = tnk__json_obj(root, "result");
  const char *text;
  size_t n;
  int err;

  if (result == NULL || !is(root, "status", "completed"))
    return TNK_OK;
  err = tnk__calls_keep_json(&text, &n, arena, result);
  if (err != TNK_OK)
    return err;
  out->result = (const uint8_t *)text;
  out->result_len = n;
  return TNK_OK;
}

static int read_answer(tnk__answer_t *out, tnk__arena_t *arena,
                       const json_t *root) {
  int64_t size = 0;
  int err;

  out->kind = kind_of(root);
  out->retry_after_ms = read_retry_after_ms(root);
  tnk__json_get_int(root, "response_payload_size", 0, MAX_RESULT, &size);
  out->result_bytes = (uint64_t)size;
  /* Unwrap before reading the failure, whose text may be in the wrapped
   * value. */
  err = unwrap(out, arena, root);
  if (err == TNK_OK && out->kind == TNK__ANSWER_FAILED)
    err =
        read_failure(&out->failure, arena, root, out->result, out->result_len);
  if (err == TNK_OK && tnk__json_str(root, "queue_state") != NULL)
    err = tnk__calls_get_text(&out->queue_state, arena, root, "queue_state");
  if (err == TNK_OK && tnk__json_str(root, "queue_state_reason") != NULL)
    err = tnk__calls_get_text(&out->queue_reason, arena, root,
                              "queue_state_reason");
  return err;
}

int tnk__answer_read(tnk__answer_t *out, tnk__arena_t *arena,
                     const uint8_t *body, size_t n) {
  tnk__answer_t read = {.result = body, .result_len = n};
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = read_answer(&read, arena, root);
  json_decref(root);
  if (err == TNK_OK)
    *out = read;
  return err;
}

/* ---- Rejected members ---- */

static int is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

/* The position of `word` as a whole word, or NULL. */
static const char *find_word(const char *text, size_t n, const char *word) {
  const size_t n_word = strlen(word);
  size_t i;

  for (i = 0; i + n_word <= n; i++)
    if (memcmp(text + i, word, n_word) == 0 &&
        (i == 0 || !is_letter(text[i - 1])) &&
        (i + n_word == n || !is_letter(text[i + n_word])))
      return text + i;
  return NULL;
}

/* Many parsers list the known members after the rejected one. */
static int text_refuses(const char *text, size_t n, const char *member) {
  static const char *const lists[] = {"expected", "expects", "one of",
                                      "allowed:", "known:",  "valid:"};
  const char *found = find_word(text, n, member);
  const char *list;
  size_t i;

  if (found == NULL)
    return 0;
  for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
    list = find_word(text, (size_t)(found - text), lists[i]);
    if (list != NULL)
      return 0;
  }
  return 1;
}

static int problem_refuses(const json_t *problem, const char *member) {
  const json_t *place = tnk__json_arr(problem, "loc");
  const json_t *last = json_array_get(place, json_array_size(place) - 1);

  return json_is_string(last) && strcmp(json_string_value(last), member) == 0;
}

static int value_refuses(const json_t *value, const char *member) {
  static const char *const keys[] = {"detail", "error_message", "error",
                                     "message", "errors"};
  size_t i;

  if (json_is_string(value))
    return text_refuses(json_string_value(value), json_string_length(value),
                        member);
  for (i = 0; i < json_array_size(value); i++)
    if (problem_refuses(json_array_get(value, i), member))
      return 1;
  for (i = 0; json_is_object(value) && i < sizeof(keys) / sizeof(keys[0]); i++)
    if (value_refuses(json_object_get(value, keys[i]), member))
      return 1;
  return 0;
}

int tnk__failure_refuses(const uint8_t *body, size_t n, const char *member) {
  json_t *root;
  int is_refused;

  if (n == 0 || n > MAX_PARSED)
    return 0;
  if (tnk__json_parse_object(&root, body, n) != TNK_OK)
    return text_refuses((const char *)body, n, member);
  is_refused = value_refuses(root, member);
  json_decref(root);
  return is_refused;
}

/* ---- Accepted calls ---- */

/*
 * The response to a submission. Nearly every request gets one, and nearly
 * always with the same few plain members. Such responses are read in place. All
 * others go through the general JSON reader, which alone decides whether they
 * are invalid.
 */

/* ---- Accepted calls: plain responses ---- */

typedef struct {
  const char *at;
  const char *end;
} scan_t;

typedef struct {
  const char *text; /* NULL: absent or null */
  size_t len;
} piece_t;

static void skip_blanks(scan_t *scan) {
  while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' ||
                                  *scan->at == '\r' || *scan->at == '\t'))
    scan->at++;
}

/* Skip `c` and the blanks around it. */
static int pass(scan_t *scan, char c) {
  skip_blanks(scan);
  if (scan->at == scan->end || *scan->at != c)
    return 0;
  scan->at++;
  skip_blanks(scan);
  return 1;
}

/* Visible ASCII only. Escapes and UTF-8 are left to the general reader. */
static int is_plain(unsigned char c) {
  return c > ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* Read a string of visible ASCII without escapes. */
static int pass_text(scan_t *scan, piece_t *out) {
  if (scan->at == scan->end || *scan->at != '"')
    return 0;
  out->text = ++scan->at;
  while (scan->at < scan->end && is_plain((unsigned char)*scan->at))
    scan->at++;
  out->len = (size_t)(scan->at - out->text);
  if (scan->at == scan->end || *scan->at != '"')
    return 0;
  scan->at++;
  return 1;
}

static int pass_null(scan_t *scan) {
  if (scan->end - scan->at < 4 || memcmp(scan->at, "null", 4) != 0)
    return 0;
  scan->at += 4;
  return 1;
}

/* Skip a list and count its strings. `out` begins at the first string. */
static int pass_list(scan_t *scan, scan_t *out, size_t *n) {
  piece_t text;

  *n = 0;
  if (!pass(scan, '['))
    return 0;
  *out = *scan;
  if (pass(scan, ']'))
    return 1;
  do {
    if (!pass_text(scan, &text))
      return 0;
    ++*n;
  } while (pass(scan, ','));
  return pass(scan, ']');
}

typedef struct {
  piece_t request_id;
  piece_t model_id;
  scan_t list; /* list of sequence ids */
  size_t n_list;
  unsigned seen; /* a bit for each of the three members */
} plain_t;

static int piece_is(const piece_t *piece, const char *text) {
  return piece->len == strlen(text) &&
         memcmp(piece->text, text, piece->len) == 0;
}

/* An unknown or duplicate key is not plain. */
static int pass_member(scan_t *scan, plain_t *out) {
  unsigned bit = 0;
  piece_t key;
  int ok = 0;

  if (!pass_text(scan, &key) || !pass(scan, ':'))
    return 0;
  if (piece_is(&key, "request_id")) {
    bit = 1;
    ok = pass_text(scan, &out->request_id);
  } else if (piece_is(&key, "model_id")) {
    bit = 2;
    ok = pass_null(scan) || pass_text(scan, &out->model_id);
  } else if (piece_is(&key, "sample_sequence_ids")) {
    bit = 4;
    ok = pass_null(scan) || pass_list(scan, &out->list, &out->n_list);
  }
  ok = ok && (out->seen & bit) == 0;
  out->seen |= bit;
  return ok;
}

static int scan_plain(plain_t *out, const uint8_t *body, size_t n) {
  scan_t scan = {(const char *)body, (const char *)body + n};

  *out = (plain_t){.seen = 0};
  if (!pass(&scan, '{'))
    return 0;
  do {
    if (!pass_member(&scan, out))
      return 0;
  } while (pass(&scan, ','));
  /* An empty id is not plain either. The general reader rejects it, and this
   * reader must not accept more. */
  return pass(&scan, '}') && scan.at == scan.end && out->request_id.len > 0;
}

static int copy_list(tnk__accepted_t *out, tnk__arena_t *arena,
                     const plain_t *plain) {
  scan_t scan = plain->list;
  const char **ids;
  piece_t id = {0};

  if (plain->n_list == 0)
    return TNK_OK;
  ids = tnk__arena_calloc(arena, plain->n_list, sizeof(*ids));
  if (ids == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < plain->n_list; i++) {
    /* It was checked before, so these calls cannot fail. */
    (void)pass_text(&scan, &id);
    (void)pass(&scan, ',');
    ids[i] = tnk__arena_strndup(arena, id.text, id.len);
    if (ids[i] == NULL)
      return TNK_ENOMEM;
  }
  out->sequence_ids = ids;
  out->n_sequence_ids = plain->n_list;
  return TNK_OK;
}

static int copy_plain(tnk__accepted_t *out, tnk__arena_t *arena,
                      const plain_t *plain) {
  out->request_id =
      tnk__arena_strndup(arena, plain->request_id.text, plain->request_id.len);
  if (out->request_id == NULL)
    return TNK_ENOMEM;
  if (plain->model_id.text != NULL) {
    out->model_id =
        tnk__arena_strndup(arena, plain->model_id.text, plain->model_id.len);
    if (out->model_id == NULL)
      return TNK_ENOMEM;
  }
  return copy_list(out, arena, plain);
}

/* ---- Accepted calls: other responses ---- */

/* A response without a future must look like a result or a failure. A lost id
 * is therefore not taken for success. */
static int is_immediate(const json_t *root) {
  static const char *const keys[] = {
      "path",      "sampling_session_id",
      "metrics",   "loss_fn_outputs",
      "sequences", "loss_id",
      "result",    "error",
  };
  size_t i;

  for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
    const json_t *member = json_object_get(root, keys[i]);
    if (member != NULL && !json_is_null(member))
      return 1;
  }
  return tnk__json_str(root, "model_id") != NULL &&
         tnk__json_str(root, "type") != NULL;
}

static int read_sequence_ids(tnk__accepted_t *out, tnk__arena_t *arena,
                             const json_t *root) {
  const json_t *list = NULL;
  const char **ids;
  size_t n, i;

  /* Absent and null are equivalent: old servers send no ids. */
  if (tnk__json_get_array(root, "sample_sequence_ids", &list) ==
      TNK__JSON_WRONG)
    return TNK_EPROTO;
  n = json_array_size(list);
  if (n == 0)
    return TNK_OK;
  ids = tnk__arena_calloc(arena, n, sizeof(*ids));
  if (ids == NULL)
    return TNK_ENOMEM;
  for (i = 0; i < n; i++) {
    const json_t *id = json_array_get(list, i);
    if (!json_is_string(id))
      return TNK_EPROTO;
    ids[i] = tnk__arena_strdup(arena, json_string_value(id));
    if (ids[i] == NULL)
      return TNK_ENOMEM;
  }
  out->sequence_ids = ids;
  out->n_sequence_ids = n;
  return TNK_OK;
}

static int read_any(tnk__accepted_t *out, tnk__arena_t *arena,
                    const uint8_t *body, size_t n) {
  tnk__accepted_t read = {0};
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK)
    return err;
  err = tnk__calls_get_id(&read.request_id, arena, root, "request_id");
  if (err == TNK_OK && (read.request_id == NULL ? !is_immediate(root)
                                                : read.request_id[0] == '\0'))
    err = TNK_EPROTO;
  if (err == TNK_OK)
    err = tnk__calls_get_id(&read.model_id, arena, root, "model_id");
  if (err == TNK_OK)
    err = read_sequence_ids(&read, arena, root);
  json_decref(root);
  *out = read;
  return err;
}

int tnk__accepted_read(tnk__accepted_t *out, tnk__arena_t *arena,
                       const uint8_t *body, size_t n) {
  tnk__accepted_t read = {0};
  plain_t plain;
  int err = scan_plain(&plain, body, n) ? copy_plain(&read, arena, &plain)
                                        : read_any(&read, arena, body, n);

  if (err == TNK_OK)
    *out = read;
  return err;
}
