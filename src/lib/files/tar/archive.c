#include "lib/files/tar/archive.h"

#include <string.h>

#include "tnk/error.h"

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
     "the archive is compressed with bzip2, which is not read"},
    {"\xfd"
     "7zXZ\0",
     6, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with xz, which is not read"},
    {"\x5d\0\0", 3, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with lzma, which is not read"},
    {"\x04\x22\x4d\x18", 4, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with lz4, which is not read"},
    {"\x1f\x9d", 2, TNK__ARCHIVE_PLAIN,
     "the archive is compressed with compress, which is not read"},
    {"PK\x03\x04", 4, TNK__ARCHIVE_PLAIN,
     "the archive is a zip file, which is not read"},
};

void tnk__archive_init(tnk__archive_t *archive, const tnk_allocator_t *alloc,
                       uint64_t max_bytes) {
  memset(archive, 0, sizeof(*archive));
  archive->alloc = alloc;
  tnk__gunzip_init(&archive->gunzip, alloc);
  tnk__unzstd_init(&archive->unzstd, alloc);
  tnk__buf_init(&archive->window, alloc, WINDOW);
  tnk__tar_init(&archive->tar, alloc, max_bytes);
}

void tnk__archive_deinit(tnk__archive_t *archive) {
  tnk__gunzip_deinit(&archive->gunzip);
  tnk__unzstd_deinit(&archive->unzstd);
  tnk__buf_deinit(&archive->window);
  tnk__tar_deinit(&archive->tar);
}

void tnk__archive_give(tnk__archive_t *archive, const void *data, size_t n) {
  archive->piece = data;
  archive->n_piece = n;
}

static int refuse(tnk__archive_t *archive, int err, const char *why) {
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
      return refuse(archive, TNK_EUNSUPPORTED, magics[i].why);
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
            ? tnk__gunzip_some(&archive->gunzip, &archive->window, archive->in,
                               archive->n_in, &used)
            : tnk__unzstd_some(&archive->unzstd, &archive->window, archive->in,
                               archive->n_in, &used);
  archive->in += used;
  archive->n_in -= used;
  archive->plain = archive->window.data;
  archive->n_plain = archive->window.len;
  if (err == TNK_EPROTO)
    return refuse(archive, TNK_ECORRUPT,
                  "what the archive is compressed with is malformed");
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
    archive->err = tnk__tar_read(&archive->tar, archive->plain,
                                 archive->n_plain, &used, event);
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
    err = refuse(archive, TNK_EPROTO, "the archive is too short to be one");
  else if (archive->format == TNK__ARCHIVE_GZIP)
    err = tnk__gunzip_finish(&archive->gunzip);
  else if (archive->format == TNK__ARCHIVE_ZSTD)
    err = tnk__unzstd_finish(&archive->unzstd);
  if (err == TNK_EPROTO && archive->why == NULL)
    err = refuse(archive, TNK_ECORRUPT, "the archive is cut off");
  archive->err = err != TNK_OK ? err : tnk__tar_finish(&archive->tar);
  return archive->err;
}

void tnk__archive_explain(const tnk__archive_t *archive, tnk__text_t *out) {
  if (archive->why != NULL)
    tnk__text_printf(out, "%s", archive->why);
  else
    tnk__tar_explain(&archive->tar, out);
}
