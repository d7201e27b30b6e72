/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HUB_MODELS_H
#define TNK_TEST_HUB_MODELS_H

#include "hub/bench.h"
#include "lib/files/fetch/sha256.h"

/*
 * A scripted hub: what a few models have, with the headers of the real one.
 * Large files are redirected to the other origin with a signed address.
 */
#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define COMMIT2 "89abcdef0123456789abcdef0123456789abcdef"
/* The real hub's are hashes too; any safe text does. */
#define SMALL_ETAG "5f4dcc3b5aa765d61d8327deb882cf9900000000"

typedef struct {
  const char *model;
  const char *revision; /* that names the commit, besides itself */
  const char *commit;
  const char *file;
  const char *text;
  int is_large;
} model_entry_t;

typedef struct {
  bench_t *bench;
  const model_entry_t *entries;
  size_t n_entries;
  int is_down; /* 503 for all */
} models_t;

static inline void models_sum(char out[65], const char *text) {
  tnk__sha256_t sha;

  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, text, strlen(text));
  tnk__sha256_end(&sha, out);
}

static inline int is_entry(const model_entry_t *entry, const char *path,
                           int with_file) {
  char want[300];
  const char *const revisions[] = {entry->revision, entry->commit};

  for (size_t i = 0; i < 2; i++) {
    snprintf(want, sizeof(want), "/%s/resolve/%s/%s", entry->model,
             revisions[i], with_file ? entry->file : "");
    if (with_file ? strcmp(path, want) == 0
                  : strncmp(path, want, strlen(want)) == 0)
      return 1;
  }
  return 0;
}

static inline void models_reply(models_t *models, mock_request_t *request,
                                const model_entry_t *entry) {
  const int is_head = strcmp(request->method, "HEAD") == 0;
  const size_t n = strlen(entry->text);
  char headers[700];
  char sum[65];

  models_sum(sum, entry->text);
  if (entry->is_large) {
    snprintf(headers, sizeof(headers),
             "X-Repo-Commit: %s\r\nX-Linked-Etag: \"%s\"\r\n"
             "X-Linked-Size: %zu\r\nETag: \"other\"\r\n"
             "Location: %s/blob/%s?sig=" SIGNATURE "\r\n",
             entry->commit, sum, n, mock_url(models->bench->cdn), sum);
    mock_reply(request, 302, headers, NULL, 0);
    return;
  }
  snprintf(headers, sizeof(headers),
           "X-Repo-Commit: %s\r\nETag: \"" SMALL_ETAG
           "\"\r\n%s%zu%sConnection: %s\r\n",
           entry->commit, is_head ? "Content-Length: " : "X-Length: ", n,
           "\r\n", is_head ? "close" : "keep-alive");
  mock_reply(request, 200, headers, is_head ? NULL : entry->text,
             is_head ? 0 : n);
}

static inline void models_answer(mock_request_t *request, void *user) {
  models_t *models = user;
  const model_entry_t *same_model = NULL;
  char headers[200];

  if (models->is_down) {
    mock_reply(request, 503, NULL, NULL, 0);
    return;
  }
  for (size_t i = 0; i < models->n_entries; i++) {
    const model_entry_t *entry = &models->entries[i];
    if (is_entry(entry, request->path, 1)) {
      models_reply(models, request, entry);
      return;
    }
    if (is_entry(entry, request->path, 0))
      same_model = entry;
  }
  if (same_model != NULL)
    snprintf(headers, sizeof(headers),
             "X-Error-Code: EntryNotFound\r\nX-Repo-Commit: %s\r\n",
             same_model->commit);
  else
    snprintf(headers, sizeof(headers),
             "X-Error-Code: RepoNotFound\r\n"
             "X-Error-Message: Repository not found\r\n");
  mock_reply(request, same_model != NULL ? 404 : 401, headers, NULL, 0);
}

static inline void models_blob(mock_request_t *request, void *user) {
  const models_t *models = user;
  const char *want = strrchr(request->path, '/') + 1;
  char sum[65];

  CHECK(mock_header(request, "authorization") == NULL);
  for (size_t i = 0; i < models->n_entries; i++) {
    const char *text = models->entries[i].text;
    models_sum(sum, text);
    if (strcmp(sum, want) != 0)
      continue;
    mock_reply(request, 200, NULL, text, strlen(text));
    return;
  }
}

static inline void models_open(models_t *models, bench_t *bench,
                               const model_entry_t *entries, size_t n) {
  *models = (models_t){bench, entries, n, 0};
  mock_on(bench->mock, NULL, NULL, models_answer, models);
  mock_on(bench->cdn, NULL, NULL, models_blob, models);
}

/* A bench whose server is such a hub. */
typedef struct {
  bench_t bench;
  models_t models;
} stage_t;

static inline void stage_open(stage_t *stage, const model_entry_t *entries,
                              size_t n) {
  bench_open(&stage->bench);
  models_open(&stage->models, &stage->bench, entries, n);
}

/* Most tests are content with these. */
static const model_entry_t usual_entries[] = {
    {"org/model", "main", COMMIT, "small.json", "{\"small\":1}", 0},
    {"org/model", "main", COMMIT, "large.json", "{\"large\":2}", 1},
    {"org/model", "main", COMMIT, "copy.json", "{\"large\":2}", 1},
    {"org/model", "main", COMMIT, "sub/deep.json", "{\"deep\":3}", 0},
    {"org/model", "refs/pr%2F1", COMMIT2, "small.json", "{\"pr\":4}", 0},
    {"gpt2", "main", COMMIT, "small.json", "{\"one part\":5}", 0},
};
#define CACHE "cache/models--org--model/"
#define SMALL CACHE "snapshots/" COMMIT "/small.json"
#define LARGE CACHE "snapshots/" COMMIT "/large.json"
#define DEEP CACHE "snapshots/" COMMIT "/sub/deep.json"

static inline void stage_open_usual(stage_t *stage) {
  stage_open(stage, usual_entries,
             sizeof(usual_entries) / sizeof(usual_entries[0]));
}

static inline void wrong_blob(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, NULL, "{\"large\":3}", 11);
}

static inline void stage_ask(stage_t *stage, outcome_t *outcome,
                             const char *model, const char *file,
                             const char *revision) {
  tnk_hub_file_options_t options = TNK_HUB_FILE_OPTIONS_INIT;

  options.revision = revision;
  outcome_of(outcome, tnk_hub_file(stage->bench.hub, model, file, &options));
}

static inline void stage_get(stage_t *stage, outcome_t *outcome,
                             const char *model, const char *file,
                             const char *revision) {
  stage_ask(stage, outcome, model, file, revision);
  outcome_wait_long(&stage->bench, outcome);
}

/* A file that is to come to a path below the bench's folder. */
static inline void stage_get_ok(stage_t *stage, const char *model,
                                const char *file, const char *revision,
                                const char *path) {
  outcome_t outcome;
  char full[300];

  stage_get(stage, &outcome, model, file, revision);
  if (outcome.status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", outcome.text);
  snprintf(full, sizeof(full), "%s/%s", stage->bench.dir, path);
  CHECK_STR(tnk_promise_path(outcome.promise), full);
  outcome_drop(&outcome);
}

/* A file that is to be refused, with a word in the sentence. */
static inline void stage_get_not(stage_t *stage, const char *model,
                                 const char *file, const char *revision,
                                 int status, const char *word) {
  outcome_t outcome;

  stage_get(stage, &outcome, model, file, revision);
  if (outcome.status != status || strstr(outcome.text, word) == NULL)
    test_fail(__FILE__, __LINE__, "%s should speak of %s, with %d",
              outcome.text, word, status);
  outcome_drop(&outcome);
}

#endif
