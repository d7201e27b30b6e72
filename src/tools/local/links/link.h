#ifndef TNK_TOOLS_LOCAL_LINKS_LINK_H
#define TNK_TOOLS_LOCAL_LINKS_LINK_H

#include "tools/local/store/store.h"

/*
 * Links to files, good for a while and for everybody who has one:
 *
 *   http://HOST/files/<run>/<kind>/<name>/<file>?expires=S&signature=HEX
 *
 * The signature is an HMAC-SHA256 over path and time, with a key that the
 * server draws when it opens and never shows.
 */
#define LOCAL_FILES_PATH "/files/"

enum {
  /* HOST of up to 255 letters, the path, time and signature. */
  LOCAL_LINK = 1024,
  LOCAL_SIGNATURE = 64
};

/* Draw the key. TNK_OK or a code of libuv. */
int local_links_init(local_server_t *server);
/* Write a link to a file of a checkpoint, good until `expires_s` since 1970, to
 * where `req` has reached us. 0 when it does not fit. */
int local_link_write(const local_server_t *server, const tnk__srv_req_t *req,
                     const local_place_t *place, const char *file,
                     int64_t expires_s, char out[LOCAL_LINK]);
/* The same, for any path of a file that is safe as it is. */
int local_link_sign(const local_server_t *server, const tnk__srv_req_t *req,
                    const char *path, int64_t expires_s, char out[LOCAL_LINK]);
/* When links that are made now end, in seconds since 1970. */
int64_t local_link_end(const local_server_t *server);

typedef enum {
  LOCAL_LINK_GOOD,
  LOCAL_LINK_FORGED, /* or mangled */
  LOCAL_LINK_EXPIRED /* ours, but its time is over */
} local_link_state_t;
/* Judge the path and the query of a request. */
local_link_state_t local_link_check(const local_server_t *server,
                                    const tnk__srv_req_t *req);

/* The name of the archive among the files of a checkpoint. */
#define LOCAL_ARCHIVE_FILE "archive.tar"
/* Append the archive of a checkpoint. TNK_OK, TNK_ENOTFOUND, TNK_ENOMEM,
 * TNK_EFAILED. */
int local_archive_write(const local_server_t *server, const local_meta_t *meta,
                        tnk__buf_t *out);

/* Find the session whose trace a path leads to; 0: it leads to none. */
int local_trace_session(const char *path, char session[40]);
/* Append what is known of the requests of a session. TNK_OK, TNK_ENOMEM. */
int local_trace_write(const local_server_t *server, const char *session,
                      tnk__buf_t *out);

/* ---- The calls ---- */

void local_external_urls(local_call_t *call);
void local_archive(local_call_t *call);
void local_trace_export(local_call_t *call);
/* What a link leads to, whole or in part. */
void local_download(local_call_t *call);

#endif
