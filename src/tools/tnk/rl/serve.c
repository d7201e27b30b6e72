/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/serve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gateway/keys/watch.h"
#include "tnk/error.h"

static int is_open(const rl_episode_t *episode) {
  return episode->session[0] != '\0' && episode->outcome == RL_UNDECIDED;
}

static uint64_t now_of(const rl_serve_t *serve) {
  return uv_now(&serve->overlap->play->ask->loop);
}

/* ---- Groups ---- */

/* The group of this name that is not free; or NULL. */
static rl_group_t *find_group(const rl_overlap_t *o, const char *name) {
  for (size_t i = 0; i < o->n_slots; i++)
    if (o->slots[i].state != RL_GROUP_FREE &&
        strcmp(o->slots[i].name, name) == 0)
      return &o->slots[i];
  return NULL;
}

/* A free place of a group; or NULL. */
static rl_episode_t *find_place(const rl_overlap_t *o,
                                const rl_group_t *group) {
  for (size_t i = 0; i < o->play->group_size; i++)
    if (group->episodes[i].session[0] == '\0')
      return &group->episodes[i];
  return NULL;
}

static size_t count_open(const rl_overlap_t *o, const rl_group_t *group) {
  size_t n = 0;

  for (size_t i = 0; i < o->play->group_size; i++)
    n += (size_t)is_open(&group->episodes[i]);
  return n;
}

/* ---- Timeouts ---- */

static void on_timer(uv_timer_t *timer);

/* When something in a group is too late; UINT64_MAX: never. A group without
 * open sessions waits for as long as a session may take. */
static uint64_t deadline_of(const rl_overlap_t *o, const rl_group_t *group) {
  uint64_t next = UINT64_MAX;

  if (group->state != RL_GROUP_RUNS)
    return next;
  if (count_open(o, group) == 0)
    return group->changed_ms + o->play->timeout_ms;
  for (size_t i = 0; i < o->play->group_size; i++)
    if (is_open(&group->episodes[i]) && group->episodes[i].deadline_ms < next)
      next = group->episodes[i].deadline_ms;
  return next;
}

static void set_timer(rl_serve_t *serve) {
  const rl_overlap_t *o = serve->overlap;
  const uint64_t now = now_of(serve);
  uint64_t next = UINT64_MAX;

  for (size_t i = 0; i < o->n_slots; i++) {
    const uint64_t one = deadline_of(o, &o->slots[i]);

    next = one < next ? one : next;
  }
  if (next == UINT64_MAX)
    uv_timer_stop(&serve->timer);
  else
    uv_timer_start(&serve->timer, on_timer, next > now ? next - now : 0, 0);
}

/* Count a failure, and free the place of the session. The step in training has
 * its own counts. */
static void fail(rl_overlap_t *o, rl_group_t *group, rl_episode_t *episode) {
  rl_play_count(&o->late, episode);
  o->late.n++;
  rl_episode_free(episode);
  memset(episode, 0, sizeof(*episode));
  if (group->n_ended == 0 && count_open(o, group) == 0)
    group->state = RL_GROUP_FREE;
}

static void time_out(rl_overlap_t *o, rl_group_t *group, rl_episode_t *episode,
                     const char *what) {
  if (is_open(episode)) {
    (void)tnk_gateway_key_revoke(episode->gateway, episode->key_id);
    o->n_running--;
  } else {
    group->n_ended--;
  }
  episode->outcome = RL_FAILED_TIMED_OUT;
  snprintf(episode->why, sizeof(episode->why), "%s within %" PRIu64 " s", what,
           o->play->timeout_ms / 1000);
  rl_play_show(o->play, episode);
  fail(o, group, episode);
}

static void end_late(rl_overlap_t *o, rl_group_t *group, uint64_t now) {
  const int is_idle = count_open(o, group) == 0;

  for (size_t i = 0; i < o->play->group_size; i++) {
    rl_episode_t *episode = &group->episodes[i];

    if (episode->session[0] == '\0')
      continue;
    if (is_idle)
      time_out(o, group, episode, "has a group that was not complete");
    else if (is_open(episode) && episode->deadline_ms <= now)
      time_out(o, group, episode, "did not end");
  }
  group->changed_ms = now;
}

static void on_timer(uv_timer_t *timer) {
  rl_serve_t *serve = timer->data;
  rl_overlap_t *o = serve->overlap;
  const uint64_t now = now_of(serve);

  for (size_t i = 0; i < o->n_slots; i++)
    if (deadline_of(o, &o->slots[i]) <= now)
      end_late(o, &o->slots[i], now);
  set_timer(serve);
}

/* ---- Sessions ---- */

static int on_line(void *user, const char *line, size_t n) {
  (void)user;
  (void)line;
  (void)n;
  return TNK_ECANCELED;
}

/* Returns whether a session of this name is or was there. Its answers would be
 * those of the new one. */
static int is_used(const rl_overlap_t *o, const char *session) {
  for (size_t i = 0; i < o->n_slots; i++)
    for (size_t k = 0; k < o->play->group_size; k++)
      if (strcmp(o->slots[i].episodes[k].session, session) == 0)
        return 1;
  return tnk_gateway_datums(o->play->gateway, session, 0, on_line, NULL) !=
         TNK_ENOTFOUND;
}

static int check(void *user, const char *session, const char *name,
                 const char **why) {
  const rl_serve_t *serve = user;
  const rl_overlap_t *o = serve->overlap;
  const rl_group_t *group = find_group(o, name);

  *why = NULL;
  if (session != NULL && strlen(session) >= sizeof(o->slots->episodes->session))
    *why = "the name of a session has at most 95 characters here";
  else if (session != NULL && is_used(o, session))
    *why = "a session of this name exists: use another one";
  if (*why != NULL)
    return 409;
  if (!rl_overlap_is_open(o))
    *why = "no session can begin while a step trains: ask again";
  else if (o->n_running >= o->play->n_parallel)
    *why = "as many sessions as --parallel are open: ask again";
  else if (group == NULL && !rl_overlap_has_room(o))
    *why = "the groups of the step have begun: ask again, or complete them";
  else if (group != NULL &&
           (group->state != RL_GROUP_RUNS || find_place(o, group) == NULL))
    *why = "this group has as many sessions as --group-size: ask again, or "
           "begin another one";
  return *why != NULL ? 503 : 0;
}

static void on_created(void *user, const char *session, const char *name,
                       const char *id) {
  rl_serve_t *serve = user;
  rl_overlap_t *o = serve->overlap;
  rl_group_t *group = find_group(o, name);
  rl_episode_t *episode;

  uv_update_time(&o->play->ask->loop);
  if (group == NULL) {
    group = rl_overlap_begin_group(o);
    snprintf(group->name, sizeof(group->name), "%s", name);
  }
  episode = find_place(o, group);
  memset(episode, 0, sizeof(*episode));
  rl_episode_init(episode);
  episode->gateway = o->play->gateway;
  episode->loss = o->play->loss;
  episode->deadline_ms = now_of(serve) + o->play->timeout_ms;
  snprintf(episode->session, sizeof(episode->session), "%s", session);
  snprintf(episode->key_id, sizeof(episode->key_id), "%s", id);
  o->n_running++;
  set_timer(serve);
}

static void end_session(rl_serve_t *serve, rl_group_t *group,
                        rl_episode_t *episode) {
  rl_overlap_t *o = serve->overlap;

  rl_episode_end(episode);
  rl_play_show(o->play, episode);
  o->n_running--;
  group->changed_ms = now_of(serve);
  if (episode->outcome != RL_REWARDED || episode->is_broken)
    fail(o, group, episode);
  else if (++group->n_ended == o->play->group_size)
    rl_overlap_complete(o, group);
  set_timer(serve);
}

static void on_ended(void *user, const char *id) {
  rl_serve_t *serve = user;
  const rl_overlap_t *o = serve->overlap;

  for (size_t i = 0; i < o->n_slots; i++)
    for (size_t k = 0; k < o->play->group_size; k++)
      if (is_open(&o->slots[i].episodes[k]) &&
          strcmp(o->slots[i].episodes[k].key_id, id) == 0) {
        end_session(serve, &o->slots[i], &o->slots[i].episodes[k]);
        return;
      }
}

void rl_serve_open(rl_serve_t *serve, rl_overlap_t *overlap) {
  const tnk__gw_watch_t watch = {
      .check = check, .created = on_created, .ended = on_ended, .user = serve};

  serve->overlap = overlap;
  uv_timer_init(&overlap->play->ask->loop, &serve->timer);
  serve->timer.data = serve;
  serve->has_timer = 1;
  tnk__gw_watch(overlap->play->gateway, &watch);
}

void rl_serve_close(rl_serve_t *serve) {
  if (serve->has_timer)
    uv_close((uv_handle_t *)&serve->timer, NULL);
  serve->has_timer = 0;
}
