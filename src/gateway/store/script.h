/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_SCRIPT_H
#define TNK_GATEWAY_STORE_SCRIPT_H

#include <hiredis/hiredis.h>
#include <stddef.h>

#include "gateway/store/about.h"

/*
 * Commands to the server of a shared record that run a script there. The server
 * runs a script as a whole or not at all, so a removed session never has lines,
 * whoever is killed when. See shared.h for the keys.
 *
 * The functions put a command into *out, which redisFreeCommand() frees. They
 * return its length, or a negative number if there is no memory.
 */

enum {
  /* bytes of the common part of all names of keys */
  TNK__GW_SCRIPT_BASE = 160,
  TNK__GW_SCRIPT_SHA = 40,
  TNK__GW_TOKEN = 33 /* bytes of a token, with its NUL */
};

/* Keep the script that appends lines, or the one that marks sessions. The reply
 * is its digest. */
long long tnk__gw_script_load(char **out, int is_mark);

typedef struct {
  const char *base;
  const char *writer; /* "0": none yet */
  const char *token;  /* random, of this process */
  const char *born;   /* token of the first process of the record, or "" */
} tnk__gw_script_claim_t;

/* Get a number as a writer, or check that it is still one's own. The reply has
 * the number, the count of its lines in the store, and `born`. The number is 0
 * if another process has it, or if the record is another one of the name. */
long long tnk__gw_script_claim(char **out, const tnk__gw_script_claim_t *what);

typedef struct {
  const char *base;
  const tnk__gw_about_t *about; /* NULL: of no session */
  const char *writer;
  const char *token;
  const char *n;
  const void *line;
  size_t n_line;
} tnk__gw_script_line_t;

/* Append the n-th line of a writer. The reply is 1 if the store has it, 0 if a
 * line before it is missing, -1 if the number is not that of the process, or
 * nil if its session was removed. The command has no digest yet. */
long long tnk__gw_script_line(char **out, const tnk__gw_script_line_t *what);
/* Set the digest of the command of a line or a mark. */
void tnk__gw_script_sign(char *command, const char sha[TNK__GW_SCRIPT_SHA]);
/* Say whether the line may be appended although the one before it is missing,
 * because it is lost. 0 at first. */
void tnk__gw_script_set_first(char *command, size_t n, int is_first);

/* When sessions are removed: each second, and at once if there are more of
 * them. While the server refuses it, the pauses grow to a minute. */
typedef struct {
  uint64_t last_ms;
  uint64_t wait_ms;
  uint64_t rank; /* where to continue, if there are more */
  int has_more;
  int is_running;
  char why[128]; /* why none can be removed; or "" */
} tnk__gw_keeper_t;

void tnk__gw_keeper_init(tnk__gw_keeper_t *keeper);
/* The connection was lost. */
void tnk__gw_keeper_stop(tnk__gw_keeper_t *keeper);
int tnk__gw_keeper_is_due(const tnk__gw_keeper_t *keeper,
                          const tnk__gw_keep_t *keep, uint64_t now_ms);
/* Begin: remove some of the sessions that may be removed. */
long long tnk__gw_keeper_begin(tnk__gw_keeper_t *keeper, char **out,
                               const char *base, const tnk__gw_keep_t *keep,
                               uint64_t now_ms);
/* Take the reply. Returns 1 if `why` has changed, 0 if not, or -1 for a reply
 * of another kind. */
int tnk__gw_keeper_take(tnk__gw_keeper_t *keeper, const redisReply *reply);

typedef struct {
  const char *base;
  const char *session;
  const void *line; /* NULL: none */
  size_t n_line;
  /* Id of the last turn or reward that was exported. All of the session is
   * exported unless there is a later one by now. "": not all is. */
  const char *changed;
  const char *token; /* of this process */
  const char *n;     /* the n-th mark of the process is made once */
} tnk__gw_script_mark_t;

/* Append a line that says what was exported. The reply is 1, or nil if the
 * session was removed. The command has no digest yet. */
long long tnk__gw_script_mark(char **out, const tnk__gw_script_mark_t *what);

#endif
