/* SPDX-License-Identifier: MIT */
/*
 * The file has a header, the digest of its values, and the values as f32 in the
 * byte order of the machine. It appears with its whole contents, before the
 * first step.
 */
#include "tools/tnk/train/reference.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tnk/error.h"
#include "tnk/result.h"
#include "tools/common/base/digest.h"
#include "tools/tnk/train/args.h"

enum { FINE = 0, LOST = -1, IN_FLIGHT = 3 };

typedef struct {
  char magic[8];
  uint64_t lengths; /* digest of the lengths of the data */
  uint64_t n_values;
  uint64_t values; /* their digest */
} head_t;

static const char magic[8] = "tnkref1";

/* ---- The values of each example ---- */

static void place(train_reference_t *reference, const train_set_t *set,
                  const float **at) {
  for (size_t i = 0; i < set->n * set->per; i++) {
    const size_t n = set->data[i].input.n_tokens;

    at[i] = reference->values + reference->n_values;
    reference->n_values += n;
    reference->digest = cli_digest(reference->digest, &n, sizeof(n));
  }
}

static int prepare(train_reference_t *reference, const train_data_t *data) {
  /* They are in memory. */
  const size_t n = (size_t)(data->train.n_tokens + data->eval.n_tokens);

  *reference = (train_reference_t){
      .values = calloc(n, sizeof(float)),
      .train = calloc(data->train.n * data->train.per, sizeof(float *)),
      .eval = calloc(data->eval.n * data->eval.per + 1, sizeof(float *)),
      .digest = CLI_DIGEST_INIT,
  };
  if (reference->values == NULL || reference->train == NULL ||
      reference->eval == NULL)
    return 0;
  place(reference, &data->train, reference->train);
  place(reference, &data->eval, reference->eval);
  return 1;
}

/* ---- The file ---- */

static head_t head_of(const train_reference_t *reference) {
  head_t head = {
      .lengths = reference->digest,
      .n_values = reference->n_values,
      .values = cli_digest(CLI_DIGEST_INIT, reference->values,
                           reference->n_values * sizeof(*reference->values))};

  memcpy(head.magic, magic, sizeof(magic));
  return head;
}

/* Returns 1 if the file has the values, 0 if there is no file, and -1 for
 * another file. */
static int read_values(train_reference_t *reference, const char *path) {
  FILE *file = fopen(path, "rb");
  head_t head, expected;
  int is_right;

  if (file == NULL)
    return errno == ENOENT ? 0 : -1;
  is_right = fread(&head, sizeof(head), 1, file) == 1 &&
             head.n_values == reference->n_values &&
             fread(reference->values, sizeof(float), reference->n_values,
                   file) == reference->n_values;
  fclose(file);
  expected = head_of(reference);
  if (is_right && memcmp(&head, &expected, sizeof(head)) == 0)
    return 1;
  errno = 0;
  return -1;
}

static int write_values(const train_reference_t *reference, const char *path) {
  const head_t head = head_of(reference);
  char name[4096];
  FILE *file;
  int is_ok;

  if ((size_t)snprintf(name, sizeof(name), "%s.new", path) >= sizeof(name)) {
    errno = ENAMETOOLONG;
    return 0;
  }
  file = fopen(name, "wb");
  if (file == NULL)
    return 0;
  is_ok = fwrite(&head, sizeof(head), 1, file) == 1 &&
          fwrite(reference->values, sizeof(float), reference->n_values, file) ==
              reference->n_values &&
          fflush(file) == 0 && fsync(fileno(file)) == 0;
  is_ok = (fclose(file) == 0) && is_ok;
  return is_ok && rename(name, path) == 0;
}

/* ---- Computing ---- */

typedef struct {
  cli_ask_t *ask;
  tnk_training_t *model;
  tnk_datum_t *data; /* those whose values are needed */
  float **out;
  size_t n;
  size_t n_pass; /* data of a pass */
  tnk_promise_t *flight[IN_FLIGHT];
} work_t;

static void need(work_t *work, train_reference_t *reference,
                 const tnk_datum_t *datum, const float *out) {
  work->data[work->n] = *datum;
  work->out[work->n++] = reference->values + (out - reference->values);
}

/* The data of a short run are the first ones of its first epoch. */
static void collect(work_t *work, train_reference_t *reference,
                    const train_data_t *data, const tnk_plan_t *plan) {
  const uint64_t n_train = data->train.n;
  const uint64_t n_used =
      tnk_plan_total(plan) < n_train ? tnk_plan_total(plan) : n_train;
  const size_t per = data->train.per;

  for (uint64_t i = 0; i < n_used; i++) {
    const uint64_t at = tnk_shuffle((uint64_t)train_args.seed, 0, n_train, i);

    for (uint64_t part = at * per; part < (at + 1) * per; part++)
      need(work, reference, &data->train.data[part], reference->train[part]);
  }
  for (size_t i = 0; i < data->eval.n * data->eval.per; i++)
    need(work, reference, &data->eval.data[i], reference->eval[i]);
}

static size_t pass_size(const work_t *work, size_t begin) {
  return work->n - begin < work->n_pass ? work->n - begin : work->n_pass;
}

static int take(const work_t *work, const tnk_promise_t *promise,
                size_t begin) {
  const tnk_pass_t *pass = tnk_promise_pass(promise);

  for (size_t i = 0; i < pass_size(work, begin); i++) {
    const size_t n = work->data[begin + i].input.n_tokens;
    const tnk_tensor_t *logprobs = tnk_pass_tensor(pass, i, "logprobs");

    if (logprobs == NULL || logprobs->dtype != TNK_F32 ||
        logprobs->crow != NULL || logprobs->n_values != n)
      return cli_fail(work->ask->cli, CLI_EXIT_FAILED,
                      "the service has not returned the logprobs that "
                      "--method dpo needs");
    memcpy(work->out[begin + i], logprobs->data, n * sizeof(float));
  }
  return FINE;
}

static int await(const work_t *work, tnk_promise_t **promise, size_t begin) {
  int result = FINE;

  if (cli_ask_wait(work->ask, *promise) == TNK_OK)
    result = take(work, *promise, begin);
  else if (tnk_promise_status(*promise) == TNK_ESESSION)
    result = LOST;
  else
    result = cli_ask_failed(work->ask, *promise);
  tnk_promise_unref(*promise);
  *promise = NULL;
  return result;
}

static int run_passes(work_t *work) {
  const size_t n_passes = (work->n - 1) / work->n_pass + 1;
  size_t n_begun = 0;
  int result = FINE;

  for (size_t n_done = 0; n_done < n_passes && result == FINE; n_done++) {
    for (; n_begun < n_passes && n_begun < n_done + IN_FLIGHT; n_begun++)
      work->flight[n_begun % IN_FLIGHT] =
          tnk_training_forward(work->model, work->data + n_begun * work->n_pass,
                               pass_size(work, n_begun * work->n_pass), NULL);
    result =
        await(work, &work->flight[n_done % IN_FLIGHT], n_done * work->n_pass);
  }
  for (size_t i = 0; i < IN_FLIGHT; i++) {
    if (result == LOST && work->flight[i] != NULL)
      (void)cli_ask_wait(work->ask, work->flight[i]);
    tnk_promise_unref(work->flight[i]);
    work->flight[i] = NULL;
  }
  return result;
}

/* A lost model is created again with the same weights. */
static int compute(work_t *work) {
  int result;

  while ((result = run_passes(work)) == LOST) {
    tnk_promise_t *ready = tnk_training_ready(work->model);
    const int err = cli_ask_wait(work->ask, ready);

    if (err != TNK_OK)
      result = cli_ask_failed(work->ask, ready);
    tnk_promise_unref(ready);
    if (err != TNK_OK)
      return result;
  }
  return result;
}

static int make(train_reference_t *reference, cli_ask_t *ask,
                tnk_training_t *model, const train_data_t *data,
                const tnk_plan_t *plan) {
  const size_t n =
      data->train.n * data->train.per + data->eval.n * data->eval.per;
  work_t work = {.ask = ask,
                 .model = model,
                 .data = calloc(n, sizeof(tnk_datum_t)),
                 .out = calloc(n, sizeof(float *)),
                 .n_pass = (size_t)tnk_plan_max_count(plan) * data->train.per};
  int status;

  if (work.data == NULL || work.out == NULL) {
    status = cli_fail(ask->cli, CLI_EXIT_FAILED, "out of memory");
  } else {
    collect(&work, reference, data, plan);
    cli_note(ask->cli, "computing the reference logprobs of %zu pairs",
             work.n / data->train.per);
    status = compute(&work);
  }
  free(work.data);
  free(work.out);
  return status;
}

int train_reference_open(train_reference_t *reference, cli_ask_t *ask,
                         const char *path, tnk_training_t *model,
                         const train_data_t *data, const tnk_plan_t *plan,
                         uint64_t first) {
  int found;
  int status = CLI_EXIT_OK;

  if (!prepare(reference, data))
    return cli_fail(ask->cli, CLI_EXIT_FAILED, "out of memory");
  found = read_values(reference, path);
  if (found < 0)
    return cli_fail(ask->cli, CLI_EXIT_FILE, "%s: %s", path,
                    errno != 0 ? strerror(errno)
                               : "these are not the reference logprobs of this "
                                 "run");
  if (found == 0 && first > 0)
    return cli_fail(ask->cli, CLI_EXIT_FILE,
                    "%s: it is missing, and the model is already trained",
                    path);
  if (found > 0)
    return CLI_EXIT_OK;
  status = make(reference, ask, model, data, plan);
  if (status == CLI_EXIT_OK && !write_values(reference, path))
    status = cli_fail(ask->cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
  return status;
}

void train_reference_free(train_reference_t *reference) {
  free(reference->values);
  free(reference->train);
  free(reference->eval);
}
