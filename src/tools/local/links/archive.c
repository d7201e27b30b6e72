/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "tools/local/base/clock.h"
#include "tools/local/links/link.h"
#include "tools/local/lm/file.h"

/*
 * The archive of a checkpoint, as clients up to version 0.25 fetch it: a tar
 * file with its members at the top level. The last member marks it as complete.
 * The same checkpoint always gives the same bytes, so that it can be fetched in
 * parts.
 */

enum { BLOCK = 512 };
#define MAX_ARCHIVE ((size_t)256 << 20)
#define COMPLETE "checkpoint_complete"

/* ---- tar ---- */

/* Write a number as octal digits with a NUL, filling the field. */
static void octal(char *field, size_t n, uint64_t value) {
  field[--n] = '\0';
  while (n > 0) {
    field[--n] = (char)('0' + value % 8);
    value /= 8;
  }
}

/* The header of a regular file; the name must have fewer than 100 bytes. */
static void add_head(tnk__buf_t *out, const char *name, uint64_t size,
                     int64_t time_s) {
  char head[BLOCK] = {0};
  unsigned sum = 0;

  snprintf(head, 100, "%s", name);
  octal(head + 100, 8, 0644);
  octal(head + 108, 8, 0);
  octal(head + 116, 8, 0);
  octal(head + 124, 12, size);
  octal(head + 136, 12, (uint64_t)time_s);
  memset(head + 148, ' ', 8); /* the checksum field counts as spaces */
  head[156] = '0';
  memcpy(head + 257, "ustar\00000", 8);
  for (size_t i = 0; i < BLOCK; i++)
    sum += (unsigned char)head[i];
  octal(head + 148, 7, sum);
  tnk__buf_append(out, head, BLOCK);
}

static void fill(tnk__buf_t *out, size_t n) {
  static const char zeros[2 * BLOCK];

  tnk__buf_append(out, zeros, n);
}

/* Appends whole blocks; errors are kept in out->err. */
static void add_member(tnk__buf_t *out, const char *name, const void *data,
                       size_t n, int64_t time_s) {
  add_head(out, name, n, time_s);
  tnk__buf_append(out, data, n);
  if (n % BLOCK != 0)
    fill(out, BLOCK - n % BLOCK);
}

/* ---- Contents ---- */

static int add_file(tnk__buf_t *out, const char *dir, const char *name,
                    int64_t time_s) {
  tnk__buf_t file;
  int err;

  tnk__buf_init(&file, out->alloc, MAX_ARCHIVE);
  err = tnk__lm_file_read(dir, name, &file, NULL);
  if (err == TNK_OK)
    add_member(out, name, file.data, file.len, time_s);
  tnk__buf_deinit(&file);
  return err;
}

/* The stored config of our checkpoints has members that other programs
 * reject. */
static int add_own(const local_server_t *server, tnk__buf_t *out,
                   const char *dir, int64_t time_s) {
  tnk__lm_config_t config;
  int has_optimizer = 0;
  tnk__buf_t file;
  int err =
      tnk__lm_read_config(&config, dir, &has_optimizer, server->alloc, NULL);

  if (err != TNK_OK)
    return err;
  tnk__buf_init(&file, out->alloc, MAX_ARCHIVE);
  err = tnk__lm_peft_config(&config, local_base_name(server), &file);
  if (err == TNK_OK)
    add_member(out, TNK__LM_FILE_CONFIG, file.data, file.len, time_s);
  tnk__buf_deinit(&file);
  return err == TNK_OK ? add_file(out, dir, TNK__LM_FILE_ADAPTER, time_s) : err;
}

static int add_all(tnk__buf_t *out, const char *dir, int64_t time_s) {
  local_listing_t listing;
  int err = local_store_files(dir, &listing);

  for (size_t i = 0; err == TNK_OK && i < listing.n; i++)
    err = add_file(out, dir, listing.files[i].name, time_s);
  return err;
}

int local_archive_write(const local_server_t *server, const local_meta_t *meta,
                        tnk__buf_t *out) {
  const int64_t time_s = meta->time_ms / 1000;
  char dir[LOCAL_FILE];
  int err;

  if (!local_place_dir(server, &meta->place, dir))
    return TNK_ENOTFOUND;
  err = meta->place.kind == LOCAL_EXTERNAL_WEIGHTS
            ? add_all(out, dir, time_s)
            : add_own(server, out, dir, time_s);
  if (err != TNK_OK)
    return err;
  add_member(out, COMPLETE, "", 0, time_s);
  fill(out, 2 * BLOCK);
  return out->err;
}

/* ---- The call ---- */

static void reply_json(local_call_t *call, const char *link,
                       int64_t expires_s) {
  local_out_t out;

  local_out_begin(&out, call->server->alloc);
  tnk__json_put_text(&out.w, "url", link);
  local_put_time(&out.w, "expires", expires_s * 1000);
  local_out_reply(&out, call->req, 200);
}

static void reply_redirect(local_call_t *call, const char *link,
                           int64_t expires_s) {
  char lines[LOCAL_LINK + 80];
  char date[32];

  local_http_date(expires_s * 1000, date);
  snprintf(lines, sizeof(lines), "Location: %s\r\nExpires: %s\r\n", link, date);
  tnk__srv_req_reply(call->req, 302, "application/json", lines, NULL, 0);
}

void local_archive(local_call_t *call) {
  const int64_t expires_s = local_link_end(call->server);
  char link[LOCAL_LINK];
  local_meta_t meta;

  if (call->server->options.archive == LOCAL_ARCHIVE_NONE) {
    local_reply_error(call->req, 404, "Not Found");
    return;
  }
  if (!local_need_checkpoint(call, &meta))
    return;
  local_meta_free(call->server, &meta);
  local_place_note(call->server, "checkpoint_read", &meta.place);
  if (!local_link_write(call->server, call->req, &meta.place,
                        LOCAL_ARCHIVE_FILE, expires_s, link))
    local_reply_error(call->req, 500, "Cannot make a link");
  else if (call->server->options.archive == LOCAL_ARCHIVE_JSON)
    reply_json(call, link, expires_s);
  else
    reply_redirect(call, link, expires_s);
}
