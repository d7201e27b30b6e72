/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/rewards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/data/data.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tnk/rl.h"
#include "tools/common/base/digest.h"

static int refuse(char *why, size_t n_why, const char *text) {
  snprintf(why, n_why, "%s", text);
  return TNK_EINVAL;
}

/* Make room for one more element. */
static int grow(void *array, size_t *room, size_t n, size_t size) {
  void *old, *more;

  if (n < *room)
    return 1;
  memcpy(&old, array, sizeof(old));
  more = realloc(old, (n + 16) * 2 * size);
  if (more == NULL)
    return 0;
  memcpy(array, &more, sizeof(more));
  *room = (n + 16) * 2;
  return 1;
}

/* ---- One example ---- */

/* Tokens that the sampler has chosen have a logprob. A token that was certain
 * has 0, and nothing can be learned from it. */
static void mark_by_logprobs(learn_reward_t *row, const tnk_datum_t *datum) {
  const tnk_loss_input_t logprobs =
      tnk__datum_input_at(datum, tnk__datum_find(datum, "logprobs"));

  for (size_t t = 0; t < row->n; t++)
    if (tnk__tensor_float(&logprobs.tensor, t) != 0) {
      row->is_sampled[t] = 1;
      row->first = t < row->first ? t : row->first;
    }
}

/* Returns whether an earlier example has this turn, or -1 if there is no
 * memory. A turn is trained only in its first example. The examples of a
 * session follow each other. */
static int was_read(learn_rewards_t *rewards, int64_t turn) {
  for (size_t i = 0; i < rewards->n_turns; i++)
    if (rewards->turns[i] == turn)
      return 1;
  if (!grow(&rewards->turns, &rewards->room_turns, rewards->n_turns,
            sizeof(*rewards->turns)))
    return -1;
  rewards->turns[rewards->n_turns++] = turn;
  return 0;
}

static int enter_session(learn_rewards_t *rewards, const char *session) {
  if (rewards->session != NULL && session != NULL &&
      strcmp(rewards->session, session) == 0)
    return TNK_OK;
  free(rewards->session);
  rewards->session = session != NULL ? strdup(session) : NULL;
  rewards->n_turns = 0;
  return session == NULL || rewards->session != NULL ? TNK_OK : TNK_ENOMEM;
}

static int read_turn(learn_rewards_t *rewards, learn_reward_t *row,
                     const json_t *turn, char *why, size_t n_why) {
  int64_t number = 0, offset = 0, length = 0;
  double reward = NAN;
  int is_old;

  if (tnk__json_get_int(turn, "turn", 0, INT64_MAX, &number) !=
          TNK__JSON_FOUND ||
      tnk__json_get_int(turn, "offset", 0, (int64_t)row->n, &offset) !=
          TNK__JSON_FOUND ||
      tnk__json_get_int(turn, "length", 0, (int64_t)row->n - offset, &length) !=
          TNK__JSON_FOUND ||
      tnk__json_get_double(turn, "reward", &reward) == TNK__JSON_WRONG)
    return refuse(why, n_why,
                  "\"turns\" needs numbers \"turn\", \"offset\" and "
                  "\"length\" within the example, and perhaps \"reward\"");
  if (!isnan(reward) && !isnan(row->reward) && (float)reward != row->reward)
    return refuse(why, n_why,
                  "its turns have different rewards, which --advantages given "
                  "uses as they are");
  if (!isnan(reward))
    row->reward = (float)reward;
  is_old = was_read(rewards, number);
  if (is_old < 0)
    return TNK_ENOMEM;
  if ((size_t)offset < row->first)
    row->first = (size_t)offset;
  if (!is_old)
    memset(row->is_sampled + offset, 1, (size_t)length);
  return TNK_OK;
}

static int read_turns(learn_rewards_t *rewards, learn_reward_t *row,
                      const json_t *line, const json_t *turns, char *why,
                      size_t n_why) {
  int err = enter_session(rewards, tnk__json_str(line, "session"));

  for (size_t i = 0; i < json_array_size(turns) && err == TNK_OK; i++)
    err = read_turn(rewards, row, json_array_get(turns, i), why, n_why);
  return err;
}

/* The prompt ends before the first sampled token, which is the target of the
 * prompt's last token. */
static uint64_t prompt_of(const tnk_datum_t *datum, size_t first) {
  uint64_t sum = CLI_DIGEST_INIT;
  size_t left = first + 1;

  for (size_t i = 0; i < tnk__input_n_chunks(&datum->input) && left > 0; i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(&datum->input, i);
    const size_t n_tokens = chunk.n_tokens < left ? chunk.n_tokens : left;

    sum = cli_digest(sum, chunk.tokens, n_tokens * sizeof(*chunk.tokens));
    sum = cli_digest(sum, chunk.bytes, chunk.n_bytes);
    left -= n_tokens;
  }
  return sum;
}

static int read_group(learn_reward_t *row, const json_t *line,
                      const tnk_datum_t *datum, char *why, size_t n_why) {
  const json_t *group = json_object_get(line, "group");
  json_int_t number;

  if (group == NULL || json_is_null(group)) {
    row->group = prompt_of(datum, row->first);
  } else if (json_is_string(group)) {
    row->group = cli_digest(CLI_DIGEST_INIT, json_string_value(group),
                            json_string_length(group));
  } else if (json_is_integer(group)) {
    number = json_integer_value(group);
    row->group = cli_digest(CLI_DIGEST_INIT + 1, &number, sizeof(number));
  } else {
    return refuse(why, n_why, "\"group\" is neither a text nor an integer");
  }
  return TNK_OK;
}

int learn_rewards_add(learn_rewards_t *rewards, tnk__arena_t *arena,
                      const json_t *line, const tnk_datum_t *datum, size_t at,
                      char *why, size_t n_why) {
  const json_t *turns = NULL;
  double reward = NAN;
  learn_reward_t row = {
      .reward = NAN, .at = at, .n = (size_t)tnk__input_length(&datum->input)};
  int err = TNK_OK;

  if (tnk__json_get_double(line, "reward", &reward) == TNK__JSON_WRONG)
    return refuse(why, n_why, "\"reward\" is not a number");
  if (tnk__json_get_array(line, "turns", &turns) == TNK__JSON_WRONG)
    return refuse(why, n_why, "\"turns\" is not an array");
  row.first = row.n;
  row.is_sampled = tnk__arena_calloc(arena, row.n + 1, 1);
  if (row.is_sampled == NULL ||
      !grow(&rewards->rows, &rewards->room, rewards->n, sizeof(*rewards->rows)))
    return TNK_ENOMEM;
  if (turns != NULL)
    err = read_turns(rewards, &row, line, turns, why, n_why);
  else
    mark_by_logprobs(&row, datum);
  if (!isnan(reward))
    row.reward = (float)reward;
  if (err == TNK_OK)
    err = read_group(&row, line, datum, why, n_why);
  if (err == TNK_OK)
    rewards->rows[rewards->n++] = row;
  return err;
}

/* ---- Advantages ---- */

static int by_group(const void *a, const void *b) {
  const learn_reward_t *one = a, *other = b;

  if (one->group != other->group)
    return one->group < other->group ? -1 : 1;
  return one->at < other->at ? -1 : one->at > other->at;
}

void learn_rewards_set(tnk_datum_t *datum, const learn_reward_t *row,
                       float advantage) {
  const tnk_loss_input_t input =
      tnk__datum_input_at(datum, tnk__datum_find(datum, "advantages"));
  void *values = (void *)(uintptr_t)input.tensor.data;

  for (size_t t = 0; t < row->n; t++)
    if (input.tensor.dtype == TNK_F64)
      ((double *)values)[t] = row->is_sampled[t] ? (double)advantage : 0;
    else
      ((float *)values)[t] = row->is_sampled[t] ? advantage : 0;
}

/* Returns whether the group has an advantage. */
static int apply_to_group(tnk_datum_t *data, const learn_reward_t *rows,
                          float *advantages, size_t n, tnk_advantage_t kind) {
  int has = 0;

  for (size_t i = 0; i < n; i++)
    advantages[i] = rows[i].reward;
  (void)tnk_rl_group_advantages(advantages, advantages, n, n, kind);
  for (size_t i = 0; i < n; i++) {
    learn_rewards_set(&data[rows[i].at], &rows[i], advantages[i]);
    has |= advantages[i] < 0 || advantages[i] > 0;
  }
  return has;
}

static int apply(learn_rewards_t *rewards, const cli_t *cli, tnk_datum_t *data,
                 tnk_advantage_t kind) {
  float *advantages = calloc(rewards->n + 1, sizeof(*advantages));
  size_t n_groups = 0, n_useful = 0;

  if (advantages == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  qsort(rewards->rows, rewards->n, sizeof(*rewards->rows), by_group);
  for (size_t first = 0, n; first < rewards->n; first += n, n_groups++) {
    const learn_reward_t *rows = &rewards->rows[first];

    for (n = 1; first + n < rewards->n && rows[n].group == rows[0].group;)
      n++;
    n_useful += (size_t)apply_to_group(data, rows, advantages, n, kind);
  }
  free(advantages);
  if (n_useful == 0)
    return cli_fail(cli, CLI_EXIT_FAILED,
                    "no example has an advantage: the rewards of each of the "
                    "%zu groups are equal",
                    n_groups);
  cli_note(cli, "%zu groups; the rewards of %zu of them differ", n_groups,
           n_useful);
  return CLI_EXIT_OK;
}

int learn_rewards_apply(learn_rewards_t *rewards, const cli_t *cli,
                        tnk_datum_t *data, int *kind) {
  static const tnk_advantage_t kinds[] = {
      [LEARN_ADVANTAGES_CENTERED] = TNK_ADVANTAGE_CENTERED,
      [LEARN_ADVANTAGES_NORMALIZED] = TNK_ADVANTAGE_NORMALIZED,
      [LEARN_ADVANTAGES_LEAVE_ONE_OUT] = TNK_ADVANTAGE_LEAVE_ONE_OUT};
  size_t n = 0;

  for (size_t i = 0; i < rewards->n; i++)
    n += isnan(rewards->rows[i].reward) ? 0 : 1;
  if (*kind == LEARN_ADVANTAGES_AUTO)
    *kind = n > 0 ? LEARN_ADVANTAGES_CENTERED : LEARN_ADVANTAGES_GIVEN;
  if (*kind == LEARN_ADVANTAGES_GIVEN)
    return CLI_EXIT_OK;
  if (n < rewards->n)
    return cli_fail(cli, CLI_EXIT_FAILED,
                    "%zu of %zu examples have no reward; --advantages given "
                    "uses the advantages in the data",
                    rewards->n - n, rewards->n);
  return apply(rewards, cli, data, kinds[*kind]);
}

float *learn_rewards_list(const learn_rewards_t *rewards) {
  float *list = calloc(rewards->n + 1, sizeof(*list));

  for (size_t i = 0; i < rewards->n && list != NULL; i++)
    list[rewards->rows[i].at] = rewards->rows[i].reward;
  return list;
}

void learn_rewards_free(learn_rewards_t *rewards) {
  free(rewards->rows);
  free(rewards->turns);
  free(rewards->session);
}
