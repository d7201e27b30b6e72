/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_STATE_H
#define TNK_GATEWAY_STORE_STATE_H

#include "gateway/store/entry.h"
#include "gateway/store/resp.h"
#include "gateway/store/script.h"
#include "gateway/store/shared.h"
#include "gateway/store/writer.h"
#include "lib/io/net/net.h"

/* Internals of the lines in a shared store. Only the files of this folder
 * include this. */

enum {
  TNK__GW_BACKOFF_MS = 100,   /* before the first new connection */
  TNK__GW_MAX_COUNT = 128,    /* entries of a reply */
  TNK__GW_MAX_KEPT = 16 << 20 /* bytes of own lines, for an older copy */
};

/* Commands, by what their reply is for. */
typedef enum {
  TNK__GW_OF_AUTH = 1,
  TNK__GW_OF_SET,
  TNK__GW_OF_LAYOUT,
  TNK__GW_OF_VOCABULARY,
  TNK__GW_OF_CLAIM,
  TNK__GW_OF_BORN,
  TNK__GW_OF_WRITERS,
  TNK__GW_OF_FORGOTTEN,
  TNK__GW_OF_STREAM,
  TNK__GW_OF_SCRIPT,
  TNK__GW_OF_READ,
  TNK__GW_OF_ADD,
  TNK__GW_OF_KEEP
} tnk__gw_kind_t;

struct tnk__gw_shared {
  tnk__gw_shared_options_t options;
  tnk_allocator_t alloc;
  tnk_logger_t logger;
  tnk__gw_where_t where;
  char base[TNK__GW_SCRIPT_BASE]; /* of the names of keys */
  /* layout, vocabulary, writers, lines, forgotten, born */
  char keys[6][TNK__GW_SCRIPT_BASE + 16];
  char sha[TNK__GW_SCRIPT_SHA]; /* of the script for the queue */
  int has_script;               /* on this connection it has that script */
  int asks_script;
  uv_loop_t *loop;
  tnk__context_t context; /* of the streams */
  tnk__net_t *net;
  uv_timer_t timer;
  size_t n_open;        /* the timer, the context and connections */
  tnk__gw_resp_t *resp; /* NULL: none */
  uint64_t now_ms;
  uint64_t next_ms;    /* when to connect */
  uint64_t heard_ms;   /* when bytes came or went, or a reply became due */
  uint64_t replied_ms; /* the same, but of whole replies only */
  uint64_t n_moved;    /* bytes of this connection up to `heard_ms` */
  uint64_t polled_ms;
  tnk__gw_keeper_t keeper;
  uint64_t forgotten_ms; /* up to then, removed sessions are not in memory */
  uint64_t backoff_ms;
  int is_current; /* this connection has read all that was there */
  int is_reading;
  int wants_read;              /* once more */
  uint64_t n_begun;            /* count of reads up to the end of the stream */
  uint64_t n_read;             /* the last one that is complete */
  uint64_t count;              /* entries to ask for */
  char last[TNK__GW_ENTRY_ID]; /* id of the last entry that was read */
  tnk__gw_writers_t writers;
  uint64_t writer;
  char token[TNK__GW_TOKEN]; /* of this process */
  char born[TNK__GW_TOKEN];  /* of the record; "": unknown */
  uint64_t n_writers;        /* there were at least so many; of a reader */
  tnk__gw_queue_t queue;
  uint64_t n_stored; /* own lines that the store has, without a gap */
  int is_older;      /* on this connection it has lacked lines */
  uint64_t n_older;  /* connections of which that is so */
  int is_refused;    /* the store has failed at a line, and is not well yet */
  size_t window;     /* then: lines that may be sent without a reply */
  int has_taken;     /* a line since then */
  uint64_t taken_ms; /* when it took that line */
  uint64_t hold_ms;  /* for how long it has to be well from then on */
  int has_recovered; /* at least once */
  uint64_t recovered_ms;
  tnk__list_t waiters;
  tnk__list_t syncers;
  tnk__list_t writing; /* like these, and the store must take lines */
  int err;             /* once set, nothing works any more */
  int code;            /* of `why` */
  int is_busy;         /* the server is loading its own file */
  char why[512];       /* "": nothing is wrong */
  int is_loaded;       /* the log may say what is wrong */
  int is_closing;
  uint64_t close_ms;
  void (*closed)(void *user);
  void *closed_user;
};

/* ---- connection.c ---- */

/* Call those whose wait has ended. `all_err` as in wait.h. */
void tnk__gw_shared_wake_list(tnk__gw_shared_t *shared, tnk__list_t *list,
                              uint64_t upto, int all_err);
void tnk__gw_shared_wake(tnk__gw_shared_t *shared, int err);
/* Close the connection, if there is one. */
void tnk__gw_shared_cut(tnk__gw_shared_t *shared);
/* The store can be used again, if it has been well for long enough. */
void tnk__gw_shared_recover(tnk__gw_shared_t *shared);
/* The store has own lines up to this one. */
void tnk__gw_shared_confirm(tnk__gw_shared_t *shared, uint64_t n);
/* Close the connection, and try again later. `why` has no secrets. */
void tnk__gw_shared_lose(tnk__gw_shared_t *shared, int code, const char *why);
/* The lines cannot be used any more. */
void tnk__gw_shared_give_up(tnk__gw_shared_t *shared, int err, const char *why);
/* Give up or lose the connection, with a sentence. They return -1. */
int tnk__gw_shared_has_lost(tnk__gw_shared_t *shared);
int tnk__gw_shared_unexpected(tnk__gw_shared_t *shared);
/* Send a formatted command, and free it. `len`: negative without memory.
 * Returns 0, or -1 if the connection is lost. */
int tnk__gw_shared_send_text(tnk__gw_shared_t *shared, tnk__gw_kind_t kind,
                             char *text, long long len);
/* Send a command of words; `args` ends with NULL. The same results. */
int tnk__gw_shared_command(tnk__gw_shared_t *shared, tnk__gw_kind_t kind,
                           const char *const *args);
#define TNK__GW_COMMAND(shared, kind, ...)                                     \
  tnk__gw_shared_command(shared, kind, (const char *const[]){__VA_ARGS__, NULL})

/* Read the next entries, or all entries up to the end of the stream. */
void tnk__gw_shared_read(tnk__gw_shared_t *shared);
void tnk__gw_shared_read_all(tnk__gw_shared_t *shared);
/* Let the server remove sessions, if that is due. */
void tnk__gw_shared_keep(tnk__gw_shared_t *shared);
int tnk__gw_shared_load_script(tnk__gw_shared_t *shared);
/* Send the lines in the queue. */
void tnk__gw_shared_send_queue(tnk__gw_shared_t *shared);

/* ---- length.c ---- */

/* The server has closed the connection. Returns whether it has done so too
 * often at a long line. */
int tnk__gw_shared_was_closed_at(const tnk__gw_shared_t *shared, int code);
/* Close the connection, and replace the first line of the queue by a short one.
 * `why` has no secrets. */
void tnk__gw_shared_refuse_first(tnk__gw_shared_t *shared, const char *why);

/* ---- greeting.c ---- */

/* Send the first commands of a connection. `user` is the object. */
void tnk__gw_shared_greet(void *user);
/* Take a reply to one of them. Returns 0, or -1 if the connection is lost. */
int tnk__gw_shared_take_greeting(tnk__gw_shared_t *shared, tnk__gw_kind_t kind,
                                 const redisReply *reply);

#endif
