/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_RESP_H
#define TNK_GATEWAY_RECORD_RESP_H

#include <hiredis/hiredis.h>
#include <uv.h>

#include "tnk/common.h"

/*
 * One connection to a server that speaks RESP, the protocol of Valkey and
 * Redis. hiredis reads replies and formats commands; libuv carries them.
 * Callbacks never run inside a call of these functions.
 */
typedef struct tnk__gw_resp tnk__gw_resp_t;

typedef struct {
  uv_loop_t *loop;
  const tnk_allocator_t *alloc;
  const char *host; /* name or numeric address */
  int port;
  size_t max_reply; /* bytes of replies that are incomplete */
  void (*on_open)(void *user);
  /* Takes a reply, which the connection frees. Returns 0, or -1 if the
   * connection has been closed inside. */
  int (*on_reply)(void *user, const redisReply *reply);
  /* The connection is lost; `why` is a static text. The owner closes it. */
  void (*on_lost)(void *user, const char *why);
  /* The connection is closed, and its memory free. */
  void (*on_closed)(void *user);
  void *user;
} tnk__gw_resp_options_t;

extern const char tnk__gw_resp_too_long[]; /* a reason of on_lost() */

/* Connect to the first address of the host that accepts. Returns TNK_OK,
 * TNK_ENOMEM or TNK_ESYSTEM. */
int tnk__gw_resp_open(tnk__gw_resp_t **out,
                      const tnk__gw_resp_options_t *options);
/* Send bytes of commands. They are copied. Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_resp_send(tnk__gw_resp_t *resp, const void *data, size_t n);
/* Stop waiting for the address that is being connected to, and try the next
 * one. Returns whether there is one. */
int tnk__gw_resp_skip(tnk__gw_resp_t *resp);
/* Close at once. Only on_closed() is called afterwards. */
void tnk__gw_resp_close(tnk__gw_resp_t *resp);

#endif
