#include "tools/local/train/provenance.h"

#include "tools/local/lm/check.h"
#include "tools/local/sample/record.h"

/* ---- Reading ---- */

static int read_runs(local_op_t *op, const local_run_t **out,
                     TinkerPublic__ProvenanceSpan **spans, size_t n) {
  local_run_t *runs = tnk__arena_calloc(&op->arena, n, sizeof(*runs));

  if (runs == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const TinkerPublic__ProvenanceSpan *span = spans[i];
    const char *id = "";

    if (span->span_case == TINKER_PUBLIC__PROVENANCE_SPAN__SPAN_PROMPT_TOKENS) {
      id = span->prompt_tokens->sequence_id;
      runs[i].offset = span->prompt_tokens->offset;
      runs[i].length = span->prompt_tokens->length;
    } else if (span->span_case ==
               TINKER_PUBLIC__PROVENANCE_SPAN__SPAN_SAMPLED_TOKENS) {
      runs[i].is_sampled = 1;
      id = span->sampled_tokens->sequence_id;
      runs[i].offset = span->sampled_tokens->offset;
      runs[i].length = span->sampled_tokens->length;
    }
    runs[i].sequence_id = tnk__arena_strdup(&op->arena, id);
    if (runs[i].sequence_id == NULL)
      return TNK_ENOMEM;
  }
  *out = runs;
  return TNK_OK;
}

int local_origin_read(local_op_t *op, local_origin_t *out,
                      const TinkerPublic__Datum *from) {
  int err = read_runs(op, &out->input, from->model_input_spans,
                      from->n_model_input_spans);

  out->n_input = from->n_model_input_spans;
  out->n_targets = from->n_loss_fn_input_spans;
  return err == TNK_OK ? read_runs(op, &out->targets, from->loss_fn_input_spans,
                                   from->n_loss_fn_input_spans)
                       : err;
}

/* ---- Looking up ---- */

/* An example, with the state of the walk through its runs. */
typedef struct {
  local_server_t *server;
  const char *session;
  const tnk__lm_datum_t *datum;
  float *logprobs; /* NULL while the input is checked */
  float *weights;
  tnk__lm_why_t *why;
} trace_t;

static int64_t token_at(const trace_t *t, size_t i) {
  return t->logprobs != NULL ? t->datum->targets[i]
                             : (int64_t)t->datum->tokens[i];
}

/* Targets in a prompt run have no weight, and programs use padding there. */
static int is_compared(const trace_t *t, const local_run_t *run) {
  return t->logprobs == NULL || run->is_sampled;
}

/* Process the tokens of one run, which begins at position `at`. */
static int follow(const trace_t *t, const local_run_t *run, size_t at) {
  const char *what = t->logprobs != NULL ? "target" : "input";
  const local_record_t *record =
      local_records_find(t->server, t->session, run->sequence_id);
  const int32_t *tokens;
  size_t n;

  if (record == NULL)
    return tnk__lm_refuse(
        t->why, TNK_EINVAL,
        "no record of sequence \"%.60s\": it was not sampled in this session "
        "with record_stability_info, or too long ago",
        run->sequence_id);
  tokens = run->is_sampled ? record->tokens : record->prompt;
  n = run->is_sampled ? record->n_tokens : record->n_prompt;
  if ((uint64_t)run->offset + (uint64_t)run->length > n)
    return tnk__lm_refuse(t->why, TNK_EINVAL,
                          "a %s span of sequence \"%.60s\" ends behind its "
                          "%zu %s tokens",
                          what, run->sequence_id, n,
                          run->is_sampled ? "sampled" : "prompt");
  for (size_t k = 0; k < (size_t)run->length; k++) {
    size_t from = (size_t)run->offset + k;

    if (is_compared(t, run) && tokens[from] != token_at(t, at + k))
      return tnk__lm_refuse(t->why, TNK_EINVAL,
                            "%s token %zu is %lld, the sequence \"%.60s\" "
                            "that it is said to come from has %d there",
                            what, at + k, (long long)token_at(t, at + k),
                            run->sequence_id, (int)tokens[from]);
    if (t->logprobs != NULL) {
      t->logprobs[at + k] = run->is_sampled ? record->logprobs[from] : 0;
      if (!run->is_sampled)
        t->weights[at + k] = 0;
    }
  }
  return TNK_OK;
}

static int follow_all(const trace_t *t, const local_run_t *runs, size_t n) {
  const char *what = t->logprobs != NULL ? "loss_fn_input" : "model_input";
  size_t at = 0;
  int err = TNK_OK;

  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    if (runs[i].offset < 0 || runs[i].length < 0 ||
        runs[i].length > (int64_t)(t->datum->n_tokens - at) ||
        runs[i].offset > INT32_MAX)
      return tnk__lm_refuse(t->why, TNK_EINVAL,
                            "%s_spans do not fit the %zu tokens", what,
                            t->datum->n_tokens);
    err = follow(t, &runs[i], at);
    at += (size_t)runs[i].length;
  }
  if (err == TNK_OK && at != t->datum->n_tokens)
    return tnk__lm_refuse(t->why, TNK_EINVAL,
                          "%s_spans cover %zu of %zu tokens", what, at,
                          t->datum->n_tokens);
  return err;
}

static int trace(local_op_t *op, const local_session_t *session, size_t i,
                 tnk__lm_why_t *why) {
  const local_origin_t *origin = &op->u.pass.origins[i];
  tnk__lm_datum_t *datum = &op->u.pass.data[i];
  size_t n = datum->n_tokens;
  trace_t t = {session->server, session->id, datum, NULL, NULL, why};
  int err;

  if (datum->n_targets != 1)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "\"target_tokens\" has %zu targets a position",
                          datum->n_targets);
  if (origin->n_input == 0 || origin->n_targets == 0)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "stable_reinforce needs the provenance of every "
                          "token: model_input_spans and loss_fn_input_spans");
  err = follow_all(&t, origin->input, origin->n_input);
  if (err != TNK_OK)
    return err;
  t.logprobs = tnk__arena_calloc(&op->arena, n, sizeof(float));
  t.weights = tnk__arena_calloc(&op->arena, n, sizeof(float));
  if (t.logprobs == NULL || t.weights == NULL)
    return TNK_ENOMEM;
  for (size_t k = 0; k < n; k++)
    t.weights[k] = datum->weights != NULL ? datum->weights[k] : 1;
  err = follow_all(&t, origin->targets, origin->n_targets);
  datum->logprobs = t.logprobs;
  datum->weights = t.weights;
  return err == TNK_OK ? tnk__lm_datum_check(datum, &op->u.pass.loss, why)
                       : err;
}

int local_pass_trace(local_op_t *op, const local_session_t *session) {
  const local_pass_t *pass = &op->u.pass;
  tnk__lm_why_t why = {{0}};

  if (pass->loss.kind != TNK__LM_STABLE_REINFORCE)
    return TNK_OK;
  for (size_t i = 0; i < pass->n && op->err == TNK_OK; i++) {
    int err = trace(op, session, i, &why);

    if (err == TNK_ENOMEM)
      return err;
    if (err != TNK_OK)
      local_pass_note(op, i, &why);
  }
  return TNK_OK;
}
