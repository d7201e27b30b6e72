#include "lib/files/tar/tar.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

static const char malformed[] = "the archive is malformed";

void tnk__tar_init(tnk__tar_t *tar, const tnk_allocator_t *alloc,
                   uint64_t max_bytes) {
  memset(tar, 0, sizeof(*tar));
  tnk__buf_init(&tar->extra, alloc, TNK__TAR_MAX_EXTRA);
  tnk__buf_init(&tar->long_name, alloc, TNK__TAR_MAX_EXTRA);
  tnk__arena_init(&tar->arena, alloc,
                  (size_t)2 * TNK__TAR_MAX_FILES * TNK__RELATIVE_MAX);
  tar->max_bytes = max_bytes;
  tar->long_size = UINT64_MAX;
}

void tnk__tar_deinit(tnk__tar_t *tar) {
  tnk__buf_deinit(&tar->extra);
  tnk__buf_deinit(&tar->long_name);
  tnk__arena_deinit(&tar->arena);
}

static int refuse(tnk__tar_t *tar, int err, const char *why) {
  tar->why = why;
  return err;
}

/* As refuse(), for an entry, with its name from the server. */
static int refuse_entry(tnk__tar_t *tar, int err, const char *why,
                        const char *name, size_t n) {
  n = n < TNK__RELATIVE_MAX ? n : TNK__RELATIVE_MAX;
  memcpy(tar->entry, name, n);
  tar->entry[n] = '\0';
  tnk__utf8_repair(tar->entry);
  return refuse(tar, err, why);
}

/* ---- Entries ---- */

/* Strip "./" from names: archives of "." have it before each name. */
static void trim(const char **name, size_t *n, int is_directory) {
  while (*n >= 2 && (*name)[0] == '.' && (*name)[1] == '/') {
    *name += 2;
    *n -= 2;
  }
  if (is_directory && *n > 0 && (*name)[*n - 1] == '/')
    (*n)--;
}

static int begin_file(tnk__tar_t *tar, const char *name, size_t n,
                      uint64_t size) {
  char *kept;

  if (tar->n_names == TNK__TAR_MAX_FILES)
    return refuse(tar, TNK_ETOOBIG, "the archive has too many files");
  if (size > tar->max_bytes - tar->total)
    return refuse(tar, TNK_ETOOBIG, "the archive has too many bytes");
  tar->total += size;
  kept = tnk__arena_strndup(&tar->arena, name, n);
  if (kept == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < tar->n_names; i++)
    if (tnk__relative_clash(tar->names[i], kept))
      return refuse_entry(tar, TNK_EPROTO, "the archive has a name twice", name,
                          n);
  tar->names[tar->n_names++] = kept;
  return TNK_OK;
}

/* Refuse an entry that is neither a file nor a directory. */
static int refuse_kind(tnk__tar_t *tar, char kind, const char *name, size_t n) {
  if (kind == '1' || kind == '2' || kind == 'K')
    return refuse_entry(tar, TNK_EPROTO, "the archive has a link", name, n);
  if (kind == '3' || kind == '4' || kind == '6')
    return refuse_entry(tar, TNK_EPROTO, "the archive has a device", name, n);
  if (kind == 'S')
    return refuse_entry(tar, TNK_EUNSUPPORTED,
                        "the archive has a sparse file, which is not read",
                        name, n);
  return refuse_entry(tar, TNK_EUNSUPPORTED,
                      "the archive has an entry of a kind that is not read",
                      name, n);
}

static int begin_entry(tnk__tar_t *tar, const tnk__tar_header_t *header) {
  const int is_long = tar->long_name.len > 0;
  const char *name = is_long ? (const char *)tar->long_name.data : header->name;
  size_t n = is_long ? tar->long_name.len : strlen(header->name);
  const int is_directory = header->kind == '5';
  const uint64_t size =
      tar->long_size != UINT64_MAX ? tar->long_size : header->size;
  int err = TNK_OK;

  tar->long_size = UINT64_MAX;
  if (header->kind != '0' && header->kind != '7' && !is_directory)
    return refuse_kind(tar, header->kind, name, n);
  trim(&name, &n, is_directory);
  /* The name of the directory itself is not checked. */
  if (!is_directory || (n > 0 && !(n == 1 && name[0] == '.'))) {
    tar->detail = tnk__relative_check(name, n);
    if (tar->detail != NULL)
      return refuse_entry(tar, TNK_EPROTO, "the archive has a name that", name,
                          n);
  }
  if (is_directory && size != 0)
    return refuse(tar, TNK_EPROTO, malformed);
  if (!is_directory)
    err = begin_file(tar, name, n, size);
  tnk__buf_clear(&tar->long_name);
  tar->left = size;
  tar->state = is_directory ? TNK__TAR_IN_HEADER : TNK__TAR_IN_FILE;
  return err;
}

/* ---- Extra headers ---- */

static int begin_extra(tnk__tar_t *tar, const tnk__tar_header_t *header) {
  if (header->size > TNK__TAR_MAX_EXTRA)
    return refuse(tar, TNK_ETOOBIG, "the archive has a name that is too long");
  tnk__buf_clear(&tar->extra);
  tar->extra_kind = header->kind;
  tar->left = header->size;
  tar->state = TNK__TAR_IN_EXTRA;
  return TNK_OK;
}

static int keep_name(tnk__tar_t *tar, const char *name, size_t n) {
  tnk__buf_clear(&tar->long_name);
  return tnk__buf_append(&tar->long_name, name, n);
}

static int end_extra(tnk__tar_t *tar) {
  const char *data = (const char *)tar->extra.data;
  size_t n = tar->extra.len;
  tnk__tar_pax_t pax;

  tar->state = TNK__TAR_IN_PADDING;
  if (n == 0)
    return TNK_OK;
  if (tar->extra_kind == 'L') {
    while (n > 0 && data[n - 1] == '\0')
      n--;
    return keep_name(tar, data, n);
  }
  if (!tnk__tar_pax_read(&pax, data, n))
    return refuse(tar, TNK_EPROTO, malformed);
  if (pax.is_sparse)
    return refuse_kind(tar, 'S', pax.path != NULL ? pax.path : "", pax.n_path);
  /* A global header applies to all entries, so it may not have a name or
   * size. */
  if (tar->extra_kind == 'g')
    return pax.path != NULL || pax.size != UINT64_MAX
               ? refuse(tar, TNK_EPROTO, malformed)
               : TNK_OK;
  if (pax.size != UINT64_MAX)
    tar->long_size = pax.size;
  return pax.path != NULL ? keep_name(tar, pax.path, pax.n_path) : TNK_OK;
}

/* ---- Bytes ---- */

static int read_block(tnk__tar_t *tar) {
  tnk__tar_header_t header;
  const char *why;
  int err;

  tar->n_block = 0;
  if (tnk__tar_is_zero(tar->block, TNK__TAR_BLOCK)) {
    if (++tar->n_zero_blocks == 2)
      tar->state = TNK__TAR_IN_TAIL;
    return TNK_OK;
  }
  if (tar->n_zero_blocks > 0)
    return refuse(tar, TNK_EPROTO, "the archive has bytes behind its end");
  why = tnk__tar_header_read(&header, tar->block);
  if (why != NULL)
    return refuse(tar, tar->n_names == 0 ? TNK_EPROTO : TNK_ECORRUPT, why);
  err = header.kind == 'L' || header.kind == 'x' || header.kind == 'g'
            ? begin_extra(tar, &header)
            : begin_entry(tar, &header);
  tar->padding =
      (TNK__TAR_BLOCK - (size_t)(tar->left % TNK__TAR_BLOCK)) % TNK__TAR_BLOCK;
  return err;
}

static size_t least(uint64_t a, size_t b) {
  return a < b ? (size_t)a : b;
}

static int read_header(tnk__tar_t *tar, const uint8_t *data, size_t n,
                       size_t *used) {
  const size_t taken = least(TNK__TAR_BLOCK - tar->n_block, n);

  memcpy(tar->block + tar->n_block, data, taken);
  tar->n_block += taken;
  *used += taken;
  return tar->n_block == TNK__TAR_BLOCK ? read_block(tar) : TNK_OK;
}

static int read_extra(tnk__tar_t *tar, const uint8_t *data, size_t n,
                      size_t *used) {
  const size_t taken = least(tar->left, n);
  int err = tnk__buf_append(&tar->extra, data, taken);

  tar->left -= taken;
  *used += taken;
  if (err == TNK_OK && tar->left == 0)
    err = end_extra(tar);
  return err;
}

static void read_file(tnk__tar_t *tar, const uint8_t *data, size_t n,
                      size_t *used, tnk__tar_event_t *event) {
  const size_t taken = least(tar->left, n);

  if (tar->left == 0) {
    event->kind = TNK__TAR_END;
    tar->state = TNK__TAR_IN_PADDING;
    return;
  }
  *event = (tnk__tar_event_t){.kind = TNK__TAR_DATA, .data = data, .n = taken};
  tar->left -= taken;
  *used += taken;
}

static int read_zeros(tnk__tar_t *tar, const uint8_t *data, size_t n,
                      size_t *used) {
  if (tar->state == TNK__TAR_IN_PADDING) {
    /* The contents of padding are ignored. */
    n = least(tar->padding, n);
    tar->padding -= n;
    if (tar->padding == 0)
      tar->state = TNK__TAR_IN_HEADER;
  } else {
    tar->tail += n;
    if (tar->tail > TNK__TAR_MAX_PADDING || !tnk__tar_is_zero(data, n))
      return refuse(tar, TNK_EPROTO, "the archive has bytes behind its end");
  }
  *used += n;
  return TNK_OK;
}

static int read_on(tnk__tar_t *tar, const uint8_t *data, size_t n, size_t *used,
                   tnk__tar_event_t *event) {
  const size_t n_names = tar->n_names;
  int err = TNK_OK;

  switch (tar->state) {
  case TNK__TAR_IN_HEADER:
    err = read_header(tar, data, n, used);
    break;
  case TNK__TAR_IN_EXTRA:
    err = read_extra(tar, data, n, used);
    break;
  case TNK__TAR_IN_FILE:
    read_file(tar, data, n, used, event);
    break;
  case TNK__TAR_IN_PADDING:
  case TNK__TAR_IN_TAIL:
    err = read_zeros(tar, data, n, used);
    break;
  }
  if (err == TNK_OK && tar->n_names > n_names)
    *event = (tnk__tar_event_t){.kind = TNK__TAR_FILE,
                                .name = tar->names[n_names],
                                .n_bytes = tar->left};
  return err;
}

/* Whether a step needs no input: the end of a file, or nothing to skip.
 */
static int goes_by_itself(const tnk__tar_t *tar) {
  return (tar->state == TNK__TAR_IN_FILE && tar->left == 0) ||
         (tar->state == TNK__TAR_IN_EXTRA && tar->left == 0) ||
         (tar->state == TNK__TAR_IN_PADDING && tar->padding == 0);
}

int tnk__tar_read(tnk__tar_t *tar, const uint8_t *data, size_t n, size_t *used,
                  tnk__tar_event_t *event) {
  *used = 0;
  *event = (tnk__tar_event_t){.kind = TNK__TAR_MORE};
  while (tar->err == TNK_OK && event->kind == TNK__TAR_MORE &&
         (*used < n || goes_by_itself(tar)))
    tar->err = read_on(tar, data + *used, n - *used, used, event);
  return tar->err;
}

int tnk__tar_finish(tnk__tar_t *tar) {
  if (tar->err == TNK_OK && tar->state != TNK__TAR_IN_TAIL)
    tar->err = refuse(tar, TNK_ECORRUPT, "the archive is cut off");
  return tar->err;
}

void tnk__tar_explain(const tnk__tar_t *tar, tnk__text_t *out) {
  if (tar->why == NULL)
    return;
  tnk__text_printf(out, "%s", tar->why);
  if (tar->detail != NULL)
    tnk__text_printf(out, " %s", tar->detail);
  if (tar->entry[0] != '\0')
    tnk__text_printf(out, ": `%s`", tar->entry);
}
