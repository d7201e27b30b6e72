/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/socks.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

static const uint8_t v4[] = {192, 0, 2, 7};
static const uint8_t v6[] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0,
                             0,    0, 0,   0,    0, 0, 0, 9};
static const tnk__socks_target_t plain = {.host = "far.test", .port = 443};
static const tnk__socks_target_t known = {
    .user = "me", .password = "pass", .host = "far.test", .port = 443};

static void check_out(const tnk__socks_t *socks, const void *bytes, size_t n) {
  CHECK_MEM(socks->out, socks->n_out, bytes, n);
}
#define CHECK_OUT(socks, bytes) check_out(socks, bytes, sizeof(bytes) - 1)

/* Fed whole, or in single bytes. */
static tnk__socks_result_t feed(tnk__socks_t *socks,
                                const tnk__socks_target_t *target,
                                const void *bytes, size_t n, int is_chopped) {
  tnk__socks_result_t result = TNK__SOCKS_MORE;

  if (!is_chopped)
    return tnk__socks_feed(socks, target, bytes, n);
  for (size_t i = 0; i < n; i++) {
    CHECK_INT(result, TNK__SOCKS_MORE);
    result = tnk__socks_feed(socks, target, (const uint8_t *)bytes + i, 1);
  }
  return result;
}
#define FEED(socks, target, bytes, chop)                                       \
  feed(socks, target, bytes, sizeof(bytes) - 1, chop)

TEST(a_name_is_asked_for_without_a_user) {
  for (int chop = 0; chop < 2; chop++) {
    tnk__socks_t socks;
    tnk__socks_hello(&socks, &plain);
    CHECK_OUT(&socks, "\x05\x01\x00");
    CHECK_INT(FEED(&socks, &plain, "\x05\x00", chop), TNK__SOCKS_SAY);
    CHECK_OUT(&socks, "\x05\x01\x00\x03\x08"
                      "far.test\x01\xbb");
    CHECK_INT(
        FEED(&socks, &plain, "\x05\x00\x00\x01\x01\x02\x03\x04\x00\x50", chop),
        TNK__SOCKS_AGREED);
  }
}

TEST(a_user_logs_in_where_that_is_wanted) {
  for (int chop = 0; chop < 2; chop++) {
    tnk__socks_t socks;
    tnk__socks_hello(&socks, &known);
    CHECK_OUT(&socks, "\x05\x02\x00\x02");
    CHECK_INT(FEED(&socks, &known, "\x05\x02", chop), TNK__SOCKS_SAY);
    CHECK_OUT(&socks, "\x01\x02me\x04pass");
    CHECK_INT(FEED(&socks, &known, "\x01\x00", chop), TNK__SOCKS_SAY);
    CHECK_OUT(&socks, "\x05\x01\x00\x03\x08"
                      "far.test\x01\xbb");
    CHECK_INT(FEED(&socks, &known, "\x05\x00\x00\x03\x02hi\x00\x50", chop),
              TNK__SOCKS_AGREED);
  }
}

TEST(addresses_are_sent_as_they_are) {
  tnk__socks_target_t target = {.address = v4, .n_address = 4, .port = 80};
  tnk__socks_t socks;

  tnk__socks_hello(&socks, &target);
  CHECK_INT(FEED(&socks, &target, "\x05\x00", 0), TNK__SOCKS_SAY);
  CHECK_OUT(&socks, "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50");
  target.address = v6;
  target.n_address = 16;
  tnk__socks_hello(&socks, &target);
  CHECK_INT(FEED(&socks, &target, "\x05\x00", 0), TNK__SOCKS_SAY);
  CHECK_OUT(&socks, "\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00"
                    "\x00\x00\x00\x00\x00\x09\x00\x50");
  CHECK_INT(FEED(&socks, &target,
                 "\x05\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
                 "\x00\x00\x00\x00\x00\x00\x00\x00",
                 1),
            TNK__SOCKS_AGREED);
}

/* The longest texts, and the longest answer. */
TEST(everything_fits) {
  char text[256];
  tnk__socks_target_t target = {
      .user = text, .password = text, .host = text, .port = 1};
  uint8_t reply[262] = {5, 0, 0, 3, 255};
  tnk__socks_t socks;

  memset(text, 'x', 255);
  text[255] = '\0';
  tnk__socks_hello(&socks, &target);
  CHECK_INT(FEED(&socks, &target, "\x05\x02", 0), TNK__SOCKS_SAY);
  CHECK_INT(socks.n_out, TNK__SOCKS_MAX_MESSAGE);
  CHECK_INT(FEED(&socks, &target, "\x01\x00", 0), TNK__SOCKS_SAY);
  CHECK_INT(socks.n_out, 4 + 1 + 255 + 2);
  CHECK_INT(tnk__socks_feed(&socks, &target, reply, 261), TNK__SOCKS_MORE);
  CHECK_INT(tnk__socks_feed(&socks, &target, reply + 261, 1),
            TNK__SOCKS_AGREED);
}

static void check_failed(tnk__socks_result_t result, const tnk__socks_t *socks,
                         int err, const char *text) {
  CHECK_INT(result, TNK__SOCKS_FAILED);
  CHECK_INT(socks->err, err);
  CHECK_STR(socks->text, text);
}

TEST(every_reply_has_words) {
  static const struct {
    int err;
    const char *text;
  } rows[] = {
      {TNK_ECONN, "could not connect: general failure"},
      {TNK_EPROXY, "refused: its rules do not let this host or port through"},
      {TNK_ECONN, "could not connect: network unreachable"},
      {TNK_ECONN, "could not connect: host unreachable"},
      {TNK_ECONN, "could not connect: connection refused"},
      {TNK_ECONN, "could not connect: it took too long (TTL expired)"},
      {TNK_EPROXY, "refused: it makes no connections for others"},
      {TNK_EPROXY, "refused: it does not know this kind of address"},
      {TNK_ECONN, "could not connect: no reason that is known"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    uint8_t reply[] = {5, (uint8_t)(i + 1)};
    tnk__socks_t socks;
    tnk__socks_hello(&socks, &plain);
    CHECK_INT(FEED(&socks, &plain, "\x05\x00", 0), TNK__SOCKS_SAY);
    check_failed(tnk__socks_feed(&socks, &plain, reply, 2), &socks, rows[i].err,
                 rows[i].text);
  }
}

static const struct {
  const tnk__socks_target_t *target;
  const char *answers[3]; /* without bytes of zero behind their first */
  size_t n[3];
  int err;
  const char *text;
} nonsense[] = {
    {&plain, {"HTTP/1.1 400"}, {12}, TNK_EPROTO, "does not speak SOCKS5"},
    {&plain, {"\x04"}, {1}, TNK_EPROTO, "does not speak SOCKS5"},
    {&plain,
     {"\x05\xff"},
     {2},
     TNK_EPROXY,
     "wants a user and a password, as in socks5://USER:PASSWORD@HOST:PORT"},
    {&known,
     {"\x05\xff"},
     {2},
     TNK_EPROXY,
     "takes no user and password, nor anybody without"},
    {&plain,
     {"\x05\x02"},
     {2},
     TNK_EPROTO,
     "chose a way to log in that was not offered"},
    {&known,
     {"\x05\x01"},
     {2},
     TNK_EPROTO,
     "chose a way to log in that was not offered"},
    {&known,
     {"\x05\x02", "\x01\x05"},
     {2, 2},
     TNK_EPROXY,
     "does not accept the user and password that it was given"},
    {&known,
     {"\x05\x02", "\x05\x00"},
     {2, 2},
     TNK_EPROTO,
     "does not speak SOCKS5"},
    {&plain, {"\x05\x00\x05"}, {3}, TNK_EPROTO, "answered before it was asked"},
    {&plain,
     {"\x05\x00", "\x05\x00\x00\x02\x00"},
     {2, 5},
     TNK_EPROTO,
     "answered with an address of no kind"},
    {&plain,
     {"\x05\x00", "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00\x16"},
     {2, 11},
     TNK_EPROTO,
     "sent bytes that do not come from the server"},
};

TEST(what_is_no_answer_is_refused) {
  for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
    tnk__socks_result_t result = TNK__SOCKS_MORE;
    tnk__socks_t socks;
    tnk__socks_hello(&socks, nonsense[i].target);
    for (size_t k = 0; k < 3 && nonsense[i].answers[k] != NULL; k++)
      result = tnk__socks_feed(&socks, nonsense[i].target,
                               (const uint8_t *)nonsense[i].answers[k],
                               nonsense[i].n[k]);
    check_failed(result, &socks, nonsense[i].err, nonsense[i].text);
  }
}
