/* SPDX-License-Identifier: MIT */
#include "gateway/store/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/number.h"
#include "tnk/error.h"

#define LAYOUT "2"

static int claim(tnk__gw_shared_t *shared) {
  char writer[24];
  const tnk__gw_script_claim_t what = {shared->base, writer, shared->token,
                                       shared->born};
  char *text;
  long long len;

  (void)snprintf(writer, sizeof(writer), "%" PRIu64, shared->writer);
  len = tnk__gw_script_claim(&text, &what);
  return tnk__gw_shared_send_text(shared, TNK__GW_OF_CLAIM, text, len);
}

/* A reader has no number. */
static int ask_record(tnk__gw_shared_t *shared) {
  int err = TNK__GW_COMMAND(shared, TNK__GW_OF_BORN, "GET", shared->keys[5]);

  if (err == 0)
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_WRITERS, "GET", shared->keys[2]);
  return err;
}

void tnk__gw_shared_greet(void *user) {
  tnk__gw_shared_t *shared = user;
  const tnk__gw_where_t *where = &shared->where;
  char vocabulary[24];
  int is_new = shared->writer == 0 && !shared->options.is_read_only;
  int err = 0;

  shared->heard_ms = shared->replied_ms = shared->now_ms;
  shared->is_older = 0;
  if (where->user[0] != '\0')
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_AUTH, "AUTH", where->user,
                          where->password);
  else if (where->password[0] != '\0')
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_AUTH, "AUTH", where->password);
  if (err == 0 && is_new) /* a full server refuses this */
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_SET, "SETNX", shared->keys[0],
                          LAYOUT);
  if (err == 0)
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_LAYOUT, "GET", shared->keys[0]);
  (void)snprintf(vocabulary, sizeof(vocabulary), "%" PRIu64,
                 shared->options.vocabulary);
  if (err == 0 && is_new && shared->options.vocabulary != 0)
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_SET, "SETNX", shared->keys[1],
                          vocabulary);
  if (err == 0)
    err =
        TNK__GW_COMMAND(shared, TNK__GW_OF_VOCABULARY, "GET", shared->keys[1]);
  if (err == 0)
    err = shared->options.is_read_only ? ask_record(shared) : claim(shared);
  if (err == 0)
    err = TNK__GW_COMMAND(shared, TNK__GW_OF_FORGOTTEN, "GET", shared->keys[4]);
  if (err == 0 && !shared->options.is_read_only)
    err = tnk__gw_shared_load_script(shared);
  if (err == 0)
    (void)TNK__GW_COMMAND(shared, TNK__GW_OF_STREAM, "XINFO", "STREAM",
                          shared->keys[3]);
}

/* ---- A server that is an older copy of itself ---- */

/* The log has it once for each connection. */
static void warn_older(tnk__gw_shared_t *shared, const char *what) {
  if (shared->is_older)
    return;
  shared->is_older = 1;
  shared->n_older++;
  tnk__log(&shared->logger, TNK_LOG_WARN, "gateway",
           "%s: the server has come back with an older copy of its data%s",
           shared->where.shown, what);
}

/* The store has these lines of the process. Others that it had confirmed are
 * appended again, as far as they are in memory. */
static void check_count(tnk__gw_shared_t *shared, uint64_t n) {
  char what[128] = "";
  uint64_t n_again;
  uint64_t n_lost;
  int at = 0;

  shared->n_stored = n;
  if (n >= shared->queue.n_safe)
    return;
  n_again = tnk__gw_queue_take_back(&shared->queue, n, &n_lost);
  if (n_again > 0)
    at = snprintf(what, sizeof(what), ". %" PRIu64 " lines are written again",
                  n_again);
  if (n_lost > 0)
    (void)snprintf(what + at, sizeof(what) - (size_t)at,
                   ". %" PRIu64 " lines of this process are lost", n_lost);
  warn_older(shared, what);
}

/* Compare ids, which are two numbers. Returns whether `a` is before `b`. */
static int is_before(const char *a, const char *b) {
  char *a_end, *b_end;
  uint64_t a_ms = strtoull(a, &a_end, 10), b_ms = strtoull(b, &b_end, 10);

  if (a_ms != b_ms)
    return a_ms < b_ms;
  return *a_end == '-' && *b_end == '-' &&
         strtoull(a_end + 1, NULL, 10) < strtoull(b_end + 1, NULL, 10);
}

/* The id of the last entry that the stream ever had, or NULL if the server does
 * not say. */
static const char *last_id(const redisReply *reply) {
  if (reply->type == REDIS_REPLY_ERROR)
    return strncmp(reply->str, "ERR no such key", 15) == 0 ? "0-0" : NULL;
  for (size_t i = 0;
       reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
    const redisReply *name = reply->element[i], *id = reply->element[i + 1];

    if (name->type == REDIS_REPLY_STRING && id->type == REDIS_REPLY_STRING &&
        strcmp(name->str, "last-generated-id") == 0 &&
        (size_t)id->len < TNK__GW_ENTRY_ID &&
        strlen(id->str) == (size_t)id->len)
      return id->str;
  }
  return NULL;
}

/* New entries of an older copy come after its last one, which is before the
 * last one that was read. */
static int take_stream(tnk__gw_shared_t *shared, const redisReply *reply) {
  const char *id = last_id(reply);

  if (id != NULL && is_before(id, shared->last)) {
    warn_older(shared, ". Lines that were read are not in it");
    memcpy(shared->last, id, strlen(id) + 1);
  }
  tnk__gw_shared_read_all(shared);
  return shared->resp != NULL ? 0 : -1;
}

/* ---- Replies ---- */

static int take_layout(tnk__gw_shared_t *shared, const redisReply *reply) {
  if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, LAYOUT) == 0)
    return 0;
  if (reply->type == REDIS_REPLY_NIL && shared->is_loaded)
    return tnk__gw_shared_has_lost(shared);
  tnk__gw_shared_lose(
      shared, TNK_EFILE,
      reply->type == REDIS_REPLY_NIL
          ? "there is no such record"
          : "the record has another layout, of another version of this "
            "program");
  return -1;
}

static int take_vocabulary(tnk__gw_shared_t *shared, const redisReply *reply) {
  char own[24];

  (void)snprintf(own, sizeof(own), "%" PRIu64, shared->options.vocabulary);
  if (shared->options.vocabulary == 0 ||
      (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, own) == 0))
    return 0;
  tnk__gw_shared_lose(
      shared, TNK_EFILE,
      "its tokens are of another vocabulary; another model needs a record of "
      "another name");
  return -1;
}

static int is_token(const redisReply *reply) {
  return reply->type == REDIS_REPLY_STRING && reply->len > 0 &&
         reply->len < TNK__GW_TOKEN && strlen(reply->str) == (size_t)reply->len;
}

/* A server that has lost its data may have a new record of the same name by
 * now. Another process may then have the number of this one. */
static int take_claim(tnk__gw_shared_t *shared, const redisReply *reply) {
  uint64_t n;

  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
      reply->element[0]->type != REDIS_REPLY_INTEGER ||
      reply->element[0]->integer < 0 ||
      reply->element[1]->type != REDIS_REPLY_STRING ||
      tnk__text_u64(reply->element[1]->str, UINT64_MAX, &n) != TNK_OK)
    return tnk__gw_shared_unexpected(shared);
  if (reply->element[0]->integer == 0 || n > shared->queue.n_added)
    return tnk__gw_shared_has_lost(shared);
  if (!is_token(reply->element[2]))
    return tnk__gw_shared_unexpected(shared);
  shared->writer = (uint64_t)reply->element[0]->integer;
  memcpy(shared->born, reply->element[2]->str,
         strlen(reply->element[2]->str) + 1);
  check_count(shared, n);
  return 0;
}

static int take_born(tnk__gw_shared_t *shared, const redisReply *reply) {
  const char *born = is_token(reply) ? reply->str : "";

  if (shared->born[0] != '\0' && strcmp(shared->born, born) != 0)
    return tnk__gw_shared_has_lost(shared);
  memcpy(shared->born, born, strlen(born) + 1);
  return 0;
}

/* A record of an earlier version has no `born`. If the server has lost its
 * data, a reader would take the lines of new writers for ones that it has
 * read. */
static int take_writers(tnk__gw_shared_t *shared, const redisReply *reply) {
  uint64_t n = 0;

  if (reply->type == REDIS_REPLY_STRING &&
      tnk__text_u64(reply->str, UINT64_MAX, &n) != TNK_OK)
    return tnk__gw_shared_has_lost(shared);
  if (shared->born[0] == '\0' && n < shared->n_writers)
    return tnk__gw_shared_has_lost(shared);
  shared->n_writers = n;
  return 0;
}

/* Sessions that were removed while this process did not read may be forgotten
 * by now. They would still be in its memory. */
static int take_forgotten(tnk__gw_shared_t *shared, const redisReply *reply) {
  uint64_t read_ms = strtoull(shared->last, NULL, 10); /* 0: nothing is read */
  uint64_t ms = 0;

  if (reply->type == REDIS_REPLY_STRING)
    (void)tnk__text_u64(reply->str, UINT64_MAX, &ms);
  if (read_ms > 0 && ms > shared->forgotten_ms && read_ms < ms) {
    tnk__gw_shared_give_up(
        shared, TNK_EFILE,
        "sessions were removed more than a day ago, and this process has "
        "not read of it");
    return -1;
  }
  shared->forgotten_ms = ms;
  return 0;
}

static int take_script(tnk__gw_shared_t *shared, const redisReply *reply) {
  if (reply->type != REDIS_REPLY_STRING || reply->len != TNK__GW_SCRIPT_SHA)
    return tnk__gw_shared_unexpected(shared);
  memcpy(shared->sha, reply->str, TNK__GW_SCRIPT_SHA);
  shared->has_script = 1;
  tnk__gw_shared_send_queue(shared);
  return shared->resp != NULL ? 0 : -1;
}

int tnk__gw_shared_take_greeting(tnk__gw_shared_t *shared, tnk__gw_kind_t kind,
                                 const redisReply *reply) {
  switch (kind) {
  case TNK__GW_OF_LAYOUT:
    return take_layout(shared, reply);
  case TNK__GW_OF_VOCABULARY:
    return take_vocabulary(shared, reply);
  case TNK__GW_OF_CLAIM:
    return take_claim(shared, reply);
  case TNK__GW_OF_BORN:
    return take_born(shared, reply);
  case TNK__GW_OF_WRITERS:
    return take_writers(shared, reply);
  case TNK__GW_OF_FORGOTTEN:
    return take_forgotten(shared, reply);
  case TNK__GW_OF_STREAM:
    return take_stream(shared, reply);
  case TNK__GW_OF_SCRIPT:
    return take_script(shared, reply);
  case TNK__GW_OF_AUTH:
  case TNK__GW_OF_SET:
  case TNK__GW_OF_READ:
  case TNK__GW_OF_ADD:
  case TNK__GW_OF_KEEP:
    break;
  }
  return 0;
}
