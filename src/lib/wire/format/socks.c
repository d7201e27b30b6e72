/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/socks.h"

#include <string.h>

#include "tnk/error.h"

/* The reply that is being read. */
enum { GREETING, LOGIN, REPLY };

enum { VERSION = 5, LOGIN_VERSION = 1, CONNECT = 1 };
enum { NO_LOGIN = 0, PASSWORD = 2, NO_METHOD = 0xff };
enum { IPV4 = 1, NAME = 3, IPV6 = 4 };

static tnk__socks_result_t fail(tnk__socks_t *socks, int err,
                                const char *text) {
  socks->err = err;
  socks->text = text;
  return TNK__SOCKS_FAILED;
}

static void put(tnk__socks_t *socks, unsigned byte) {
  socks->out[socks->n_out++] = (uint8_t)byte;
}

static void put_bytes(tnk__socks_t *socks, const void *data, size_t n) {
  memcpy(socks->out + socks->n_out, data, n);
  socks->n_out += n;
}

/* Append a string after its length. The callers have checked its length. */
static void put_text(tnk__socks_t *socks, const char *text) {
  const size_t n = strnlen(text, TNK__SOCKS_MAX_TEXT);

  put(socks, (unsigned)n);
  put_bytes(socks, text, n);
}

static void expect(tnk__socks_t *socks, int stage, size_t n) {
  socks->stage = stage;
  socks->n_in = 0;
  socks->n_need = n;
}

void tnk__socks_hello(tnk__socks_t *socks, const tnk__socks_target_t *target) {
  memset(socks, 0, sizeof(*socks));
  put(socks, VERSION);
  put(socks, target->user != NULL ? 2 : 1);
  put(socks, NO_LOGIN);
  if (target->user != NULL)
    put(socks, PASSWORD);
  expect(socks, GREETING, 2);
}

/* ---- Messages to the proxy ---- */

static tnk__socks_result_t say_login(tnk__socks_t *socks,
                                     const tnk__socks_target_t *target) {
  socks->n_out = 0;
  put(socks, LOGIN_VERSION);
  put_text(socks, target->user);
  put_text(socks, target->password);
  expect(socks, LOGIN, 2);
  return TNK__SOCKS_SAY;
}

static tnk__socks_result_t say_request(tnk__socks_t *socks,
                                       const tnk__socks_target_t *target) {
  socks->n_out = 0;
  put(socks, VERSION);
  put(socks, CONNECT);
  put(socks, 0);
  if (target->host != NULL) {
    put(socks, NAME);
    put_text(socks, target->host);
  } else {
    put(socks, target->n_address == 4 ? IPV4 : IPV6);
    put_bytes(socks, target->address, target->n_address);
  }
  put(socks, target->port >> 8);
  put(socks, target->port & 0xff);
  expect(socks, REPLY, 5);
  return TNK__SOCKS_SAY;
}

/* ---- Replies of the proxy ---- */

static tnk__socks_result_t hear_greeting(tnk__socks_t *socks,
                                         const tnk__socks_target_t *target) {
  switch (socks->in[1]) {
  case NO_LOGIN:
    return say_request(socks, target);
  case PASSWORD:
    if (target->user != NULL)
      return say_login(socks, target);
    break;
  case NO_METHOD:
    return fail(socks, TNK_EPROXY,
                target->user != NULL
                    ? "takes no user and password, nor anybody without"
                    : "wants a user and a password, as in "
                      "socks5://USER:PASSWORD@HOST:PORT");
  default:
    break;
  }
  return fail(socks, TNK_EPROTO, "chose a way to log in that was not offered");
}

static tnk__socks_result_t refused(tnk__socks_t *socks, unsigned code) {
  static const struct {
    int err;
    const char *text;
  } replies[] = {
      {TNK_ECONN, "could not connect: general failure"},
      {TNK_EPROXY, "refused: its rules do not let this host or port through"},
      {TNK_ECONN, "could not connect: network unreachable"},
      {TNK_ECONN, "could not connect: host unreachable"},
      {TNK_ECONN, "could not connect: connection refused"},
      {TNK_ECONN, "could not connect: it took too long (TTL expired)"},
      {TNK_EPROXY, "refused: it makes no connections for others"},
      {TNK_EPROXY, "refused: it does not know this kind of address"},
  };

  if (code > sizeof(replies) / sizeof(replies[0]))
    return fail(socks, TNK_ECONN, "could not connect: no reason that is known");
  return fail(socks, replies[code - 1].err, replies[code - 1].text);
}

/* The head of a reply determines the length of the rest, which is ignored. */
static tnk__socks_result_t hear_reply(tnk__socks_t *socks) {
  const uint8_t *in = socks->in;
  size_t n = 0;

  if (in[1] != 0)
    return refused(socks, in[1]);
  if (in[3] == IPV4)
    n = 4 + 4 + 2;
  else if (in[3] == IPV6)
    n = 4 + 16 + 2;
  else if (in[3] == NAME)
    n = 4 + 1 + in[4] + (size_t)2;
  if (n == 0)
    return fail(socks, TNK_EPROTO, "answered with an address of no kind");
  if (socks->n_in == n)
    return TNK__SOCKS_AGREED;
  socks->n_need = n;
  return TNK__SOCKS_MORE;
}

static tnk__socks_result_t hear(tnk__socks_t *socks,
                                const tnk__socks_target_t *target) {
  const int version = socks->stage == LOGIN ? LOGIN_VERSION : VERSION;

  if (socks->in[0] != version)
    return fail(socks, TNK_EPROTO, "does not speak SOCKS5");
  switch (socks->stage) {
  case GREETING:
    return hear_greeting(socks, target);
  case LOGIN:
    if (socks->in[1] == 0)
      return say_request(socks, target);
    return fail(socks, TNK_EPROXY,
                "does not accept the user and password that it was given");
  default:
    return hear_reply(socks);
  }
}

tnk__socks_result_t tnk__socks_feed(tnk__socks_t *socks,
                                    const tnk__socks_target_t *target,
                                    const uint8_t *data, size_t n) {
  tnk__socks_result_t result = TNK__SOCKS_MORE;
  size_t i = 0;

  while (i < n && result == TNK__SOCKS_MORE) {
    socks->in[socks->n_in++] = data[i++];
    /* A proxy that refuses may omit the rest of the reply. */
    if (socks->n_in == socks->n_need ||
        (socks->stage == REPLY && socks->n_in == 2 && socks->in[1] != 0) ||
        (socks->n_in == 1 && socks->in[0] != VERSION && socks->stage != LOGIN))
      result = hear(socks, target);
  }
  if (i < n && result == TNK__SOCKS_SAY)
    return fail(socks, TNK_EPROTO, "answered before it was asked");
  if (i < n && result == TNK__SOCKS_AGREED)
    return fail(socks, TNK_EPROTO,
                "sent bytes that do not come from the server");
  return result;
}
