/* SPDX-License-Identifier: MIT */
/* Without hiredis no record is shared. Only the first function is ever
 * called. */
#include "gateway/store/shared.h"

#include "tnk/error.h"

int tnk__gw_shared_new(tnk__gw_shared_t **out,
                       const tnk__gw_shared_options_t *options) {
  (void)options;
  *out = NULL;
  return TNK_ENOTSUP;
}

int tnk__gw_shared_load(tnk__gw_shared_t *shared, char *why, size_t n_why) {
  (void)shared, (void)why, (void)n_why;
  return TNK_ENOTSUP;
}

int tnk__gw_shared_begin(tnk__gw_shared_t *shared, uv_loop_t *loop) {
  (void)shared, (void)loop;
  return TNK_ENOTSUP;
}

uint64_t tnk__gw_shared_writer(const tnk__gw_shared_t *shared) {
  (void)shared;
  return 0;
}

int tnk__gw_shared_add(tnk__gw_shared_t *shared, const tnk__gw_about_t *about,
                       const void *line, size_t n) {
  (void)shared, (void)about, (void)line, (void)n;
  return TNK_ENOTSUP;
}

int tnk__gw_shared_mark(tnk__gw_shared_t *shared, const char *session,
                        const char *changed, const void *line, size_t n) {
  (void)shared, (void)session, (void)changed, (void)line, (void)n;
  return TNK_ENOTSUP;
}

int tnk__gw_shared_wait(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter) {
  (void)shared, (void)waiter;
  return TNK_ENOTSUP;
}

int tnk__gw_shared_sync(tnk__gw_shared_t *shared, tnk__gw_waiter_t *waiter,
                        int is_writing) {
  (void)shared, (void)waiter, (void)is_writing;
  return TNK_ENOTSUP;
}

void tnk__gw_shared_hurry(tnk__gw_shared_t *shared) {
  (void)shared;
}

const char *tnk__gw_shared_why(const tnk__gw_shared_t *shared) {
  (void)shared;
  return NULL;
}

uint64_t tnk__gw_shared_n_older(const tnk__gw_shared_t *shared) {
  (void)shared;
  return 0;
}

int tnk__gw_shared_error(const tnk__gw_shared_t *shared) {
  (void)shared;
  return TNK_ENOTSUP;
}

void tnk__gw_shared_close(tnk__gw_shared_t *shared, void (*closed)(void *user),
                          void *user) {
  (void)shared;
  if (closed != NULL)
    closed(user);
}
