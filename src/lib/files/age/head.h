#ifndef TNK_LIB_FILES_AGE_HEAD_H
#define TNK_LIB_FILES_AGE_HEAD_H

#include "lib/base/buf.h"
#include "lib/files/age/crypto.h"

/* Ceilings: each stanza of X25519 costs a multiplication for each identity. */
#define TNK__AGE_MAX_HEAD ((size_t)64 * 1024)
#define TNK__AGE_MAX_STANZAS 64
#define TNK__AGE_MAX_IDENTITIES 8

/* Which line of a header comes next. */
typedef enum {
  TNK__AGE_VERSION, /* the first one */
  TNK__AGE_STANZA,  /* a stanza's first one, or the MAC */
  TNK__AGE_BODY,    /* of a stanza: the key, wrapped for somebody */
  TNK__AGE_DONE     /* none: the header is over and authentic */
} tnk__age_head_state_t;

/*
 * The header of a file, read line by line. Stanzas of other kinds are checked
 * for their form and passed over.
 */
typedef struct {
  tnk__age_head_state_t state;
  tnk__buf_t text; /* all of it so far: what the MAC is about */
  size_t line;     /* where the line that is not complete begins */
  uint32_t n_stanzas;
  uint32_t n_ours; /* of X25519 */
  int has_scrypt;
  int is_ours;                    /* the stanza is of X25519 ... */
  uint8_t share[TNK__AGE_KEY];    /* ... and this is its argument */
  uint8_t body[TNK__AGE_WRAPPED]; /* as far as it has room */
  size_t n_body;
  uint8_t identities[TNK__AGE_MAX_IDENTITIES][TNK__AGE_KEY];
  size_t n_identities;
  int has_key;
  uint8_t key[TNK__AGE_FILE_KEY];
  tnk__age_random_t random;
  void *user;
  const char *why; /* it failed, as a sentence about "the file" */
} tnk__age_head_t;

void tnk__age_head_init(tnk__age_head_t *head, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user);
/* Free it and wipe what is secret. */
void tnk__age_head_deinit(tnk__age_head_t *head);
/* Read on; *used receives how much of the piece belongs to the header. TNK_OK,
 * or an error of which `why` tells more. */
int tnk__age_head_feed(tnk__age_head_t *head, const uint8_t *data, size_t n,
                       size_t *used);

/* Append the header of a new file with this key. The error sticks to `out`. */
int tnk__age_head_write(tnk__buf_t *out,
                        const uint8_t file_key[TNK__AGE_FILE_KEY],
                        const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                        tnk__age_random_t random, void *user);

#endif
