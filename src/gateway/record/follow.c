/* SPDX-License-Identifier: MIT */
#include "gateway/record/follow.h"

#include "gateway/record/line.h"
#include "gateway/record/state.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

#define TURN(at) tnk__container_of(at, tnk__gw_turn_t, link)
#define SESSION(at) tnk__container_of(at, tnk__gw_session_t, link)

static int is_due(tnk__gw_session_t *session, uint64_t quiet_ms,
                  uint64_t now_ms) {
  if (session->n_changes != session->n_seen) {
    session->n_seen = session->n_changes;
    session->seen_ms = now_ms;
    session->is_waiting = 1;
  }
  return session->is_waiting && now_ms - session->seen_ms >= quiet_ms;
}

static const tnk__gw_branch_t *branches_in(const tnk__buf_t *buf, size_t *n) {
  *n = buf->len / sizeof(tnk__gw_branch_t);
  return (const void *)buf->data;
}

static int export_one(tnk__gw_record_t *record,
                      const tnk__gw_session_t *session,
                      const tnk__gw_follow_options_t *options,
                      tnk__gw_datum_cb put, void *user) {
  const tnk__gw_datum_options_t how = {.only_rewarded = options->only_rewarded,
                                       .only_new = 1};
  const tnk__gw_branch_t *branches;
  tnk__buf_t buf;
  size_t n;
  int err;

  tnk__buf_init(&buf, tnk__gw_record_allocator(record), SIZE_MAX);
  err = tnk__gw_branches(record, session, &how, &buf);
  branches = branches_in(&buf, &n);
  for (size_t i = 0; err == TNK_OK && i < n; i++)
    err = tnk__gw_datum(record, &branches[i], put, user);
  if (err == TNK_OK && options->done != NULL)
    err = options->done(user, session, branches, n, tnk__gw_is_all(session));
  tnk__buf_deinit(&buf);
  return err;
}

int tnk__gw_follow(tnk__gw_record_t *record,
                   const tnk__gw_follow_options_t *options, uint64_t now_ms,
                   tnk__gw_datum_cb put, void *user) {
  int err = TNK_OK;

  TNK__LIST_FOREACH (node, tnk__gw_record_sessions(record)) {
    if (err != TNK_OK || !is_due(SESSION(node), options->quiet_ms, now_ms))
      continue;
    SESSION(node)->is_waiting = 0;
    err = export_one(record, SESSION(node), options, put, user);
  }
  return err;
}

/* ---- What was exported before ---- */

static void skip(tnk__gw_turn_t *turn) {
  for (; turn != NULL && !turn->is_told; turn = turn->parent)
    turn->is_told = 1;
}

void tnk__gw_skip(tnk__gw_record_t *record, uint64_t leaf) {
  skip(tnk__gw_record_turn(record, leaf));
}

void tnk__gw_skip_marked(tnk__gw_record_t *record) {
  TNK__LIST_FOREACH (at, tnk__gw_record_sessions(record)) {
    TNK__LIST_FOREACH (node, &SESSION(at)->turns) {
      if (TURN(node)->is_exported)
        skip(TURN(node));
    }
  }
}

int tnk__gw_is_all(const tnk__gw_session_t *session) {
  TNK__LIST_FOREACH (node, &session->turns) {
    const tnk__gw_turn_t *turn = TURN(node);

    /* A single id is no example. */
    if (turn->n_children == 0 && !turn->is_told && tnk__gw_turn_n_ids(turn) > 1)
      return 0;
  }
  return 1;
}

/* Write the line of a mark, unless all of these examples have one. */
static int write_mark(tnk__gw_record_t *record,
                      const tnk__gw_session_t *session,
                      const tnk__gw_branch_t *branches, size_t n,
                      tnk__buf_t *line) {
  tnk__buf_t leaves;
  int err = TNK_OK;

  tnk__buf_init(&leaves, record->alloc, SIZE_MAX);
  for (size_t i = 0; err == TNK_OK && i < n; i++) {
    const tnk__gw_turn_t *leaf = tnk__gw_record_turn(record, branches[i].leaf);

    if (leaf != NULL && !leaf->is_exported)
      err = tnk__buf_append(&leaves, &branches[i].leaf, sizeof(uint64_t));
  }
  if (err == TNK_OK && leaves.len > 0)
    err = tnk__gw_line_exported(session->name, (const void *)leaves.data,
                                leaves.len / sizeof(uint64_t), line);
  tnk__buf_deinit(&leaves);
  return err;
}

int tnk__gw_mark(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                 const tnk__gw_branch_t *branches, size_t n, int is_all) {
  tnk__buf_t line;
  int err;

  if (record->shared == NULL)
    return TNK_OK;
  tnk__buf_init(&line, record->alloc, SIZE_MAX);
  err = write_mark(record, session, branches, n, &line);
  if (err == TNK_OK && (line.len > 0 || is_all))
    err = tnk__gw_shared_mark(record->shared, session->name,
                              is_all ? session->changed : "", line.data,
                              line.len);
  tnk__buf_deinit(&line);
  return err;
}

int tnk__gw_mark_all(tnk__gw_record_t *record,
                     const tnk__gw_datum_options_t *options) {
  int err = TNK_OK;

  TNK__LIST_FOREACH (node, tnk__gw_record_sessions(record)) {
    const tnk__gw_session_t *session = SESSION(node);
    tnk__buf_t buf;

    tnk__buf_init(&buf, tnk__gw_record_allocator(record), SIZE_MAX);
    if (err == TNK_OK)
      err = tnk__gw_branches(record, session, options, &buf);
    if (err == TNK_OK)
      err = tnk__gw_mark(record, session, (const void *)buf.data,
                         buf.len / sizeof(tnk__gw_branch_t),
                         tnk__gw_is_all(session));
    tnk__buf_deinit(&buf);
  }
  return err;
}
