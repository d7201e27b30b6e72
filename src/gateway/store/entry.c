/* SPDX-License-Identifier: MIT */
#include "gateway/store/entry.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "tnk/error.h"

static int is_array(const redisReply *reply, size_t n) {
  return reply->type == REDIS_REPLY_ARRAY && (size_t)reply->elements == n;
}

static int is_text(const redisReply *reply) {
  return reply->type == REDIS_REPLY_STRING &&
         strlen(reply->str) == (size_t)reply->len;
}

struct redisReply *const *tnk__gw_entries(const redisReply *reply, size_t *n) {
  const redisReply *stream;

  *n = 0;
  if (reply->type == REDIS_REPLY_NIL || is_array(reply, 0))
    return NULL;
  *n = 1;
  if (!is_array(reply, 1) || !is_array(reply->element[0], 2))
    return NULL;
  stream = reply->element[0]->element[1];
  if (stream->type != REDIS_REPLY_ARRAY)
    return NULL;
  *n = (size_t)stream->elements;
  return stream->elements > 0 ? stream->element : NULL;
}

static int read_number(const redisReply *name, const redisReply *value,
                       const char *expected, uint64_t *out) {
  return is_text(name) && strcmp(name->str, expected) == 0 && is_text(value) &&
                 tnk__text_u64(value->str, UINT64_MAX, out) == TNK_OK
             ? 0
             : -1;
}

int tnk__gw_entry_read(const redisReply *entry, tnk__gw_entry_line_t *out) {
  struct redisReply *const *fields;

  if (!is_array(entry, 2) || !is_text(entry->element[0]) ||
      (size_t)entry->element[0]->len >= TNK__GW_ENTRY_ID ||
      !is_array(entry->element[1], 6))
    return -1;
  fields = entry->element[1]->element;
  if (read_number(fields[0], fields[1], "w", &out->writer) != 0 ||
      read_number(fields[2], fields[3], "n", &out->n) != 0 ||
      !is_text(fields[4]) || strcmp(fields[4]->str, "l") != 0 ||
      fields[5]->type != REDIS_REPLY_STRING)
    return -1;
  out->id = entry->element[0]->str;
  out->line = fields[5]->str;
  out->n_line = (size_t)fields[5]->len;
  return 0;
}

void tnk__gw_error_text(const char *error, char *out, size_t n) {
  size_t n_code = strspn(error, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

  if (error[n_code] != ' ' || n_code > 20)
    (void)snprintf(out, n, "the server reports an error");
  else
    (void)snprintf(out, n, "the server reports the error %.*s", (int)n_code,
                   error);
}
