/* SPDX-License-Identifier: MIT */
#include "gateway/keys/grant.h"

#include <string.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

#define GRANT(node) tnk__container_of(node, tnk__gw_grant_t, link)

static int64_t time_of_day(void) {
  uv_timeval64_t now = {0};

  (void)uv_gettimeofday(&now);
  return now.tv_sec * 1000 + now.tv_usec / 1000;
}

void tnk__gw_grants_init(tnk__gw_grants_t *grants,
                         const tnk_allocator_t *alloc) {
  *grants = (tnk__gw_grants_t){.alloc = alloc, .now_ms = time_of_day};
  tnk__gw_map_init(&grants->hashes, alloc);
  tnk__gw_map_init(&grants->ids, alloc);
  tnk__gw_gone_init(&grants->revoked, alloc);
  tnk__list_init(&grants->all);
}

/* All requests have ended. */
void tnk__gw_grants_deinit(tnk__gw_grants_t *grants) {
  TNK__LIST_FOREACH_SAFE (node, next, &grants->all) {
    tnk__gw_grant_drop(grants, GRANT(node));
  }
  tnk__gw_map_deinit(&grants->hashes);
  tnk__gw_map_deinit(&grants->ids);
  tnk__gw_gone_deinit(&grants->revoked);
}

/* ---- Finding ---- */

/* Where a hash is in the table. Its bytes are random already. */
static uint64_t place_of(const uint8_t hash[TNK__GW_HASH]) {
  uint64_t place;

  memcpy(&place, hash, sizeof(place));
  return place;
}

tnk__gw_grant_t *tnk__gw_grant_by_id(const tnk__gw_grants_t *grants,
                                     const char *id) {
  tnk__gw_node_t *node =
      tnk__gw_map_find(&grants->ids, tnk__gw_hash(0, id, strlen(id)));

  for (; node != NULL; node = tnk__gw_map_next(node)) {
    tnk__gw_grant_t *grant = tnk__container_of(node, tnk__gw_grant_t, by_id);

    if (strcmp(grant->id, id) == 0)
      return grant;
  }
  return NULL;
}

/* The place in the table depends only on the hash, which reveals nothing about
 * a key that is almost right. */
tnk__gw_grant_t *tnk__gw_grant_by_key(const tnk__gw_grants_t *grants,
                                      const char *key, size_t n) {
  uint8_t hash[TNK__GW_HASH];
  tnk__gw_node_t *node;

  if (n != TNK__GW_KEY_TEXT - 1 || tnk__gw_secret_hash(key, n, hash) != TNK_OK)
    return NULL;
  node = tnk__gw_map_find(&grants->hashes, place_of(hash));
  for (; node != NULL; node = tnk__gw_map_next(node)) {
    tnk__gw_grant_t *grant = tnk__container_of(node, tnk__gw_grant_t, by_hash);

    if (tnk__gw_secret_is(grant->hash, hash))
      return grant;
  }
  return NULL;
}

/* ---- Tables ---- */

tnk__gw_grant_t *tnk__gw_grant_make(const tnk__gw_grants_t *grants,
                                    const char *session,
                                    const tnk__gw_limits_t *limits) {
  size_t n = strlen(session) + 1;
  size_t n_certificate =
      limits->certificate != NULL ? strlen(limits->certificate) + 1 : 0;
  tnk__gw_grant_t *grant =
      tnk__calloc(grants->alloc, 1, sizeof(*grant) + n + n_certificate);

  if (grant == NULL)
    return NULL;
  memcpy(grant->session, session, n);
  tnk__list_init(&grant->link);
  grant->limits = *limits;
  if (n_certificate > 0)
    grant->limits.certificate =
        memcpy(grant->session + n, limits->certificate, n_certificate);
  grant->credit_ms = grants->now_ms();
  grant->credit = (uint64_t)limits->max_per_minute * 60000;
  return grant;
}

int tnk__gw_grant_link(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  if (tnk__gw_map_add(&grants->hashes, &grant->by_hash,
                      place_of(grant->hash)) != TNK_OK) {
    tnk__free(grants->alloc, grant);
    return TNK_ENOMEM;
  }
  if (tnk__gw_map_add(&grants->ids, &grant->by_id,
                      tnk__gw_hash(0, grant->id, strlen(grant->id))) !=
      TNK_OK) {
    tnk__gw_map_remove(&grants->hashes, &grant->by_hash);
    tnk__free(grants->alloc, grant);
    return TNK_ENOMEM;
  }
  tnk__list_append(&grants->all, &grant->link);
  grants->n++;
  return TNK_OK;
}

void tnk__gw_grant_drop(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  tnk__list_remove(&grant->link);
  tnk__gw_map_remove(&grants->hashes, &grant->by_hash);
  tnk__gw_map_remove(&grants->ids, &grant->by_id);
  grants->n--;
  grant->is_revoked = 1;
  if (grant->n_active == 0)
    tnk__free(grants->alloc, grant);
}

int tnk__gw_grant_set_hash(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                           const uint8_t hash[TNK__GW_HASH]) {
  tnk__gw_map_remove(&grants->hashes, &grant->by_hash);
  memcpy(grant->hash, hash, TNK__GW_HASH);
  return tnk__gw_map_add(&grants->hashes, &grant->by_hash, place_of(hash));
}

/* ---- Changes ---- */

/* Drop grants that have expired, to make space. */
static void drop_expired(tnk__gw_grants_t *grants) {
  int64_t now_s = grants->now_ms() / 1000;

  TNK__LIST_FOREACH_SAFE (node, next, &grants->all) {
    tnk__gw_grant_t *grant = GRANT(node);

    if (grant->limits.expires_s != 0 && grant->limits.expires_s <= now_s)
      tnk__gw_grant_drop(grants, grant);
  }
}

static int new_secret(char key[TNK__GW_KEY_TEXT], uint8_t hash[TNK__GW_HASH]) {
  int err = tnk__gw_secret_key(key);

  return err == TNK_OK ? tnk__gw_secret_hash(key, TNK__GW_KEY_TEXT - 1, hash)
                       : err;
}

int tnk__gw_grant_new(tnk__gw_grants_t *grants, const char *session,
                      const tnk__gw_limits_t *limits,
                      char key[TNK__GW_KEY_TEXT], tnk__gw_grant_t **out) {
  tnk__gw_grant_t *grant;
  int err;

  *out = NULL;
  if (grants->n >= TNK__GW_MAX_GRANTS)
    drop_expired(grants);
  if (grants->n >= TNK__GW_MAX_GRANTS)
    return TNK_EFULL;
  grant = tnk__gw_grant_make(grants, session, limits);
  if (grant == NULL)
    return TNK_ENOMEM;
  err = new_secret(key, grant->hash);
  if (err == TNK_OK)
    err = tnk__gw_secret_id(grant->id);
  if (err != TNK_OK) {
    tnk__free(grants->alloc, grant);
    return err;
  }
  err = tnk__gw_grant_link(grants, grant);
  if (err != TNK_OK)
    return err;
  err = tnk__gw_grant_put(grants, grant, grant->hash);
  if (err == TNK_OK)
    *out = grant;
  else
    tnk__gw_grant_drop(grants, grant);
  return err;
}

int tnk__gw_grant_rotate(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant,
                         char key[TNK__GW_KEY_TEXT]) {
  uint8_t hash[TNK__GW_HASH];
  int err = new_secret(key, hash);

  if (err == TNK_OK)
    err = tnk__gw_grant_put(grants, grant, hash);
  /* Removing a node and adding it again needs no memory. */
  return err == TNK_OK ? tnk__gw_grant_set_hash(grants, grant, hash) : err;
}

int tnk__gw_grant_revoke(tnk__gw_grants_t *grants, tnk__gw_grant_t *grant) {
  int err = tnk__gw_grant_put_end(grants, grant);

  if (err == TNK_OK)
    tnk__gw_grant_drop(grants, grant);
  return err;
}
