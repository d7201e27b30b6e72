/*
 * The response to a submission. Nearly every request gets one, and nearly
 * always with the same few plain members. Such responses are read in place. All
 * others go through the general JSON reader, which alone decides whether they
 * are invalid.
 */
#include <string.h>

#include "lib/wire/message/answer.h"
#include "lib/wire/message/calls.h"
#include "tnk/error.h"

/* ---- Plain responses ---- */

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

static int is(const piece_t *piece, const char *text) {
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
  if (is(&key, "request_id")) {
    bit = 1;
    ok = pass_text(scan, &out->request_id);
  } else if (is(&key, "model_id")) {
    bit = 2;
    ok = pass_null(scan) || pass_text(scan, &out->model_id);
  } else if (is(&key, "sample_sequence_ids")) {
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

/* ---- Other responses ---- */

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
