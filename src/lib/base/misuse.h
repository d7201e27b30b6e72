#ifndef TNK_LIB_BASE_MISUSE_H
#define TNK_LIB_BASE_MISUSE_H

#include <stddef.h>
#include <stdint.h>

/*
 * What only a mistake in the caller's program, or in this library, can bring
 * about. In a debug build it ends the program with a sentence, as assert()
 * does; in a release build the call is refused and does no harm. Never for what
 * a peer does.
 */

/* The first member of a handle is one of these while the handle lives. */
typedef enum {
  TNK__MAGIC_SERVICE = 0x76726573,
  TNK__MAGIC_HUB = 0x20627568,
  TNK__MAGIC_TRAINING = 0x6e617274,
  TNK__MAGIC_SAMPLING = 0x706d6173,
  TNK__MAGIC_LEDGER = 0x6764656c,
  TNK__MAGIC_PROMISE = 0x6d6f7270,
  TNK__MAGIC_RUNTIME = 0x746e7572
} tnk__magic_t;

/* Whether a caller's handle is one, at the beginning of each public function;
 * a release build takes a wrong one for NULL. Memory that has been freed cannot
 * be relied on to say so, which is why this finds mistakes and heals none. */
#define TNK__HANDLE(handle, KIND) TNK__HANDLE_AT(handle, magic, KIND)
#define TNK__HANDLE_AT(handle, member, KIND)                                   \
  ((handle) != NULL &&                                                         \
   ((handle)->member == TNK__MAGIC_##KIND || tnk__misuse(__func__, #handle)))

/* Told where something has happened that cannot, whatever callers and peers
 * do. */
#define TNK__BROKEN(text) ((void)tnk__is_broken(text, __FILE__, __LINE__))

/* Both are 0, where they return. */
int tnk__misuse(const char *function, const char *handle);
int tnk__is_broken(const char *text, const char *file, int line);
/* Whether this build ends the program. */
int tnk__misuse_is_fatal(void);

/* Right before the memory of a handle is freed, so that it is none any more. A
 * debug build spoils the rest of it as well. */
void tnk__handle_end(void *handle, size_t size);

#endif
