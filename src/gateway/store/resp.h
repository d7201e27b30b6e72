/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_RESP_H
#define TNK_GATEWAY_STORE_RESP_H

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "tnk/common.h"

struct tnk__net;

/*
 * One connection to a server that speaks RESP, the protocol of Valkey and
 * Redis. hiredis reads replies and formats commands; a stream of the library
 * carries them, over TLS if the address says so.
 * Callbacks never run inside a call of these functions.
 */
typedef struct tnk__gw_resp tnk__gw_resp_t;

/* The owner gets it back with the reply to its command. */
typedef struct {
  int kind;
  uint64_t n;
} tnk__gw_tag_t;

typedef struct {
  struct tnk__net *net;
  const tnk_allocator_t *alloc;
  const char *host; /* name or numeric address; valid until it is closed */
  uint16_t port;
  int is_tls;
  uint64_t connect_ms; /* how long connecting may take, with TLS */
  size_t max_reply;    /* bytes of replies that are incomplete */
  void (*on_open)(void *user);
  /* Takes a reply, which the connection frees. `tag` is the command's; NULL if
   * there was no command. Returns 0, or -1 if the connection has been closed
   * inside. */
  int (*on_reply)(void *user, const tnk__gw_tag_t *tag,
                  const redisReply *reply);
  /* The connection is lost; `why` is valid until this returns. The owner closes
   * it. TNK_ETOOBIG: a reply is longer than `max_reply`. */
  void (*on_lost)(void *user, int code, const char *why);
  /* The connection is closed, and its memory free. */
  void (*on_closed)(void *user);
  void *user;
} tnk__gw_resp_options_t;

/* Connect to the first address of the host that accepts. Returns TNK_OK or
 * TNK_ENOMEM. */
int tnk__gw_resp_open(tnk__gw_resp_t **out,
                      const tnk__gw_resp_options_t *options);
/* Whether it is connected. */
int tnk__gw_resp_is_open(const tnk__gw_resp_t *resp);
/* Send a command, which is copied. Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_resp_send(tnk__gw_resp_t *resp, const tnk__gw_tag_t *tag,
                      const void *data, size_t n);
/* How many replies are due. */
size_t tnk__gw_resp_n_due(const tnk__gw_resp_t *resp);
/* Bytes that were read and written so far. They are a sign of life while a long
 * reply or command is on its way. */
uint64_t tnk__gw_resp_n_moved(const tnk__gw_resp_t *resp);
/* Close at once. Only on_closed() is called afterwards. */
void tnk__gw_resp_close(tnk__gw_resp_t *resp);

#endif
