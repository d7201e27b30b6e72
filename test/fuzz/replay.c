/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

/*
 * Runs a target over every file of the directories given: the file itself,
 * what is left when it is cut short, and some hundred variants with a few
 * bytes changed, always the same ones.
 */
enum { MAX_FILE = 1 << 20, N_CUTS = 64, N_VARIANTS = 200 };

static uint64_t next(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/* An exact copy each time, so that a sanitizer sees a byte too far. */
static void run(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size > 0 ? size : 1);

  FUZZ_CHECK(copy != NULL);
  memcpy(copy, data, size);
  LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

static void run_variants(const uint8_t *data, size_t size, uint8_t *work) {
  uint64_t state = size;
  size_t i, k;

  for (i = 0; size > 0 && i < N_VARIANTS; i++) {
    memcpy(work, data, size);
    for (k = 0; k < 1 + i % 4; k++)
      work[next(&state) % size] = (uint8_t)next(&state);
    run(work, size);
  }
}

static int run_file(const char *path) {
  static uint8_t data[MAX_FILE], work[MAX_FILE];
  FILE *file = fopen(path, "rb");
  size_t size, i;

  if (file == NULL) {
    fprintf(stderr, "cannot open %s\n", path);
    return 1;
  }
  size = fread(data, 1, sizeof(data), file);
  fclose(file);
  run(data, size);
  for (i = 0; i < N_CUTS; i++)
    run(data, size * i / N_CUTS);
  run_variants(data, size, work);
  return 0;
}

static int run_directory(const char *path, int *n_files) {
  DIR *directory = opendir(path);
  struct dirent *entry;
  char name[4096];
  int failed = 0;

  if (directory == NULL) {
    fprintf(stderr, "cannot open %s\n", path);
    return 1;
  }
  while ((entry = readdir(directory)) != NULL) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
    failed |= run_file(name);
    ++*n_files;
  }
  closedir(directory);
  return failed;
}

int main(int argc, char **argv) {
  int n_files = 0;
  int failed = 0;
  int i;

  for (i = 1; i < argc; i++)
    failed |= run_directory(argv[i], &n_files);
  printf("%d files\n", n_files);
  /* An empty corpus would prove nothing. */
  return failed || n_files == 0;
}
