/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_MOMENTS_H
#define TNK_TEST_TASK_MOMENTS_H

#include "task/loss.h"

/*
 * When the server of loss.h is killed, and when it is started again. The
 * moments that contain two kills need recovery for the second one.
 */

typedef enum {
  BEFORE_CONFIG,
  AFTER_CONFIG,
  BEFORE_SESSION,
  AFTER_SESSION,
  BEFORE_HEARTBEAT,
  BETWEEN_HEARTBEATS,
  BEFORE_STEP, /* a step arrives, and the server dies of it */
  AFTER_STEP,  /* a step was run, and nobody hears of it */
  BEFORE_SAVE,
  AFTER_SAVE,
  IN_RESUME, /* a new process of the program resumes from its ledger */
  IN_RECOVERY,
  IN_RESTORE,
  TWICE,
  N_MOMENTS
} moment_t;

enum {
  TICK_MS = 100,
  GAP_MS = 12000,
  /* The step or the save that the server dies of: there is a save to go back
   * to, and steps behind it. */
  N_STEPS_BEFORE = 6,
  N_SAVES_BEFORE = 2
};

typedef struct {
  world_t *world;
  moment_t moment;
  int is_fast;    /* it is there again before anybody connects */
  uint64_t up_ms; /* when it is started again; 0: it is up */
  int n_due;      /* kills that are still to come */
} killer_t;

/* 1: it is dead now. */
static inline int killer_strikes(killer_t *killer) {
  world_t *world = killer->world;

  world->is_dying = 0;
  if (killer->n_due == 0 || world->is_down)
    return 0;
  killer->n_due--;
  world_kill(world);
  if (killer->is_fast)
    world_start(world);
  else
    killer->up_ms = world_now(world) + GAP_MS;
  return 1;
}

/* The connection is still in use here, so that the rest dies a turn later. */
static inline void killer_reset(mock_request_t *request, void *user) {
  mock_reset(request, NULL);
  ((killer_t *)user)->world->is_dying = 1;
}

static inline void killer_of(killer_t *killer, const char *path) {
  mock_once(killer->world->script.mock, "POST", path, killer_reset, killer);
}

static inline void killer_arm(killer_t *killer, world_t *world, moment_t moment,
                              int is_fast) {
  *killer = (killer_t){.world = world, .moment = moment, .is_fast = is_fast};
  killer->n_due = moment >= IN_RECOVERY ? 2 : 1;
  if (moment == BEFORE_CONFIG)
    killer_of(killer, "/api/v1/client/config");
  if (moment == BEFORE_SESSION)
    killer_of(killer, "/api/v1/create_session");
  if (moment == AFTER_STEP || moment == AFTER_SAVE)
    world->dies_of = moment == AFTER_STEP ? "optim_step" : "save_weights";
  world->n_until = moment == AFTER_STEP ? N_STEPS_BEFORE : N_SAVES_BEFORE;
}

static inline size_t killer_count(const killer_t *killer, const char *call) {
  char path[64];

  snprintf(path, sizeof(path), "/api/v1/%s", call);
  return mock_count(killer->world->script.mock, "POST", path);
}

/* The first kill. */
static inline int killer_first(killer_t *killer) {
  world_t *world = killer->world;
  const uint64_t age = world_now(world) - 1000000;
  const moment_t moment = killer->moment;

  if ((moment == AFTER_CONFIG && killer_count(killer, "client/config") > 0) ||
      (moment == AFTER_SESSION && killer_count(killer, "create_session") > 0) ||
      (moment == BEFORE_HEARTBEAT && age >= 5000) ||
      ((moment == BETWEEN_HEARTBEATS || moment >= IN_RECOVERY) &&
       age >= 14000)) {
    if (moment == IN_RECOVERY)
      killer_of(killer, "/api/v1/create_session");
    if (moment == IN_RESTORE)
      killer_of(killer, "/api/v1/load_weights");
    return killer_strikes(killer);
  }
  if (moment == BEFORE_STEP && world->n_steps == N_STEPS_BEFORE - 1) {
    killer_of(killer, "/api/v1/optim_step");
    killer->moment = N_MOMENTS;
  }
  if (moment == BEFORE_SAVE && world->n_saved == N_SAVES_BEFORE - 1) {
    killer_of(killer, "/api/v1/save_weights");
    killer->moment = N_MOMENTS;
  }
  return 0;
}

/* Before each tick: whether the moment has come. `works` says that the program
 * has succeeded with something since the last kill. 1: it is dead now. */
static inline int killer_watch(killer_t *killer, int works) {
  world_t *world = killer->world;

  if (killer->up_ms != 0 && world_now(world) >= killer->up_ms) {
    killer->up_ms = 0;
    world_start(world);
  }
  if (killer->n_due == 0 || world->is_down)
    return 0;
  if (world->n_kills == 0)
    return killer_first(killer);
  return killer->moment == TWICE && works && killer_strikes(killer);
}

#endif
