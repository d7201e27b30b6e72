/* SPDX-License-Identifier: MIT */
#include "tools/tnk/train/input.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/format/zstd.h"
#include "tnk/error.h"

enum { PIECE = 64 * 1024 };

/* ---- Names ---- */

static int fail(char *why, size_t n_why, const char *name, const char *text) {
  snprintf(why, n_why, "%.300s: %s", name, text);
  return -1;
}

/* Takes ownership of the name. */
static int append(train_input_t *input, char *name) {
  char **more;

  if (input->n == input->room && name != NULL) {
    more = realloc(input->names, (input->n + 8) * 2 * sizeof(*more));
    if (more == NULL) {
      free(name);
      return -1;
    }
    input->names = more;
    input->room = (input->n + 8) * 2;
  }
  if (name == NULL)
    return -1;
  input->names[input->n++] = name;
  return 0;
}

static int is_data(const struct dirent *entry) {
  static const char *const ends[] = {".jsonl", ".jsonl.gz", ".jsonl.zst"};
  const size_t n = strlen(entry->d_name);

  for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
    if (n > strlen(ends[i]) && entry->d_name[0] != '.' &&
        strcmp(entry->d_name + n - strlen(ends[i]), ends[i]) == 0)
      return 1;
  return 0;
}

/* By bytes, so that the order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static char *join(const char *folder, const char *name) {
  const size_t n = strlen(folder) + strlen(name) + 2;
  char *path = malloc(n);

  if (path != NULL)
    snprintf(path, n, "%s/%s", folder, name);
  return path;
}

static int add_folder(train_input_t *input, const char *folder, char *why,
                      size_t n_why) {
  struct dirent **found = NULL;
  const int n = scandir(folder, &found, is_data, by_name);
  int status = 0;

  if (n <= 0)
    return fail(why, n_why, folder,
                n < 0 ? strerror(errno)
                      : "the folder has no file .jsonl, .jsonl.gz or "
                        ".jsonl.zst");
  for (int i = 0; i < n; i++) {
    if (status == 0 && append(input, join(folder, found[i]->d_name)) != 0)
      status = fail(why, n_why, folder, "out of memory");
    free(found[i]);
  }
  free(found);
  return status;
}

/* A pattern that nothing matches is the name of a file that is missing. */
static int add_pattern(train_input_t *input, const char *pattern, char *why,
                       size_t n_why) {
  glob_t found = {0};
  int status = glob(pattern, GLOB_NOCHECK, NULL, &found);

  if (status != 0)
    return fail(why, n_why, pattern, "the files cannot be listed");
  for (size_t i = 0; i < found.gl_pathc && status == 0; i++)
    if (append(input, strdup(found.gl_pathv[i])) != 0)
      status = fail(why, n_why, pattern, "out of memory");
  globfree(&found);
  return status;
}

int train_input_add(train_input_t *input, const char *word, char *why,
                    size_t n_why) {
  struct stat info;

  if (strcmp(word, "-") != 0) {
    if (stat(word, &info) != 0)
      return add_pattern(input, word, why, n_why);
    if (S_ISDIR(info.st_mode))
      return add_folder(input, word, why, n_why);
  }
  return append(input, strdup(word)) == 0
             ? 0
             : fail(why, n_why, word, "out of memory");
}

void train_input_free(train_input_t *input) {
  for (size_t i = 0; i < input->n; i++)
    free(input->names[i]);
  free(input->names);
}

/* ---- Compression ---- */

/* Returns NULL, or the reason of a failure. */
static const char *unzip(const char *name, FILE *out) {
  static char piece[PIECE];
  gzFile in = gzopen(name, "rb");
  const char *why = NULL;
  int n = 0;

  if (in == NULL)
    return "it cannot be opened";
  while (why == NULL && (n = gzread(in, piece, sizeof(piece))) > 0)
    if (fwrite(piece, 1, (size_t)n, out) != (size_t)n)
      why = strerror(errno);
  /* Closing reports a file that ends too early. */
  if ((gzclose(in) != Z_OK || n < 0) && why == NULL)
    why = "it is not a whole gzip file";
  return why;
}

static const char *unzstd(FILE *in, FILE *out) {
  static char piece[PIECE];
  tnk__unzstd_t stream;
  tnk__buf_t buf;
  size_t n;
  int err = TNK_OK;

  tnk__unzstd_init(&stream, tnk__allocator_default());
  tnk__buf_init(&buf, tnk__allocator_default(), SIZE_MAX / 2);
  while (err == TNK_OK && (n = fread(piece, 1, sizeof(piece), in)) > 0) {
    err = tnk__unzstd_feed(&stream, &buf, piece, n);
    if (err == TNK_OK && fwrite(buf.data, 1, buf.len, out) != buf.len)
      err = TNK_EFILE;
    tnk__buf_clear(&buf);
  }
  if (err == TNK_OK)
    err = ferror(in) ? TNK_EFILE : tnk__unzstd_finish(&stream);
  tnk__buf_deinit(&buf);
  tnk__unzstd_deinit(&stream);
  if (err == TNK_EFILE)
    return strerror(errno);
  return err == TNK_EPROTO   ? "it is not a whole zstd file"
         : err == TNK_ENOMEM ? "out of memory"
         : err != TNK_OK     ? tnk_strerror(err)
                             : NULL;
}

FILE *train_input_open(const char *name, char *why, size_t n_why) {
  unsigned char magic[4] = {0};
  FILE *in = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
  FILE *out;
  const char *wrong;
  int is_gzip;

  if (in == NULL)
    (void)fail(why, n_why, name, strerror(errno));
  /* A pipe cannot be read twice. */
  if (in == NULL || in == stdin || fseek(in, 0, SEEK_SET) != 0)
    return in;
  if (fread(magic, 1, sizeof(magic), in) < sizeof(magic))
    memset(magic, 0, sizeof(magic));
  rewind(in);
  is_gzip = magic[0] == 0x1f && magic[1] == 0x8b;
  if (!is_gzip && memcmp(magic, "\x28\xb5\x2f\xfd", sizeof(magic)) != 0)
    return in;
  out = tmpfile();
  wrong = out == NULL ? strerror(errno)
          : is_gzip   ? unzip(name, out)
                      : unzstd(in, out);
  fclose(in);
  if (wrong == NULL && (fflush(out) != 0 || fseek(out, 0, SEEK_SET) != 0))
    wrong = strerror(errno);
  if (wrong == NULL)
    return out;
  (void)fail(why, n_why, name, wrong);
  if (out != NULL)
    fclose(out);
  return NULL;
}
