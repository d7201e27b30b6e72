/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_LINE_H
#define TNK_GATEWAY_RECORD_LINE_H

#include "gateway/record/turn.h"
#include "lib/base/buf.h"

/* Lines of the journal: JSON objects with a member `type`. */

/* The fields of a turn's line that are kept in memory. Strings point into the
 * JSON. */
typedef struct {
  uint64_t number;
  uint64_t request;
  uint64_t parent; /* 0: none */
  uint64_t key;
  const char *session;
  size_t n_prompt;
  size_t n_sampled;
  int64_t version;
} tnk__gw_line_t;

int tnk__gw_line_turn(const tnk__gw_turn_new_t *turn, uint64_t number,
                      tnk__buf_t *out);
int tnk__gw_line_reward(uint64_t number, double reward, tnk__buf_t *out);
/* `name` and `value` may be NULL. */
int tnk__gw_line_note(const char *type, const char *name, const char *value,
                      uint64_t number, tnk__buf_t *out);

/* Examples were exported that end with these turns. */
int tnk__gw_line_exported(const char *session, const uint64_t *leaves, size_t n,
                          tnk__buf_t *out);

/* The readers return 0, or -1 if the line is malformed. */
int tnk__gw_line_read(const json_t *line, tnk__gw_line_t *out);
int tnk__gw_line_reward_read(const json_t *line, uint64_t *number,
                             double *reward);
/* Read the `n` ids of a member. */
int tnk__gw_line_ids(const json_t *line, const char *key, int32_t *out,
                     size_t n);

#endif
