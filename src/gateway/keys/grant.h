/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_KEYS_GRANT_H
#define TNK_GATEWAY_KEYS_GRANT_H

#include <jansson.h>

#include "gateway/base/map.h"
#include "gateway/keys/secret.h"
#include "gateway/record/gone.h"
#include "gateway/record/record.h"
#include "lib/base/list.h"

/*
 * Keys of one session each. A grant is what such a key permits, and what it has
 * used so far. Only the hash of a key is kept. With a file, grants and their
 * use are lines of the record, so they survive a restart.
 */

enum { TNK__GW_MAX_GRANTS = 65536, TNK__GW_MAX_RATE = 1000000 };
#define TNK__GW_MAX_USD 1e6

/* Costs are counted in 10^-12 USD, so that sums are exact. */
#define TNK__GW_PICO 1e12

/* 0: no limit */
typedef struct {
  int64_t expires_s; /* point in time */
  uint64_t max_requests;
  uint64_t max_tokens; /* of prompts and answers */
  uint64_t max_turns;
  uint64_t max_pico;
  uint64_t max_body;
  uint32_t max_concurrent;
  uint32_t max_per_minute;
  int may_reward;
  const char *certificate; /* of its clients, as it is compared; NULL: any */
} tnk__gw_limits_t;

typedef struct {
  uint64_t n_requests;
  uint64_t n_tokens;
  uint64_t n_turns;
  uint64_t pico;
} tnk__gw_use_t;

typedef struct {
  tnk__list_t link; /* in the grants, unless it is revoked */
  tnk__gw_node_t by_hash;
  tnk__gw_node_t by_id;
  char id[TNK__GW_ID_TEXT];
  uint8_t hash[TNK__GW_HASH];
  tnk__gw_limits_t limits;
  tnk__gw_use_t used; /* with what is reserved for requests in progress */
  tnk__gw_use_t told; /* of a shared record: what its lines add up to */
  uint32_t n_active;  /* requests in progress; each keeps the grant alive */
  int is_revoked;
  uint64_t credit; /* for `max_per_minute`: 60,000 for each request */
  int64_t credit_ms;
  char session[]; /* and then the text of `limits.certificate` */
} tnk__gw_grant_t;

typedef struct {
  const tnk_allocator_t *alloc;
  tnk__gw_record_t *record; /* NULL while its file is read */
  tnk__gw_map_t hashes;
  tnk__gw_map_t ids;
  tnk__list_t all;
  /* Ids that were revoked before their line was read. A shared record has such
   * an order if its store has come back as an older copy. */
  tnk__gw_gone_t revoked;
  size_t n;
  int64_t (*now_ms)(void); /* the time of day; tests have their own */
} tnk__gw_grants_t;

void tnk__gw_grants_init(tnk__gw_grants_t *grants,
                         const tnk_allocator_t *alloc);
void tnk__gw_grants_deinit(tnk__gw_grants_t *grants);
/* Take a line of the record of another type than the record's own. Returns
 * TNK_OK, TNK_ENOMEM, or TNK_EPROTO for a malformed line. */
int tnk__gw_grants_take(void *grants, const char *type, const json_t *line);

/* Drop the grants of a session that was removed from the record, with their
 * lines. */
void tnk__gw_grants_drop(tnk__gw_grants_t *grants, const char *session);

/* Create a grant. `key` receives its key, which is kept nowhere. Returns
 * TNK_OK, TNK_ENOMEM, TNK_ESYSTEM, TNK_EFULL if there are too many, or a code
 * of the journal. */
int tnk__gw_grant_new(tnk__gw_grants_t *grants, const char *session,
                      const tnk__gw_limits_t *limits,
                      char key[TNK__GW_KEY_TEXT], tnk__gw_grant_t **out);
/* Give a grant another key, and end the old one at once. On failure the old key
 * stays. The same codes. */
int tnk__gw_grant_rotate(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                         char key[TNK__GW_KEY_TEXT]);
/* End a grant. Requests in progress are answered. Returns TNK_OK, or a code
 * after which the grant is still valid. */
int tnk__gw_grant_revoke(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant);
/* Find a grant by its id, or by a key. NULL if there is none. */
tnk__gw_grant_t *tnk__gw_grant_by_id(const tnk__gw_grants_t *grants,
                                     const char *id);
tnk__gw_grant_t *tnk__gw_grant_by_key(const tnk__gw_grants_t *grants,
                                      const char *key, size_t n);

/* ---- limit.c ---- */

typedef enum {
  TNK__GW_ENTERED = 0,
  TNK__GW_EXPIRED,
  TNK__GW_TOO_FAST,
  TNK__GW_TOO_MANY
} tnk__gw_entry_t;

/* Admit a request, which must leave later. *wait_s receives after how many
 * seconds another one may be admitted. */
tnk__gw_entry_t tnk__gw_grant_enter(tnk__gw_grants_t *grants,
                                    tnk__gw_grant_t *grant, uint32_t *wait_s);
void tnk__gw_grant_leave(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant);

/* Reserve the most that a request can use. Returns TNK_OK, a code of the
 * journal, or TNK_EBUDGET. *what then names the limit, and *left is what is
 * left of it. */
int tnk__gw_grant_reserve(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                          const tnk__gw_use_t *most, const char **what,
                          uint64_t *left);
/* Replace what was reserved by what was used. */
void tnk__gw_grant_settle(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                          const tnk__gw_use_t *most, const tnk__gw_use_t *used);

/* ---- grant_line.c ---- */

/* Write the lines of the record. All return TNK_OK or a code of the journal. */
int tnk__gw_grant_put(tnk__gw_grants_t *grants, const tnk__gw_grant_t *grant,
                      const uint8_t hash[TNK__GW_HASH]);
int tnk__gw_grant_put_use(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant);
int tnk__gw_grant_put_end(tnk__gw_grants_t *grants,
                          const tnk__gw_grant_t *grant);
/* Add a grant that has its hash and its id. Frees it on failure, which is
 * TNK_ENOMEM. */
int tnk__gw_grant_link(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant);
/* Drop a grant from the tables; free it when its last request has ended. */
void tnk__gw_grant_drop(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant);
/* A grant without a key. NULL: out of memory. */
tnk__gw_grant_t *tnk__gw_grant_make(const tnk__gw_grants_t *grants,
                                    const char *session,
                                    const tnk__gw_limits_t *limits);
/* Give a linked grant this hash. Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_grant_set_hash(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                           const uint8_t hash[TNK__GW_HASH]);

#endif
