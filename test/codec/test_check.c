/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/check.h"

#include <math.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

static char text[200];

static const int32_t tokens[] = {1, 2, 3};
static const int64_t targets[] = {2, 3, 4, 5, 6, 7};
static const float numbers[] = {0.5f, 1, -1, 2, 3, 4};

/* A datum of three tokens with targets and weights; tests spoil one part. */
typedef struct {
  tnk_chunk_t chunks[2];
  tnk_loss_input_t inputs[4];
  tnk_span_t spans[2];
  tnk_datum_t datum;
} one_t;

static void make(one_t *one) {
  *one = (one_t){
      .chunks = {tnk_chunk_text(tokens, 3)},
      .inputs = {{"target_tokens", tnk_tensor_i64(targets, 3)},
                 {"weights", tnk_tensor_f32(numbers, 3)},
                 {"logprobs", tnk_tensor_f32(numbers, 3)},
                 {"advantages", tnk_tensor_f32(numbers, 3)}},
      .spans = {{TNK_SPAN_PROMPT, "p", 0, 2}, {TNK_SPAN_SAMPLED, "q", 5, 1}},
  };
  one->datum = (tnk_datum_t){.input = {.chunks = one->chunks, .n_chunks = 1},
                             .loss_inputs = one->inputs,
                             .n_loss_inputs = 2};
}

static void expect(const one_t *one, const char *loss, const char *sentence) {
  int err = tnk_data_check(&one->datum, 1, loss, text, sizeof(text));

  if (sentence == NULL) {
    CHECK_INT(err, TNK_OK);
    return;
  }
  CHECK_STR(text, sentence);
  CHECK_INT(err, TNK_EINVAL);
  CHECK_INT(tnk_data_check(&one->datum, 1, loss, NULL, 0), TNK_EINVAL);
}

TEST(data_lengths) {
  one_t one;

  make(&one);
  expect(&one, "cross_entropy", NULL);
  expect(&one, NULL, NULL);
  one.inputs[1].tensor.n_values = 2;
  expect(&one, "cross_entropy",
         "datum 0: \"weights\" has 2 values, expected 3");
  expect(&one, NULL, "datum 0: \"weights\" has 2 values, expected 3");
  /* Another loss may read weights of its own form. */
  expect(&one, "my_loss", NULL);
  one.inputs[1].tensor = (tnk_tensor_t){.dtype = TNK_F32,
                                        .n_dims = 2,
                                        .shape = {2, 3},
                                        .data = numbers,
                                        .n_values = 6};
  expect(&one, "cross_entropy", "datum 0: \"weights\" has 2 rows, expected 3");
  one.inputs[1].tensor.shape[0] = 3;
  one.inputs[1].tensor.shape[1] = 2;
  expect(&one, "cross_entropy", NULL);
  one.inputs[0].tensor.n_values = 4;
  expect(&one, "my_loss",
         "datum 0: \"target_tokens\" has 4 values, expected 3");
}

TEST(data_counts_the_datum) {
  one_t one;
  tnk_datum_t data[3];

  make(&one);
  data[0] = data[1] = data[2] = one.datum;
  data[2].n_loss_inputs = 0;
  CHECK_INT(tnk_data_check(data, 3, "cross_entropy", text, sizeof(text)),
            TNK_EINVAL);
  CHECK_STR(text, "datum 2: loss \"cross_entropy\" needs \"target_tokens\"");
  CHECK_INT(tnk_data_check(data, 3, "cross_entropy", text, 12), TNK_EINVAL);
  CHECK_STR(text, "datum 2: lo");
  CHECK_INT(tnk_data_check(data, 0, NULL, text, sizeof(text)), TNK_EINVAL);
  CHECK_STR(text, "there is no datum");
}

TEST(data_losses_and_their_inputs) {
  static const char *const names[] = {"importance_sampling", "ppo", "cispo",
                                      "dro", "gspo"};
  one_t one;

  make(&one);
  for (size_t i = 0; i < 5; i++) {
    one.datum.n_loss_inputs = 2;
    CHECK_INT(tnk_data_check(&one.datum, 1, names[i], text, sizeof(text)),
              TNK_EINVAL);
    CHECK(strstr(text, "needs \"logprobs\"") != NULL);
    one.datum.n_loss_inputs = 3;
    CHECK_INT(tnk_data_check(&one.datum, 1, names[i], text, sizeof(text)),
              TNK_EINVAL);
    CHECK(strstr(text, "needs \"advantages\"") != NULL);
    one.datum.n_loss_inputs = 4;
    CHECK_INT(tnk_data_check(&one.datum, 1, names[i], text, sizeof(text)),
              TNK_OK);
  }
  one.datum.n_loss_inputs = 0;
  expect(&one, "unheard_of", NULL);
}

/* A misspelt one would be ignored, and the loss be another one. */
TEST(data_inputs_that_a_loss_does_not_read) {
  static const struct {
    const char *loss;
    const char *name;
    const char *sentence;
  } rows[] = {
      {"cross_entropy", "weight",
       "datum 0: loss \"cross_entropy\" does not read \"weight\"; did you mean "
       "\"weights\"?"},
      {"cross_entropy", "target",
       "datum 0: loss \"cross_entropy\" does not read \"target\"; did you mean "
       "\"target_tokens\"?"},
      {"cross_entropy", "mask",
       "datum 0: loss \"cross_entropy\" does not read \"mask\""},
      {"cross_entropy", "logprobs",
       "datum 0: loss \"cross_entropy\" does not read \"logprobs\""},
      {"nonsense", "weight", NULL},
      {NULL, "weight", NULL}};
  one_t one;

  make(&one);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    one.inputs[1].name = rows[i].name;
    expect(&one, rows[i].loss, rows[i].sentence);
  }
}

TEST(data_inputs_that_a_loss_may_read) {
  static const char *const losses[] = {"ppo", "cispo", "gspo"};
  static const char *const names[] = {"weights", "clip_low_threshold",
                                      "clip_high_threshold",
                                      "sequence_ratio_mask"};
  one_t one;

  for (size_t i = 0; i < 3; i++) {
    for (size_t k = 0; k < 4; k++) {
      make(&one);
      one.datum.n_loss_inputs = 4;
      one.inputs[1].name = names[k];
      CHECK_INT(tnk_data_check(&one.datum, 1, losses[i], text, sizeof(text)),
                k < 3 || i == 2 ? TNK_OK : TNK_EINVAL);
    }
  }
}

TEST(data_elements) {
  static const float bad[] = {0, 1, NAN};
  static const double large[] = {0, 1e39, 0};
  static const double rounds[] = {3.5e38, 1, 1};
  static const int64_t negative[] = {0, -1, 0};
  static const int64_t wide[] = {0, 0, 1LL << 31};
  static const int32_t ids[] = {5, -7};
  static const int32_t narrow[] = {INT32_MAX, 0, -9};
  one_t one;

  make(&one);
  one.inputs[1].tensor = tnk_tensor_f32(bad, 3);
  expect(&one, NULL, "datum 0: \"weights\" value 2 is not a finite number");
  one.inputs[1].tensor.dtype = TNK_F64;
  one.inputs[1].tensor.data = large;
  expect(&one, NULL, "datum 0: \"weights\" value 1 is too large for f32");
  one.inputs[1].tensor.data = rounds;
  expect(&one, NULL, "datum 0: \"weights\" value 0 is too large for f32");
  one.inputs[1].tensor = tnk_tensor_i64(targets, 3);
  expect(&one, NULL, "datum 0: \"weights\" must be f32");
  make(&one);
  one.inputs[0].tensor.data = negative;
  expect(&one, NULL, "datum 0: \"target_tokens\" value 1 is -1");
  one.inputs[0].tensor.data = wide;
  expect(&one, NULL, "datum 0: \"target_tokens\" value 2 is 2147483648");
  one.inputs[0].tensor =
      (tnk_tensor_t){.dtype = TNK_I32, .data = narrow, .n_values = 3};
  expect(&one, NULL, "datum 0: \"target_tokens\" value 2 is -9");
  one.inputs[0].tensor = tnk_tensor_f32(numbers, 3);
  expect(&one, NULL, "datum 0: \"target_tokens\" must be integers");
  make(&one);
  one.chunks[0] = tnk_chunk_text(ids, 2);
  expect(&one, NULL, "datum 0: chunk 0: token 1 is -7");
}

TEST(data_shapes) {
  one_t one;

  make(&one);
  one.inputs[1].tensor.n_dims = 1;
  one.inputs[1].tensor.shape[0] = 4;
  expect(&one, NULL, "datum 0: \"weights\" has 3 values, its shape has 4");
  one.inputs[1].tensor.shape[0] = -4;
  expect(&one, NULL,
         "datum 0: \"weights\" has a dimension that is negative or too large");
  one.inputs[1].tensor.n_dims = 9;
  expect(&one, NULL, "datum 0: \"weights\" has 9 dimensions, at most 8");
  make(&one);
  one.inputs[1].tensor.data = NULL;
  expect(&one, NULL, "datum 0: \"weights\" has no data");
  make(&one);
  one.inputs[1].tensor.dtype = (tnk_dtype_t)0;
  expect(&one, NULL, "datum 0: \"weights\" has an unknown element type");
  make(&one);
  one.inputs[1].name = "target_tokens";
  expect(&one, NULL, "datum 0: \"target_tokens\" must be integers");
  one.inputs[1].tensor = one.inputs[0].tensor;
  expect(&one, NULL, "datum 0: \"target_tokens\" is given twice");
  one.inputs[1].name = NULL;
  expect(&one, NULL, "datum 0: the name of a loss input is missing");
  one.inputs[1].name = "a\xc0\x80";
  expect(&one, NULL, "datum 0: the name of a loss input is not valid UTF-8");
}

TEST(data_sparse) {
  int64_t crow[] = {0, 2, 2, 3};
  int64_t col[] = {0, 3, 1};
  one_t one;

  make(&one);
  one.inputs[1].tensor = (tnk_tensor_t){.dtype = TNK_F32,
                                        .n_dims = 2,
                                        .shape = {3, 4},
                                        .data = numbers,
                                        .n_values = 3,
                                        .crow = crow,
                                        .col = col};
  expect(&one, "cross_entropy", NULL);
  col[1] = 0;
  expect(&one, NULL,
         "datum 0: \"weights\": row 0 has a column out of order or range");
  col[1] = 4;
  expect(&one, NULL,
         "datum 0: \"weights\": row 0 has a column out of order or range");
  col[1] = 1;
  crow[2] = 1;
  expect(&one, NULL, "datum 0: \"weights\": the start of row 2 is wrong");
  crow[3] = 2;
  expect(&one, NULL,
         "datum 0: \"weights\": its row starts do not go from 0 to 3");
  one.inputs[1].tensor.col = NULL;
  expect(&one, NULL, "datum 0: \"weights\" is sparse and has no columns");
  one.inputs[1].tensor.n_dims = 1;
  expect(&one, NULL, "datum 0: \"weights\" is sparse and needs two dimensions");
}

TEST(data_images) {
  one_t one;

  make(&one);
  one.datum.input.n_chunks = 2;
  one.chunks[1] = (tnk_chunk_t){
      .kind = TNK_CHUNK_IMAGE, .bytes = "x", .n_bytes = 1, .format = TNK_JPEG};
  /* The image's length is not known, so nothing can be compared with it. */
  one.inputs[1].tensor.n_values = 2;
  expect(&one, "cross_entropy", NULL);
  one.chunks[1].expected_tokens = 2;
  expect(&one, NULL, "datum 0: \"target_tokens\" has 3 values, expected 5");
  one.chunks[1].format = (tnk_image_format_t)0;
  expect(&one, NULL, "datum 0: chunk 1 is an image of an unknown format");
  one.chunks[1].format = TNK_PNG;
  one.chunks[1].n_bytes = 0;
  expect(&one, NULL, "datum 0: chunk 1 is an image without bytes");
  one.chunks[1].kind = TNK_CHUNK_IMAGE_POINTER;
  one.chunks[1].location = "s3://x";
  expect(
      &one, NULL,
      "datum 0: chunk 1 is an image pointer, which training does not accept");
}

TEST(J5_data_of_audio) {
  one_t one;

  make(&one);
  one.datum.input.n_chunks = 2;
  /* Elements of type 2, two dimensions, of which the first says the length. */
  one.chunks[1] =
      (tnk_chunk_t){.kind = TNK_CHUNK_DMEL, .bytes = "\2\2\3\4", .n_bytes = 4};
  expect(&one, "cross_entropy",
         "datum 0: \"target_tokens\" has 3 values, expected 6");
  one.chunks[1].bytes = "\376\2\2\0\4"; /* one value throughout */
  one.chunks[1].n_bytes = 5;
  expect(&one, "cross_entropy", NULL);
  one.chunks[1].n_bytes = 4;
  expect(&one, NULL, "datum 0: chunk 1 is no dMel: its head is cut off");
  one.chunks[1].n_bytes = 1;
  expect(&one, NULL, "datum 0: chunk 1 is no dMel: its head is cut off");
  one.chunks[1].n_bytes = 0;
  expect(&one, NULL, "datum 0: chunk 1 is audio without bytes");
  one.chunks[1].n_bytes = 4;
  one.chunks[1].bytes = "\10\2\3\4";
  expect(&one, NULL,
         "datum 0: chunk 1 is no dMel: its elements are of no known type");
  one.chunks[1].bytes = "\2\0\3\4";
  expect(&one, NULL, "datum 0: chunk 1 is no dMel: it has no dimensions");
  one.chunks[1].bytes = "\2\1\377\377\377\377\377\377\377\377\377\1";
  one.chunks[1].n_bytes = 12;
  expect(&one, NULL,
         "datum 0: chunk 1 is no dMel: a number in its head is too large");
  one.chunks[1].bytes = "\2\1\200\200\200\200\10";
  one.chunks[1].n_bytes = 7;
  expect(&one, NULL, "datum 0: chunk 1 is no dMel: it is too long");
  one.chunks[1].tokens = tokens;
  expect(&one, NULL, "datum 0: chunk 1 is audio, and has tokens");
  one.chunks[1] = (tnk_chunk_t){.bytes = "\2\1\3", .n_bytes = 3};
  expect(&one, NULL, "datum 0: chunk 1 is text, and has bytes");
}

TEST(data_spans) {
  one_t one;

  make(&one);
  one.datum.input_spans = one.spans;
  one.datum.n_input_spans = 2;
  expect(&one, NULL, "datum 0: set both span lists or neither");
  one.datum.loss_input_spans = one.spans;
  one.datum.n_loss_input_spans = 2;
  expect(&one, NULL, NULL);
  one.datum.n_loss_input_spans = 1;
  expect(&one, NULL, "datum 0: loss input spans cover 2 tokens, expected 3");
  one.spans[1].length = 7;
  expect(&one, NULL, "datum 0: model input spans cover 9 tokens, expected 3");
  one.spans[1].length = INT64_MAX;
  expect(&one, NULL, "datum 0: model input span 1 is out of range");
  one.spans[1].length = 1;
  one.spans[0].offset = -1;
  expect(&one, NULL, "datum 0: model input span 0 is out of range");
  one.spans[0].sequence_id = "";
  expect(&one, NULL, "datum 0: model input span 0 has no sequence id");
}

TEST(loss_settings) {
  tnk_loss_setting_t settings[] = {{"beta", 0.05, NULL}, {"mode", 0, "x"}};

  CHECK_INT(tnk__check_settings(settings, 2, text, sizeof(text)), TNK_OK);
  settings[0].number = INFINITY;
  CHECK_INT(tnk__check_settings(settings, 2, text, sizeof(text)), TNK_EINVAL);
  CHECK_STR(text, "loss setting 0: \"beta\" is not a finite number");
  settings[0].number = 0;
  settings[1].name = "beta";
  CHECK_INT(tnk__check_settings(settings, 2, text, sizeof(text)), TNK_EINVAL);
  CHECK_STR(text, "loss setting 1: \"beta\" is given twice");
}

static void expect_params(const tnk_sampling_params_t *params,
                          const tnk_sample_options_t *options,
                          const char *sentence) {
  tnk_chunk_t chunk = tnk_chunk_text(tokens, 3);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  int err = tnk__check_sampling(&prompt, params, options, text, sizeof(text));

  if (sentence == NULL) {
    CHECK_INT(err, TNK_OK);
    return;
  }
  CHECK_INT(err, TNK_EINVAL);
  CHECK_STR(text, sentence);
}

TEST(one_thing_in_two_forms_is_refused) {
  one_t one;

  make(&one);
  one.datum.input = (tnk_model_input_t){.tokens = tokens, .n_tokens = 3};
  expect(&one, "cross_entropy", NULL);
  one.datum.input.chunks = one.chunks;
  expect(&one, "cross_entropy",
         "datum 0: the model input is given as tokens and as chunks");
  one.datum.input = (tnk_model_input_t){.n_tokens = 3};
  expect(&one, "cross_entropy", "datum 0: the model input has no tokens");
  make(&one);
  one.datum.targets = targets;
  expect(&one, "cross_entropy", "datum 0: \"target_tokens\" is given twice");
  one.datum.loss_inputs = &one.inputs[2];
  one.datum.n_loss_inputs = 2;
  expect(&one, "importance_sampling", NULL);
  one.datum.weights = numbers;
  expect(&one, NULL, NULL);
  one.datum.targets = NULL;
  expect(&one, "cross_entropy",
         "datum 0: loss \"cross_entropy\" needs \"target_tokens\"");
}

TEST(targets_of_no_known_length_are_refused) {
  one_t one;

  make(&one);
  one.chunks[0] = (tnk_chunk_t){
      .kind = TNK_CHUNK_IMAGE, .bytes = "x", .n_bytes = 1, .format = TNK_PNG};
  one.datum.targets = targets;
  one.datum.n_loss_inputs = 0;
  expect(&one, "cross_entropy",
         "datum 0: the length of its targets or weights is unknown: an image "
         "does not state its tokens");
  one.chunks[0].expected_tokens = 3;
  expect(&one, "cross_entropy", NULL);
}

TEST(a_chunk_of_two_kinds_is_refused) {
  one_t one;

  make(&one);
  one.chunks[0] = (tnk_chunk_t){.bytes = "x", .n_bytes = 1, .format = TNK_PNG};
  expect(&one, NULL, "datum 0: chunk 0 is text, and has an image");
  one.chunks[0].kind = TNK_CHUNK_IMAGE;
  one.chunks[0].tokens = tokens;
  expect(&one, NULL, "datum 0: chunk 0 is an image, and has tokens");
}

TEST(S1_11_sampling_values_outside_their_range_are_refused) {
  static const char *const stop[] = {"a", "\xff"};
  static const int32_t ids[] = {3, -4};
  const tnk_sampling_params_t absent = TNK_SAMPLING_PARAMS_INIT;
  tnk_sampling_params_t params = absent;

  expect_params(NULL, NULL, NULL);
  expect_params(&params, NULL, NULL);
  params.max_tokens = -5;
  expect_params(&params, NULL, "max_tokens is -5, expected at least 1");
  params = absent;
  params.temperature = -3;
  expect_params(&params, NULL,
                "temperature is -3, expected a finite number of at least 0");
  params.temperature = HUGE_VAL;
  expect_params(&params, NULL,
                "temperature is inf, expected a finite number of at least 0");
  params = absent;
  params.top_p = 1.5;
  expect_params(&params, NULL, "top_p is 1.5, expected 0 to 1");
  params.top_p = -NAN;
  expect_params(&params, NULL, "top_p is -nan, expected 0 to 1");
  params = absent;
  params.top_k = -2;
  expect_params(&params, NULL, "top_k is -2, expected at least -1");
  params = absent;
  params.stop_texts = stop;
  expect_params(&params, NULL, NULL);
  params.n_stop_texts = 2;
  expect_params(&params, NULL, "a stop text is not valid UTF-8");
  params.stop_tokens = ids;
  expect_params(&params, NULL, "stop is given as texts and as tokens");
  params.stop_texts = NULL;
  expect_params(&params, NULL, "stop_texts is missing");
  params.n_stop_texts = 0;
  params.n_stop_tokens = 2;
  expect_params(&params, NULL, "stop token 1 is -4");
  params.stop_tokens = NULL;
  expect_params(&params, NULL, "stop_tokens is missing");
}

TEST(a_zeroed_struct_of_sampling_values_is_told_how_to_begin) {
  tnk_sampling_params_t params = {.size = sizeof(params)};

  expect_params(&params, NULL,
                "max_tokens is 0, expected at least 1; begin with "
                "TNK_SAMPLING_PARAMS_INIT");
}

TEST(sampling_options) {
  tnk_sample_options_t options = {.size = sizeof(options)};
  int64_t ids[] = {1, -1, 2, 3};
  tnk_tensor_t target = {.dtype = TNK_I64,
                         .n_dims = 2,
                         .shape = {2, 2},
                         .data = ids,
                         .n_values = 4};

  options.prompt_logprobs_last_n = 2;
  expect_params(NULL, &options, "prompt_logprobs_last_n needs prompt_logprobs");
  options.prompt_logprobs = TNK_YES;
  expect_params(NULL, &options, NULL);
  options.target_prompt_logprobs = &target;
  expect_params(NULL, &options, NULL);
  ids[1] = -2;
  expect_params(NULL, &options, "\"target_prompt_logprobs\" value 1 is -2");
  target.shape[0] = 1;
  target.shape[1] = 4;
  expect_params(NULL, &options,
                "\"target_prompt_logprobs\" has 1 rows, expected 2");
  target.n_dims = 0;
  expect_params(NULL, &options,
                "\"target_prompt_logprobs\" needs two dimensions");
}

static void expect_step(const tnk_optim_t *step, const char *sentence) {
  int err = tnk__check_optim(step, text, sizeof(text));

  CHECK_INT(err, sentence == NULL ? TNK_OK : TNK_EINVAL);
  if (sentence != NULL)
    CHECK_STR(text, sentence);
}

TEST(optimizer_parameters) {
  tnk_optim_t step = TNK_OPTIM_INIT;

  expect_step(&step, NULL);
  step.beta2 = 1;
  expect_step(&step, "beta2 is not below 1");
  step.beta2 = 0;
  step.eps = 0;
  expect_step(&step, "eps is not above 0");
  step.learning_rate = -1;
  expect_step(&step, "learning_rate is below 0");
  step = (tnk_optim_t)TNK_OPTIM_INIT;
  step.optimizer = TNK_OPTIMIZER_DIMUON;
  expect_step(&step, "learning_rate is missing");
  step.learning_rate = 0.02;
  step.grad_clip_norm = -1;
  expect_step(&step, NULL);
  step.beta1 = NAN;
  expect_step(&step, "beta1 is not a finite number");
}

TEST(an_optimizer_parameter_that_would_be_ignored_is_refused) {
  tnk_optim_t step = TNK_OPTIM_INIT;

  step.optimizer = TNK_OPTIMIZER_DIMUON;
  step.learning_rate = 0.02;
  step.weight_decay = 0.1;
  expect_step(&step, "weight_decay is not for this optimizer");
  step.optimizer = TNK_OPTIMIZER_RAW;
  step.json = "{\"type\":\"x\"}";
  expect_step(&step, "learning_rate is not for this optimizer");
  step = (tnk_optim_t)TNK_OPTIM_INIT;
  step.json = "{\"type\":\"x\"}";
  expect_step(&step, "json is given, and optimizer is not TNK_OPTIMIZER_RAW");
}

TEST(texts_and_pairs) {
  tnk_pair_t pairs[] = {{"a", "b"}, {"c", NULL}};

  CHECK_INT(tnk__check_text("the name", "x", text, sizeof(text)), TNK_OK);
  CHECK_INT(tnk__check_text("the name", NULL, text, sizeof(text)), TNK_EINVAL);
  CHECK_STR(text, "the name is missing");
  CHECK_INT(tnk__check_text("the name", "", text, sizeof(text)), TNK_EINVAL);
  CHECK_STR(text, "the name is empty");
  CHECK_INT(tnk__check_optional("the name", NULL, text, sizeof(text)), TNK_OK);
  CHECK_INT(tnk__check_pairs("user_metadata", pairs, 2, text, sizeof(text)),
            TNK_EINVAL);
  CHECK_STR(text, "user_metadata 1: its value is missing");
}
