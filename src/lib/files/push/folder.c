/* SPDX-License-Identifier: MIT */
#include "lib/files/push/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/text.h"
#include "lib/files/push/card.h"
#include "lib/wire/format/relative.h"
#include "tnk/error.h"

enum { MAX_PATH = 4096, MAX_CONFIG = 1 << 20, READ_SIZE = 256 * 1024 };

void tnk__folder_init(tnk__folder_t *folder, const tnk_allocator_t *alloc,
                      const char *path, const tnk_push_options_t *options) {
  memset(folder, 0, sizeof(*folder));
  folder->alloc = alloc;
  folder->path = path;
  folder->options = options;
  tnk__arena_init(&folder->arena, alloc, 2 * (size_t)TNK__PUSH_MAX_REGULAR);
}

void tnk__folder_deinit(tnk__folder_t *folder) {
  tnk__free(folder->alloc, folder->files);
  tnk__arena_deinit(&folder->arena);
}

static void fail(tnk__folder_t *folder, int err, int cause, const char *what,
                 const char *name) {
  tnk__text_t why;

  if (folder->err != TNK_OK)
    return;
  folder->err = err;
  folder->cause = cause;
  tnk__text_init(&why, folder->why, sizeof(folder->why));
  tnk__text_printf(&why, "%s%s%.200s", name, name[0] != '\0' ? " " : "", what);
}

static int goes_on(tnk__folder_t *folder) {
  if (atomic_load(&folder->is_unwanted))
    fail(folder, TNK_ECANCELED, 0, "", "");
  return folder->err == TNK_OK;
}

static int join(char out[MAX_PATH], const tnk__folder_t *folder,
                const char *name) {
  const int n = snprintf(out, MAX_PATH, "%s/%s", folder->path, name);

  return n > 0 && n < MAX_PATH;
}

/* ---- The list of files ---- */

static tnk__push_file_t *add(tnk__folder_t *folder, const char *name) {
  tnk__push_file_t *file;

  if (folder->n_files == TNK__PUSH_MAX_FILES) {
    fail(folder, TNK_EINVAL, 0, "there are too many files", "");
    return NULL;
  }
  if (folder->n_files == folder->max_files) {
    const size_t max = folder->max_files * 2 + 16;
    tnk__push_file_t *files = tnk__realloc(folder->alloc, folder->files,
                                           max * sizeof(*folder->files));
    if (files == NULL) {
      fail(folder, TNK_ENOMEM, 0, "", "");
      return NULL;
    }
    folder->files = files;
    folder->max_files = max;
  }
  file = &folder->files[folder->n_files];
  memset(file, 0, sizeof(*file));
  file->name = tnk__arena_strdup(&folder->arena, name);
  if (file->name == NULL) {
    fail(folder, TNK_ENOMEM, 0, "", "");
    return NULL;
  }
  folder->n_files++;
  return file;
}

static void add_on_disk(tnk__folder_t *folder, const char *name,
                        uint64_t n_bytes) {
  const char *wrong = tnk__relative_check(name, strlen(name));
  tnk__push_file_t *file;

  if (wrong != NULL) {
    fail(folder, TNK_EINVAL, 0, wrong, name);
    return;
  }
  file = add(folder, name);
  if (file != NULL)
    file->n_bytes = n_bytes;
}

/* Python's library ignores these files too. */
static int is_of_git(const char *name) {
  const char *last = strrchr(name, '/');

  return strcmp(last != NULL ? last + 1 : name, ".git") == 0 ||
         strcmp(name, ".cache/huggingface") == 0;
}

static void walk(tnk__folder_t *folder, const char *below, int depth);

static void visit(tnk__folder_t *folder, const char *name, int depth) {
  char path[MAX_PATH];
  struct stat is;

  if (!join(path, folder, name) || stat(path, &is) != 0) {
    fail(folder, TNK_EFILE, -errno, "cannot be examined", name);
    return;
  }
  if (S_ISREG(is.st_mode))
    add_on_disk(folder, name, (uint64_t)is.st_size);
  else if (S_ISDIR(is.st_mode) && !is_of_git(name))
    walk(folder, name, depth + 1);
}

static void walk(tnk__folder_t *folder, const char *below, int depth) {
  char path[MAX_PATH];
  char name[TNK__RELATIVE_MAX + 260];
  struct dirent *entry;
  DIR *dir;

  if (depth > TNK__RELATIVE_MAX_PARTS) {
    fail(folder, TNK_EINVAL, 0, "is too deep", below);
    return;
  }
  dir = join(path, folder, below) ? opendir(path) : NULL;
  if (dir == NULL) {
    fail(folder, TNK_EFILE, -errno, "the directory cannot be read", below);
    return;
  }
  while (goes_on(folder) && (entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    if (strlen(below) > TNK__RELATIVE_MAX || strlen(entry->d_name) > 255) {
      fail(folder, TNK_EINVAL, 0, "has too long a name", below);
      break;
    }
    snprintf(name, sizeof(name), "%s%s%s", below, below[0] != '\0' ? "/" : "",
             entry->d_name);
    visit(folder, name, depth);
  }
  closedir(dir);
}

static tnk__push_file_t *find(const tnk__folder_t *folder, const char *name) {
  for (size_t i = 0; i < folder->n_files; i++)
    if (strcmp(folder->files[i].name, name) == 0)
      return &folder->files[i];
  return NULL;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const tnk__push_file_t *)a)->name,
                ((const tnk__push_file_t *)b)->name);
}

/* ---- Selection ---- */

static int fits(const char *pattern, const char *name) {
  char below[TNK__RELATIVE_MAX + 2];
  const size_t n = strlen(pattern);

  if (n > 0 && pattern[n - 1] == '/' && n < TNK__RELATIVE_MAX) {
    snprintf(below, sizeof(below), "%s*", pattern);
    pattern = below;
  }
  return fnmatch(pattern, name, FNM_NOESCAPE) == 0;
}

static int fits_any(const char *const *patterns, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (fits(patterns[i], name))
      return 1;
  return 0;
}

static int is_wanted(const tnk_push_options_t *o, const char *name) {
  if (o->n_allow > 0 && !fits_any(o->allow, o->n_allow, name))
    return 0;
  if (o->n_allow == 0 && strcmp(name, "checkpoint_complete") == 0)
    return 0;
  return !fits_any(o->ignore, o->n_ignore, name);
}

static void filter(tnk__folder_t *folder) {
  size_t n = 0;

  for (size_t i = 0; i < folder->n_files; i++)
    if (is_wanted(folder->options, folder->files[i].name))
      folder->files[n++] = folder->files[i];
  folder->n_files = n;
  if (n == 0)
    fail(folder, TNK_EINVAL, 0, "there is no file to push", "");
}

/* ---- Reading ---- */

/* Open a file and read up to n bytes. Returns -1 and records the error. */
static ssize_t read_front(tnk__folder_t *folder, const char *name, void *out,
                          size_t n) {
  char path[MAX_PATH];
  const int fd =
      join(path, folder, name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  size_t got = 0;
  ssize_t step = 1;

  while (fd >= 0 && got < n && step > 0) {
    step = read(fd, (char *)out + got, n - got);
    if (step > 0)
      got += (size_t)step;
  }
  if (fd < 0 || step < 0)
    fail(folder, TNK_EFILE, -errno, "cannot be read", name);
  if (fd >= 0)
    close(fd);
  return folder->err == TNK_OK ? (ssize_t)got : -1;
}

/* Read a whole file. Returns NULL and records the error. */
static char *read_all(tnk__folder_t *folder, const tnk__push_file_t *file) {
  char *content = tnk__arena_alloc(&folder->arena, (size_t)file->n_bytes + 1);
  ssize_t n;

  if (content == NULL) {
    fail(folder, TNK_ENOMEM, 0, "", "");
    return NULL;
  }
  n = read_front(folder, file->name, content, (size_t)file->n_bytes + 1);
  if (n < 0)
    return NULL;
  if ((uint64_t)n != file->n_bytes) {
    fail(folder, TNK_EFILE, 0, "changed while it was being read", file->name);
    return NULL;
  }
  content[n] = '\0';
  return content;
}

/* Use generated content instead of the file on the disk. */
static void keep(tnk__folder_t *folder, tnk__push_file_t *file,
                 tnk__buf_t *text) {
  if (text->err == TNK_OK && text->len > 0) {
    file->content = tnk__arena_copy(&folder->arena, text->data, text->len);
    file->n_bytes = text->len;
  }
  if (text->err != TNK_OK || (text->len > 0 && file->content == NULL))
    fail(folder, TNK_ENOMEM, 0, "", "");
  tnk__buf_deinit(text);
}

static void mend_config(tnk__folder_t *folder, tnk__push_file_t *config) {
  tnk__buf_t text;
  char *is;

  if (config->n_bytes > MAX_CONFIG)
    return;
  is = read_all(folder, config);
  if (is == NULL)
    return;
  tnk__buf_init(&text, folder->alloc, (size_t)4 * MAX_CONFIG);
  text.err = tnk__push_config(&text, is, (size_t)config->n_bytes,
                              folder->options->base_model);
  keep(folder, config, &text);
}

static void add_card(tnk__folder_t *folder, const char *repo) {
  tnk__push_file_t *card = add(folder, "README.md");
  tnk__buf_t text;

  if (card == NULL)
    return;
  tnk__buf_init(&text, folder->alloc, MAX_CONFIG);
  tnk__push_card(&text, repo, folder->options);
  keep(folder, card, &text);
}

static void take_sample(tnk__folder_t *folder, tnk__push_file_t *file) {
  ssize_t n;

  if (file->content == NULL) {
    n = read_front(folder, file->name, file->sample, sizeof(file->sample));
    file->n_sample = n > 0 ? (size_t)n : 0;
    return;
  }
  file->n_sample = file->n_bytes < sizeof(file->sample) ? (size_t)file->n_bytes
                                                        : sizeof(file->sample);
  memcpy(file->sample, file->content, file->n_sample);
}

void tnk__folder_scan(tnk__folder_t *folder) {
  walk(folder, "", 0);
  if (!goes_on(folder))
    return;
  if (find(folder, "adapter_config.json") == NULL ||
      (find(folder, "adapter_model.safetensors") == NULL &&
       find(folder, "adapter_model.bin") == NULL)) {
    fail(folder, TNK_EINVAL, 0,
         "the directory has no adapter: it needs adapter_config.json and "
         "adapter_model.safetensors or .bin, not encrypted",
         "");
    return;
  }
  mend_config(folder, find(folder, "adapter_config.json"));
  for (size_t i = 0; i < folder->n_files && goes_on(folder); i++)
    take_sample(folder, &folder->files[i]);
}

void tnk__folder_choose(tnk__folder_t *folder, const char *repo) {
  if (folder->options->model_card != TNK_NO &&
      find(folder, "README.md") == NULL) {
    add_card(folder, repo);
    if (folder->err == TNK_OK)
      take_sample(folder, &folder->files[folder->n_files - 1]);
  }
  if (folder->err == TNK_OK)
    filter(folder);
  if (folder->err == TNK_OK)
    qsort(folder->files, folder->n_files, sizeof(*folder->files), by_name);
}

/* ---- Contents ---- */

static void add_up(tnk__folder_t *folder, tnk__push_file_t *file,
                   tnk__sha256_t *sha, char *room) {
  char path[MAX_PATH];
  const int fd =
      join(path, folder, file->name) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  uint64_t total = 0;
  ssize_t n = 1;

  while (fd >= 0 && n > 0 && goes_on(folder)) {
    n = read(fd, room, READ_SIZE);
    if (n > 0) {
      tnk__sha256_add(sha, room, (size_t)n);
      total += (uint64_t)n;
    }
  }
  if (fd < 0 || n < 0)
    fail(folder, TNK_EFILE, -errno, "cannot be read", file->name);
  else if (goes_on(folder) && total != file->n_bytes)
    fail(folder, TNK_EFILE, 0, "changed while it was being read", file->name);
  if (fd >= 0)
    close(fd);
}

static void find_sum(tnk__folder_t *folder, tnk__push_file_t *file,
                     char *room) {
  tnk__sha256_t sha;

  tnk__sha256_init(&sha);
  if (file->content != NULL)
    tnk__sha256_add(&sha, file->content, (size_t)file->n_bytes);
  else
    add_up(folder, file, &sha, room);
  tnk__sha256_end(&sha, file->sum);
  if (folder->err == TNK_OK && file->sum[0] == '\0')
    fail(folder, TNK_EINTERNAL, 0, "has no checksum", file->name);
}

void tnk__folder_read(tnk__folder_t *folder) {
  char *room = tnk__malloc(folder->alloc, READ_SIZE);
  uint64_t total = 0;

  if (room == NULL)
    fail(folder, TNK_ENOMEM, 0, "", "");
  for (size_t i = 0; i < folder->n_files && goes_on(folder); i++) {
    tnk__push_file_t *file = &folder->files[i];
    if (file->mode == TNK__PUSH_LARGE) {
      find_sum(folder, file, room);
      continue;
    }
    if (file->mode == TNK__PUSH_LEFT_OUT)
      continue;
    total += file->n_bytes;
    if (total > TNK__PUSH_MAX_REGULAR)
      fail(folder, TNK_ETOOBIG, 0,
           "is too much for a commit, where the hub wants it", file->name);
    else if (file->content == NULL)
      file->content = read_all(folder, file);
  }
  tnk__free(folder->alloc, room);
}

const tnk__push_file_t *tnk__folder_find_sum(const tnk__folder_t *folder,
                                             const char *sum) {
  for (size_t i = 0; sum != NULL && i < folder->n_files; i++)
    if (folder->files[i].mode == TNK__PUSH_LARGE &&
        strcmp(folder->files[i].sum, sum) == 0)
      return &folder->files[i];
  return NULL;
}

tnk__error_t *tnk__folder_error(const tnk__folder_t *folder) {
  tnk__error_t *error =
      folder->why[0] == '\0'
          ? tnk__error_static(folder->err)
          : tnk__error_new(folder->alloc, folder->err, "push: %s", folder->why);

  if (error->refs > 0)
    error->pub.cause = folder->cause;
  return error;
}
