/* SPDX-License-Identifier: MIT */
/* Training operations, and requests of no client, in every state. */
#include "task/matrix.h"

/* ---- Into the states of training ---- */

static tnk_promise_t *in_line(cell_t *cell) {
  hold(cell, STEP);
  other(cell, script_step(&cell->script));
  return start_turns(cell);
}

static tnk_promise_t *pays(cell_t *cell) {
  tnk_promise_t *promise;

  hold(cell, FB);
  promise = script_pass(&cell->script, 3);
  turns(cell);
  return promise;
}

static void block(uv_work_t *work) {
  uv_sem_wait(work->data);
}

static void unblocked(uv_work_t *work, int status) {
  (void)work;
  (void)status;
}

static tnk_promise_t *packs(cell_t *cell) {
  tnk_promise_t *promise;

  CHECK_INT(uv_sem_init(&cell->gate, 0), 0);
  for (; cell->n_blocked < 4; cell->n_blocked++) {
    cell->blockers[cell->n_blocked].data = &cell->gate;
    CHECK_INT(uv_queue_work(&cell->script.uv, &cell->blockers[cell->n_blocked],
                            block, unblocked),
              0);
  }
  promise = script_pass(&cell->script, 1);
  turns(cell);
  return promise;
}

static tnk_promise_t *half_sent(cell_t *cell) {
  static int64_t targets[BIG];
  tnk_loss_input_t input = {"target_tokens", tnk_tensor_i64(targets, BIG)};
  tnk_datum_t datum = {.input = {.chunks = big_chunk(), .n_chunks = 1}};
  tnk_promise_t *promise;

  datum.loss_inputs = &input;
  datum.n_loss_inputs = 1;
  mock_set_reading(cell->script.mock, 0);
  promise =
      tnk_training_forward_backward(cell->script.training, &datum, 1, NULL);
  until(cell, promise, cell->state->says);
  return promise;
}

static tnk_promise_t *chunk_of_many(cell_t *cell) {
  tnk_promise_t *promise;

  hold(cell, FB);
  hold(cell, POLL);
  mock_once(cell->script.mock, "POST", FB, script_accept, &cell->script);
  promise = script_pass(&cell->script, 4);
  turns(cell);
  return promise;
}

static int loss(tnk_custom_loss_t *io, void *user) {
  (void)user;
  io->gradients[0][0] = 0.5f;
  return 0;
}

static tnk_promise_t *custom(cell_t *cell) {
  tnk_promise_t *promise = tnk_training_forward_backward_custom(
      cell->script.training, script_data(1), 1, loss, NULL, NULL);

  turns(cell);
  return promise;
}

static tnk_promise_t *custom_forward(cell_t *cell) {
  hold(cell, POLL);
  return custom(cell);
}

static tnk_promise_t *custom_backward(cell_t *cell) {
  tnk_promise_t *promise = custom_forward(cell);

  script_result(last(cell, POLL), &cell->script);
  turns(cell);
  return promise;
}

/* ---- Into the states of what belongs to no client ---- */

static tnk_promise_t *r_starts_up(cell_t *cell) {
  hold(cell, "/api/v1/client/config");
  return create(cell);
}

static tnk_promise_t *r_submitted(cell_t *cell) {
  hold(cell, "/api/v1/create_model");
  return create(cell);
}

static tnk_promise_t *r_polls(cell_t *cell) {
  hold(cell, POLL);
  return create(cell);
}

static tnk_promise_t *r_asks_info(cell_t *cell) {
  hold(cell, "/api/v1/get_info");
  return create(cell);
}

static tnk_promise_t *r_created(cell_t *cell) {
  return create(cell);
}

/* ---- The tables ---- */

static const state_t training_states[] = {
    {"waits for its turn", "waits for its turn",
     "optim_step: waits for its turn behind 1 operation, since 0 ms; the first "
     "of them, optim_step, waits for the server's answer, attempt 1, since 0 "
     "ms",
     NULL, in_line},
    {"has its turn", "has its turn",
     "optim_step: has its turn and is about to be sent", NULL, start},
    {"waits for bytes", "waits for bytes",
     "forward_backward: part 3 of 3 (0 accepted, 0 done) waits for bytes of "
     "the dispatch budget (24 of 1 are taken, 0 ahead of it), since 0 ms; part "
     "2, the first of 1 on the way, waits for the server's answer, attempt 1, "
     "since 0 ms",
     "{\"fwdbwd_dispatch_bytes_semaphore_size\":1,\"fwdbwd_max_chunk_len\":1}",
     pays},
    {"is compressed", "is being compressed",
     "forward_backward: is being compressed (84 bytes), since 0 ms",
     "{\"proto_compress_fwdbwd\":true}", packs},
    {"connects", "waits for a connection",
     "optim_step: waits for a connection to 127.0.0.1:* (1 on the way), "
     "attempt 1, since 0 ms",
     NULL, connects},
    {"is half sent", "is being sent",
     "forward_backward: is being sent, *% of *, attempt 1, since 0 ms", NULL,
     half_sent},
    {"is submitted", "waits for the server's answer",
     "optim_step: waits for the server's answer, attempt 1, since 0 ms", NULL,
     submitted},
    {"its acceptance comes", "receives the server's answer",
     "optim_step: receives the server's answer, 1 bytes so far, attempt 1, "
     "since 0 ms",
     NULL, acceptance_comes},
    {"pauses before a repeat", "pauses after attempt 1",
     "optim_step: pauses after attempt 1 failed (HTTP 503), attempt 2 follows "
     "in *s",
     NULL, repeats},
    {"some chunks accepted", "part ",
     "forward_backward: part 2 of 4 (1 accepted, 0 done) waits for the "
     "server's answer, attempt 1, since 0 ms",
     "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}",
     chunk_of_many},
    {"some, side by side", "part ",
     "forward_backward: part 3 of 4 (1 accepted, 0 done) waits for the "
     "server's answer, attempt 1, since 0 ms",
     "{\"fwdbwd_max_chunk_len\":1}", chunk_of_many},
    {"is polled", "poll 1 of its result waits",
     "optim_step: was accepted 0 ms ago as optim_step:1:0; poll 1 of its "
     "result waits for the server's answer, attempt 1, since 0 ms",
     NULL, polls},
    {"pauses between polls", "of its result follows in",
     "optim_step: was accepted 0 ms ago as optim_step:1:0; poll 2 of its "
     "result follows in *s; the last poll failed (HTTP *)",
     NULL, polls_later},
    {"waits for room", "waits for room",
     "optim_step: was accepted 0 ms ago as optim_step:2:0; its result of 900 "
     "bytes is ready and waits for room: 900 of the 1 bytes for results are "
     "taken",
     "{\"inflight_response_bytes_semaphore_size\":1}", wants_room},
    {"its result comes", "receives the server's answer",
     "optim_step: was accepted 0 ms ago as optim_step:1:0; poll 1 of its "
     "result receives the server's answer, 1 bytes so far, attempt 1, since 0 "
     "ms",
     NULL, result_comes},
    {"custom loss, forward", "poll 1 of its result waits",
     "forward_backward_custom: was accepted 0 ms ago as forward_backward:1:1; "
     "poll 1 of its result waits for the server's answer, attempt 1, since 0 "
     "ms",
     NULL, custom_forward},
    {"custom loss, backward", "poll 1 of its result waits",
     "forward_backward_custom: was accepted 0 ms ago as forward_backward:2:1; "
     "poll 1 of its result waits for the server's answer, attempt 1, since 0 "
     "ms",
     NULL, custom_backward},
    {"has settled", SETTLED, SETTLED, NULL, start_turns},
};

static const state_t request_states[] = {
    {"the session starts up", "waits for the session",
     "create_lora: waits for the session to be set up; client/config waits for "
     "the server's answer, attempt 1, since 0 ms",
     NULL, r_starts_up},
    {"is submitted", "waits for the server's answer",
     "create_lora: waits for the server's answer, attempt 1, since 0 ms", NULL,
     r_submitted},
    {"is polled", "poll 1 of its result waits",
     "create_lora: was accepted 0 ms ago as create_model:*:0; poll 1 of its "
     "result waits for the server's answer, attempt 1, since 0 ms",
     NULL, r_polls},
    {"asks for the details", "waits for the server's answer",
     "create_lora: get_info waits for the server's answer, attempt 1, since 0 "
     "ms",
     NULL, r_asks_info},
    {"has settled", SETTLED, SETTLED, NULL, r_created},
};

TEST_LIMIT(S1_7_training_in_every_state, 120) {
  run_table(TRAINING, "training operation", training_states,
            sizeof(training_states) / sizeof(training_states[0]));
}

TEST_LIMIT(S1_7_request_in_every_state, 60) {
  run_table(REQUEST, "request of no client", request_states,
            sizeof(request_states) / sizeof(request_states[0]));
}
