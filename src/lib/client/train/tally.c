/* SPDX-License-Identifier: MIT */
#include "lib/client/train/op.h"

static tnk__op_t *op_of(tnk__list_t *node) {
  return tnk__container_of(tnk__member_of(node), tnk__op_t, member);
}

static void apply(tnk__tally_t *now, const tnk__op_t *op) {
  switch (op->type->counts) {
  case TNK__COUNTS_NOTHING:
    break;
  case TNK__COUNTS_STEP:
    now->n_steps++;
    break;
  case TNK__COUNTS_PASS:
    now->n_passes++;
    break;
  case TNK__COUNTS_ANEW:
    *now = (tnk__tally_t){0, 0};
    break;
  }
}

void tnk__tally_accept(tnk__op_t *op) {
  if (op->is_tallied)
    return;
  op->is_tallied = 1;
  op->tally = op->training->tally;
  apply(&op->training->tally, op);
}

tnk__tally_t tnk__tally_expected(const tnk_training_t *training) {
  tnk__tally_t expected = training->tally;

  for (tnk__list_t *node = training->ops.next; node != &training->ops;
       node = node->next) {
    const tnk__op_t *op = op_of(node);

    if (!op->is_tallied && op->promise != NULL)
      apply(&expected, op);
  }
  return expected;
}

/* The change of a tally that undoes a failed operation: minus its addition, or
 * plus the content that it was to replace. */
static tnk__tally_t change_of(const tnk__op_t *op) {
  tnk__tally_t change = {0, 0};

  if (op->type->counts == TNK__COUNTS_STEP)
    change.n_steps = UINT64_MAX; /* added modulo 2^64: minus one */
  else if (op->type->counts == TNK__COUNTS_PASS)
    change.n_passes = UINT64_MAX;
  else if (op->type->counts == TNK__COUNTS_ANEW)
    change = op->tally;
  return change;
}

static void add(tnk__tally_t *to, tnk__tally_t change) {
  to->n_steps += change.n_steps;
  to->n_passes += change.n_passes;
}

void tnk__tally_undo(tnk__op_t *op) {
  tnk_training_t *training = op->training;
  const tnk__tally_t change = change_of(op);

  if (!op->is_tallied || op->type->counts == TNK__COUNTS_NOTHING)
    return;
  op->is_tallied = 0;
  for (tnk__list_t *node = op->member.link.next; node != &training->ops;
       node = node->next) {
    tnk__op_t *later = op_of(node);

    if (!later->is_tallied)
      continue;
    add(&later->tally, change);
    /* It does not affect operations after a loaded state. */
    if (later->type->counts == TNK__COUNTS_ANEW)
      return;
  }
  add(&training->tally, change);
}

int tnk__tally_is_final(const tnk__op_t *op) {
  for (tnk__list_t *node = op->training->ops.next; node != &op->member.link;
       node = node->next) {
    const tnk__op_t *before = op_of(node);

    if (before->promise != NULL && before->type->counts != TNK__COUNTS_NOTHING)
      return 0;
  }
  return 1;
}
