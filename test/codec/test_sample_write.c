/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/message/sample_wire.h"
#include "support/test.h"
#include "tnk/error.h"

static const int32_t ids[] = {1, 2, 3, 4};

static void expect(const tnk__sample_request_t *request, const char *text) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  CHECK_INT(tnk__sample_write(&buf, request, NULL), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf), text);
  tnk__buf_deinit(&buf);
}

TEST(vector_M_first_sample) {
  static const char *const stop[] = {"a"};
  tnk_chunk_t chunk = tnk_chunk_text(ids, 3);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
  tnk__sample_request_t request = {.prompt = &prompt,
                                   .params = &params,
                                   .options = &options,
                                   .sampling_session_id = "SS"};

  params.max_tokens = 5;
  params.stop_texts = stop;
  params.n_stop_texts = 1;
  options.n_samples = 2;
  expect(&request,
         "{\"num_samples\":2,\"prompt\":{\"chunks\":[{\"tokens\":[1,2,3],"
         "\"type\":\"encoded_text\"}]},\"sampling_params\":{\"max_tokens\":5,"
         "\"stop\":[\"a\"],\"temperature\":1.0,\"top_k\":-1,\"top_p\":1.0},"
         "\"sampling_session_id\":\"SS\",\"seq_id\":0,"
         "\"prompt_logprobs\":false,\"topk_prompt_logprobs\":0,"
         "\"type\":\"sample\"}");
}

static tnk_sampling_params_t full_params(void) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;

  params.max_tokens = 5;
  params.seed = 7;
  params.temperature = 0.5;
  params.top_k = 3;
  params.top_p = 0.9;
  return params;
}

TEST(vector_M_second_sample) {
  static const int64_t dense[] = {1, -1, 2};
  static const int32_t narrow[] = {1, -1, 2};
  static const int64_t one[] = {7}, crow[] = {0, 0, 1}, col[] = {3};
  static const int32_t stop[] = {9};
  static const char head[] =
      "{\"num_samples\":1,\"prompt\":{\"chunks\":[{\"tokens\":[1,2,3,4],"
      "\"type\":\"encoded_text\"}]},\"sampling_params\":{\"max_tokens\":5,"
      "\"seed\":7,\"stop\":[9],\"temperature\":0.5,\"top_k\":3,"
      "\"top_p\":0.9},\"sampling_session_id\":\"SS\",\"seq_id\":1,"
      "\"prompt_logprobs\":true,\"topk_prompt_logprobs\":2,"
      "\"topk_sample_logprobs\":3,\"target_prompt_logprobs\":{\"data\":";
  static const char tail[] =
      "},\"prompt_alt_tokens_k\":2,\"prompt_logprobs_last_n\":1,"
      "\"type\":\"sample\"}";
  tnk_chunk_t chunk = tnk_chunk_text(ids, 4);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  tnk_sampling_params_t params = full_params();
  tnk_tensor_t target = {.dtype = TNK_I64,
                         .n_dims = 2,
                         .shape = {3, 1},
                         .data = dense,
                         .n_values = 3};
  tnk_sample_options_t options = {.size = sizeof(options),
                                  .prompt_logprobs = TNK_YES,
                                  .topk_prompt_logprobs = 2,
                                  .topk_sample_logprobs = 3,
                                  .prompt_alt_tokens_k = 2,
                                  .prompt_logprobs_last_n = 1,
                                  .target_prompt_logprobs = &target};
  tnk__sample_request_t request = {.prompt = &prompt,
                                   .params = &params,
                                   .options = &options,
                                   .sampling_session_id = "SS",
                                   .seq_id = 1};
  char text[1024];

  params.stop_tokens = stop;
  params.n_stop_tokens = 1;
  snprintf(text, sizeof(text),
           "%s[1,-1,2],\"dtype\":\"int64\",\"shape\":[3,1]%s", head, tail);
  expect(&request, text);
  target.dtype = TNK_I32;
  target.data = narrow;
  expect(&request, text);
  target = (tnk_tensor_t){.dtype = TNK_I64,
                          .n_dims = 2,
                          .shape = {2, 4},
                          .data = one,
                          .n_values = 1,
                          .crow = crow,
                          .col = col};
  snprintf(text, sizeof(text),
           "%s[7],\"dtype\":\"int64\",\"shape\":[2,4],"
           "\"sparse_crow_indices\":[0,0,1],\"sparse_col_indices\":[3]%s",
           head, tail);
  expect(&request, text);
}

#define TAIL                                                                   \
  "\"prompt_logprobs\":false,\"topk_prompt_logprobs\":0,\"type\":\"sample\"}"

TEST(chunks_of_every_kind_without_a_session) {
  tnk_chunk_t chunks[] = {
      tnk_chunk_text(NULL, 0),
      {.kind = TNK_CHUNK_IMAGE,
       .bytes = "\x89P",
       .n_bytes = 2,
       .format = TNK_PNG,
       .expected_tokens = 7},
      {.kind = TNK_CHUNK_IMAGE,
       .bytes = "\xff",
       .n_bytes = 1,
       .format = TNK_JPEG,
       .expected_tokens = -1},
      {.kind = TNK_CHUNK_IMAGE_POINTER,
       .location = "s3://b/\"x\"",
       .format = TNK_JPEG,
       .expected_tokens = 3},
      {.kind = TNK_CHUNK_DMEL, .bytes = "\x02\x02\x03\x04", .n_bytes = 4}};
  tnk_model_input_t prompt = {.chunks = chunks, .n_chunks = 5};
  tnk__sample_request_t request = {
      .prompt = &prompt, .base_model = "m/x", .model_path = "tinker://m/x"};

  expect(&request,
         "{\"num_samples\":1,\"prompt\":{\"chunks\":["
         "{\"tokens\":[],\"type\":\"encoded_text\"},"
         "{\"data\":\"iVA=\",\"format\":\"png\",\"expected_tokens\":7,"
         "\"type\":\"image\"},"
         "{\"data\":\"/w==\",\"format\":\"jpeg\",\"type\":\"image\"},"
         "{\"format\":\"jpeg\",\"location\":\"s3://b/\\\"x\\\"\","
         "\"expected_tokens\":3,\"type\":\"image_asset_pointer\"},"
         "{\"dmel\":\"AgIDBA==\",\"type\":\"dmel\"}]},"
         "\"sampling_params\":{\"temperature\":1.0,\"top_k\":-1,"
         "\"top_p\":1.0},\"base_model\":\"m/x\","
         "\"model_path\":\"tinker://m/x\"," TAIL);
}

/* Zero and an empty list are values like any other. */
TEST(S1_11_what_is_absent_is_not_sent_and_nothing_is_null) {
  static const tnk_sampling_params_t absent = TNK_SAMPLING_PARAMS_INIT;
  static const char *const no_texts[] = {""};
  static const int32_t no_tokens[] = {0};
  tnk_model_input_t prompt = {.chunks = NULL, .n_chunks = 0};
  tnk_sampling_params_t all[8];
  tnk__sample_request_t request = {.prompt = &prompt};
  static const char *const texts[] = {
      "\"temperature\":1.0,\"top_k\":-1,\"top_p\":1.0",
      "\"seed\":0,\"temperature\":1.0,\"top_k\":-1,\"top_p\":1.0",
      "\"max_tokens\":1,\"temperature\":1.0,\"top_k\":-1,\"top_p\":1.0",
      "\"temperature\":0.0,\"top_k\":-1,\"top_p\":1.0",
      "\"temperature\":1.0,\"top_k\":0,\"top_p\":1.0",
      "\"temperature\":1.0,\"top_k\":-1,\"top_p\":0.0",
      "\"stop\":[],\"temperature\":1.0,\"top_k\":-1,\"top_p\":1.0",
      "\"stop\":[],\"temperature\":1.0,\"top_k\":-1,\"top_p\":1.0"};
  char text[512];

  for (size_t i = 0; i < 8; i++)
    all[i] = absent;
  all[1].seed = 0;
  all[2].max_tokens = 1;
  all[3].temperature = 0;
  all[4].top_k = 0;
  all[5].top_p = 0;
  all[6].stop_texts = no_texts;
  all[7].stop_tokens = no_tokens;
  for (size_t i = 0; i < 8; i++) {
    request.params = &all[i];
    snprintf(text, sizeof(text),
             "{\"num_samples\":1,\"prompt\":{\"chunks\":[]},"
             "\"sampling_params\":{%s}," TAIL,
             texts[i]);
    CHECK(strstr(text, "null") == NULL);
    expect(&request, text);
  }
}

TEST(the_short_form_of_a_prompt_is_the_long_one) {
  const tnk_chunk_t chunk = tnk_chunk_text(ids, 3);
  const tnk_model_input_t forms[] = {{.chunks = &chunk, .n_chunks = 1},
                                     {.tokens = ids, .n_tokens = 3}};
  tnk__sample_request_t request = {.prompt = &forms[0], .base_model = "b"};
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  CHECK_INT(tnk__sample_write(&buf, &request, NULL), TNK_OK);
  request.prompt = &forms[1];
  expect(&request, tnk__buf_cstr(&buf));
  tnk__buf_deinit(&buf);
}

TEST(stability_info_is_said_when_it_is_wanted) {
  tnk_model_input_t prompt = {.chunks = NULL, .n_chunks = 0};
  tnk__sample_request_t request = {.prompt = &prompt,
                                   .record_stability_info = 1};
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  CHECK_INT(tnk__sample_write(&buf, &request, NULL), TNK_OK);
  CHECK(strstr(tnk__buf_cstr(&buf), "\"record_stability_info\":true") != NULL);
  tnk__buf_deinit(&buf);
}

/* A resubmission gets its number into the bytes that are there already. */
TEST(S4_13_renumbering) {
  static const int64_t numbers[] = {9, 10,        0,  1000000000000000007,
                                    5, INT64_MAX, 123};
  tnk_chunk_t chunk = tnk_chunk_text(ids, 4);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  tnk__sample_request_t request = {
      .prompt = &prompt, .sampling_session_id = "seq_id", .seq_id = 3};
  tnk__sample_seq_t seq;
  tnk__buf_t buf, again;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  tnk__buf_init(&again, test_allocator(), 1 << 16);
  CHECK_INT(tnk__sample_write(&buf, &request, &seq), TNK_OK);
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    CHECK_INT(tnk__sample_renumber(&buf, &seq, numbers[i]), TNK_OK);
    request.seq_id = numbers[i];
    tnk__buf_clear(&again);
    CHECK_INT(tnk__sample_write(&again, &request, NULL), TNK_OK);
    CHECK_MEM(buf.data, buf.len, again.data, again.len);
  }
  tnk__buf_deinit(&again);
  tnk__buf_deinit(&buf);

  /* Without a session there is no number to change. */
  request.sampling_session_id = NULL;
  CHECK_INT(tnk__sample_write(&buf, &request, &seq), TNK_OK);
  CHECK_INT(seq.n, 0);
  CHECK_INT(tnk__sample_renumber(&buf, &seq, 77), TNK_OK);
  CHECK(strstr(tnk__buf_cstr(&buf), "77") == NULL);
  tnk__buf_deinit(&buf);
}

TEST(another_session_takes_the_place_of_the_first) {
  static const char *const names[] = {"s", "a much longer id \"quoted\"", "",
                                      "\xc3\xa9", "seq_id\":1,"};
  tnk_chunk_t chunk = tnk_chunk_text(ids, 4);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  tnk__sample_request_t request = {
      .prompt = &prompt, .sampling_session_id = "first", .seq_id = 3};
  tnk__sample_seq_t seq;
  tnk__buf_t buf, again;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  tnk__buf_init(&again, test_allocator(), 1 << 16);
  CHECK_INT(tnk__sample_write(&buf, &request, &seq), TNK_OK);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    CHECK_INT(tnk__sample_retarget(&buf, &seq, names[i]), TNK_OK);
    CHECK_INT(tnk__sample_renumber(&buf, &seq, (int64_t)i * 1000), TNK_OK);
    request.sampling_session_id = names[i];
    request.seq_id = (int64_t)i * 1000;
    tnk__buf_clear(&again);
    CHECK_INT(tnk__sample_write(&again, &request, NULL), TNK_OK);
    CHECK_MEM(buf.data, buf.len, again.data, again.len);
  }
  test_alloc_fail_at(0);
  CHECK_INT(tnk__sample_retarget(&buf, &seq, "x"), TNK_ENOMEM);
  test_alloc_fail_at(-1);
  CHECK_MEM(buf.data, buf.len, again.data, again.len);
  tnk__buf_deinit(&again);
  tnk__buf_deinit(&buf);
}

TEST(renumbering_stays_within_the_limit) {
  tnk_model_input_t prompt = {.chunks = NULL, .n_chunks = 0};
  tnk__sample_request_t request = {.prompt = &prompt,
                                   .sampling_session_id = "s"};
  tnk__sample_seq_t seq;
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  CHECK_INT(tnk__sample_write(&buf, &request, &seq), TNK_OK);
  buf.max = buf.len;
  CHECK_INT(tnk__sample_renumber(&buf, &seq, 9), TNK_OK);
  CHECK_INT(tnk__sample_renumber(&buf, &seq, 10), TNK_ETOOBIG);
  tnk__buf_deinit(&buf);
}

TEST(S3_26a_writing_without_memory) {
  static char image[3000];
  tnk_chunk_t chunks[] = {tnk_chunk_text(ids, 4),
                          {.kind = TNK_CHUNK_IMAGE,
                           .bytes = image,
                           .n_bytes = sizeof(image),
                           .format = TNK_PNG}};
  tnk_model_input_t prompt = {.chunks = chunks, .n_chunks = 2};
  tnk__sample_request_t request = {.prompt = &prompt,
                                   .sampling_session_id = "s"};

  for (long at = 0;; at++) {
    tnk__buf_t buf;
    int err;

    tnk__buf_init(&buf, test_allocator(), 1 << 16);
    test_alloc_fail_at(at);
    err = tnk__sample_write(&buf, &request, NULL);
    test_alloc_fail_at(-1);
    tnk__buf_deinit(&buf);
    if (err == TNK_OK) {
      CHECK(at > 0);
      break;
    }
    CHECK_INT(err, TNK_ENOMEM);
  }
}

TEST(random_requests_are_valid_json) {
  uint64_t seed = 5;
  static int32_t tokens[500];

  for (size_t i = 0; i < 500; i++)
    tokens[i] = (int32_t)(test_random(&seed) >> 33);
  for (int round = 0; round < 200; round++) {
    tnk_chunk_t chunks[8];
    tnk_model_input_t prompt = {.chunks = chunks,
                                .n_chunks = test_random(&seed) % 8};
    tnk_sampling_params_t params = full_params();
    tnk_sample_options_t options = TNK_SAMPLE_OPTIONS_INIT;
    tnk__sample_request_t request = {.prompt = &prompt,
                                     .params = &params,
                                     .options = &options,
                                     .sampling_session_id = "s",
                                     .seq_id = round};
    const json_t *list;
    json_t *root;
    tnk__buf_t buf;

    if (round & 2)
      params.max_tokens = TNK_ABSENT;
    if (round & 4)
      params.temperature = params.top_p = TNK_ABSENT;
    if (round & 8)
      params.top_k = TNK_ABSENT;
    options.topk_sample_logprobs = (uint32_t)test_random(&seed) % 3;
    for (size_t i = 0; i < prompt.n_chunks; i++)
      chunks[i] = tnk_chunk_text(tokens, (size_t)(test_random(&seed) % 500));
    tnk__buf_init(&buf, test_allocator(), 1 << 20);
    CHECK_INT(tnk__sample_write(&buf, &request, NULL), TNK_OK);
    CHECK_INT(tnk__json_parse_object(&root, buf.data, buf.len), TNK_OK);
    list = tnk__json_arr(tnk__json_obj(root, "prompt"), "chunks");
    CHECK_INT(json_array_size(list), prompt.n_chunks);
    for (size_t i = 0; i < prompt.n_chunks; i++) {
      const json_t *read = tnk__json_arr(json_array_get(list, i), "tokens");

      CHECK_INT(json_array_size(read), chunks[i].n_tokens);
      for (size_t t = 0; t < chunks[i].n_tokens; t++)
        CHECK_INT(json_integer_value(json_array_get(read, t)), tokens[t]);
    }
    json_decref(root);
    tnk__buf_deinit(&buf);
  }
}
