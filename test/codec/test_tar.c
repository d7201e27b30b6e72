/* SPDX-License-Identifier: MIT */
#include "lib/files/tar/archive.h"

#include <stdlib.h>
#include <string.h>

#include "codec/packed.h"
#include "codec/tar_make.h"
#include "support/test.h"
#include "tnk/error.h"

enum { MAX_BYTES = 16 << 20 };

typedef struct {
  tnk__buf_t text; /* what was in it: "name (size): data;" */
  char why[700];
  size_t most; /* the longest piece of data */
} seen_t;

/* Long data is shown by its length. */
static void note(seen_t *seen, const tnk__tar_event_t *event) {
  if (event->kind == TNK__TAR_FILE)
    tnk__buf_printf(&seen->text, "%s (%llu): ", event->name,
                    (unsigned long long)event->n_bytes);
  if (event->kind == TNK__TAR_DATA && event->n < 100)
    tnk__buf_append(&seen->text, event->data, event->n);
  if (event->kind == TNK__TAR_END)
    tnk__buf_text(&seen->text, "; ");
  if (event->kind == TNK__TAR_DATA && event->n > seen->most)
    seen->most = event->n;
}

static int read_bounded(seen_t *seen, const tnk__buf_t *data, size_t step,
                        uint64_t max_bytes) {
  tnk__archive_t *archive = malloc(sizeof(*archive));
  tnk__tar_event_t event;
  tnk__text_t why;
  int err = TNK_OK;

  memset(seen, 0, sizeof(*seen));
  tnk__buf_init(&seen->text, test_allocator(), TAR_ROOM);
  tnk__archive_init(archive, test_allocator(), max_bytes);
  for (size_t i = 0; i < data->len && err == TNK_OK; i += step) {
    tnk__archive_give(archive, data->data + i,
                      data->len - i < step ? data->len - i : step);
    do {
      err = tnk__archive_next(archive, &event);
      note(seen, &event);
    } while (err == TNK_OK && event.kind != TNK__TAR_MORE);
  }
  if (err == TNK_OK)
    err = tnk__archive_finish(archive);
  CHECK_INT(tnk__archive_next(archive, &event), err);
  tnk__text_init(&why, seen->why, sizeof(seen->why));
  tnk__archive_explain(archive, &why);
  tnk__archive_deinit(archive);
  free(archive);
  return err;
}

static int read_all(seen_t *seen, const tnk__buf_t *data, size_t step) {
  return read_bounded(seen, data, step, MAX_BYTES);
}

static void begin(tnk__buf_t *out) {
  tnk__buf_init(out, test_allocator(), TAR_ROOM);
}

/* Read it in pieces of three sizes; what is in it, and why it fails. */
static void expect(tnk__buf_t *data, int err, const char *text,
                   const char *why) {
  static const size_t steps[] = {TAR_ROOM, 1000, 1};
  seen_t seen;

  for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
    CHECK_INT(read_all(&seen, data, steps[i]), err);
    CHECK_STR(seen.why, why);
    if (text != NULL)
      CHECK_STR(seen.text.len > 0 ? tnk__buf_cstr(&seen.text) : "", text);
    tnk__buf_deinit(&seen.text);
  }
  tnk__buf_clear(data);
}

static void put_usual(tnk__buf_t *out) {
  tar_entry(out, "./", '5', "", 0);
  tar_entry(out, "./adapter_config.json", '0', "{}", 2);
  tar_entry(out, "adapter_model.safetensors", '\0', "weights", 7);
  tar_entry(out, "sub/", '5', "", 0);
  tar_entry(out, "sub/checkpoint_complete", '7', "", 0);
  tar_end(out);
}

static const char usual[] = "adapter_config.json (2): {}; "
                            "adapter_model.safetensors (7): weights; "
                            "sub/checkpoint_complete (0): ; ";

TEST(O2_an_archive_gives_its_files_plain_or_compressed) {
  tnk__buf_t plain, packed;

  begin(&plain);
  begin(&packed);
  put_usual(&plain);
  gzip_member(&packed, plain.data, plain.len);
  expect(&packed, TNK_OK, usual, "");
  /* As `cat a.gz b.gz` makes it. */
  gzip_member(&packed, plain.data, 700);
  gzip_member(&packed, plain.data + 700, plain.len - 700);
  expect(&packed, TNK_OK, usual, "");
  CHECK_INT(pack_frame(&packed, plain.data, plain.len), TNK_OK);
  expect(&packed, TNK_OK, usual, "");
  expect(&plain, TNK_OK, usual, "");
  tnk__buf_deinit(&plain);
  tnk__buf_deinit(&packed);
}

TEST(O2_long_names_and_sizes_come_from_gnu_and_pax) {
  tnk__buf_t data;
  char name[201], text[512];

  begin(&data);
  memset(name, 'n', 200);
  name[200] = '\0';
  tar_entry(&data, "././@LongLink", 'L', name, 201);
  tar_entry(&data, "nnn", '0', "a", 1);
  tar_pax(&data, 'g', "comment", "of all");
  tar_pax(&data, 'x', "path", "dir/p\xc3\xa4x");
  tar_pax(&data, 'x', "mtime", "1.5");
  tar_entry(&data, "cut", '0', "bc", 2);
  tar_pax(&data, 'x', "size", "3");
  tar_header(&data, "sized", '0', 0);
  tnk__buf_text(&data, "def");
  tar_pad(&data);
  /* The front of a name has a field of its own. */
  tar_entry(&data, "file", '0', "", 0);
  memcpy(data.data + data.len - 512 + 345, "front", 5);
  tar_mend(data.data + data.len - 512);
  tar_entry(&data, "plain", '0', "", 0);
  tar_end(&data);
  snprintf(text, sizeof(text),
           "%s (1): a; dir/p\xc3\xa4x (2): bc; sized (3): def; "
           "front/file (0): ; plain (0): ; ",
           name);
  CHECK_INT(data.err, TNK_OK);
  expect(&data, TNK_OK, text, "");
  tnk__buf_deinit(&data);
}

TEST(O2_links_devices_and_other_kinds_are_refused_by_name) {
  static const struct {
    char kind;
    int err;
    const char *why;
  } bad[] = {
      {'1', TNK_EPROTO, "the archive has a link: `x`"},
      {'2', TNK_EPROTO, "the archive has a link: `x`"},
      {'3', TNK_EPROTO, "the archive has a device: `x`"},
      {'4', TNK_EPROTO, "the archive has a device: `x`"},
      {'6', TNK_EPROTO, "the archive has a device: `x`"},
      {'S', TNK_EUNSUPPORTED,
       "the archive has a sparse file, which is not supported: `x`"},
      {'M', TNK_EUNSUPPORTED,
       "the archive has an entry of a kind that is not supported: `x`"},
  };
  tnk__buf_t data;

  begin(&data);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    tar_entry(&data, "x", bad[i].kind, "", 0);
    tar_end(&data);
    expect(&data, bad[i].err, "", bad[i].why);
  }
  tar_pax(&data, 'x', "GNU.sparse.major", "1");
  tar_entry(&data, "x", '0', "", 0);
  expect(&data, TNK_EUNSUPPORTED, "",
         "the archive has a sparse file, which is not supported");
  tnk__buf_deinit(&data);
}

TEST(O2_names_that_leave_the_directory_or_come_twice_are_refused) {
  static const struct {
    const char *name;
    char kind;
    const char *why;
  } bad[] = {
      {"../x", '0', "the archive has a name that leaves the directory: `../x`"},
      {"a/../../x", '0',
       "the archive has a name that leaves the directory: `a/../../x`"},
      {"./../x", '0',
       "the archive has a name that leaves the directory: `../x`"},
      {"../", '5', "the archive has a name that leaves the directory: `..`"},
      {"/x", '0', "the archive has a name that is absolute: `/x`"},
      {"", '0', "the archive has a name that is empty"},
      {"./", '0', "the archive has a name that is empty"},
      {"x/", '0', "the archive has a name that names a directory: `x/`"},
      {"a\nb\x1b", '0',
       "the archive has a name that has a character that names of files must "
       "not have: `a b `"},
  };
  tnk__buf_t data;

  begin(&data);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    tar_entry(&data, bad[i].name, bad[i].kind, "", 0);
    tar_end(&data);
    expect(&data, TNK_EPROTO, "", bad[i].why);
  }
  tar_pax(&data, 'x', "path", "a/../../sibling-x");
  tar_entry(&data, "harmless", '0', "", 0);
  expect(&data, TNK_EPROTO, "",
         "the archive has a name that leaves the directory: "
         "`a/../../sibling-x`");
  tar_entry(&data, "x", '0', "", 0);
  tar_entry(&data, "./x", '0', "", 0);
  expect(&data, TNK_EPROTO, "x (0): ; ", "the archive has a name twice: `x`");
  tar_entry(&data, "x", '0', "", 0);
  tar_entry(&data, "x/y", '0', "", 0);
  expect(&data, TNK_EPROTO, "x (0): ; ", "the archive has a name twice: `x/y`");
  tnk__buf_deinit(&data);
}

TEST(O2_compressions_that_are_not_read_are_refused_by_name) {
  static const struct {
    const char *bytes, *name;
  } bad[] = {
      {"BZh91AY&SYxxxx", "the archive is compressed with bzip2"},
      {"\xfd"
       "7zXZ\0xxxxxx",
       "the archive is compressed with xz"},
      {"\x5d\0\0\0\1xxxxxx", "the archive is compressed with lzma"},
      {"\x04\x22\x4d\x18xxxxxx", "the archive is compressed with lz4"},
      {"\x1f\x9dxxxxxxxxx", "the archive is compressed with compress"},
      {"PK\3\4xxxxxxxx", "the archive is a zip file"},
  };
  tnk__buf_t data;
  char why[80];

  begin(&data);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    tnk__buf_append(&data, bad[i].bytes, 11);
    snprintf(why, sizeof(why), "%s, which is not supported", bad[i].name);
    expect(&data, TNK_EUNSUPPORTED, "", why);
  }
  /* A name that begins like it. */
  tar_entry(&data, "BZh9", '0', "", 0);
  tar_end(&data);
  expect(&data, TNK_OK, "BZh9 (0): ; ", "");
  tnk__buf_deinit(&data);
}

TEST(O2_archives_that_are_cut_or_changed_are_refused) {
  tnk__buf_t plain, packed;

  begin(&plain);
  begin(&packed);
  put_usual(&plain);
  gzip_member(&packed, plain.data, plain.len);
  packed.len -= 3;
  expect(&packed, TNK_ECORRUPT, usual, "the archive is truncated");
  gzip_member(&packed, plain.data, plain.len);
  packed.data[packed.len - 6] ^= 1;
  expect(&packed, TNK_ECORRUPT, NULL,
         "the compressed data of the archive is malformed");
  gzip_member(&packed, plain.data, plain.len - 1024);
  expect(&packed, TNK_ECORRUPT, usual, "the archive is truncated");
  CHECK_INT(pack_frame(&packed, plain.data, plain.len), TNK_OK);
  packed.len -= 1;
  expect(&packed, TNK_ECORRUPT, NULL, "the archive is truncated");
  plain.len -= 600; /* in the last two blocks */
  expect(&plain, TNK_ECORRUPT, usual, "the archive is truncated");
  put_usual(&plain);
  plain.data[512 + 100] ^= 1;
  expect(&plain, TNK_EPROTO, "",
         "the archive was changed: a checksum is wrong");
  put_usual(&plain);
  tnk__buf_text(&plain, "x");
  expect(&plain, TNK_EPROTO, usual, "the archive has bytes after its end");
  tnk__buf_text(&plain, "<html>nothing</html>");
  expect(&plain, TNK_ECORRUPT, "", "the archive is truncated");
  while (plain.len < 600)
    tnk__buf_text(&plain, "<html>nothing</html>");
  expect(&plain, TNK_EPROTO, "",
         "the archive is not a tar file, or of an unknown kind");
  tnk__buf_text(&plain, "x");
  expect(&plain, TNK_EPROTO, "", "the archive is too short to be one");
  tnk__buf_deinit(&plain);
  tnk__buf_deinit(&packed);
}

TEST(O2_sizes_are_bounded_before_a_byte_is_given_out) {
  tnk__buf_t data;
  seen_t seen;
  char name[16];

  begin(&data);
  tar_entry(&data, "a", '0', "12345", 5);
  tar_header(&data, "b", '0', 1ull << 32);
  CHECK_INT(read_all(&seen, &data, 77), TNK_ETOOBIG);
  CHECK_STR(seen.why, "the archive has too many bytes");
  CHECK_STR(tnk__buf_cstr(&seen.text), "a (5): 12345; ");
  tnk__buf_deinit(&seen.text);
  /* A number that is no octal one: all bits of it. */
  memset(data.data + 1024 + 124, 0xff, 12);
  data.data[1024 + 124] = 0x80;
  tar_mend(data.data + 1024);
  CHECK_INT(read_all(&seen, &data, 77), TNK_ECORRUPT);
  CHECK_STR(seen.why, "the archive is malformed: a size is not a number");
  tnk__buf_deinit(&seen.text);
  tnk__buf_clear(&data);
  for (int i = 0; i <= TNK__TAR_MAX_FILES; i++) {
    snprintf(name, sizeof(name), "%d", i);
    tar_entry(&data, name, '0', "", 0);
  }
  CHECK_INT(read_all(&seen, &data, 100000), TNK_ETOOBIG);
  CHECK_STR(seen.why, "the archive has too many files");
  tnk__buf_deinit(&seen.text);
  tnk__buf_clear(&data);
  tar_header(&data, "x", 'L', TNK__TAR_MAX_EXTRA + 1);
  CHECK_INT(read_all(&seen, &data, 100000), TNK_ETOOBIG);
  CHECK_STR(seen.why, "the archive has a name that is too long");
  tnk__buf_deinit(&seen.text);
  tnk__buf_deinit(&data);
}

/* 16 MiB of zeros are some KiB when they are compressed. */
TEST_LIMIT(O2_a_bomb_is_unpacked_through_a_window, 20) {
  const size_t n = MAX_BYTES;
  tnk__buf_t plain, packed;
  uint8_t *zeros = calloc(1, n);
  seen_t seen;

  begin(&plain);
  begin(&packed);
  tar_entry(&plain, "zeros", '0', zeros, n);
  tar_end(&plain);
  for (int kind = 0; kind < 2; kind++) {
    tnk__buf_clear(&packed);
    if (kind == 0)
      gzip_member(&packed, plain.data, plain.len);
    else
      CHECK_INT(pack_frame(&packed, plain.data, plain.len), TNK_OK);
    CHECK(packed.len < 32768);
    CHECK_INT(read_all(&seen, &packed, TAR_ROOM), TNK_OK);
    CHECK(seen.most > 0 && seen.most <= 128 * 1024);
    tnk__buf_deinit(&seen.text);
    CHECK_INT(read_bounded(&seen, &packed, TAR_ROOM, n - 1), TNK_ETOOBIG);
    CHECK_INT(seen.text.len, 0);
    tnk__buf_deinit(&seen.text);
  }
  tnk__buf_deinit(&plain);
  tnk__buf_deinit(&packed);
  free(zeros);
}

TEST(O2_zeros_behind_the_end_are_bounded) {
  tnk__buf_t data;
  uint8_t *zeros = calloc(1, TNK__TAR_MAX_PADDING + 1);
  seen_t seen;

  begin(&data);
  put_usual(&data);
  tnk__buf_append(&data, zeros, TNK__TAR_MAX_PADDING);
  CHECK_INT(read_all(&seen, &data, 10000), TNK_OK);
  tnk__buf_deinit(&seen.text);
  tnk__buf_byte(&data, 0);
  CHECK_INT(read_all(&seen, &data, 10000), TNK_EPROTO);
  tnk__buf_deinit(&seen.text);
  tnk__buf_deinit(&data);
  free(zeros);
}
