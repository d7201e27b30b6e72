#ifndef TNK_LIB_BASE_BUF_H
#define TNK_LIB_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * A growing byte buffer with a ceiling. Failures are sticky: after the first
 * one every append does nothing and `err` keeps TNK_ENOMEM or TNK_ETOOBIG, so
 * a writer checks once at its end.
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
/* Wipe what will be written, wherever it is left: when the memory grows, and
 * when it is freed. It stays so until the next tnk__buf_init(). */
void tnk__buf_keep_secret(tnk__buf_t *buf);
/* Free the memory; the buffer is empty and usable afterwards. */
void tnk__buf_deinit(tnk__buf_t *buf);
/* Forget the contents and the error, keep the memory. */
void tnk__buf_clear(tnk__buf_t *buf);
/* Make n more bytes available; returns where they go, or NULL (see err). The
 * caller adds what it wrote to len. */
uint8_t *tnk__buf_reserve(tnk__buf_t *buf, size_t n);
int tnk__buf_append(tnk__buf_t *buf, const void *data, size_t n);
int tnk__buf_text(tnk__buf_t *buf, const char *text);
int tnk__buf_byte(tnk__buf_t *buf, uint8_t byte);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int tnk__buf_printf(tnk__buf_t *buf, const char *format, ...);
/* Drop n bytes from the front. */
void tnk__buf_consume(tnk__buf_t *buf, size_t n);
/* Hand the memory to the caller, who frees it with the same allocator; the
 * buffer is empty afterwards. NULL when there is none or after an error. */
uint8_t *tnk__buf_take(tnk__buf_t *buf, size_t *len);
/* Give back memory that is not used, as far as the allocator can. */
void tnk__buf_trim(tnk__buf_t *buf);
/* End the text with a NUL, which len does not count, and return it; NULL on
 * failure. */
const char *tnk__buf_cstr(tnk__buf_t *buf);

#endif
