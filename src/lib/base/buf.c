/* SPDX-License-Identifier: MIT */
/*
 * A buffer is good, or has failed with the code in `err`. Only tnk__buf_clear()
 * and tnk__buf_deinit() make a failed buffer good again. Until then appending
 * does nothing. The earlier contents remain, but must not be used.
 */
#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* FIRST_CAPACITY fits the head of a request or a small body. MAX_SLACK bytes
 * are not worth freeing. */
enum { FIRST_CAPACITY = 256, MAX_SLACK = 16 };

void tnk__buf_init(tnk__buf_t *buf, const tnk_allocator_t *alloc, size_t max) {
  *buf = (tnk__buf_t){.alloc = alloc, .max = max};
}

void tnk__buf_keep_secret(tnk__buf_t *buf) {
  buf->is_secret = 1;
}

void tnk__buf_deinit(tnk__buf_t *buf) {
  const uint8_t is_secret = buf->is_secret;

  if (is_secret && buf->data != NULL)
    tnk__wipe(buf->data, buf->cap);
  tnk__free(buf->alloc, buf->data);
  tnk__buf_init(buf, buf->alloc, buf->max);
  buf->is_secret = is_secret;
}

void tnk__buf_clear(tnk__buf_t *buf) {
  buf->len = 0;
  buf->err = TNK_OK;
}

/* Move the contents to larger memory and wipe the old copy. */
static uint8_t *move_secret(tnk__buf_t *buf, size_t cap) {
  uint8_t *data = tnk__malloc(buf->alloc, cap);

  if (data == NULL || buf->data == NULL)
    return data;
  memcpy(data, buf->data, buf->len);
  tnk__wipe(buf->data, buf->cap);
  tnk__free(buf->alloc, buf->data);
  return data;
}

/* Grow to at least `need` bytes of capacity, and to `first` at the start. */
static int grow(tnk__buf_t *buf, size_t need, size_t first) {
  size_t cap = buf->cap;
  uint8_t *data;

  if (cap == 0)
    cap = need > first ? need : first;
  /* Doubling keeps appending single bytes linear. The capacity may exceed
   * `max`, which limits only `len`. */
  while (cap < need)
    cap = cap > SIZE_MAX / 2 ? need : cap * 2;
  data = buf->is_secret ? move_secret(buf, cap)
                        : tnk__realloc(buf->alloc, buf->data, cap);
  if (data == NULL) {
    buf->err = TNK_ENOMEM;
    return buf->err;
  }
  buf->data = data;
  buf->cap = cap;
  return TNK_OK;
}

static inline uint8_t *room_for(tnk__buf_t *buf, size_t n, size_t first) {
  if (buf->err != TNK_OK)
    return NULL;
  /* Subtract, because the sum may overflow. */
  if (n > buf->max || buf->len > buf->max - n) {
    buf->err = TNK_ETOOBIG;
    return NULL;
  }
  /* One spare byte is for tnk__buf_cstr(). */
  if (buf->len + n + 1 > buf->cap &&
      grow(buf, buf->len + n + 1, first) != TNK_OK)
    return NULL;
  return buf->data + buf->len;
}

/* The first request is often the only one, so it is not rounded up. */
uint8_t *tnk__buf_reserve(tnk__buf_t *buf, size_t n) {
  return room_for(buf, n, 1);
}

int tnk__buf_append(tnk__buf_t *buf, const void *data, size_t n) {
  uint8_t *to = room_for(buf, n, FIRST_CAPACITY);

  if (to == NULL)
    return buf->err;
  if (n > 0)
    memcpy(to, data, n);
  buf->len += n;
  return TNK_OK;
}

int tnk__buf_text(tnk__buf_t *buf, const char *text) {
  return tnk__buf_append(buf, text, strlen(text));
}

int tnk__buf_byte(tnk__buf_t *buf, uint8_t byte) {
  uint8_t *to = room_for(buf, 1, FIRST_CAPACITY);

  if (to == NULL)
    return buf->err;
  *to = byte;
  buf->len++;
  return TNK_OK;
}

int tnk__buf_printf(tnk__buf_t *buf, const char *format, ...) {
  va_list args;
  uint8_t *to;
  int n;

  va_start(args, format);
  /* Measure first, so that a failure writes nothing. */
  n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (n < 0) {
    buf->err = TNK_EINTERNAL;
    return buf->err;
  }
  to = tnk__buf_reserve(buf, (size_t)n);
  if (to == NULL)
    return buf->err;
  va_start(args, format);
  /* The spare byte of the reservation holds the terminator. */
  vsnprintf((char *)to, (size_t)n + 1, format, args);
  va_end(args);
  buf->len += (size_t)n;
  return TNK_OK;
}

void tnk__buf_consume(tnk__buf_t *buf, size_t n) {
  if (n >= buf->len) {
    buf->len = 0;
    return;
  }
  /* The cost is the size of the rest, so it is meant for pieces, not for
   * bytes. */
  memmove(buf->data, buf->data + n, buf->len - n);
  buf->len -= n;
}

uint8_t *tnk__buf_take(tnk__buf_t *buf, size_t *len) {
  uint8_t *data = buf->data;

  *len = buf->len;
  if (buf->err != TNK_OK) {
    *len = 0;
    return NULL;
  }
  tnk__buf_init(buf, buf->alloc, buf->max);
  return data;
}

void tnk__buf_trim(tnk__buf_t *buf) {
  uint8_t *data;

  if (buf->data == NULL || buf->is_secret || buf->cap - buf->len <= MAX_SLACK)
    return;
  data = tnk__realloc(buf->alloc, buf->data, buf->len + 1);
  if (data == NULL)
    return;
  buf->data = data;
  buf->cap = buf->len + 1;
}

const char *tnk__buf_cstr(tnk__buf_t *buf) {
  uint8_t *end = tnk__buf_reserve(buf, 0);

  if (end == NULL)
    return NULL;
  *end = '\0';
  return (const char *)buf->data;
}
