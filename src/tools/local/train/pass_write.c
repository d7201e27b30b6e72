#include "tools/local/train/pass_write.h"

#include <string.h>

#include "lib/wire/format/pb.h"

/*
 * Every example has one output, "logprobs". A record holds consecutive examples
 * with the same number of targets, because the record has the trailing shape.
 */

typedef struct {
  const local_pass_t *pass;
  size_t first;
  size_t n;
} run_t;

static size_t n_values(const local_pass_t *pass, size_t i) {
  return pass->data[i].n_tokens * pass->data[i].n_targets;
}

static void put_data(tnk__pb_t *pb, const run_t *run) {
  size_t n = 0;
  uint8_t *at;

  for (size_t i = 0; i < run->n; i++)
    n += n_values(run->pass, run->first + i);
  at = tnk__pb_open(pb, 1, n * sizeof(float));
  for (size_t i = 0; at != NULL && i < run->n; i++) {
    size_t size = n_values(run->pass, run->first + i) * sizeof(float);

    memcpy(at, run->pass->logprobs[run->first + i], size);
    at += size;
  }
}

static void put_offsets(tnk__pb_t *pb, const run_t *run) {
  uint8_t *at = tnk__pb_open(pb, 2, (run->n + 1) * sizeof(int64_t));
  int64_t offset = 0;

  for (size_t i = 0; at != NULL && i <= run->n; i++) {
    memcpy(at, &offset, sizeof(offset));
    at += sizeof(offset);
    if (i < run->n)
      offset += (int64_t)(n_values(run->pass, run->first + i) * sizeof(float));
  }
}

static void batched(tnk__pb_t *pb, const void *message) {
  const run_t *run = message;
  int64_t n_targets = (int64_t)run->pass->data[run->first].n_targets;

  put_data(pb, run);
  put_offsets(pb, run);
  tnk__pb_varint(pb, 3, 1); /* float32 */
  if (n_targets > 1)
    tnk__pb_packed(pb, 4, &n_targets, 1);
}

static void entry(tnk__pb_t *pb, const void *message) {
  tnk__pb_text(pb, 1, "logprobs");
  tnk__pb_message(pb, 2, batched, message);
}

static void record(tnk__pb_t *pb, const void *message) {
  const run_t *run = message;

  tnk__pb_message(pb, 2, entry, run);
  tnk__pb_varint(pb, 3, run->n);
}

static void metric(tnk__pb_t *pb, const void *message) {
  const local_pass_t *pass = message;

  tnk__pb_text(pb, 1, "loss:sum");
  tnk__pb_double(pb, 2, pass->loss_sum);
}

static void output(tnk__pb_t *pb, const local_pass_t *pass) {
  run_t run = {pass, 0, 0};

  tnk__pb_text(pb, 1, "scalar");
  /* Usually one record: the examples of a pass are alike. */
  while (run.first < pass->n) {
    run.n = 1;
    while (run.first + run.n < pass->n &&
           pass->data[run.first + run.n].n_targets ==
               pass->data[run.first].n_targets)
      run.n++;
    tnk__pb_message(pb, 2, record, &run);
    run.first += run.n;
  }
  tnk__pb_message(pb, 3, metric, pass);
}

void local_pass_write(tnk__buf_t *out, const local_pass_t *pass) {
  tnk__pb_t pb = {0};

  output(&pb, pass);
  pb = tnk__pb_whole(tnk__buf_reserve(out, pb.n));
  if (pb.at == NULL)
    return;
  output(&pb, pass);
  out->len += pb.n;
}
