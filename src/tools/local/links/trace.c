/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/pb.h"
#include "tools/local/ledger/ledger.h"
#include "tools/local/links/link.h"

/*
 * Traces of sessions: the times of requests, in Perfetto's format. Each model
 * has a track. Samples overlap, so they have as many tracks as needed. The
 * field numbers are from Perfetto's protos: Trace, TracePacket,
 * TrackDescriptor, TrackEvent.
 */
#define SUFFIX ".pftrace"

enum {
  MAX_LANES = 64, /* for samples; more never run at a time */
  SAMPLES = 1 << 20,
  SLICE_BEGIN = 1,
  SLICE_END = 2
};

typedef struct {
  uint64_t track;
  const char *name; /* NULL: end of a slice */
  int64_t ms;
} mark_t;

/* ---- Messages ---- */

static void put_descriptor(tnk__pb_t *pb, const void *message) {
  const mark_t *mark = message;

  tnk__pb_varint(pb, 1, mark->track);
  tnk__pb_text(pb, 2, mark->name);
}

static void put_track(tnk__pb_t *pb, const void *message) {
  tnk__pb_varint(pb, 10, 1);
  tnk__pb_message(pb, 60, put_descriptor, message);
}

static void put_event(tnk__pb_t *pb, const void *message) {
  const mark_t *mark = message;

  tnk__pb_varint(pb, 9, mark->name != NULL ? SLICE_BEGIN : SLICE_END);
  tnk__pb_varint(pb, 11, mark->track);
  if (mark->name != NULL)
    tnk__pb_text(pb, 23, mark->name);
}

static void put_slice(tnk__pb_t *pb, const void *message) {
  const mark_t *mark = message;

  tnk__pb_varint(pb, 8, (uint64_t)mark->ms * 1000000);
  tnk__pb_varint(pb, 10, 1);
  tnk__pb_message(pb, 11, put_event, message);
}

/* ---- All of a session ---- */

typedef struct {
  tnk__pb_t pb;
  int64_t lanes[MAX_LANES];  /* end of the last sample in each lane */
  uint64_t known[MAX_LANES]; /* tracks that have been described */
  size_t n_known;
} trace_t;

/* Find a lane that is free when the sample begins. */
static uint64_t lane_of(trace_t *trace, const local_span_t *span) {
  size_t i = 0;

  while (i + 1 < MAX_LANES && trace->lanes[i] > span->begin_ms)
    i++;
  trace->lanes[i] = span->end_ms;
  return SAMPLES + i;
}

static void describe(trace_t *trace, uint64_t track) {
  char name[48];
  mark_t mark = {.track = track, .name = name};

  for (size_t i = 0; i < trace->n_known; i++)
    if (trace->known[i] == track)
      return;
  /* Without space to remember it, it is described again. */
  if (trace->n_known < MAX_LANES)
    trace->known[trace->n_known++] = track;
  if (track >= SAMPLES)
    snprintf(name, sizeof(name), "samples %llu",
             (unsigned long long)track - SAMPLES + 1);
  else
    snprintf(name, sizeof(name), "model %llu", (unsigned long long)track - 1);
  tnk__pb_message(&trace->pb, 1, put_track, &mark);
}

/* 0 is not a valid track. */
static void write_all(trace_t *trace, const local_server_t *server,
                      const char *session) {
  const local_span_t *span;

  memset(trace->lanes, 0, sizeof(trace->lanes));
  trace->n_known = 0;
  for (size_t i = 0; (span = local_ledger_ran(server, i)) != NULL; i++) {
    mark_t mark = {.name = span->name, .ms = span->begin_ms};

    if (strcmp(span->session, session) != 0)
      continue;
    mark.track = span->track >= 0 && span->track < SAMPLES - 1
                     ? (uint64_t)span->track + 1
                     : lane_of(trace, span);
    describe(trace, mark.track);
    tnk__pb_message(&trace->pb, 1, put_slice, &mark);
    mark.name = NULL;
    mark.ms = span->end_ms;
    tnk__pb_message(&trace->pb, 1, put_slice, &mark);
  }
}

int local_trace_write(const local_server_t *server, const char *session,
                      tnk__buf_t *out) {
  trace_t trace = {.pb = {0}};
  uint8_t *to;
  size_t n;

  write_all(&trace, server, session);
  n = trace.pb.n;
  to = tnk__buf_reserve(out, n + 1);
  if (to == NULL)
    return out->err;
  trace.pb = tnk__pb_whole(to);
  write_all(&trace, server, session);
  out->len += n;
  return TNK_OK;
}

/* ---- The calls ---- */

int local_trace_session(const char *path, char session[40]) {
  static const char prefix[] = LOCAL_FILES_PATH "traces/";
  const char *at = path + sizeof(prefix) - 1;
  size_t n;

  if (strncmp(path, prefix, sizeof(prefix) - 1) != 0)
    return 0;
  n = strcspn(at, "./");
  if (n == 0 || n >= 40 || strcmp(at + n, SUFFIX) != 0)
    return 0;
  memcpy(session, at, n);
  session[n] = '\0';
  return 1;
}

void local_trace_export(local_call_t *call) {
  /* Links of the service are valid for one hour, so this one is too. */
  const int64_t expires_s = local_now_ms(call->server) / 1000 + 3600;
  char link[LOCAL_LINK];
  char path[128];
  local_out_t out;

  if (local_table_find(&call->server->sessions, call->args[0]) == NULL) {
    local_reply_error(call->req, 404, "Session not found: %s", call->args[0]);
    return;
  }
  snprintf(path, sizeof(path), LOCAL_FILES_PATH "traces/%.40s" SUFFIX,
           call->args[0]);
  if (!local_link_sign(call->server, call->req, path, expires_s, link)) {
    local_reply_error(call->req, 500, "Cannot make a link");
    return;
  }
  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "status", "ready");
  tnk__json_put_text(&out.w, "url", link);
  tnk__json_put_text(&out.w, "error", NULL);
  local_out_reply(&out, call->req, 200);
}
