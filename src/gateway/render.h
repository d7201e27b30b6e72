/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RENDER_H
#define TNK_GATEWAY_RENDER_H

#include "gateway/state.h"

/*
 * Renderings of chats. A template that the program gave may come from a
 * stranger, and may take half a second of CPU time each time. So it runs on
 * threads of libuv's pool. Everything of a job that the thread uses belongs to
 * the thread from the start until `done`. The plain template of the library is
 * fast. It runs on the loop, because a thread would cost more than it does.
 */

/* Make the ids of a job whose conversation was read (prompt.h). `done` is
 * called once from the loop, never inside this call. Returns 0, or -1 with the
 * reason in `fault`; `done` is then not called. */
int tnk__gw_render(tnk__gw_job_t *job, tnk__gw_rendered_cb done,
                   tnk__gw_fault_t *fault);
/* The same on the loop. Returns 0, or -1 with the reason in `fault`. */
int tnk__gw_render_now(tnk__gw_job_t *job, tnk__gw_fault_t *fault);
/* The ids are not needed any more. Returns 1 if no thread works for the job;
 * `done` is then not called, and the job may be freed. Otherwise the rendering
 * ends soon, and `done` is called. */
int tnk__gw_render_leave(tnk__gw_job_t *job);
/* Start queued renderings, as many as may run at a time. */
void tnk__gw_renders_start(tnk_gateway_t *gateway);

#endif
