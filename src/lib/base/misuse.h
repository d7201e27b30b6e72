/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_MISUSE_H
#define TNK_LIB_BASE_MISUSE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Detection of errors in the caller's program, or in this library. In a debug
 * build such an error ends the program with a sentence, as assert() does. In a
 * release build the call is rejected and does no harm. Never use it for the
 * behavior of a peer.
 */

/* The value of the first member of a handle while the handle exists. */
typedef enum {
  TNK__MAGIC_SERVICE = 0x76726573,
  TNK__MAGIC_HUB = 0x20627568,
  TNK__MAGIC_OTLP = 0x706c746f,
  TNK__MAGIC_TRAINING = 0x6e617274,
  TNK__MAGIC_SAMPLING = 0x706d6173,
  TNK__MAGIC_LEDGER = 0x6764656c,
  TNK__MAGIC_PROMISE = 0x6d6f7270,
  TNK__MAGIC_RUNTIME = 0x746e7572,
  TNK__MAGIC_QUEUE = 0x75657571
} tnk__magic_t;

/* Check a caller's handle at the beginning of each public function. A release
 * build treats a wrong handle as NULL. Freed memory may still look like a
 * handle, so this detects errors but does not protect from them. */
#define TNK__HANDLE(handle, KIND) TNK__HANDLE_AT(handle, magic, KIND)
#define TNK__HANDLE_AT(handle, member, KIND)                                   \
  ((handle) != NULL &&                                                         \
   ((handle)->member == TNK__MAGIC_##KIND || tnk__misuse(__func__, #handle)))

/* Reports an event that is impossible whatever callers and peers do. */
#define TNK__BROKEN(text) ((void)tnk__is_broken(text, __FILE__, __LINE__))

/* Both return 0, unless they end the program. */
int tnk__misuse(const char *function, const char *handle);
int tnk__is_broken(const char *text, const char *file, int line);
/* Returns whether this build ends the program. */
int tnk__misuse_is_fatal(void);

/* Call it right before the memory of a handle is freed, to invalidate the
 * handle. A debug build also overwrites the rest of it. */
void tnk__handle_end(void *handle, size_t size);

#endif
