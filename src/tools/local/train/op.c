/* A training request, from acceptance to its result. */
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "tools/local/lm/check.h"
#include "tools/local/train/model.h"

local_op_t *local_op_new(local_server_t *server, local_kind_t kind) {
  local_op_t *op = tnk__calloc(server->alloc, 1, sizeof(*op));

  if (op == NULL)
    return NULL;
  op->kind = kind;
  op->seq = -1;
  tnk__list_init(&op->link);
  tnk__arena_init(&op->arena, server->alloc, 2 * TNK__MAX_REQUEST_BODY);
  return op;
}

void local_op_free(local_op_t *op, local_server_t *server) {
  if (op->kind == LOCAL_SAVE_FOR_SAMPLER)
    tnk__lm_weights_free(op->u.save.snapshot);
  /* At the server's end local_futures_free() frees all futures together. */
  if (op->future != NULL && !server->closing)
    local_future_drop(op->future);
  tnk__list_remove(&op->link);
  tnk__arena_deinit(&op->arena);
  tnk__free(server->alloc, op);
}

local_op_t *local_need_op(local_call_t *call, local_kind_t kind) {
  local_op_t *op = local_op_new(call->server, kind);

  if (op == NULL)
    local_reply_error(call->req, 503, "Out of memory");
  return op;
}

int local_want_seq(local_call_t *call, int64_t *seq) {
  *seq = -1;
  return local_want_int(call, "seq_id", 0, INT64_MAX, seq);
}

void local_pass_note(local_op_t *op, size_t datum, const tnk__lm_why_t *why) {
  if (op->err == TNK_OK)
    op->err = tnk__lm_refuse(&op->why, TNK_EINVAL, "datum %zu: %.200s", datum,
                             why->text);
}
