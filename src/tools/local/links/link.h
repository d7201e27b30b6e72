/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LINKS_LINK_H
#define TNK_TOOLS_LOCAL_LINKS_LINK_H

#include "tools/local/store/store.h"

/*
 * Links to files. They are valid for a limited time, for everyone who has them:
 *
 *   http://HOST/files/<run>/<kind>/<name>/<file>?expires=S&signature=HEX
 *
 * The signature is an HMAC-SHA256 over path and time. The server generates the
 * key at its start and never shows it.
 */
#define LOCAL_FILES_PATH "/files/"

enum {
  /* Sizes: HOST of up to 255 characters, the path, time and signature. */
  LOCAL_LINK = 1024,
  LOCAL_SIGNATURE = 64
};

/* Generate the key. Returns TNK_OK or libuv's error code. */
int local_links_init(local_server_t *server);
/* Write a link to a file of a checkpoint, valid until `expires_s` since 1970,
 * with the address that the client of `req` has used. Returns 0 if it does not
 * fit. */
int local_link_write(const local_server_t *server, const tnk__srv_req_t *req,
                     const local_place_t *place, const char *file,
                     int64_t expires_s, char out[LOCAL_LINK]);
/* As above, for any path that needs no escaping. */
int local_link_sign(const local_server_t *server, const tnk__srv_req_t *req,
                    const char *path, int64_t expires_s, char out[LOCAL_LINK]);
/* Expiry of links that are created now, in seconds since 1970. */
int64_t local_link_end(const local_server_t *server);

typedef enum {
  LOCAL_LINK_GOOD,   /* good: genuine and not expired */
  LOCAL_LINK_FORGED, /* or damaged */
  LOCAL_LINK_EXPIRED /* genuine, but expired */
} local_link_state_t;
/* Check the path and the query of a request. */
local_link_state_t local_link_check(const local_server_t *server,
                                    const tnk__srv_req_t *req);

/* The name of the archive among the files of a checkpoint. */
#define LOCAL_ARCHIVE_FILE "archive.tar"
/* Append the archive of a checkpoint. TNK_OK, TNK_ENOTFOUND, TNK_ENOMEM,
 * TNK_EFAILED. */
int local_archive_write(const local_server_t *server, const local_meta_t *meta,
                        tnk__buf_t *out);

/* Get the session of a trace's path. Returns 0 if it is not the path of a
 * trace. */
int local_trace_session(const char *path, char session[40]);
/* Append the trace of a session's requests. TNK_OK, TNK_ENOMEM. */
int local_trace_write(const local_server_t *server, const char *session,
                      tnk__buf_t *out);

/* ---- The calls ---- */

void local_external_urls(local_call_t *call);
void local_archive(local_call_t *call);
void local_trace_export(local_call_t *call);
/* Serve a linked file, whole or in part. */
void local_download(local_call_t *call);

#endif
