/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_CARGO_H
#define TNK_LIB_CLIENT_TRAIN_CARGO_H

#include "lib/wire/message/fwdbwd.h"
#include "lib/wire/format/zstd.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/work.h"
#include "lib/client/call/call.h"

/*
 * The body of a request.
 *
 * EMPTY: no body. WHOLE: bytes in memory. FED: a large body that is encoded
 * from the caller's arrays while it is sent, on each attempt. PACKING: the
 * thread pool is compressing a fed body and owns it. Then it is
 * WHOLE, or FED again if compression failed.
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
  uint8_t *piece; /* buffer of the feed, with the current piece */
  tnk__work_t work;
  tnk__zstd_t zstd;   /* while packing */
  tnk__zstd_t *shelf; /* where the context comes from and returns to */
  int is_packed;
  int err; /* error of the compression */
  void (*packed)(struct tnk__cargo *self);
} tnk__cargo_t;

void tnk__cargo_init(tnk__cargo_t *cargo, const tnk_allocator_t *alloc);
/* Empty it. Must not be called during compression. */
void tnk__cargo_clear(tnk__cargo_t *cargo);
/* The buffer for a whole body. The body must be empty. */
tnk__buf_t *tnk__cargo_write(tnk__cargo_t *cargo);
/* Encode a request while it is sent. The body must be empty. The request must
 * stay unchanged until the body is cleared. Returns TNK_OK, TNK_EINVAL or
 * TNK_ETOOBIG. */
int tnk__cargo_feed(tnk__cargo_t *cargo, const tnk__fwdbwd_t *request);
/* Compress a fed body. The shelf may hold an unused context, which is taken. A
 * context is there again when `packed` is called, and the shelf must exist
 * until then. Returns TNK_OK, or a code if nothing has changed. */
int tnk__cargo_pack(tnk__cargo_t *cargo, tnk__context_t *context,
                    tnk__zstd_t *shelf, void (*packed)(tnk__cargo_t *self));
/* The number of bytes in the body's present form. */
size_t tnk__cargo_len(const tnk__cargo_t *cargo);
/* A hash of the bytes, equal for equal bytes. 0 without memory. Must not be
 * called while a call reads the body. */
uint64_t tnk__cargo_mark(tnk__cargo_t *cargo);
/* Lend the body to a call. */
void tnk__cargo_load(tnk__cargo_t *cargo, tnk__call_t *call);

#endif
