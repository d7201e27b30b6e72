/* SPDX-License-Identifier: MIT */
/* Explains why an operation of a training client waits. Follows the states in
 * op.h, and only reads. */
#include "lib/client/train/op.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/session/session.h"

static uint64_t now_of(const tnk__op_t *op) {
  return tnk__context_now_ms(op->training->session->context);
}

static const tnk__op_t *op_of(const tnk__list_t *link) {
  return tnk__container_of((tnk__list_t *)(uintptr_t)link, tnk__op_t,
                           turn.link);
}

/* The number of operations before it. */
static size_t n_ahead(const tnk__op_t *op) {
  size_t n = 0;

  TNK__LIST_FOREACH (link, &op->training->turns.queue) {
    if (link == &op->turn.link)
      break;
    n++;
  }
  return n;
}

/* ---- One request ---- */

static void explain_paying(const tnk__part_t *part, tnk__text_t *out) {
  const tnk__budget_t *budget =
      &part->op->training->session->limits.train_bytes;
  size_t ahead = 0;

  if (!tnk__waiter_is_queued(&part->payer.waiter)) {
    tnk__text_printf(out, "is about to be sent");
    return;
  }
  TNK__LIST_FOREACH (link, &budget->waiters) {
    if (link == &part->payer.waiter.link)
      break;
    ahead++;
  }
  tnk__text_printf(out,
                   "waits for bytes of the dispatch budget (%lld of %lld are "
                   "taken, %zu ahead of it), since ",
                   (long long)(budget->size - budget->balance),
                   (long long)budget->size, ahead);
  tnk__text_time(out, now_of(part->op) - part->since_ms);
}

static void explain_part(const tnk__part_t *part, tnk__text_t *out) {
  switch (part->state) {
  case TNK__PART_IDLE:
    tnk__text_printf(out, part->due.link.next != &part->due.link
                              ? "is about to be sent"
                              : "waits for the other parts to be accepted");
    break;
  case TNK__PART_PAYING:
    explain_paying(part, out);
    break;
  case TNK__PART_PACKING:
    tnk__text_printf(out, "is being compressed (%zu bytes), since ",
                     tnk__cargo_len(&part->cargo));
    tnk__text_time(out, now_of(part->op) - part->since_ms);
    break;
  case TNK__PART_SENDING:
  case TNK__PART_WAITING:
    tnk__job_explain(&part->job, out);
    break;
  case TNK__PART_DONE:
    break;
  }
}

/* ---- The whole ---- */

/* The part that delays the others: the one in the earliest state, and the first
 * of several. In parallel mode an idle part that waits for all others comes
 * last. */
static const tnk__part_t *slowest(const tnk__op_t *op) {
  const tnk__part_t *found = NULL;
  size_t i;

  for (i = 0; i < op->n_parts; i++) {
    const tnk__part_t *part = &op->parts[i];
    if (part->state == TNK__PART_DONE)
      continue;
    if (found == NULL || found->state == TNK__PART_IDLE ||
        (part->state != TNK__PART_IDLE && part->state < found->state))
      found = part;
  }
  return found;
}

/* A part that waits for the byte budget waits for parts in flight. */
static void explain_others(const tnk__part_t *part, tnk__text_t *out) {
  const tnk__op_t *op = part->op;
  const tnk__part_t *first = NULL;
  size_t n = 0;
  size_t i;

  for (i = 0; part->state == TNK__PART_PAYING && i < op->n_parts; i++) {
    if (op->parts[i].state != TNK__PART_SENDING)
      continue;
    n++;
    if (first == NULL)
      first = &op->parts[i];
  }
  if (first == NULL)
    return;
  tnk__text_printf(out, "; part %zu, the first of %zu on the way, ",
                   first->index + 1, n);
  explain_part(first, out);
}

static void explain_active(const tnk__op_t *op, tnk__text_t *out) {
  const tnk__part_t *part = slowest(op);

  if (op->n_parts == 0) {
    tnk__text_printf(out, op->is_held
                              ? "has its turn and waits for the ledger's disk"
                              : "has its turn and is about to be sent");
    return;
  }
  if (op->is_due) {
    tnk__text_printf(out, "has its result and waits for those of the "
                          "operations before it, which tell what it contains");
    return;
  }
  if (part == NULL) {
    tnk__text_printf(out, "has all its results, and the caller's function "
                          "is running");
    return;
  }
  if (op->n_parts > 1)
    tnk__text_printf(out, "part %zu of %zu (%zu accepted, %zu done) ",
                     part->index + 1, op->n_parts, op->n_accepted, op->n_read);
  explain_part(part, out);
  explain_others(part, out);
}

static void explain_first(const tnk_training_t *training, tnk__text_t *out) {
  const tnk__op_t *head = op_of(training->turns.queue.next);

  tnk__text_printf(out, "the first of them, %s, ", head->type->name);
  if (head->promise != NULL)
    explain_active(head, out);
  else
    tnk__text_printf(out, "is canceled, but its request may still be accepted");
}

void tnk__op_explain(const tnk__op_t *op, tnk__text_t *out) {
  tnk__text_printf(out, "%s: ", op->type->name);
  if (tnk__list_empty(&op->turn.link) ||
      tnk__turns_has_turn(&op->training->turns, &op->turn)) {
    explain_active(op, out);
    return;
  }
  tnk__text_printf(out, "waits for its turn behind %zu operation%s, since ",
                   n_ahead(op), n_ahead(op) == 1 ? "" : "s");
  tnk__text_time(out, now_of(op) - op->entered_ms);
  tnk__text_printf(out, "; ");
  explain_first(op->training, out);
}

void tnk__op_warn_depth(tnk_training_t *training) {
  char text[512];
  tnk__text_t out;

  if (training->turns.n_queued < training->deep)
    return;
  training->deep *= 2;
  tnk__text_init(&out, text, sizeof(text));
  explain_first(training, &out);
  tnk__log(&training->session->context->logger, TNK_LOG_WARN, "training",
           "%s: %zu operations wait for their turn, each with a copy of its "
           "data; wait for results before adding more; %s",
           training->info.model_id, training->turns.n_queued, text);
}
