/* SPDX-License-Identifier: MIT */
/*
 * One line for each request, when it ends. A line has no text of a prompt, an
 * answer or a header, and nothing of the query. The path comes from the client,
 * so only its printable characters are written.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/state.h"

enum { MAX_PATH = 160, MAX_LINE = 512 };

/* `tag` of a request: the loop time of its begin, plus this bit if its job logs
 * it. 0: its head could not be read. */
#define OF_A_JOB (UINT64_C(1) << 63)

static int is_on(const tnk_gateway_t *gateway) {
  return gateway->logger.write != NULL && gateway->logger.level >= TNK_LOG_INFO;
}

void tnk__gw_log_begin(const tnk_gateway_t *gateway, tnk__srv_req_t *req) {
  req->tag = uv_now(gateway->loop) + 1;
}

void tnk__gw_log_later(tnk__srv_req_t *req) {
  req->tag |= OF_A_JOB;
}

static const char *printable(const char *path, char *out) {
  size_t n = 0;

  for (; path[n] != '\0' && n + 1 < MAX_PATH; n++)
    out[n] = path[n] > ' ' && path[n] <= '~' ? path[n] : '?';
  out[n] = '\0';
  return out;
}

static uint64_t took_ms(const tnk_gateway_t *gateway,
                        const tnk__srv_req_t *req) {
  const uint64_t began = req->tag & ~OF_A_JOB;

  return began > 0 ? uv_now(gateway->loop) + 1 - began : 0;
}

/* `about`: what is known about a job, or "". */
static void write_line(const tnk_gateway_t *gateway, const tnk__srv_req_t *req,
                       int status, const char *about) {
  char path[MAX_PATH], result[32], line[MAX_LINE + TNK__SRV_SUBJECT];
  char subject[TNK__SRV_SUBJECT];
  int n;

  tnk__srv_req_subject(req, subject);
  (void)snprintf(result, sizeof(result), status < 0 ? "client gone" : "%d",
                 status);
  n = snprintf(line, sizeof(line), "%s %s: %s%s%s%s%s, %" PRIu64 " ms",
               req->method != NULL ? req->method : "?",
               printable(req->path != NULL ? req->path : "?", path), result,
               about, subject[0] != '\0' ? ", certificate \"" : "", subject,
               subject[0] != '\0' ? "\"" : "", took_ms(gateway, req));
  if (n >= (int)sizeof(line))
    n = (int)sizeof(line) - 1;
  gateway->logger.write(TNK_LOG_INFO, "gateway", line, (size_t)n,
                        gateway->logger.user);
}

void tnk__gw_log_job(const tnk__gw_job_t *job, const tnk__srv_req_t *req,
                     int status) {
  char about[MAX_LINE / 2];

  if (!is_on(job->gateway))
    return;
  (void)snprintf(about, sizeof(about), ", session %s%s%s, %" PRIu64 " tokens",
                 job->session, job->grant != NULL ? ", " : "",
                 job->grant != NULL ? job->grant->id : "", job->n_sampled);
  write_line(job->gateway, req, status, about);
}

void tnk__gw_log_note(const tnk_gateway_t *gateway, const char *format, ...) {
  char line[MAX_LINE];
  va_list args;
  int n;

  if (!is_on(gateway))
    return;
  va_start(args, format);
  n = vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  if (n >= (int)sizeof(line))
    n = (int)sizeof(line) - 1;
  gateway->logger.write(TNK_LOG_INFO, "gateway", line, (size_t)n,
                        gateway->logger.user);
}

void tnk__gw_log_refused(const char *why, void *user) {
  tnk__gw_log_note(user, "%s", why);
}

void tnk__gw_log_reply(tnk__srv_req_t *req, int status, void *user) {
  tnk_gateway_t *gateway = user;

  if ((req->tag & OF_A_JOB) != 0)
    return;
  if (is_on(gateway))
    write_line(gateway, req, status, "");
  tnk__gw_refusal_end(
      gateway->otlp, &gateway->refusals,
      &(tnk__gw_refusal_t){
          .method = req->method != NULL ? req->method : "",
          .path = tnk__gw_path_below(req->path != NULL ? req->path : ""),
          .model = tnk__gw_metrics_model(gateway),
          .status = status,
          .took_ms = took_ms(gateway, req),
          .now_ms = uv_now(gateway->loop) + 1});
}
