/* SPDX-License-Identifier: MIT */
#include "lib/files/tar/archive.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "tnk/error.h"

/* ---- gzip ---- */

/* The largest window, and a gzip header is required. */
enum { WINDOW_BITS = 15 + 16 };

static voidpf hook_alloc(voidpf user, uInt n, uInt size) {
  return tnk__alloc_array(user, n, size);
}

static void hook_free(voidpf user, voidpf ptr) {
  tnk__free(user, ptr);
}

static void gunzip_init(tnk__gunzip_t *gunzip, const tnk_allocator_t *alloc) {
  *gunzip = (tnk__gunzip_t){.alloc = alloc};
}

static void gunzip_deinit(tnk__gunzip_t *gunzip) {
  if (gunzip->stream != NULL)
    inflateEnd(gunzip->stream);
  tnk__free(gunzip->alloc, gunzip->stream);
  gunzip->stream = NULL;
}

static int make_stream(tnk__gunzip_t *gunzip) {
  /* zlib passes `opaque` through unchanged; it is never written through. */
  union {
    const tnk_allocator_t *in;
    void *out;
  } opaque = {.in = gunzip->alloc};
  z_stream *stream;
  int ret;

  if (gunzip->stream != NULL)
    return TNK_OK;
  stream = tnk__calloc(gunzip->alloc, 1, sizeof(*stream));
  if (stream == NULL)
    return TNK_ENOMEM;
  stream->zalloc = hook_alloc;
  stream->zfree = hook_free;
  stream->opaque = opaque.out;
  ret = inflateInit2(stream, WINDOW_BITS);
  if (ret != Z_OK) {
    tnk__free(gunzip->alloc, stream);
    return ret == Z_MEM_ERROR ? TNK_ENOMEM : TNK_EINTERNAL;
  }
  gunzip->stream = stream;
  return TNK_OK;
}

/* Call zlib once: it stops at the end of the piece, of the space, or of a
 * member. */
static int step(tnk__gunzip_t *gunzip, tnk__buf_t *out, const uint8_t *data,
                size_t n, size_t *used) {
  union {
    const uint8_t *in;
    uint8_t *out;
  } input = {.in = data};
  z_stream *stream = gunzip->stream;
  size_t room = out->max - out->len;
  int ret;

  room = room < UINT_MAX ? room : UINT_MAX;
  n = n < UINT_MAX ? n : UINT_MAX;
  stream->next_out = tnk__buf_reserve(out, room);
  if (stream->next_out == NULL)
    return out->err;
  stream->avail_out = (uInt)room;
  stream->next_in = input.out;
  stream->avail_in = (uInt)n;
  ret = inflate(stream, Z_NO_FLUSH);
  *used += n - stream->avail_in;
  out->len += room - stream->avail_out;
  if (ret == Z_STREAM_END) {
    gunzip->inside = 0;
    gunzip->seen = 1;
    return inflateReset(stream) == Z_OK ? TNK_OK : TNK_EINTERNAL;
  }
  gunzip->inside = 1;
  /* No progress means that the input was empty or no output was pending. */
  if (ret == Z_OK || ret == Z_BUF_ERROR)
    return TNK_OK;
  return ret == Z_MEM_ERROR ? TNK_ENOMEM : TNK_EPROTO;
}

/* Unpack a piece to `out` until `out` reaches its limit. *used receives the
 * number of bytes read. If `out` became full, call it again, even with an empty
 * piece. Returns TNK_OK, TNK_EPROTO or TNK_ENOMEM; the first error is kept. */
static int gunzip_some(tnk__gunzip_t *gunzip, tnk__buf_t *out, const void *data,
                       size_t n, size_t *used) {
  size_t before;

  *used = 0;
  if (gunzip->err == TNK_OK)
    gunzip->err = out->err;
  if (gunzip->err == TNK_OK)
    gunzip->err = make_stream(gunzip);
  if (gunzip->err != TNK_OK || (n == 0 && !gunzip->inside))
    return gunzip->err;
  do {
    if (out->len == out->max)
      return TNK_OK;
    before = *used;
    gunzip->err =
        step(gunzip, out, (const uint8_t *)data + *used, n - *used, used);
  } while (gunzip->err == TNK_OK && *used<n && * used> before);
  return gunzip->err;
}

/* End of the input. Returns TNK_EPROTO unless it consisted of one or more whole
 * members. */
static int gunzip_finish(const tnk__gunzip_t *gunzip) {
  if (gunzip->err != TNK_OK)
    return gunzip->err;
  return gunzip->seen && !gunzip->inside ? TNK_OK : TNK_EPROTO;
}

/* ---- Headers ---- */

/* A parsed header block. */
typedef struct {
  char name[257]; /* as stored; "" if it is too long for a block */
  uint64_t size;
  char kind;
} tar_header_t;

/* The relevant records of a pax header. */
typedef struct {
  const char *path; /* NULL: absent; not NUL-terminated */
  size_t n_path;
  uint64_t size; /* UINT64_MAX: absent */
  int is_sparse;
} tar_pax_t;

/* Offsets of the fields in a block. */
enum {
  NAME = 0,
  NAME_SIZE = 100,
  SIZE = 124,
  SIZE_SIZE = 12,
  SUM = 148,
  SUM_SIZE = 8,
  KIND = 156,
  MAGIC = 257,
  PREFIX = 345,
  PREFIX_SIZE = 155
};

/* Returns whether a block is all zeros. */
static int tar_is_zero(const uint8_t *data, size_t n) {
  unsigned all = 0;

  for (size_t i = 0; i < n; i++)
    all |= data[i];
  return all == 0;
}

/* Octal digits, padded with spaces and ended by a NUL or the field. If the
 * first bit is set, a binary number, which GNU tar uses for large values. */
static int read_number(uint64_t *out, const uint8_t *field, size_t n) {
  size_t i = 0;

  *out = 0;
  if (field[0] == 0x80) {
    for (i = 1; i < n; i++) {
      if (*out >> 55 != 0)
        return 0;
      *out = *out << 8 | field[i];
    }
    return 1;
  }
  while (i < n && field[i] == ' ')
    i++;
  if (i == n || field[i] < '0' || field[i] > '7')
    return 0;
  for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
    *out = *out << 3 | (uint64_t)(field[i] - '0'); /* at most 36 bits */
  for (; i < n; i++)
    if (field[i] != ' ' && field[i] != '\0')
      return 0;
  return 1;
}

/* The sum of all bytes, with spaces in place of the checksum field. */
static uint64_t add_up(const uint8_t block[TNK__TAR_BLOCK]) {
  uint64_t sum = 0;

  for (size_t i = 0; i < TNK__TAR_BLOCK; i++)
    sum += i >= SUM && i < SUM + SUM_SIZE ? ' ' : block[i];
  return sum;
}

static size_t field_length(const uint8_t *field, size_t n) {
  const uint8_t *end = memchr(field, '\0', n);

  return end != NULL ? (size_t)(end - field) : n;
}

/* Returns the error in the block, as a sentence about "the archive", or
 * NULL. */
static const char *tar_header_read(tar_header_t *out,
                                   const uint8_t block[TNK__TAR_BLOCK]) {
  size_t n_prefix, n_name;
  uint64_t sum;

  memset(out, 0, sizeof(*out));
  if (memcmp(block + MAGIC, "ustar", 5) != 0)
    return "the archive is not a tar file, or of an unknown kind";
  if (!read_number(&sum, block + SUM, SUM_SIZE) || sum != add_up(block))
    return "the archive was changed: a checksum is wrong";
  if (!read_number(&out->size, block + SIZE, SIZE_SIZE))
    return "the archive is malformed: a size is not a number";
  out->kind = block[KIND] == '\0' ? '0' : (char)block[KIND];
  /* GNU's format uses the prefix field for other data. */
  n_prefix =
      block[MAGIC + 5] == '\0' ? field_length(block + PREFIX, PREFIX_SIZE) : 0;
  n_name = field_length(block + NAME, NAME_SIZE);
  memcpy(out->name, block + PREFIX, n_prefix);
  if (n_prefix > 0)
    out->name[n_prefix++] = '/';
  memcpy(out->name + n_prefix, block + NAME, n_name);
  return NULL;
}

static int read_decimal(uint64_t *out, const char *text, size_t n) {
  *out = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] < '0' || text[i] > '9' || *out > UINT64_MAX / 20)
      return 0;
    *out = *out * 10 + (uint64_t)(text[i] - '0');
  }
  return n > 0;
}

static int is_key(const char *key, size_t n, const char *wanted) {
  return n == strlen(wanted) && memcmp(key, wanted, n) == 0;
}

/* Parse one record without its length and newline. */
static int read_record(tar_pax_t *out, const char *key, size_t n) {
  const char *equals = memchr(key, '=', n);
  size_t n_key, n_value;

  if (equals == NULL || equals == key)
    return 0;
  n_key = (size_t)(equals - key);
  n_value = n - n_key - 1;
  if (is_key(key, n_key, "path")) {
    out->path = equals + 1;
    out->n_path = n_value;
  } else if (is_key(key, n_key, "size")) {
    return read_decimal(&out->size, equals + 1, n_value);
  } else if (n_key > 11 && memcmp(key, "GNU.sparse.", 11) == 0) {
    out->is_sparse = 1;
  }
  return 1;
}

/* Parse pax records, "LENGTH KEY=VALUE\n"; the last one of a key counts.
 * Returns 1, or 0 if they are malformed. */
static int tar_pax_read(tar_pax_t *out, const char *data, size_t n) {
  *out = (tar_pax_t){.size = UINT64_MAX};
  while (n > 0) {
    const char *blank = memchr(data, ' ', n < 8 ? n : 8);
    uint64_t length;
    size_t n_digits;
    if (blank == NULL)
      return 0;
    n_digits = (size_t)(blank - data);
    if (!read_decimal(&length, data, n_digits) || length > n ||
        length < n_digits + 2 || data[length - 1] != '\n' ||
        !read_record(out, blank + 1, (size_t)length - n_digits - 2))
      return 0;
    data += length;
    n -= (size_t)length;
  }
  return 1;
}

/* ---- tar ---- */

static const char malformed[] = "the archive is malformed";

/* `max_bytes`: limit for all files together. */
static void tar_init(tnk__tar_t *tar, const tnk_allocator_t *alloc,
                     uint64_t max_bytes) {
  memset(tar, 0, sizeof(*tar));
  tnk__buf_init(&tar->extra, alloc, TNK__TAR_MAX_EXTRA);
  tnk__buf_init(&tar->long_name, alloc, TNK__TAR_MAX_EXTRA);
  tnk__arena_init(&tar->arena, alloc,
                  (size_t)2 * TNK__TAR_MAX_FILES * TNK__RELATIVE_MAX);
  tar->max_bytes = max_bytes;
  tar->long_size = UINT64_MAX;
}

static void tar_deinit(tnk__tar_t *tar) {
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

/* ---- tar: entries ---- */

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
                        "the archive has a sparse file, which is not supported",
                        name, n);
  return refuse_entry(
      tar, TNK_EUNSUPPORTED,
      "the archive has an entry of a kind that is not supported", name, n);
}

static int begin_entry(tnk__tar_t *tar, const tar_header_t *header) {
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

/* ---- tar: extra headers ---- */

static int begin_extra(tnk__tar_t *tar, const tar_header_t *header) {
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
  tar_pax_t pax;

  tar->state = TNK__TAR_IN_PADDING;
  if (n == 0)
    return TNK_OK;
  if (tar->extra_kind == 'L') {
    while (n > 0 && data[n - 1] == '\0')
      n--;
    return keep_name(tar, data, n);
  }
  if (!tar_pax_read(&pax, data, n))
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

/* ---- tar: bytes ---- */

static int read_block(tnk__tar_t *tar) {
  tar_header_t header;
  const char *why;
  int err;

  tar->n_block = 0;
  if (tar_is_zero(tar->block, TNK__TAR_BLOCK)) {
    if (++tar->n_zero_blocks == 2)
      tar->state = TNK__TAR_IN_TAIL;
    return TNK_OK;
  }
  if (tar->n_zero_blocks > 0)
    return refuse(tar, TNK_EPROTO, "the archive has bytes after its end");
  why = tar_header_read(&header, tar->block);
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
    if (tar->tail > TNK__TAR_MAX_PADDING || !tar_is_zero(data, n))
      return refuse(tar, TNK_EPROTO, "the archive has bytes after its end");
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

/* Returns whether a step needs no input: the end of a file, or nothing to skip.
 */
static int goes_by_itself(const tnk__tar_t *tar) {
  return (tar->state == TNK__TAR_IN_FILE && tar->left == 0) ||
         (tar->state == TNK__TAR_IN_EXTRA && tar->left == 0) ||
         (tar->state == TNK__TAR_IN_PADDING && tar->padding == 0);
}

/* Read up to the next event. *used receives the number of bytes that were read,
 * including data. Returns TNK_OK, TNK_EPROTO (malformed, or with a forbidden
 * entry), TNK_ECORRUPT, TNK_EUNSUPPORTED, TNK_ETOOBIG or TNK_ENOMEM; the first
 * error is kept. */
static int tar_read(tnk__tar_t *tar, const uint8_t *data, size_t n,
                    size_t *used, tnk__tar_event_t *event) {
  *used = 0;
  *event = (tnk__tar_event_t){.kind = TNK__TAR_MORE};
  while (tar->err == TNK_OK && event->kind == TNK__TAR_MORE &&
         (*used < n || goes_by_itself(tar)))
    tar->err = read_on(tar, data + *used, n - *used, used, event);
  return tar->err;
}

/* End of the input: returns TNK_ECORRUPT if the archive is incomplete. */
static int tar_finish(tnk__tar_t *tar) {
  if (tar->err == TNK_OK && tar->state != TNK__TAR_IN_TAIL)
    tar->err = refuse(tar, TNK_ECORRUPT, "the archive is truncated");
  return tar->err;
}

/* Describe the error after a failure; writes nothing for TNK_ENOMEM. */
static void tar_explain(const tnk__tar_t *tar, tnk__text_t *out) {
  if (tar->why == NULL)
    return;
  tnk__text_printf(out, "%s", tar->why);
  if (tar->detail != NULL)
    tnk__text_printf(out, " %s", tar->detail);
  if (tar->entry[0] != '\0')
    tnk__text_printf(out, ": `%s`", tar->entry);
}

/* ---- Archives ---- */

enum { WINDOW = 128 * 1024 };

/* The formats by their first bytes; `why` is set for unsupported ones. */
static const struct {
  const char *bytes;
  size_t n;
  tnk__archive_format_t format;
  const char *why;
} magics[] = {
    {"\x1f\x8b", 2, TNK__ARCHIVE_GZIP, NULL},
    {"\x28\xb5\x2f\xfd", 4, TNK__ARCHIVE_ZSTD, NULL},
    {"BZh", 3, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with bzip2, which is not supported"},
    {"\xfd"
     "7zXZ\0",
     6, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with xz, which is not supported"},
    {"\x5d\0\0", 3, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with lzma, which is not supported"},
    {"\x04\x22\x4d\x18", 4, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with lz4, which is not supported"},
    {"\x1f\x9d", 2, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with compress, which is not supported"},
    {"PK\x03\x04", 4, TNK__ARCHIVE_PLAIN,
     "the archive is a zip file, which is not supported"},
};

void tnk__archive_init(tnk__archive_t *archive, const tnk_allocator_t *alloc,
                       uint64_t max_bytes) {
  memset(archive, 0, sizeof(*archive));
  archive->alloc = alloc;
  gunzip_init(&archive->gunzip, alloc);
  tnk__unzstd_init(&archive->unzstd, alloc);
  tnk__buf_init(&archive->window, alloc, WINDOW);
  tar_init(&archive->tar, alloc, max_bytes);
}

void tnk__archive_deinit(tnk__archive_t *archive) {
  gunzip_deinit(&archive->gunzip);
  tnk__unzstd_deinit(&archive->unzstd);
  tnk__buf_deinit(&archive->window);
  tar_deinit(&archive->tar);
}

void tnk__archive_give(tnk__archive_t *archive, const void *data, size_t n) {
  archive->piece = data;
  archive->n_piece = n;
}

static int refuse_archive(tnk__archive_t *archive, int err, const char *why) {
  archive->why = why;
  return err;
}

/* The letters of bzip2 could also begin a file name. The digit and the bytes
 * after it cannot. */
static int fits(const tnk__archive_t *archive, const char *bytes, size_t n) {
  if (memcmp(archive->head, bytes, n) != 0)
    return 0;
  return bytes[0] != 'B' || memcmp(archive->head + 4, "1AY&SY", 6) == 0 ||
         memcmp(archive->head + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0;
}

/* Collect the first bytes and detect the format. */
static int find_format(tnk__archive_t *archive) {
  while (archive->n_head < TNK__ARCHIVE_HEAD && archive->n_piece > 0) {
    archive->head[archive->n_head++] = *archive->piece++;
    archive->n_piece--;
  }
  if (archive->n_head < TNK__ARCHIVE_HEAD)
    return TNK_OK;
  archive->format = TNK__ARCHIVE_PLAIN;
  archive->in = archive->head;
  archive->n_in = archive->n_head;
  for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
    if (!fits(archive, magics[i].bytes, magics[i].n))
      continue;
    if (magics[i].why != NULL)
      return refuse_archive(archive, TNK_EUNSUPPORTED, magics[i].why);
    archive->format = magics[i].format;
  }
  return TNK_OK;
}

static void take_piece(tnk__archive_t *archive) {
  if (archive->n_in > 0)
    return;
  archive->in = archive->piece;
  archive->n_in = archive->n_piece;
  archive->n_piece = 0;
}

/* Unpack until the window is full. */
static int unpack(tnk__archive_t *archive) {
  size_t used;
  int err;

  tnk__buf_clear(&archive->window);
  err = archive->format == TNK__ARCHIVE_GZIP
            ? gunzip_some(&archive->gunzip, &archive->window, archive->in,
                          archive->n_in, &used)
            : tnk__unzstd_some(&archive->unzstd, &archive->window, archive->in,
                               archive->n_in, &used);
  archive->in += used;
  archive->n_in -= used;
  archive->plain = archive->window.data;
  archive->n_plain = archive->window.len;
  if (err == TNK_EPROTO)
    return refuse_archive(archive, TNK_ECORRUPT,
                          "the compressed data of the archive is malformed");
  return err;
}

/* Get bytes for the tar. If none are left, the input is used up. */
static int refill(tnk__archive_t *archive) {
  int was_full = archive->window.len == WINDOW;
  int err = TNK_OK;

  if (archive->format == TNK__ARCHIVE_UNKNOWN)
    err = find_format(archive);
  if (err != TNK_OK || archive->format == TNK__ARCHIVE_UNKNOWN)
    return err;
  take_piece(archive);
  if (archive->format == TNK__ARCHIVE_PLAIN) {
    archive->plain = archive->in;
    archive->n_plain = archive->n_in;
    archive->n_in = 0;
    return TNK_OK;
  }
  /* A lone header unpacks to nothing, and a full window may have hidden more
   * output. */
  while (err == TNK_OK && archive->n_plain == 0 &&
         (archive->n_in > 0 || was_full)) {
    err = unpack(archive);
    was_full = archive->window.len == WINDOW;
    take_piece(archive);
  }
  return err;
}

int tnk__archive_next(tnk__archive_t *archive, tnk__tar_event_t *event) {
  static const uint8_t nothing[1];
  size_t used;

  *event = (tnk__tar_event_t){.kind = TNK__TAR_MORE};
  while (archive->err == TNK_OK && event->kind == TNK__TAR_MORE) {
    const int is_empty = archive->n_plain == 0;
    if (is_empty)
      archive->err = refill(archive);
    if (archive->err != TNK_OK)
      break;
    if (archive->n_plain == 0)
      archive->plain = nothing;
    archive->err =
        tar_read(&archive->tar, archive->plain, archive->n_plain, &used, event);
    archive->plain += used;
    archive->n_plain -= used;
    if (is_empty && used == 0)
      break;
  }
  return archive->err;
}

int tnk__archive_finish(tnk__archive_t *archive) {
  int err = TNK_OK;

  if (archive->err != TNK_OK)
    return archive->err;
  if (archive->format == TNK__ARCHIVE_UNKNOWN)
    err = refuse_archive(archive, TNK_EPROTO,
                         "the archive is too short to be one");
  else if (archive->format == TNK__ARCHIVE_GZIP)
    err = gunzip_finish(&archive->gunzip);
  else if (archive->format == TNK__ARCHIVE_ZSTD)
    err = tnk__unzstd_finish(&archive->unzstd);
  if (err == TNK_EPROTO && archive->why == NULL)
    err = refuse_archive(archive, TNK_ECORRUPT, "the archive is truncated");
  archive->err = err != TNK_OK ? err : tar_finish(&archive->tar);
  return archive->err;
}

void tnk__archive_explain(const tnk__archive_t *archive, tnk__text_t *out) {
  if (archive->why != NULL)
    tnk__text_printf(out, "%s", archive->why);
  else
    tar_explain(&archive->tar, out);
}
