/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_KEYS_WATCH_H
#define TNK_GATEWAY_KEYS_WATCH_H

#include "tnk/gateway.h"

/*
 * The sessions that agents begin and end by HTTP, for a program that trains on
 * them in the same process. POST /tnk/sessions then needs a "group", and DELETE
 * /tnk/sessions/ID says that the session is complete. The key of a session may
 * end it too, if it may set rewards. The functions are called on the loop's
 * thread.
 */
typedef struct {
  /* Returns 0, or the status with which a new session is refused; *why receives
   * a sentence. `session` is NULL if the gateway makes its name. */
  int (*check)(void *user, const char *session, const char *group,
               const char **why);
  void (*created)(void *user, const char *session, const char *group,
                  const char *id);
  void (*ended)(void *user, const char *id);
  void *user;
} tnk__gw_watch_t;

/* Call it once, before the loop runs. `watch` is copied. */
void tnk__gw_watch(tnk_gateway_t *gateway, const tnk__gw_watch_t *watch);

#endif
