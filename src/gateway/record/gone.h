/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_GONE_H
#define TNK_GATEWAY_RECORD_GONE_H

#include "gateway/base/map.h"
#include "lib/base/list.h"

/* Names of sessions that were removed from a shared record. The server refuses
 * their lines anyway, so only the latest names are kept. With them a request is
 * rejected before it is sampled. The keys keep ids of revoked ones in the same
 * way. */

enum { TNK__GW_MAX_GONE = 65536 };

typedef struct {
  tnk__gw_map_t map; /* by the hash of the name */
  tnk__list_t order; /* the latest one last */
} tnk__gw_gone_t;

void tnk__gw_gone_init(tnk__gw_gone_t *gone, const tnk_allocator_t *alloc);
void tnk__gw_gone_deinit(tnk__gw_gone_t *gone);
/* Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_gone_add(tnk__gw_gone_t *gone, const char *session);
int tnk__gw_gone_has(const tnk__gw_gone_t *gone, const char *session);
/* The session exists again. */
void tnk__gw_gone_drop(tnk__gw_gone_t *gone, const char *session);

#endif
