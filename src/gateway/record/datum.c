/* SPDX-License-Identifier: MIT */
#include "gateway/record/datum.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

/* The part of an example that comes from one turn. */
typedef struct {
  const tnk__gw_turn_t *turn;
  size_t sequence; /* offset of the sequence id in `texts`; SIZE_MAX: none */
} part_t;

/* One example, with arrays over all of its positions. */
typedef struct {
  const tnk_allocator_t *alloc;
  size_t n;
  tnk__buf_t ids;    /* i32 [n] */
  float *logprobs;   /* f32 [n], 0 for tokens that were not sampled */
  float *advantages; /* f32 [n] */
  tnk__buf_t parts;  /* part_t, the last turn first */
  tnk__buf_t texts;  /* NUL-terminated strings, one after another */
  int has_sequences; /* every part has one */
} datum_t;

/* Read a list of numbers. Fails if an element is not a number, for example
 * null. */
static int read_floats(const json_t *list, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const json_t *value = json_array_get(list, i);

    if (!json_is_number(value))
      return -1;
    out[i] = (float)json_number_value(value);
  }
  return 0;
}

static int put_part(const tnk__gw_turn_t *turn, const char *sequence,
                    datum_t *datum) {
  const part_t part = {turn, sequence != NULL ? datum->texts.len : SIZE_MAX};

  if (sequence == NULL || sequence[0] == '\0')
    datum->has_sequences = 0;
  else
    tnk__buf_append(&datum->texts, sequence, strlen(sequence) + 1);
  tnk__buf_append(&datum->parts, &part, sizeof(part));
  return datum->texts.err != TNK_OK ? datum->texts.err : datum->parts.err;
}

/* Add the sampled tokens of a turn. Several examples can share a turn; `reward`
 * is NaN in all of them but the first. */
static int put_turn(const tnk__gw_record_t *record, const tnk__gw_turn_t *turn,
                    double reward, datum_t *datum) {
  size_t at = turn->n_before + turn->n_prompt;
  json_t *line;
  int err = tnk__gw_record_line(record, turn, &line);

  if (err != TNK_OK)
    return err;
  if (json_is_array(json_object_get(line, "logprobs")) &&
      read_floats(json_object_get(line, "logprobs"), datum->logprobs + at,
                  turn->n_sampled) != 0)
    err = TNK_EFILE;
  for (size_t i = 0; i < turn->n_sampled; i++)
    datum->advantages[at + i] = isnan(reward) ? 0 : (float)reward;
  if (err == TNK_OK)
    err = put_part(turn, tnk__json_str(line, "sequence"), datum);
  json_decref(line);
  return err;
}

static int fill(tnk__gw_record_t *record, tnk__gw_turn_t *leaf, uint64_t told,
                datum_t *datum) {
  double reward = NAN;
  int is_told = 0;
  int err = tnk__gw_record_ids(record, leaf, &datum->ids);

  for (tnk__gw_turn_t *turn = leaf; err == TNK_OK && turn != NULL;
       turn = turn->parent) {
    if (!isnan(turn->reward))
      reward = turn->reward;
    is_told |= turn->by_number.key == told;
    err = put_turn(record, turn, is_told ? NAN : reward, datum);
  }
  return err;
}

static void put_floats(tnk__json_writer_t *w, const char *name,
                       const float *values, size_t n) {
  tnk__json_key(w, name);
  tnk__json_begin_object(w);
  tnk__json_key(w, "data");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < n; i++)
    tnk__json_float(w, values[i]);
  tnk__json_end(w);
  tnk__json_put_text(w, "dtype", "float32");
  tnk__json_end(w);
}

/* ---- Origin of the tokens ---- */

/* The i-th turn, in the order of the conversation. */
static const part_t *part_at(const datum_t *datum, size_t i) {
  const part_t *parts = (const part_t *)(const void *)datum->parts.data;

  return &parts[datum->parts.len / sizeof(*parts) - 1 - i];
}

static size_t n_parts(const datum_t *datum) {
  return datum->parts.len / sizeof(part_t);
}

/* Write the overlap of a turn's tokens [at, after) with [begin, end). The
 * offset of a prompt counts from the start of the example. */
static void put_span(tnk__json_writer_t *w, const char *kind,
                     const char *sequence, size_t at, size_t after,
                     size_t begin, size_t end) {
  size_t from = at > begin ? at : begin;
  size_t to = after < end ? after : end;
  int is_sampled = strcmp(kind, "sampled") == 0;

  if (from >= to)
    return;
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "kind", kind);
  tnk__json_put_text(w, "sequence_id", sequence);
  tnk__json_put_int(w, "offset", (int64_t)(is_sampled ? from - at : from));
  tnk__json_put_int(w, "length", (int64_t)(to - from));
  tnk__json_end(w);
}

/* Write spans that tile the tokens from `begin` to `end`. */
static void put_spans(tnk__json_writer_t *w, const char *name,
                      const datum_t *datum, size_t begin, size_t end) {
  tnk__json_key(w, name);
  tnk__json_begin_array(w);
  for (size_t i = 0; i < n_parts(datum); i++) {
    const part_t *part = part_at(datum, i);
    const char *sequence = (const char *)datum->texts.data + part->sequence;
    size_t sampled = part->turn->n_before + part->turn->n_prompt;

    put_span(w, "prompt", sequence, part->turn->n_before, sampled, begin, end);
    put_span(w, "sampled", sequence, sampled, sampled + part->turn->n_sampled,
             begin, end);
  }
  tnk__json_end(w);
}

/* Write the sampled tokens of each turn, as positions in the targets. */
static void put_turns(tnk__json_writer_t *w, const datum_t *datum) {
  tnk__json_put_text(w, "session", part_at(datum, 0)->turn->session->name);
  tnk__json_key(w, "turns");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < n_parts(datum); i++) {
    const tnk__gw_turn_t *turn = part_at(datum, i)->turn;
    size_t sampled = turn->n_before + turn->n_prompt;

    tnk__json_begin_object(w);
    tnk__json_put_int(w, "turn", (int64_t)turn->by_number.key);
    tnk__json_put_int(w, "version", turn->version);
    tnk__json_put_int(w, "offset", sampled > 0 ? (int64_t)sampled - 1 : 0);
    tnk__json_put_int(w, "length", turn->n_sampled);
    if (!isnan(turn->reward))
      tnk__json_put_double(w, "reward", turn->reward);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

/* Position i predicts token i + 1, so the arrays of targets start at 1. */
static int write_line(const datum_t *datum, tnk__buf_t *out) {
  const int32_t *ids = (const int32_t *)(const void *)datum->ids.data;
  size_t n = datum->n - 1;
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "model_input");
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "chunks");
  tnk__json_begin_array(&w);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "encoded_text");
  tnk__json_key(&w, "tokens");
  tnk__json_int32s(&w, ids, n);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_key(&w, "loss_fn_inputs");
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "target_tokens");
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "data");
  tnk__json_int32s(&w, ids + 1, n);
  tnk__json_put_text(&w, "dtype", "int64");
  tnk__json_end(&w);
  put_floats(&w, "logprobs", datum->logprobs + 1, n);
  put_floats(&w, "advantages", datum->advantages + 1, n);
  tnk__json_end(&w);
  if (datum->has_sequences) {
    put_spans(&w, "model_input_spans", datum, 0, n);
    put_spans(&w, "loss_fn_input_spans", datum, 1, n + 1);
  }
  put_turns(&w, datum);
  tnk__json_end(&w);
  return tnk__json_finish(&w) == TNK_OK ? tnk__buf_byte(out, '\n') : out->err;
}

/* ---- Branches ---- */

static int is_rewarded(const tnk__gw_turn_t *turn, int only_new) {
  while (turn != NULL && isnan(turn->reward) && !(only_new && turn->is_told))
    turn = turn->parent;
  return turn != NULL && !isnan(turn->reward) && !(only_new && turn->is_told);
}

static int is_wanted(const tnk__gw_turn_t *leaf,
                     const tnk__gw_datum_options_t *options) {
  /* A single id leaves nothing to predict. */
  return leaf->n_children == 0 && tnk__gw_turn_n_ids(leaf) > 1 &&
         !(options->only_new && leaf->is_told) &&
         (!options->only_rewarded || is_rewarded(leaf, options->only_new));
}

static int add_branch(tnk__gw_turn_t *leaf, tnk__buf_t *out) {
  tnk__gw_branch_t branch = {leaf->by_number.key, 0};

  for (tnk__gw_turn_t *turn = leaf; turn != NULL; turn = turn->parent) {
    if (turn->is_told) {
      branch.told = turn->by_number.key;
      break;
    }
    turn->is_told = 1;
  }
  return tnk__buf_append(out, &branch, sizeof(branch));
}

static int add_branches(const tnk__gw_session_t *session,
                        const tnk__gw_datum_options_t *options,
                        tnk__buf_t *out) {
  int err = TNK_OK;

  TNK__LIST_FOREACH (node, &session->turns) {
    if (!options->only_new)
      tnk__container_of(node, tnk__gw_turn_t, link)->is_told = 0;
  }
  TNK__LIST_FOREACH (node, &session->turns) {
    tnk__gw_turn_t *turn = tnk__container_of(node, tnk__gw_turn_t, link);

    if (err == TNK_OK && is_wanted(turn, options))
      err = add_branch(turn, out);
  }
  return err;
}

int tnk__gw_branches(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                     const tnk__gw_datum_options_t *options, tnk__buf_t *out) {
  int err = TNK_OK;

  if (session != NULL)
    return add_branches(session, options, out);
  TNK__LIST_FOREACH (node, tnk__gw_record_sessions(record)) {
    if (err == TNK_OK)
      err = add_branches(tnk__container_of(node, tnk__gw_session_t, link),
                         options, out);
  }
  return err;
}

/* ---- Writing one example, or all ---- */

int tnk__gw_datum(tnk__gw_record_t *record, const tnk__gw_branch_t *branch,
                  tnk__gw_datum_cb put, void *user) {
  const tnk_allocator_t *alloc = tnk__gw_record_allocator(record);
  tnk__gw_turn_t *leaf = tnk__gw_record_turn(record, branch->leaf);
  datum_t datum = {.alloc = alloc, .has_sequences = 1};
  tnk__buf_t line;
  int err = TNK_ENOMEM;

  if (leaf == NULL)
    return TNK_OK;
  datum.n = tnk__gw_turn_n_ids(leaf);
  tnk__buf_init(&datum.ids, alloc, SIZE_MAX);
  tnk__buf_init(&datum.parts, alloc, SIZE_MAX);
  tnk__buf_init(&datum.texts, alloc, SIZE_MAX);
  tnk__buf_init(&line, alloc, SIZE_MAX);
  datum.logprobs = tnk__calloc(alloc, datum.n, sizeof(float));
  datum.advantages = tnk__calloc(alloc, datum.n, sizeof(float));
  if (datum.logprobs != NULL && datum.advantages != NULL)
    err = fill(record, leaf, branch->told, &datum);
  if (err == TNK_OK)
    err = write_line(&datum, &line);
  if (err == TNK_OK)
    err = put(user, (const char *)line.data, line.len);
  tnk__free(alloc, datum.logprobs);
  tnk__free(alloc, datum.advantages);
  tnk__buf_deinit(&datum.ids);
  tnk__buf_deinit(&datum.parts);
  tnk__buf_deinit(&datum.texts);
  tnk__buf_deinit(&line);
  return err;
}

int tnk__gw_datums(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                   const tnk__gw_datum_options_t *options, tnk__gw_datum_cb put,
                   void *user) {
  tnk__buf_t branches;
  int err;

  tnk__buf_init(&branches, tnk__gw_record_allocator(record), SIZE_MAX);
  err = tnk__gw_branches(record, session, options, &branches);
  for (size_t at = 0; err == TNK_OK && at < branches.len;
       at += sizeof(tnk__gw_branch_t))
    err = tnk__gw_datum(record, (const void *)(branches.data + at), put, user);
  tnk__buf_deinit(&branches);
  return err;
}
