/* SPDX-License-Identifier: MIT */
/*
 * The file is read with pread() and not mapped: a file that another program
 * makes shorter would end this process with SIGBUS, and here it is an error
 * with the name of the file. The pages are those of the system's cache in both
 * cases.
 */
#include "tools/tnk/text/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "lib/wire/format/scan.h"
#include "tnk/error.h"
#include "tools/common/base/digest.h"

/* Entries of the index that are in memory at once. */
enum { ENTRIES = 4096, NEWEST_SUFFIX = 32 };

_Static_assert(sizeof(cli_pack_head_t) == 128, "the header has no gaps");
_Static_assert(sizeof(cli_pack_entry_t) == 16, "an entry has no gaps");

#define EACH (sizeof(int32_t) + sizeof(float))
/* Ids of an example, so that its bytes can be counted in 32 bits. */
#define MAX_IDS ((size_t)INT32_MAX / EACH)

static uint32_t sum_of(uint32_t sum, const void *bytes, size_t n) {
  return (uint32_t)crc32_z(sum, bytes, n);
}

static uint32_t head_sum(const cli_pack_head_t *head) {
  return sum_of(0, head, offsetof(cli_pack_head_t, head_sum));
}

static uint32_t example_sum(uint64_t i, const int32_t *ids,
                            const float *weights, uint32_t n) {
  uint32_t sum = sum_of(0, &i, sizeof(i));

  sum = sum_of(sum, &n, sizeof(n));
  sum = sum_of(sum, ids, n * sizeof(*ids));
  return sum_of(sum, weights, n * sizeof(*weights));
}

/* ---- Vocabulary ---- */

static int take_bytes(const char *bytes, size_t n, void *user) {
  uint64_t *sum = user;

  *sum = cli_digest(*sum, bytes, n);
  return TNK_OK;
}

uint64_t cli_pack_vocabulary(const tnk_chat_tokenizer_t *tokenizer,
                             size_t n_vocab) {
  uint64_t sum = cli_digest(CLI_DIGEST_INIT, &n_vocab, sizeof(n_vocab));

  for (size_t i = 0; i < n_vocab; i++) {
    const int32_t id = (int32_t)i;

    /* Ids without bytes are told apart by their number. */
    sum = cli_digest(sum, &id, sizeof(id));
    (void)tokenizer->plugin->decode(tokenizer->tokenizer, &id, 1, 0, take_bytes,
                                    &sum, NULL, 0);
  }
  return sum;
}

/* ---- Writing ---- */

int cli_pack_begin(cli_pack_writer_t *writer, const char *path) {
  static const cli_pack_head_t later;
  const size_t n = strlen(path) + NEWEST_SUFFIX;

  *writer = (cli_pack_writer_t){
      .path = path,
      .temporary = malloc(n),
      .head = {.magic = CLI_PACK_MAGIC,
               .order = CLI_PACK_ORDER,
               .version = CLI_PACK_VERSION,
               .digest = CLI_DIGEST_INIT},
  };
  if (writer->temporary == NULL)
    return TNK_ENOMEM;
  snprintf(writer->temporary, n, "%s.new-%ld", path, (long)getpid());
  writer->file = fopen(writer->temporary, "wbe");
  writer->index = writer->file != NULL ? tmpfile() : NULL;
  if (writer->index == NULL)
    return TNK_EFILE;
  /* The header is known at the end. */
  return fwrite(&later, sizeof(later), 1, writer->file) == 1 ? TNK_OK
                                                             : TNK_EFILE;
}

int cli_pack_add(cli_pack_writer_t *writer, const int32_t *ids,
                 const float *weights, size_t n) {
  cli_pack_head_t *head = &writer->head;
  const cli_pack_entry_t entry = {
      .offset = sizeof(*head) + head->n_tokens * EACH,
      .n = (uint32_t)n,
      .sum = example_sum(head->n_examples, ids, weights, (uint32_t)n),
  };

  if (n > MAX_IDS) {
    errno = EFBIG;
    return TNK_EFILE;
  }
  head->digest = cli_digest(head->digest, &n, sizeof(n));
  head->digest = cli_digest(head->digest, ids, n * sizeof(*ids));
  head->digest = cli_digest(head->digest, weights, n * sizeof(*weights));
  head->index_sum = sum_of(head->index_sum, &entry, sizeof(entry));
  for (size_t i = 1; i < n; i++)
    head->weight += (double)weights[i];
  head->n_examples++;
  head->n_tokens += n;
  if (n > head->longest)
    head->longest = n;
  return fwrite(ids, sizeof(*ids), n, writer->file) == n &&
                 fwrite(weights, sizeof(*weights), n, writer->file) == n &&
                 fwrite(&entry, sizeof(entry), 1, writer->index) == 1
             ? TNK_OK
             : TNK_EFILE;
}

static int copy_index(cli_pack_writer_t *writer) {
  cli_pack_entry_t some[256];
  size_t n;

  if (fflush(writer->index) != 0 || fseek(writer->index, 0, SEEK_SET) != 0)
    return 0;
  while ((n = fread(some, sizeof(*some), 256, writer->index)) > 0)
    if (fwrite(some, sizeof(*some), n, writer->file) != n)
      return 0;
  return !ferror(writer->index);
}

int cli_pack_end(cli_pack_writer_t *writer) {
  cli_pack_head_t *head = &writer->head;
  FILE *file = writer->file;
  int is_ok;

  head->head_sum = head_sum(head);
  is_ok = copy_index(writer) && fseek(file, 0, SEEK_SET) == 0 &&
          fwrite(head, sizeof(*head), 1, file) == 1 && fflush(file) == 0 &&
          fsync(fileno(file)) == 0;
  is_ok = (fclose(file) == 0) && is_ok;
  writer->file = NULL;
  is_ok = is_ok && rename(writer->temporary, writer->path) == 0;
  if (is_ok) {
    free(writer->temporary);
    writer->temporary = NULL;
  }
  return is_ok ? TNK_OK : TNK_EFILE;
}

void cli_pack_drop(cli_pack_writer_t *writer) {
  const int before = errno;

  if (writer->index != NULL)
    fclose(writer->index);
  if (writer->file != NULL)
    fclose(writer->file);
  if (writer->temporary != NULL)
    (void)unlink(writer->temporary);
  free(writer->temporary);
  *writer = (cli_pack_writer_t){0};
  errno = before;
}

/* ---- Reading ---- */

static int fail(char *why, size_t n_why, const char *name, const char *text) {
  snprintf(why, n_why, "%.300s: %s", name, text);
  return TNK_EFILE;
}

/* Returns NULL, or the reason. */
static const char *read_at(int fd, void *out, size_t n, uint64_t offset) {
  char *to = out;

  while (n > 0) {
    const ssize_t got = pread(fd, to, n, (off_t)offset);

    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? strerror(errno) : "it is truncated";
    to += got;
    n -= (size_t)got;
    offset += (uint64_t)got;
  }
  return NULL;
}

int cli_pack_is(const char *path) {
  char magic[sizeof(CLI_PACK_MAGIC)] = "";
  struct stat info;
  int fd;
  int is;

  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
    return 0;
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  is = read_at(fd, magic, sizeof(magic), 0) == NULL &&
       memcmp(magic, CLI_PACK_MAGIC, sizeof(magic)) == 0;
  close(fd);
  return is;
}

/* Returns NULL, or what is wrong with the header. */
static const char *check_head(cli_pack_t *pack) {
  const cli_pack_head_t *head = &pack->head;
  const uint64_t size = (uint64_t)pack->size;
  uint64_t left;

  if (memcmp(head->magic, CLI_PACK_MAGIC, sizeof(head->magic)) != 0)
    return "this is not packed data";
  if (head->order != CLI_PACK_ORDER)
    return "it was written on a machine with another byte order. Pack the data "
           "again here";
  if (head->version != CLI_PACK_VERSION)
    return "another version of tnk wrote it. Pack the data again with this one";
  if (head->head_sum != head_sum(head))
    return "its header is damaged: the checksum differs";
  if (head->n_tokens > size / EACH || head->n_examples > size)
    return "it is truncated";
  pack->index = sizeof(*head) + head->n_tokens * EACH;
  if (pack->index > size)
    return "it is truncated";
  left = size - pack->index;
  if (left / sizeof(cli_pack_entry_t) < head->n_examples)
    return "it is truncated";
  if (left != head->n_examples * sizeof(cli_pack_entry_t))
    return "there are bytes after its end";
  if (head->n_examples == 0)
    return "there is no example";
  if (head->n_vocab == 0 || head->n_vocab > INT32_MAX ||
      !isfinite(head->weight))
    return "its header is not valid";
  return NULL;
}

typedef struct {
  uint64_t offset; /* where the next example must begin */
  uint64_t longest;
  uint32_t sum;
} index_t;

/* The examples must fill the file without a gap. */
static int is_next(index_t *index, const cli_pack_entry_t *entry,
                   uint64_t end) {
  if (entry->offset != index->offset || entry->n < 2 || entry->n > MAX_IDS ||
      entry->n > (end - index->offset) / EACH)
    return 0;
  index->offset += entry->n * EACH;
  if (entry->n > index->longest)
    index->longest = entry->n;
  return 1;
}

static const char *check_index(const cli_pack_t *pack) {
  const uint64_t n_all = pack->head.n_examples;
  cli_pack_entry_t *some = malloc(ENTRIES * sizeof(*some));
  index_t index = {.offset = sizeof(pack->head)};
  const char *wrong = some == NULL ? "out of memory" : NULL;
  int is_valid = 1;

  for (uint64_t at = 0; at < n_all && wrong == NULL; at += ENTRIES) {
    const size_t n = (size_t)(n_all - at < ENTRIES ? n_all - at : ENTRIES);

    wrong = read_at(pack->fd, some, n * sizeof(*some),
                    pack->index + at * sizeof(*some));
    if (wrong != NULL)
      break;
    index.sum = sum_of(index.sum, some, n * sizeof(*some));
    for (size_t i = 0; i < n && is_valid; i++)
      is_valid = is_next(&index, &some[i], pack->index);
  }
  free(some);
  if (wrong != NULL)
    return wrong;
  if (index.sum != pack->head.index_sum)
    return "its index is damaged: the checksum differs";
  return is_valid && index.offset == pack->index &&
                 index.longest == pack->head.longest
             ? NULL
             : "its index is not valid";
}

static const char *check(cli_pack_t *pack) {
  struct stat info;
  const char *wrong;

  if (fstat(pack->fd, &info) != 0)
    return strerror(errno);
  if (!S_ISREG(info.st_mode))
    return "it is not a file";
  pack->size = info.st_size;
  pack->modified = tnk__system_modified(&info);
  wrong = read_at(pack->fd, &pack->head, sizeof(pack->head), 0);
  if (wrong == NULL)
    wrong = check_head(pack);
  return wrong != NULL ? wrong : check_index(pack);
}

int cli_pack_open_fd(cli_pack_t *pack, int fd, const char *name, char *why,
                     size_t n_why) {
  const char *wrong;

  *pack = (cli_pack_t){.name = strdup(name), .fd = fd};
  if (pack->name == NULL)
    return TNK_ENOMEM;
  wrong = check(pack);
  return wrong == NULL ? TNK_OK : fail(why, n_why, name, wrong);
}

int cli_pack_open(cli_pack_t *pack, const char *path, char *why, size_t n_why) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);

  *pack = (cli_pack_t){.fd = -1};
  if (fd < 0)
    return fail(why, n_why, path, strerror(errno));
  return cli_pack_open_fd(pack, fd, path, why, n_why);
}

void cli_pack_close(cli_pack_t *pack) {
  if (pack->name == NULL && pack->fd <= 0)
    return;
  if (pack->fd >= 0)
    close(pack->fd);
  free(pack->name);
  free(pack->entries);
  *pack = (cli_pack_t){.fd = -1};
}

void cli_pack_keep_index(cli_pack_t *pack) {
  const size_t size = (size_t)pack->head.n_examples * sizeof(*pack->entries);
  cli_pack_entry_t *entries = malloc(size);

  if (entries != NULL &&
      read_at(pack->fd, entries, size, pack->index) == NULL &&
      sum_of(0, entries, size) == pack->head.index_sum)
    pack->entries = entries;
  else
    free(entries);
}

/* Read an entry, which may have changed since the file was opened. */
static const char *read_entry(const cli_pack_t *pack, uint64_t i,
                              cli_pack_entry_t *entry) {
  const char *wrong = NULL;

  if (pack->entries != NULL)
    *entry = pack->entries[i];
  else
    wrong = read_at(pack->fd, entry, sizeof(*entry),
                    pack->index + i * sizeof(*entry));
  if (wrong != NULL)
    return wrong;
  return entry->offset >= sizeof(pack->head) && entry->offset < pack->index &&
                 entry->offset % sizeof(int32_t) == 0 && entry->n >= 2 &&
                 entry->n <= MAX_IDS &&
                 entry->n <= (pack->index - entry->offset) / EACH
             ? NULL
             : "its entry in the index is not valid";
}

size_t cli_pack_length(const cli_pack_t *pack, uint64_t i) {
  cli_pack_entry_t entry;

  return read_entry(pack, i, &entry) == NULL ? entry.n : 0;
}

int cli_pack_lengths(const cli_pack_t *pack, uint32_t *out) {
  const uint64_t n_all = pack->head.n_examples;
  cli_pack_entry_t *some = malloc(ENTRIES * sizeof(*some));
  int is_ok = some != NULL;

  for (uint64_t at = 0; at < n_all && is_ok; at += ENTRIES) {
    const size_t n = (size_t)(n_all - at < ENTRIES ? n_all - at : ENTRIES);

    is_ok = read_at(pack->fd, some, n * sizeof(*some),
                    pack->index + at * sizeof(*some)) == NULL;
    for (size_t i = 0; i < n && is_ok; i++)
      out[at + i] = some[i].n;
  }
  free(some);
  return is_ok;
}

/* The checksum does not protect from a file that was made to do harm. The loop
 * has no exit, so that compilers use vectors. */
static const char *check_example(const cli_pack_t *pack, const int32_t *ids,
                                 const float *weights, size_t n) {
  const uint32_t n_vocab = (uint32_t)pack->head.n_vocab;
  uint32_t is_foreign = 0, is_trained = 0;

  for (size_t i = 0; i < n; i++)
    is_foreign |= (uint32_t)ids[i] >= n_vocab;
  if (is_foreign)
    return "it has an id that is not in its vocabulary";
  if (tnk__scan_not_finite(weights, n) < n)
    return "it has a weight that is not finite";
  for (size_t i = 1; i < n; i++)
    is_trained |= weights[i] != 0.0f;
  return is_trained ? NULL : "nothing of it is trained";
}

static int is_changed(const cli_pack_t *pack) {
  struct stat info;
  tnk__system_time_t modified;

  if (fstat(pack->fd, &info) != 0)
    return 0;
  modified = tnk__system_modified(&info);
  return info.st_size != pack->size || modified.s != pack->modified.s ||
         modified.ns != pack->modified.ns;
}

int cli_pack_read(const cli_pack_t *pack, uint64_t i, tnk__arena_t *arena,
                  int32_t **ids, float **weights, size_t *n, char *why,
                  size_t n_why) {
  cli_pack_entry_t entry;
  char text[160];
  const char *wrong = read_entry(pack, i, &entry);
  int32_t *room = NULL;

  *ids = NULL;
  *weights = NULL;
  *n = 0;
  if (wrong == NULL) {
    room = tnk__arena_alloc(arena, entry.n * EACH);
    if (room == NULL)
      return TNK_ENOMEM;
    wrong = read_at(pack->fd, room, entry.n * EACH, entry.offset);
  }
  if (wrong == NULL) {
    *n = entry.n;
    *ids = room;
    *weights = (float *)(void *)(room + entry.n);
    wrong = example_sum(i, *ids, *weights, entry.n) == entry.sum
                ? check_example(pack, *ids, *weights, *n)
                : "it is damaged: the checksum differs";
  }
  if (wrong == NULL)
    return TNK_OK;
  snprintf(text, sizeof(text), "example %" PRIu64 ": %s%s", i + 1, wrong,
           is_changed(pack) ? ". The file has changed since it was opened"
                            : "");
  return fail(why, n_why, pack->name, text);
}
