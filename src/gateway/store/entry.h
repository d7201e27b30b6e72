/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_ENTRY_H
#define TNK_GATEWAY_STORE_ENTRY_H

#include <hiredis/hiredis.h>
#include <stdint.h>

/* Entries of the stream of a shared record, see shared.h. Nothing is copied. */

enum { TNK__GW_ENTRY_ID = 48 /* bytes of an id, with its NUL */ };

typedef struct {
  const char *id; /* NUL-terminated */
  uint64_t writer;
  uint64_t n; /* count of the line among those of its writer */
  const char *line;
  size_t n_line;
} tnk__gw_entry_line_t;

/* Find the entries in a reply to XREAD. *n receives their number. Returns an
 * array, or NULL if there are none (*n is 0) or if the reply is malformed (*n
 * is 1). */
struct redisReply *const *tnk__gw_entries(const redisReply *reply, size_t *n);
/* Read an entry. Returns 0, or -1 if it is malformed. */
int tnk__gw_entry_read(const redisReply *entry, tnk__gw_entry_line_t *out);
/* Write what a reply with an error says. Its text can have parts of the
 * command, which may be secret. Its code has not. */
void tnk__gw_error_text(const char *error, char *out, size_t n);

#endif
