/* SPDX-License-Identifier: MIT */
/* zstd's allocator hooks are in the experimental part of its interface. */
#define ZSTD_STATIC_LINKING_ONLY

#include "lib/wire/format/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum {
  WINDOW_LOG = 23,        /* 8 MiB, the limit for senders in RFC 9659 */
  STEP_SIZE = 128 * 1024, /* bytes reserved at a time */
  MAGIC_SIZE = 4,
  HEAD_SIZE = 18, /* longest header of a frame, with the magic number */
  LEVEL = 3
};

static void *hook_alloc(void *user, size_t size) {
  return tnk__malloc(user, size);
}

static void hook_free(void *user, void *ptr) {
  tnk__free(user, ptr);
}

/* zstd returns `opaque` unchanged and does not write through it. */
static ZSTD_customMem hooks(const tnk_allocator_t *alloc) {
  union {
    const tnk_allocator_t *in;
    void *out;
  } opaque = {.in = alloc};

  return (ZSTD_customMem){hook_alloc, hook_free, opaque.out};
}

static int translate(size_t ret) {
  switch (ZSTD_getErrorCode(ret)) {
  case ZSTD_error_memory_allocation:
    return TNK_ENOMEM;
  case ZSTD_error_frameParameter_windowTooLarge:
    return TNK_ETOOBIG;
  default:
    return TNK_EPROTO;
  }
}

void tnk__unzstd_init(tnk__unzstd_t *unzstd, const tnk_allocator_t *alloc) {
  *unzstd = (tnk__unzstd_t){.alloc = alloc};
}

void tnk__unzstd_deinit(tnk__unzstd_t *unzstd) {
  ZSTD_freeDCtx(unzstd->ctx);
  unzstd->ctx = NULL;
}

static int make_ctx(tnk__unzstd_t *unzstd) {
  if (unzstd->ctx != NULL)
    return TNK_OK;
  unzstd->ctx = ZSTD_createDCtx_advanced(hooks(unzstd->alloc));
  if (unzstd->ctx == NULL)
    return TNK_ENOMEM;
  return ZSTD_isError(ZSTD_DCtx_setParameter(unzstd->ctx, ZSTD_d_windowLogMax,
                                             WINDOW_LOG))
             ? TNK_EINTERNAL
             : TNK_OK;
}

/* Set the destination of the next output. At the limit, a spare byte elsewhere
 * shows whether more output would follow. */
static int make_room(ZSTD_outBuffer *room, tnk__buf_t *out, uint8_t *spare) {
  size_t left = out->max - out->len;
  size_t size = left < STEP_SIZE ? left : STEP_SIZE;

  *room = (ZSTD_outBuffer){spare, 1, 0};
  if (size == 0)
    return TNK_OK;
  room->dst = tnk__buf_reserve(out, size);
  room->size = size;
  return room->dst != NULL ? TNK_OK : out->err;
}

/* Returns whether the next byte of a frame's magic number is right. zstd itself
 * would accept the formats of its first versions. It also checks other bytes if
 * the number arrives in pieces. */
static int is_magic(tnk__unzstd_t *unzstd, uint8_t byte) {
  static const uint8_t frame[MAGIC_SIZE] = {0x28, 0xb5, 0x2f, 0xfd};
  static const uint8_t skippable[MAGIC_SIZE] = {0x50, 0x2a, 0x4d, 0x18};

  if (unzstd->n_head == 0) {
    unzstd->is_skippable = (byte & 0xf0) == 0x50; /* any of sixteen numbers */
    if (unzstd->is_skippable)
      byte &= 0xf0;
  }
  return byte == (unzstd->is_skippable ? skippable : frame)[unzstd->n_head];
}

/* The head of a frame is passed byte by byte. If zstd sees a whole frame at
 * once, it uses another code path with other checks. The result must not depend
 * on how the input is split. */
static size_t decompress(tnk__unzstd_t *unzstd, ZSTD_outBuffer *room,
                         ZSTD_inBuffer *in, int is_first) {
  ZSTD_inBuffer part = *in;
  size_t ret;

  if (is_first)
    part.size = part.pos + 1;
  ret = ZSTD_decompressStream(unzstd->ctx, room, &part);
  in->pos = part.pos;
  return ret;
}

/* With `stops`, a full buffer ends the call without a failure. */
static int unpack(tnk__unzstd_t *unzstd, tnk__buf_t *out, ZSTD_inBuffer *in,
                  int stops) {
  ZSTD_outBuffer room;
  uint8_t spare;
  int err;

  do {
    if (stops && out->len == out->max)
      return TNK_OK;
    const int is_first = unzstd->n_head < HEAD_SIZE && in->pos < in->size;
    size_t ret;
    if (is_first && unzstd->n_head < MAGIC_SIZE &&
        !is_magic(unzstd, ((const uint8_t *)in->src)[in->pos]))
      return TNK_EPROTO;
    unzstd->n_head += (size_t)is_first;
    err = make_room(&room, out, &spare);
    if (err != TNK_OK)
      return err;
    ret = decompress(unzstd, &room, in, is_first);
    if (ZSTD_isError(ret))
      return translate(ret);
    if (room.dst == &spare && room.pos > 0)
      return TNK_ETOOBIG;
    out->len += room.pos;
    unzstd->inside = ret != 0;
    /* 0 means the end of a frame with all output written. */
    unzstd->seen |= ret == 0;
    if (ret == 0)
      unzstd->n_head = 0;
    /* If the buffer is full, more output may be waiting inside zstd. */
  } while (in->pos < in->size || (unzstd->inside && room.pos == room.size));
  return TNK_OK;
}

static int feed(tnk__unzstd_t *unzstd, tnk__buf_t *out, ZSTD_inBuffer *in,
                int stops) {
  if (unzstd->err != TNK_OK)
    return unzstd->err;
  if (out->err != TNK_OK)
    return out->err;
  unzstd->err = make_ctx(unzstd);
  if (unzstd->err == TNK_OK)
    unzstd->err = unpack(unzstd, out, in, stops);
  return unzstd->err;
}

int tnk__unzstd_feed(tnk__unzstd_t *unzstd, tnk__buf_t *out, const void *data,
                     size_t n) {
  ZSTD_inBuffer in = {data, n, 0};

  return n > 0 ? feed(unzstd, out, &in, 0) : unzstd->err;
}

int tnk__unzstd_some(tnk__unzstd_t *unzstd, tnk__buf_t *out, const void *data,
                     size_t n, size_t *used) {
  ZSTD_inBuffer in = {data, n, 0};
  int err = unzstd->err;

  if (n > 0 || unzstd->inside)
    err = feed(unzstd, out, &in, 1);
  *used = in.pos;
  return err;
}

int tnk__unzstd_finish(const tnk__unzstd_t *unzstd) {
  if (unzstd->err != TNK_OK)
    return unzstd->err;
  return unzstd->seen && !unzstd->inside ? TNK_OK : TNK_EPROTO;
}

void tnk__zstd_deinit(tnk__zstd_t *zstd) {
  ZSTD_freeCCtx(zstd->ctx);
  zstd->ctx = NULL;
}

int tnk__zstd_begin(tnk__zstd_t *zstd, const tnk_allocator_t *alloc, size_t n) {
  if (zstd->ctx == NULL)
    zstd->ctx = ZSTD_createCCtx_advanced(hooks(alloc));
  if (zstd->ctx == NULL)
    return TNK_ENOMEM;
  return ZSTD_isError(
             ZSTD_CCtx_reset(zstd->ctx, ZSTD_reset_session_and_parameters)) ||
                 ZSTD_isError(ZSTD_CCtx_setParameter(
                     zstd->ctx, ZSTD_c_compressionLevel, LEVEL)) ||
                 ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(zstd->ctx, n))
             ? TNK_EINTERNAL
             : TNK_OK;
}

/* Compression can only fail for lack of memory. */
static int compress(tnk__zstd_t *zstd, tnk__buf_t *out, ZSTD_inBuffer *in,
                    ZSTD_EndDirective directive) {
  size_t left;

  do {
    size_t size = out->max - out->len;
    ZSTD_outBuffer room = {.size = size < STEP_SIZE ? size : STEP_SIZE};

    /* At the limit, reserve one byte, so that the buffer itself reports
     * TNK_ETOOBIG. */
    room.dst = tnk__buf_reserve(out, size > 0 ? room.size : 1);
    if (room.dst == NULL)
      return out->err;
    left = ZSTD_compressStream2(zstd->ctx, &room, in, directive);
    if (ZSTD_isError(left))
      return translate(left) == TNK_ENOMEM ? TNK_ENOMEM : TNK_EINTERNAL;
    out->len += room.pos;
  } while (in->pos < in->size || (directive == ZSTD_e_end && left > 0));
  return TNK_OK;
}

int tnk__zstd_feed(tnk__zstd_t *zstd, tnk__buf_t *out, const void *data,
                   size_t n, int is_last) {
  ZSTD_inBuffer in = {data, n, 0};

  if (out->err == TNK_OK)
    out->err = compress(zstd, out, &in, is_last ? ZSTD_e_end : ZSTD_e_continue);
  return out->err;
}
