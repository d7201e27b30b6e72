/* SPDX-License-Identifier: MIT */
#include "tools/local/links/link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/system.h"
#include "tools/local/fault/calls.h"

/* ---- Ranges ---- */

/* The range of a request for an object of `size` bytes. */
typedef enum {
  LOCAL_RANGE_ALL,  /* no range, or one that a server may ignore */
  LOCAL_RANGE_PART, /* [first, end) */
  LOCAL_RANGE_NONE  /* outside the object: 416 */
} range_kind_t;
typedef struct {
  range_kind_t kind;
  uint64_t first;
  uint64_t end;
} range_t;

/* Parse a digit string; large numbers saturate. Returns its end, or NULL
 * without a digit. */
static const char *number(const char *at, uint64_t *out) {
  const char *start = at;
  uint64_t n = 0;

  for (; *at >= '0' && *at <= '9'; at++)
    n = n > UINT64_MAX / 20 ? UINT64_MAX / 20 : n * 10 + (uint64_t)(*at - '0');
  *out = n;
  return at > start ? at : NULL;
}

/* "-N": the last N bytes. */
static range_t suffix(const char *at, uint64_t size) {
  range_t range = {LOCAL_RANGE_ALL, 0, size};
  uint64_t n;

  at = number(at, &n);
  if (at == NULL || *at != '\0')
    return range;
  range.kind = n > 0 && size > 0 ? LOCAL_RANGE_PART : LOCAL_RANGE_NONE;
  range.first = n < size ? size - n : 0;
  return range;
}

/* Parse the value of a Range header; NULL: no header. */
static range_t range_read(const char *text, uint64_t size) {
  static const char unit[] = "bytes=";
  const range_t all = {LOCAL_RANGE_ALL, 0, size};
  range_t range = all;
  uint64_t last;
  const char *at;

  if (text == NULL || strncmp(text, unit, sizeof(unit) - 1) != 0)
    return all;
  text += sizeof(unit) - 1;
  if (*text == '-')
    return suffix(text + 1, size);
  at = number(text, &range.first);
  if (at == NULL || *at++ != '-')
    return all;
  if (*at != '\0') {
    at = number(at, &last);
    /* Several ranges may be answered with the whole object. */
    if (at == NULL || *at != '\0' || last < range.first)
      return all;
    range.end = last < size ? last + 1 : size;
  }
  range.kind = range.first < size ? LOCAL_RANGE_PART : LOCAL_RANGE_NONE;
  return range;
}

/* ---- Downloads ---- */

/* Serves the files that links lead to, as file stores do. */

enum { MAX_LINES = 256 };
#define MAX_SOURCE ((size_t)512 << 20)

/* The data to send: an open file, or bytes. */
typedef struct {
  int fd; /* -1: bytes */
  tnk__buf_t bytes;
  uint64_t size;
  char etag[80];
} source_t;

/* Parse the path; returns 0 if it is not the path of a file. */
static int read_path(const char *path, local_place_t *place, char file[64]) {
  char text[LOCAL_PATH + 64];
  char *parts[4];
  size_t n = strlen(path + sizeof(LOCAL_FILES_PATH) - 1);
  char *at = text;

  if (n >= sizeof(text))
    return 0;
  memcpy(text, path + sizeof(LOCAL_FILES_PATH) - 1, n + 1);
  for (size_t i = 0; i < 4; i++) {
    parts[i] = at;
    at += strcspn(at, "/");
    if ((*at == '\0') != (i == 3))
      return 0;
    if (*at == '/')
      *at++ = '\0';
  }
  if (!local_place_make(place, parts[0], parts[1], parts[2]) ||
      !local_name_ok(parts[3], 0) || strlen(parts[3]) >= 64 ||
      strcmp(parts[3], LOCAL_META) == 0)
    return 0;
  memcpy(file, parts[3], strlen(parts[3]) + 1);
  return 1;
}

/* The archive is generated for each request, always with the same bytes. */
static int open_archive(const local_server_t *server,
                        const local_place_t *place, source_t *out) {
  local_meta_t meta;
  int err = local_meta_read(server, place, &meta);

  if (err != TNK_OK)
    return err;
  tnk__buf_init(&out->bytes, server->alloc, MAX_SOURCE);
  err = local_archive_write(server, &meta, &out->bytes);
  local_meta_free(server, &meta);
  out->fd = -1;
  out->size = out->bytes.len;
  snprintf(out->etag, sizeof(out->etag), "\"%llx-%llx\"",
           (unsigned long long)out->size, (unsigned long long)meta.time_ms);
  if (err != TNK_OK)
    tnk__buf_deinit(&out->bytes);
  return err;
}

/* It may have grown since, so ranges are not supported. */
static int open_trace(const local_server_t *server, const char *session,
                      source_t *out) {
  int err;

  tnk__buf_init(&out->bytes, server->alloc, MAX_SOURCE);
  err = local_trace_write(server, session, &out->bytes);
  out->fd = -1;
  out->size = out->bytes.len;
  snprintf(out->etag, sizeof(out->etag), "\"%llx-%zx\"",
           (unsigned long long)out->size, server->ledger->n_spans);
  if (err != TNK_OK)
    tnk__buf_deinit(&out->bytes);
  return err;
}

static void close_source(source_t *source) {
  if (source->fd >= 0)
    close(source->fd);
  else
    tnk__buf_deinit(&source->bytes);
}

/* Files are never rewritten, so path, size and time identify the contents. */
static int open_source(const local_server_t *server, const local_place_t *place,
                       const char *file, source_t *out) {
  char path[LOCAL_FILE + 64];
  char dir[LOCAL_FILE];
  tnk__system_time_t at;
  struct stat st;

  if (strcmp(file, LOCAL_ARCHIVE_FILE) == 0)
    return open_archive(server, place, out);
  if (place->kind != LOCAL_EXTERNAL_WEIGHTS ||
      !local_place_exists(server, place) ||
      !local_place_dir(server, place, dir))
    return TNK_ENOTFOUND;
  snprintf(path, sizeof(path), "%s/%s", dir, file);
  out->fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (out->fd < 0)
    return TNK_ENOTFOUND;
  if (fstat(out->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(out->fd);
    return TNK_ENOTFOUND;
  }
  out->size = (uint64_t)st.st_size;
  at = tnk__system_modified(&st);
  snprintf(out->etag, sizeof(out->etag), "\"%llx-%llx-%llx%08lx\"",
           (unsigned long long)st.st_ino, (unsigned long long)st.st_size,
           (unsigned long long)at.s, (unsigned long)at.ns);
  return TNK_OK;
}

/* Returns 0 if the file has become shorter or cannot be read. */
static int read_part(const source_t *source, uint8_t *to, uint64_t first,
                     uint64_t n) {
  if (source->fd < 0 && n > 0) {
    memcpy(to, source->bytes.data + first, (size_t)n);
    return 1;
  }
  while (n > 0) {
    ssize_t got = pread(source->fd, to, (size_t)n, (off_t)first);

    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return 0;
    to += got;
    first += (uint64_t)got;
    n -= (uint64_t)got;
  }
  return 1;
}

static void send_part(local_call_t *call, const source_t *source,
                      const range_t *range) {
  const uint64_t n = range->end - range->first;
  const int is_part = range->kind == LOCAL_RANGE_PART;
  char lines[MAX_LINES];
  uint8_t *body = tnk__malloc(call->server->alloc, n > 0 ? (size_t)n : 1);
  int at;

  if (body == NULL || !read_part(source, body, range->first, n)) {
    local_reply_error(call->req, body == NULL ? 503 : 500,
                      body == NULL ? "Out of memory" : "Cannot read the file");
    tnk__free(call->server->alloc, body);
    return;
  }
  at = snprintf(lines, sizeof(lines),
                "Accept-Ranges: bytes\r\nETag: %s\r\nCache-Control: no-store"
                "\r\n",
                source->etag);
  if (is_part)
    snprintf(lines + at, sizeof(lines) - (size_t)at,
             "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n",
             range->first, range->end - 1, source->size);
  tnk__srv_req_reply(call->req, is_part ? 206 : 200, "application/octet-stream",
                     lines, body, (size_t)n);
}

static void refuse_range(local_call_t *call, const source_t *source) {
  char lines[MAX_LINES];

  snprintf(lines, sizeof(lines), "Content-Range: bytes */%" PRIu64 "\r\n",
           source->size);
  tnk__srv_req_reply(call->req, 416, "application/json", lines, NULL, 0);
}

/* The same number of bytes from another position. */
static void move_range(range_t *range, uint64_t size) {
  const uint64_t n = range->end - range->first;

  if (range->first > 0)
    range->first--;
  else if (n < size)
    range->first++;
  range->end = range->first + n;
}

/* A range is valid only for the same file that the client has. */
static const char *wanted_range(const tnk__srv_req_t *req,
                                const source_t *source) {
  const char *same = tnk__srv_req_header(req, "if-range");

  if ((same != NULL && strcmp(same, source->etag) != 0) ||
      local_fault_of(req)->kind == LOCAL_FAULT_NO_RANGE)
    return NULL;
  return tnk__srv_req_header(req, "range");
}

static void send_source(local_call_t *call, const source_t *source) {
  const char *match = tnk__srv_req_header(call->req, "if-match");
  range_t range = range_read(wanted_range(call->req, source), source->size);

  if (range.kind == LOCAL_RANGE_PART &&
      local_fault_of(call->req)->kind == LOCAL_FAULT_OTHER_RANGE)
    move_range(&range, source->size);
  if (match != NULL && strcmp(match, "*") != 0 &&
      strstr(match, source->etag) == NULL)
    local_reply_error(call->req, 412, "The file has changed");
  else if (range.kind == LOCAL_RANGE_NONE)
    refuse_range(call, source);
  else
    send_part(call, source, &range);
}

/* Returns 0 if answered. */
static int check_link(local_call_t *call) {
  switch (local_link_check(call->server, call->req)) {
  case LOCAL_LINK_GOOD:
    return 1;
  case LOCAL_LINK_EXPIRED:
    local_reply_error(call->req, 403, "The link has expired");
    return 0;
  case LOCAL_LINK_FORGED:
    break;
  }
  local_reply_error(call->req, 403, "The link's signature is wrong");
  return 0;
}

void local_download(local_call_t *call) {
  tnk__srv_req_t *req = call->req;
  local_place_t place;
  source_t source;
  char session[40];
  char file[64];
  int err;

  if (strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0) {
    local_reply_error(req, 405, "Method Not Allowed");
    return;
  }
  if (!check_link(call))
    return;
  if (local_trace_session(req->path, session))
    err = open_trace(call->server, session, &source);
  else if (read_path(req->path, &place, file))
    err = open_source(call->server, &place, file, &source);
  else
    err = TNK_ENOTFOUND;
  if (err == TNK_OK) {
    send_source(call, &source);
    close_source(&source);
  } else if (err == TNK_ENOTFOUND) {
    local_reply_error(req, 404, "File not found");
  } else {
    local_reply_error(req, err == TNK_ENOMEM ? 503 : 500, "%s",
                      err == TNK_ENOMEM ? "Out of memory"
                                        : "Cannot read the checkpoint");
  }
}
