#ifndef TNK_LIB_CLIENT_TRAIN_CARGO_H
#define TNK_LIB_CLIENT_TRAIN_CARGO_H

#include "lib/wire/message/fwdbwd.h"
#include "lib/wire/format/zstd.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/work.h"
#include "lib/client/call/call.h"

/*
 * The body of a request. Empty; WHOLE, bytes in memory; FED, made out of the
 * caller's arrays while it is sent, each time it is sent, because it is large;
 * PACKING: one that was fed is being compressed on the thread pool, which has
 * it meanwhile. Then it is whole, or fed again if that failed.
 */
typedef enum {
  TNK__CARGO_EMPTY = 0,
  TNK__CARGO_WHOLE,
  TNK__CARGO_FED,
  TNK__CARGO_PACKING
} tnk__cargo_state_t;

typedef struct tnk__cargo {
  tnk__cargo_state_t state;
  const tnk_allocator_t *alloc;
  tnk__buf_t whole;
  tnk__fwdbwd_writer_t writer;
  tnk__feed_t feed;
  uint8_t *piece; /* of the feed, the one on its way */
  tnk__work_t work;
  tnk__zstd_t zstd;   /* while packing */
  tnk__zstd_t *shelf; /* where it came from and goes */
  int is_packed;
  int err; /* of packing */
  void (*packed)(struct tnk__cargo *self);
} tnk__cargo_t;

void tnk__cargo_init(tnk__cargo_t *cargo, const tnk_allocator_t *alloc);
/* Empty it; not while it is being packed. */
void tnk__cargo_clear(tnk__cargo_t *cargo);
/* The buffer to write a whole body to; from empty. */
tnk__buf_t *tnk__cargo_write(tnk__cargo_t *cargo);
/* Feed a request, from empty; it stays as it is until the cargo is cleared.
 * TNK_OK, TNK_EINVAL or TNK_ETOOBIG. */
int tnk__cargo_feed(tnk__cargo_t *cargo, const tnk__fwdbwd_t *request);
/* Compress what is fed. On the shelf a context may lie that nobody uses: it is
 * taken, and one is there when `packed` is called; the shelf must stay until
 * then. TNK_OK, or a code and then nothing has changed. */
int tnk__cargo_pack(tnk__cargo_t *cargo, tnk__context_t *context,
                    tnk__zstd_t *shelf, void (*packed)(tnk__cargo_t *self));
/* The number of bytes, of whatever form the body is in. */
size_t tnk__cargo_len(const tnk__cargo_t *cargo);
/* A number for its bytes: the same for the same ones. 0 without memory. Not
 * while a call reads it. */
uint64_t tnk__cargo_mark(tnk__cargo_t *cargo);
/* Give it to a call, which borrows it. */
void tnk__cargo_load(tnk__cargo_t *cargo, tnk__call_t *call);

#endif
