#ifndef TNK_LIB_WIRE_DATA_CREDENTIALS_H
#define TNK_LIB_WIRE_DATA_CREDENTIALS_H

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/wire/format/url.h"

/*
 * The file in which keys are stored, for Python's client too. Protocol:
 * transport, stored credentials. Beside what that client knows, a record may
 * name the base URL that its key is for ("base_url"), which we write and obey:
 * such a key goes nowhere else. Members that nobody here knows stay as they
 * are.
 */

/* The service where no base URL is given. */
#define TNK__HOSTED_URL                                                        \
  "https://tinker.thinkingmachines.dev/services/tinker-prod"

/* Where it is, below the home directory. */
#define TNK__CREDENTIALS_FILE ".tinker/credentials.json"
enum { TNK__MAX_CREDENTIALS = 1024 * 1024 };

/* One record. Texts belong to the store, or to who adds it. */
typedef struct {
  const char *id;
  const char *key;
  const char *name;
  const char *note;      /* or NULL */
  const char *base_url;  /* in its normal form; NULL: it does not say */
  const json_t *details; /* an object; NULL: none */
  int is_generated;      /* by an older client, for this machine */
} tnk__stored_key_t;

/* Which key is for a server. */
typedef enum {
  TNK__STORED_NONE = 0,
  TNK__STORED_FOUND,
  /* There is one, but it is for another server. */
  TNK__STORED_ELSEWHERE,
  /* There is one that names no server, and it would go over the network in
   * clear text. */
  TNK__STORED_EXPOSED
} tnk__stored_t;

/* Read the file's text, all of which must be as it should. TNK_OK and a store;
 * TNK_ECREDENTIAL; or TNK_ENOMEM. */
int tnk__credentials_open(json_t **out, const void *text, size_t n);
/* Wipe the keys and drop the store; NULL does nothing. */
void tnk__credentials_close(json_t *store);
/* Find the key for a base URL: one that is bound to it, the default before
 * others, else a default that is bound to none. Unless there is none, *out is
 * the record, which belongs to the store. */
tnk__stored_t tnk__credentials_find(tnk__stored_key_t *out, const json_t *store,
                                    const tnk__url_t *url);
/* Add a key, under another id where its own is taken, and make it the default
 * where there is none. TNK_OK or TNK_ENOMEM. */
int tnk__credentials_add(json_t *store, const tnk__stored_key_t *key);
/* Remove a record. 0: there is none of that id. */
int tnk__credentials_remove(json_t *store, const char *id);
/* Write the text of the file behind what `out` has. */
int tnk__credentials_write(const json_t *store, tnk__buf_t *out);

#endif
