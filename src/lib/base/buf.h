/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_BUF_H
#define TNK_LIB_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * A growing byte buffer with a limit. Failures are sticky. After the first one
 * every append does nothing, and `err` keeps TNK_ENOMEM or TNK_ETOOBIG. A
 * writer thus checks once, at its end.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  uint8_t *data;
  size_t len;
  size_t cap;
  size_t max; /* len never exceeds it */
  int err;    /* TNK_OK or the first failure */
  uint8_t is_secret;
} tnk__buf_t;

void tnk__buf_init(tnk__buf_t *buf, const tnk_allocator_t *alloc, size_t max);
/* Wipe memory of this buffer whenever it is released: when the buffer grows and
 * when it is freed. This holds until the next tnk__buf_init(). */
void tnk__buf_keep_secret(tnk__buf_t *buf);
/* Free the memory. The buffer is then empty and usable. */
void tnk__buf_deinit(tnk__buf_t *buf);
/* Clear the contents and the error, and keep the memory. */
void tnk__buf_clear(tnk__buf_t *buf);
/* Reserve n more bytes. Returns their position, or NULL (see err). The caller
 * adds the number of written bytes to len. */
uint8_t *tnk__buf_reserve(tnk__buf_t *buf, size_t n);
int tnk__buf_append(tnk__buf_t *buf, const void *data, size_t n);
int tnk__buf_text(tnk__buf_t *buf, const char *text);
int tnk__buf_byte(tnk__buf_t *buf, uint8_t byte);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int tnk__buf_printf(tnk__buf_t *buf, const char *format, ...);
/* Remove n bytes from the front. */
void tnk__buf_consume(tnk__buf_t *buf, size_t n);
/* Give the memory to the caller, who frees it with the same allocator. The
 * buffer is then empty. NULL if it has no memory or has failed. */
uint8_t *tnk__buf_take(tnk__buf_t *buf, size_t *len);
/* Free unused memory, if the allocator can. */
void tnk__buf_trim(tnk__buf_t *buf);
/* Append a NUL, which len does not include, and return the text. NULL on
 * failure. */
const char *tnk__buf_cstr(tnk__buf_t *buf);

#endif
