#include "chat/render/ids.h"

#include <string.h>

#include "tnk/error.h"

static int take_ids(const int32_t *ids, size_t n, void *user) {
  return tnk__buf_append(user, ids, n * sizeof(*ids));
}

static int take_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

/* A code of the plug-in, or of the buffer, with its sentence if it has one. */
static int failed(tnk__why_t *why, int err, const tnk__coder_t *coder,
                  const char *said) {
  const char *name = coder->calls.name != NULL ? coder->calls.name : "plug-in";

  if (err == TNK_ENOMEM)
    return tnk__why(why, err, 0, "out of memory");
  return tnk__why(why, err, 0, "%s: %s", name,
                  said[0] != '\0' ? said : "it failed");
}

int tnk__ids_encode(const tnk__coder_t *coder, const char *text, size_t n,
                    tnk__buf_t *ids, tnk__why_t *why) {
  char said[256] = "";
  int err = TNK_OK;

  if (n > 0)
    err = coder->calls.encode(coder->tokenizer, text, n, 0, take_ids, ids, said,
                              sizeof(said));
  if (err == TNK_OK && ids->err != TNK_OK)
    err = ids->err;
  return err == TNK_OK ? TNK_OK : failed(why, err, coder, said);
}

int tnk__ids_decode(const tnk__coder_t *coder, const int32_t *ids, size_t n,
                    tnk__buf_t *bytes, tnk__why_t *why) {
  char said[256] = "";
  int err = TNK_OK;

  if (n > 0)
    err = coder->calls.decode(coder->tokenizer, ids, n, 0, take_bytes, bytes,
                              said, sizeof(said));
  if (err == TNK_OK && bytes->err != TNK_OK)
    err = bytes->err;
  return err == TNK_OK ? TNK_OK : failed(why, err, coder, said);
}

/* Where the id ends that begins at *at. 0: its bytes are others. */
static int find_end(const tnk__coder_t *coder, int32_t id, const char *text,
                    size_t n, size_t *at, tnk__buf_t *bytes, int *err,
                    tnk__why_t *why) {
  tnk__buf_clear(bytes);
  *err = tnk__ids_decode(coder, &id, 1, bytes, why);
  if (*err != TNK_OK || bytes->len > n - *at ||
      (bytes->len > 0 && memcmp(bytes->data, text + *at, bytes->len) != 0))
    return 0;
  *at += bytes->len;
  return 1;
}

int tnk__ids_ends(const tnk__coder_t *coder, const tnk__buf_t *ids,
                  const char *text, size_t n, tnk__buf_t *ends,
                  tnk__why_t *why) {
  const size_t before = ends->len;
  tnk__buf_t bytes;
  size_t at = 0;
  int err = TNK_OK, is_same = 1;

  tnk__buf_init(&bytes, ends->alloc, SIZE_MAX / 2);
  for (size_t i = 0; is_same && i < tnk__n_ids(ids); i++) {
    is_same =
        find_end(coder, tnk__ids(ids)[i], text, n, &at, &bytes, &err, why);
    if (is_same)
      (void)tnk__buf_append(ends, &at, sizeof(at));
  }
  tnk__buf_deinit(&bytes);
  if (!is_same || at < n)
    ends->len = before;
  if (err == TNK_OK && ends->err != TNK_OK)
    err = tnk__why(why, ends->err, 0, "out of memory");
  return err;
}
