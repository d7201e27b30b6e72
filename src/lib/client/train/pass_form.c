/* SPDX-License-Identifier: MIT */
#include "lib/client/train/op.h"

#include "lib/base/log.h"
#include "lib/client/session/session.h"

static tnk__session_t *session_of(const tnk__part_t *part) {
  return part->op->training->session;
}

static int is_pass(const tnk__part_t *part) {
  return part->op->type->request != NULL;
}

int tnk__part_form_is_json(tnk__part_t *part) {
  if (session_of(part)->start.progress.pass_form == TNK__FORM_JSON)
    part->is_json = 1;
  return part->is_json;
}

tnk__route_id_t tnk__part_form_route(const tnk__part_t *part) {
  const tnk__op_t *op = part->op;

  if (is_pass(part) && part->is_json &&
      op->type->request((tnk__op_t *)op, part->index, part->number.value)
          .forward_only)
    return TNK__ROUTE_FORWARD;
  return op->type->route;
}

/* The server has refused the bytes, and certainly has not run them. A 415 shows
 * that also for earlier attempts without a response, which sent the same bytes.
 * An HTML page of a proxy says nothing about the server. */
static int is_unread(const tnk__reply_t *reply) {
  const tnk__effect_t effect = reply->verdict.effect;

  return (reply->status == 415 || reply->status == 422) && !reply->is_page &&
         !reply->is_taken && !reply->verdict.in_doubt &&
         (effect == TNK__EFFECT_NONE ||
          (effect == TNK__EFFECT_UNKNOWN && reply->status == 415)) &&
         reply->verdict.err == TNK_EREQUEST;
}

int tnk__part_form_change(tnk__part_t *part, const tnk__reply_t *reply) {
  const tnk__session_t *session = session_of(part);
  const tnk__call_t *call = &part->job.future.call;

  if (!is_pass(part) || part->is_json || !is_unread(reply) ||
      session->start.progress.pass_form == TNK__FORM_PROTO ||
      session->endpoint.closing)
    return 0;
  part->is_json = 1;
  part->unread = tnk__error_ref(reply->error);
  tnk__seq_unread(&part->number);
  tnk__call_count_repeat(call, reply->outcome);
  tnk__call_tell_retry(call, reply->status, reply->verdict.err);
  return 1;
}

/* Returns whether JSON was refused as well. That includes a missing JSON call:
 * 404, 405, or known to be missing. Errors of the credential, the rate or the
 * connection do not refuse the form. */
static int is_refused_too(const tnk__reply_t *reply) {
  if (reply->verdict.effect != TNK__EFFECT_NONE || reply->is_page)
    return 0;
  return reply->verdict.err == TNK_EREQUEST ||
         reply->verdict.err == TNK_EUNSUPPORTED ||
         reply->verdict.err == TNK_ENOTFOUND;
}

tnk__error_t *tnk__part_form_blame(const tnk__part_t *part,
                                   const tnk__reply_t *reply,
                                   tnk__error_t *error) {
  return part->unread != NULL && is_refused_too(reply) ? part->unread : error;
}

void tnk__part_form_learn(tnk__part_t *part) {
  tnk__session_t *session = session_of(part);

  if (is_pass(part) && session->start.progress.pass_form == TNK__FORM_UNKNOWN) {
    session->start.progress.pass_form =
        part->is_json ? TNK__FORM_JSON : TNK__FORM_PROTO;
    if (part->is_json)
      tnk__log(&session->context->logger, TNK_LOG_WARN, "training",
               "%s: the server does not read passes in protobuf (HTTP %d); "
               "they are sent as JSON from now on",
               part->op->type->name,
               part->unread != NULL ? part->unread->pub.http_status : 0);
  }
  tnk__part_form_clear(part);
}

void tnk__part_form_clear(tnk__part_t *part) {
  tnk__error_unref(part->unread);
  part->unread = NULL;
}
