/* SPDX-License-Identifier: MIT */
#include "lib/wire/stream/sse.h"

#include <string.h>

#include "tnk/error.h"

enum { PAST_BOM = 4 };

static const uint8_t bom[] = {0xef, 0xbb, 0xbf};

void tnk__sse_init(tnk__sse_t *sse, const tnk_allocator_t *alloc, size_t max) {
  memset(sse, 0, sizeof(*sse));
  sse->max = max;
  /* room() enforces the limit; a line end, a byte order mark and a NUL are
   * extra. */
  tnk__buf_init(&sse->line, alloc, max + 8);
  tnk__buf_init(&sse->data, alloc, max + 8);
  tnk__buf_init(&sse->type, alloc, max + 8);
  tnk__buf_init(&sse->new_id, alloc, max + 8);
  tnk__buf_init(&sse->id, alloc, max + 8);
}

void tnk__sse_deinit(tnk__sse_t *sse) {
  tnk__buf_deinit(&sse->line);
  tnk__buf_deinit(&sse->data);
  tnk__buf_deinit(&sse->type);
  tnk__buf_deinit(&sse->new_id);
  tnk__buf_deinit(&sse->id);
}

static int fail(tnk__sse_t *sse, int err) {
  sse->err = err;
  return err;
}

/* Returns whether the event may grow by n bytes. */
static int room(tnk__sse_t *sse, size_t n) {
  size_t has = sse->line.len + sse->data.len + sse->type.len + sse->new_id.len;

  return n <= sse->max && has <= sse->max - n;
}

static int append(tnk__sse_t *sse, tnk__buf_t *to, const uint8_t *text,
                  size_t n) {
  if (!room(sse, n))
    return fail(sse, TNK_ETOOBIG);
  if (tnk__buf_append(to, text, n) != TNK_OK)
    return fail(sse, to->err);
  return TNK_OK;
}

/* ---- Fields ---- */

static int is_name(const uint8_t *name, size_t n, const char *wanted) {
  return n == strlen(wanted) && memcmp(name, wanted, n) == 0;
}

/* Only digits count. A number that does not fit is ignored. */
static void read_retry(tnk__sse_t *sse, const uint8_t *value, size_t n) {
  uint64_t ms = 0;

  for (size_t i = 0; i < n; i++) {
    if (value[i] < '0' || value[i] > '9' || ms > UINT64_MAX / 10 - 1)
      return;
    ms = ms * 10 + (uint64_t)(value[i] - '0');
  }
  if (n == 0)
    return;
  sse->retry_ms = ms;
  sse->has_retry = 1;
}

static int read_field(tnk__sse_t *sse, const uint8_t *name, size_t n_name,
                      const uint8_t *value, size_t n) {
  if (is_name(name, n_name, "data")) {
    int err = append(sse, &sse->data, value, n);

    return err == TNK_OK ? append(sse, &sse->data, (const uint8_t *)"\n", 1)
                         : err;
  }
  if (is_name(name, n_name, "event")) {
    tnk__buf_clear(&sse->type);
    return append(sse, &sse->type, value, n);
  }
  if (is_name(name, n_name, "id") && memchr(value, '\0', n) == NULL) {
    tnk__buf_clear(&sse->new_id);
    sse->has_new_id = 1;
    return append(sse, &sse->new_id, value, n);
  }
  if (is_name(name, n_name, "retry"))
    read_retry(sse, value, n);
  return TNK_OK;
}

/* ---- Lines ---- */

/* Handle a blank line. Returns 1 if it ends an event. */
static int dispatch(tnk__sse_t *sse, tnk__sse_event_t *event) {
  if (sse->has_new_id) {
    tnk__buf_t was = sse->id;

    sse->id = sse->new_id;
    sse->new_id = was;
    tnk__buf_clear(&sse->new_id);
    sse->has_new_id = 0;
  }
  sse->is_given = 1;
  if (sse->data.len == 0)
    return 0;
  sse->data.len--; /* drop the last line end */
  event->n = sse->data.len;
  event->data = tnk__buf_cstr(&sse->data);
  event->type = tnk__buf_cstr(&sse->type);
  event->id = sse->id.len > 0 ? tnk__buf_cstr(&sse->id) : "";
  if (event->data == NULL || event->type == NULL || event->id == NULL)
    return fail(sse, TNK_ENOMEM);
  if (event->type[0] == '\0')
    event->type = "message";
  return 1;
}

static int read_line(tnk__sse_t *sse, const uint8_t *line, size_t n,
                     tnk__sse_event_t *event) {
  const uint8_t *colon;
  const uint8_t *value;

  if (n == 0)
    return dispatch(sse, event);
  if (line[0] == ':')
    return TNK_OK;
  colon = memchr(line, ':', n);
  if (colon == NULL)
    return read_field(sse, line, n, line + n, 0);
  value = colon + 1;
  if (value < line + n && *value == ' ')
    value++;
  return read_field(sse, line, (size_t)(colon - line), value,
                    (size_t)(line + n - value));
}

/* Process a complete line, including its stored beginning. */
static int end_line(tnk__sse_t *sse, const uint8_t *rest, size_t n,
                    tnk__sse_event_t *event) {
  tnk__buf_t line;
  int err;

  if (sse->is_comment) {
    sse->is_comment = 0;
    return TNK_OK;
  }
  if (!room(sse, n) && (sse->line.len > 0 || rest[0] != ':'))
    return fail(sse, TNK_ETOOBIG);
  if (sse->line.len == 0)
    return read_line(sse, rest, n, event);
  if (append(sse, &sse->line, rest, n) != TNK_OK)
    return sse->err;
  /* From here on its bytes belong to the field, so they must be counted
   * once. */
  line = sse->line;
  tnk__buf_init(&sse->line, line.alloc, line.max);
  err = read_line(sse, line.data, line.len, event);
  tnk__buf_clear(&line);
  sse->line = line;
  return err;
}

/* Store the received beginning of a line. For a comment only its kind is
 * stored. */
static int keep(tnk__sse_t *sse, const uint8_t *text, size_t n) {
  if (n == 0 || sse->is_comment)
    return TNK_OK;
  if (sse->line.len == 0 && text[0] == ':') {
    sse->is_comment = 1;
    return TNK_OK;
  }
  return append(sse, &sse->line, text, n);
}

static const uint8_t *line_end(const uint8_t *at, const uint8_t *end) {
  while (at < end && *at != '\n' && *at != '\r')
    at++;
  return at;
}

/* Skip the byte order mark at the start. Bytes that only resemble its beginning
 * belong to the first line. */
static int skip_bom(tnk__sse_t *sse, const uint8_t **at, const uint8_t *end) {
  while (*at < end && sse->n_bom < sizeof(bom) && **at == bom[sse->n_bom]) {
    sse->n_bom++;
    ++*at;
  }
  if (*at == end && sse->n_bom < sizeof(bom))
    return TNK_OK;
  if (sse->n_bom < sizeof(bom))
    keep(sse, bom, sse->n_bom);
  sse->n_bom = PAST_BOM;
  return sse->err;
}

int tnk__sse_next(tnk__sse_t *sse, const uint8_t **at, const uint8_t *end,
                  tnk__sse_event_t *event) {
  int got = sse->err;

  if (sse->is_given) {
    tnk__buf_clear(&sse->data);
    tnk__buf_clear(&sse->type);
    sse->is_given = 0;
  }
  if (got == TNK_OK && sse->n_bom != PAST_BOM)
    got = skip_bom(sse, at, end);
  while (got == TNK_OK && *at < end) {
    const uint8_t *start = *at;
    const uint8_t *stop;

    if (sse->was_cr && *start == '\n')
      start++;
    sse->was_cr = 0;
    stop = line_end(start, end);
    *at = stop;
    if (stop == end) {
      got = keep(sse, start, (size_t)(stop - start));
      break;
    }
    sse->was_cr = *stop == '\r';
    ++*at;
    got = end_line(sse, start, (size_t)(stop - start), event);
    if (sse->is_given && got == TNK_OK) {
      tnk__buf_clear(&sse->type);
      sse->is_given = 0;
    }
  }
  return got;
}

int tnk__sse_end(const tnk__sse_t *sse) {
  int has_begun = !sse->is_given && (sse->data.len > 0 || sse->type.len > 0);
  int is_in_bom = sse->n_bom > 0 && sse->n_bom < sizeof(bom);

  return has_begun || is_in_bom || sse->line.len > 0 || sse->has_new_id
             ? TNK_ECONN
             : TNK_OK;
}
