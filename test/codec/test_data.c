/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/data.h"

#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

TEST(path_parts) {
  tnk_path_t path = TNK_PATH_INIT;

  CHECK_INT(tnk_path_parse(&path, "tinker://a:train:0/sampler_weights/ck-1"),
            TNK_OK);
  CHECK_INT(path.kind, TNK_PATH_SAMPLER_WEIGHTS);
  CHECK_MEM(path.run, path.run_length, "a:train:0", 9);
  CHECK_STR(path.name, "ck-1");
  CHECK_INT(tnk_path_parse(&path, "tinker://r/weights/x"), TNK_OK);
  CHECK_INT(path.kind, TNK_PATH_WEIGHTS);
  CHECK_INT(tnk_path_parse(&path, "tinker://r/external_weights/x"), TNK_OK);
  CHECK_INT(path.kind, TNK_PATH_EXTERNAL_WEIGHTS);
}

TEST(path_of_wrong_form_is_refused) {
  static const char *const bad[] = {
      "",
      "tinker://",
      "tinker:/r/weights/x",
      "http://r/weights/x",
      "tinker://r",
      "tinker://r/x",
      "tinker:///weights/x",
      "tinker://r/weights/",
      "tinker://r/weights/x/y",
      "tinker://r//x",
      "tinker://r/weight/x",
      "tinker://r/weightss/x",
  };
  tnk_path_t path = TNK_PATH_INIT;

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_INT(tnk_path_parse(&path, bad[i]), TNK_EINVAL);
  CHECK_INT(tnk_path_parse(&path, NULL), TNK_EINVAL);
}

TEST(sizes_of_inputs) {
  static const int32_t tokens[] = {1, 2, 3};
  tnk_chunk_t chunks[] = {
      tnk_chunk_text(tokens, 3),
      {.kind = TNK_CHUNK_IMAGE,
       .bytes = "abcde",
       .n_bytes = 5,
       .format = TNK_PNG,
       .expected_tokens = 7},
      {.kind = TNK_CHUNK_DMEL, .bytes = "\2\2\6\4", .n_bytes = 4},
      {.kind = TNK_CHUNK_IMAGE_POINTER, .location = "ab", .format = TNK_PNG},
  };
  static const int64_t targets[] = {1, 2};
  static const double weights[] = {1, 2, 3};
  static const int64_t crow[] = {0, 1, 1, 2};
  static const int64_t col[] = {1, 3};
  tnk_loss_input_t inputs[] = {
      {"target_tokens", tnk_tensor_i64(targets, 2)},
      {"weights", {.dtype = TNK_F64, .data = weights, .n_values = 3}},
      {"sparse",
       {.dtype = TNK_I64,
        .n_dims = 2,
        .shape = {3, 4},
        .data = targets,
        .n_values = 2,
        .crow = crow,
        .col = col}},
  };
  tnk_datum_t datum = {.input = {.chunks = chunks, .n_chunks = 3},
                       .loss_inputs = inputs,
                       .n_loss_inputs = 3};
  tnk_model_input_t prompt = {.chunks = chunks, .n_chunks = 4};

  CHECK_INT(tnk__input_length(&datum.input), 3 + 7 + 6);
  CHECK_INT(tnk__input_length(&prompt), -1);
  CHECK_INT(tnk__datum_bytes(&datum),
            3 * 4 + 5 + 4 + 2 * 8 + 3 * 4 + (2 * 8 + 4 * 8 + 2 * 8));
  CHECK_INT(tnk__prompt_bytes(&prompt), 3 * 10 + 5 + 4 + 2);
}

TEST(elements_of_shapes) {
  tnk_tensor_t tensor = {.dtype = TNK_F32, .n_values = 5};
  size_t n;

  CHECK(tnk__tensor_elements(&tensor, &n));
  CHECK_INT(n, 5);
  tensor.n_dims = 3;
  tensor.shape[0] = 2;
  tensor.shape[1] = 3;
  tensor.shape[2] = 4;
  CHECK(tnk__tensor_elements(&tensor, &n));
  CHECK_INT(n, 24);
  tensor.shape[1] = INT64_MAX;
  CHECK(!tnk__tensor_elements(&tensor, &n));
  tensor.shape[2] = 0;
  CHECK(tnk__tensor_elements(&tensor, &n));
  CHECK_INT(n, 0);
  tensor.shape[0] = -1;
  CHECK(!tnk__tensor_elements(&tensor, &n));
}

/* One datum with everything in it. */
typedef struct {
  int32_t tokens[2];
  tnk_chunk_t chunks[3];
  int64_t crow[3], col[1], targets[2];
  float weights[1];
  tnk_loss_input_t inputs[2];
  char id[4];
  tnk_span_t spans[1];
  tnk_datum_t data[2];
} sample_t;

static void make_sample(sample_t *s) {
  *s = (sample_t){.tokens = {1, 2},
                  .crow = {0, 1, 1},
                  .targets = {4, 5},
                  .weights = {0.5f}};
  memcpy(s->id, "seq", 4);
  s->chunks[0] = tnk_chunk_text(s->tokens, 2);
  s->chunks[1] = (tnk_chunk_t){
      .kind = TNK_CHUNK_IMAGE, .bytes = s->id, .n_bytes = 3, .format = TNK_PNG};
  s->chunks[2] =
      (tnk_chunk_t){.kind = TNK_CHUNK_DMEL, .bytes = s->id, .n_bytes = 2};
  s->inputs[0] =
      (tnk_loss_input_t){"target_tokens", tnk_tensor_i64(s->targets, 2)};
  s->inputs[1] = (tnk_loss_input_t){"weights",
                                    {.dtype = TNK_F32,
                                     .n_dims = 2,
                                     .shape = {2, 1},
                                     .data = s->weights,
                                     .n_values = 1,
                                     .crow = s->crow,
                                     .col = s->col}};
  s->spans[0] = (tnk_span_t){TNK_SPAN_SAMPLED, s->id, 3, 2};
  s->data[1] = (tnk_datum_t){.input = {.chunks = s->chunks, .n_chunks = 3},
                             .loss_inputs = s->inputs,
                             .n_loss_inputs = 2,
                             .input_spans = s->spans,
                             .n_input_spans = 1,
                             .loss_input_spans = s->spans,
                             .n_loss_input_spans = 1};
}

TEST(copy_keeps_nothing_of_the_original) {
  sample_t *s = test_allocator()->malloc(sizeof(*s), test_allocator()->user);
  tnk__arena_t arena;
  const tnk_datum_t *copy;

  make_sample(s);
  tnk__arena_init(&arena, test_allocator(), 4096);
  copy = tnk__data_copy(&arena, s->data, 2);
  CHECK(copy != NULL);
  /* Whatever still points into the original reads freed memory. */
  memset(s, 0xff, sizeof(*s));
  test_allocator()->free(s, test_allocator()->user);
  CHECK_INT(copy[0].input.n_chunks, 0);
  CHECK_INT(copy[1].input.chunks[0].tokens[1], 2);
  CHECK_MEM(copy[1].input.chunks[1].bytes, 3, "seq", 3);
  CHECK_MEM(copy[1].input.chunks[2].bytes, 2, "se", 2);
  CHECK_STR(copy[1].loss_inputs[1].name, "weights");
  CHECK_INT(tnk__tensor_int(&copy[1].loss_inputs[0].tensor, 1), 5);
  CHECK_INT(copy[1].loss_inputs[1].tensor.crow[1], 1);
  CHECK_INT(copy[1].loss_inputs[1].tensor.col[0], 0);
  CHECK_NEAR(tnk__tensor_float(&copy[1].loss_inputs[1].tensor, 0), 0.5, 0);
  CHECK_STR(copy[1].input_spans[0].sequence_id, "seq");
  CHECK_INT(copy[1].loss_input_spans[0].offset, 3);
  tnk__arena_deinit(&arena);
}

TEST(the_short_form_is_measured_and_copied_as_the_long_one) {
  int32_t tokens[] = {1, 2, 3};
  int64_t targets[] = {2, 3, 9};
  float weights[] = {0, 1, 0.5f};
  tnk_datum_t datum = {.input = {.tokens = tokens, .n_tokens = 3},
                       .targets = targets,
                       .weights = weights};
  tnk__arena_t arena;
  const tnk_datum_t *copy;

  CHECK_INT(tnk__input_length(&datum.input), 3);
  CHECK_INT(tnk__datum_bytes(&datum), 3 * 4 + 3 * 8 + 3 * 4);
  CHECK_INT(tnk__prompt_bytes(&datum.input), 3 * 10);
  tnk__arena_init(&arena, test_allocator(), 4096);
  copy = tnk__data_copy(&arena, &datum, 1);
  CHECK(copy != NULL);
  memset(tokens, 0xff, sizeof(tokens));
  memset(targets, 0xff, sizeof(targets));
  memset(weights, 0xff, sizeof(weights));
  CHECK_INT(copy->input.tokens[2], 3);
  CHECK_INT(copy->input.n_tokens, 3);
  CHECK_INT(copy->targets[2], 9);
  CHECK_NEAR(copy->weights[2], 0.5, 0);
  CHECK_INT(tnk__datum_n_inputs(copy), 2);
  CHECK_STR(tnk__datum_input_at(copy, 1).name, "weights");
  CHECK_INT(tnk__datum_find(copy, "weights"), 1);
  CHECK_INT(tnk__datum_find(copy, "advantages"), SIZE_MAX);
  tnk__arena_deinit(&arena);
}

TEST(copy_takes_one_piece_or_none) {
  sample_t s;
  tnk__arena_t arena;
  size_t used;

  make_sample(&s);
  tnk__arena_init(&arena, test_allocator(), 1 << 20);
  CHECK(tnk__data_copy(&arena, s.data, 2) != NULL);
  used = arena.total;
  tnk__arena_deinit(&arena);
  tnk__arena_init(&arena, test_allocator(), used - 1);
  CHECK(tnk__data_copy(&arena, s.data, 2) == NULL);
  CHECK(arena.blocks == NULL);
  tnk__arena_deinit(&arena);
  tnk__arena_init(&arena, test_allocator(), 1 << 20);
  test_alloc_fail_at(0);
  CHECK(tnk__data_copy(&arena, s.data, 2) == NULL);
  test_alloc_fail_at(-1);
  tnk__arena_deinit(&arena);
}
