/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_AGE_HEAD_H
#define TNK_LIB_FILES_AGE_HEAD_H

#include "lib/base/buf.h"
#include "lib/files/age/crypto.h"

/* The limits bound the work: each X25519 stanza costs a multiplication for each
 * identity. */
#define TNK__AGE_MAX_HEAD ((size_t)64 * 1024)
#define TNK__AGE_MAX_STANZAS 64
#define TNK__AGE_MAX_IDENTITIES 8

/* The kind of the next header line. */
typedef enum {
  TNK__AGE_VERSION, /* the version */
  TNK__AGE_STANZA,  /* first line of a stanza, or the MAC */
  TNK__AGE_BODY,    /* body of a stanza: the wrapped file key */
  TNK__AGE_DONE     /* complete and authentic */
} tnk__age_head_state_t;

/*
 * Reads the header of a file, line by line. Stanzas of other types are checked
 * for their syntax and ignored.
 */
typedef struct {
  tnk__age_head_state_t state;
  tnk__buf_t text; /* all lines so far, the input of the MAC */
  size_t line;     /* start of the incomplete line */
  uint32_t n_stanzas;
  uint32_t n_ours; /* number of X25519 stanzas */
  int has_scrypt;
  int is_ours;                    /* the stanza is of type X25519 ... */
  uint8_t share[TNK__AGE_KEY];    /* ... with this argument */
  uint8_t body[TNK__AGE_WRAPPED]; /* truncated to the buffer */
  size_t n_body;
  uint8_t identities[TNK__AGE_MAX_IDENTITIES][TNK__AGE_KEY];
  size_t n_identities;
  int has_key;
  uint8_t key[TNK__AGE_FILE_KEY];
  tnk__age_random_t random;
  void *user;
  const char *why; /* the error, as a sentence about "the file" */
} tnk__age_head_t;

void tnk__age_head_init(tnk__age_head_t *head, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user);
/* Free it and wipe its secrets. */
void tnk__age_head_deinit(tnk__age_head_t *head);
/* Parse a piece. *used receives the number of bytes that belong to the header.
 * Returns TNK_OK, or an error with the details in `why`. */
int tnk__age_head_feed(tnk__age_head_t *head, const uint8_t *data, size_t n,
                       size_t *used);

/* Append the header of a new file with this file key. Errors are kept in
 * `out`. */
int tnk__age_head_write(tnk__buf_t *out,
                        const uint8_t file_key[TNK__AGE_FILE_KEY],
                        const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                        tnk__age_random_t random, void *user);

#endif
