/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "gateway/store/entry.h"
#include "gateway/store/where.h"

/* The address of a shared record, a line feed, and what its server sends. */

static void check_address(const uint8_t *data, size_t size) {
  char text[2048];
  tnk__gw_where_t where;

  if (size >= sizeof(text))
    return;
  memcpy(text, data, size);
  text[size] = '\0';
  if (tnk__gw_where_read(text, &where) != NULL)
    return;
  FUZZ_CHECK(tnk__gw_is_where(text));
  FUZZ_CHECK(where.host[0] != '\0' && where.name[0] != '\0');
  FUZZ_CHECK(where.port > 0 && where.port <= 65535);
  FUZZ_CHECK(where.user[0] == '\0' || where.password[0] != '\0');
  /* What is shown is an address of the same record, without secrets. */
  FUZZ_CHECK(strchr(where.shown, '@') == NULL);
  memcpy(text, where.shown, strlen(where.shown) + 1);
  FUZZ_CHECK(tnk__gw_where_read(text, &where) == NULL);
  FUZZ_CHECK(strcmp(text, where.shown) == 0 && where.password[0] == '\0');
}

static void check_reply(const redisReply *reply) {
  size_t n;
  struct redisReply *const *entries = tnk__gw_entries(reply, &n);

  for (size_t i = 0; entries != NULL && i < n; i++) {
    tnk__gw_entry_line_t read;

    if (tnk__gw_entry_read(entries[i], &read) != 0)
      continue;
    FUZZ_CHECK(strlen(read.id) < TNK__GW_ENTRY_ID);
    FUZZ_CHECK(read.line[read.n_line] == '\0');
  }
}

/* hiredis allocates an array as soon as it is announced. */
static int announces_much(const uint8_t *data, size_t size) {
  size_t n = 0;

  for (size_t i = 0; i < size; i++) {
    n = data[i] >= '0' && data[i] <= '9' ? n + 1 : 0;
    if (n > 4)
      return 1;
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
  size_t n = end != NULL ? (size_t)(end - data) : size;
  redisReader *reader;
  void *reply = NULL;

  check_address(data, n);
  if (end == NULL || announces_much(end, size - n))
    return 0;
  reader = redisReaderCreate();
  FUZZ_CHECK(reader != NULL);
  (void)redisReaderFeed(reader, (const char *)end + 1, size - n - 1);
  while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply != NULL) {
    check_reply(reply);
    freeReplyObject(reply);
  }
  redisReaderFree(reader);
  return 0;
}
