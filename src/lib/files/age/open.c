#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/age/age.h"
#include "lib/files/age/chunks.h"
#include "tnk/error.h"

static const char cut[] = "the file is cut off";

void tnk__age_open_init(tnk__age_open_t *open, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user) {
  memset(open, 0, sizeof(*open));
  open->alloc = alloc;
  tnk__age_head_init(&open->head, alloc, random, user);
}

int tnk__age_open_add(tnk__age_open_t *open,
                      const uint8_t identity[TNK__AGE_KEY]) {
  tnk__age_head_t *head = &open->head;

  if (head->n_identities == TNK__AGE_MAX_IDENTITIES)
    return TNK_EINVAL;
  memcpy(head->identities[head->n_identities++], identity, TNK__AGE_KEY);
  return TNK_OK;
}

void tnk__age_open_deinit(tnk__age_open_t *open) {
  tnk__age_head_deinit(&open->head);
  tnk__age_chunks_deinit(&open->chunks, open->alloc);
}

static int refuse(tnk__age_open_t *open, int err, const char *why) {
  open->why = why;
  return err;
}

/* Decrypt the chunk directly into `out`. The bytes are appended only if they
 * are authentic. */
static int decrypt(tnk__age_open_t *open, tnk__buf_t *out, int is_last) {
  tnk__age_chunks_t *chunks = &open->chunks;
  const size_t n = chunks->n - TNK__AGE_TAG;
  uint8_t *room = tnk__buf_reserve(out, n > 0 ? n : 1);
  int err;

  if (room == NULL)
    return out->err;
  chunks->nonce[TNK__AGE_NONCE - 1] = (uint8_t)is_last;
  err = tnk__age_decrypt(room, chunks->key, chunks->nonce, chunks->data, n);
  chunks->nonce[TNK__AGE_NONCE - 1] = 0;
  if (err == TNK_OK)
    out->len += n;
  return err;
}

/* Decrypt a full chunk that is not the last one. */
static int take_chunk(tnk__age_open_t *open, tnk__buf_t *out) {
  int err = decrypt(open, out, 0);

  if (err == TNK_OK) {
    tnk__age_chunks_next(&open->chunks);
  } else if (err == TNK_ECORRUPT) {
    err = decrypt(open, out, 1);
    if (err == TNK_OK)
      return refuse(open, TNK_ECORRUPT, "the file has bytes behind its end");
    if (err == TNK_ECORRUPT)
      return refuse(open, err, "the file was changed");
  }
  return err;
}

static int read_salt(tnk__age_open_t *open, const uint8_t *data, size_t n,
                     size_t *used) {
  while (*used < n && open->n_salt < TNK__AGE_FILE_NONCE)
    open->salt[open->n_salt++] = data[(*used)++];
  if (open->n_salt < TNK__AGE_FILE_NONCE)
    return TNK_OK;
  return tnk__age_chunks_init(&open->chunks, open->alloc, open->head.key,
                              open->salt);
}

static int read_on(tnk__age_open_t *open, tnk__buf_t *out, const uint8_t *data,
                   size_t n) {
  tnk__age_chunks_t *chunks = &open->chunks;
  const size_t max = TNK__AGE_CHUNK + TNK__AGE_TAG;
  size_t used = 0;
  int err = TNK_OK;

  if (open->head.state != TNK__AGE_DONE) {
    err = tnk__age_head_feed(&open->head, data, n, &used);
    open->why = open->head.why;
  }
  if (err == TNK_OK && used < n && chunks->data == NULL)
    err = read_salt(open, data, n, &used);
  while (err == TNK_OK && used < n) {
    if (chunks->n == max)
      err = take_chunk(open, out);
    if (err == TNK_OK)
      used += tnk__age_chunks_fill(chunks, data + used, n - used, max);
  }
  return err;
}

int tnk__age_open_feed(tnk__age_open_t *open, tnk__buf_t *out, const void *data,
                       size_t n) {
  if (open->err == TNK_OK)
    open->err = out->err;
  if (open->err == TNK_OK)
    open->err = read_on(open, out, data, n);
  return open->err;
}

static int take_last(tnk__age_open_t *open, tnk__buf_t *out) {
  tnk__age_chunks_t *chunks = &open->chunks;
  int err;

  if (open->head.state != TNK__AGE_DONE && open->head.text.len == 0)
    return refuse(open, TNK_EPROTO, "the file is empty");
  if (chunks->data == NULL || chunks->n < TNK__AGE_TAG)
    return refuse(open, TNK_ECORRUPT, cut);
  if (chunks->n == TNK__AGE_TAG && !tnk__age_chunks_is_first(chunks))
    return refuse(open, TNK_ECORRUPT, "the file ends with an empty chunk");
  err = decrypt(open, out, 1);
  if (err != TNK_ECORRUPT)
    return err;
  /* If the chunk is valid as a middle chunk, the file was truncated after
   * it. */
  if (chunks->n == TNK__AGE_CHUNK + TNK__AGE_TAG &&
      decrypt(open, out, 0) == TNK_OK)
    return refuse(open, TNK_ECORRUPT, cut);
  return refuse(open, TNK_ECORRUPT,
                "the end of the file was changed or is cut off");
}

int tnk__age_open_finish(tnk__age_open_t *open, tnk__buf_t *out) {
  if (open->err == TNK_OK)
    open->err = out->err;
  if (open->err == TNK_OK)
    open->err = take_last(open, out);
  return open->err;
}
