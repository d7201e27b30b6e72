/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls_training.h"

#include "bodies.h"
#include "lib/wire/message/calls_future.h"
#include "lib/wire/message/calls_sampling.h"

static const tnk_pair_t pairs[] = {{"k", "v"}, {"a", "\xc3\xa4"}};

TEST(P4_1_create_model_body) {
  tnk_lora_options_t o = TNK_LORA_OPTIONS_INIT;

  o.base_model = "Qwen/Qwen3-8B";
  CHECK_WRITES(
      tnk__create_model_write(&out, "s-1", 0, &o),
      "{\"session_id\":\"s-1\",\"model_seq_id\":0,\"base_model\":\"Qwen/"
      "Qwen3-8B\",\"lora_config\":{\"rank\":32,\"train_unembed\":true,"
      "\"train_mlp\":true,\"train_attn\":true},\"type\":\"create_model\"}");
  o.rank = 8;
  o.seed = -5;
  o.train_mlp = TNK_NO;
  o.train_attn = TNK_YES;
  o.optimizer = TNK_OPTIMIZER_DIMUON;
  o.user_metadata = pairs;
  o.n_user_metadata = 2;
  CHECK_WRITES(
      tnk__create_model_write(&out, "s-1", 3, &o),
      "{\"session_id\":\"s-1\",\"model_seq_id\":3,\"base_model\":\"Qwen/"
      "Qwen3-8B\",\"user_metadata\":{\"k\":\"v\",\"a\":\"\xc3\xa4\"},"
      "\"lora_config\":{\"rank\":8,\"seed\":-5,\"train_unembed\":true,"
      "\"train_mlp\":false,\"train_attn\":true},\"optimizer_config\":{\"type\":"
      "\"dimuon\",\"version\":1},\"type\":\"create_model\"}");
  o.optimizer = TNK_OPTIMIZER_RAW;
  o.optimizer_json = "{\"type\":\"x\",\"y\":[1]}";
  o.n_user_metadata = 0;
  CHECK_WRITES(
      tnk__create_model_write(&out, "s-1", 3, &o),
      "{\"session_id\":\"s-1\",\"model_seq_id\":3,\"base_model\":\"Qwen/"
      "Qwen3-8B\",\"lora_config\":{\"rank\":8,\"seed\":-5,\"train_unembed\":"
      "true,\"train_mlp\":false,\"train_attn\":true},\"optimizer_config\":{"
      "\"type\":\"x\",\"y\":[1]},\"type\":\"create_model\"}");
}

TEST(P5_6_create_from_state_body) {
  tnk_restore_options_t o = TNK_RESTORE_OPTIONS_INIT;

  o.path = "tinker://r/weights/x";
  CHECK_WRITES(
      tnk__create_from_state_write(&out, "s-1", 1, &o),
      "{\"session_id\":\"s-1\",\"model_seq_id\":1,\"path\":\"tinker://r/"
      "weights/x\",\"optimizer\":false,\"type\":\"load_weights\"}");
  o.base_model = "b";
  o.user_metadata = pairs;
  o.n_user_metadata = 1;
  o.optimizer = TNK_OPTIMIZER_DIMUON;
  o.weights_access_token = "t";
  CHECK_WRITES(
      tnk__create_from_state_write(&out, "s-1", 1, &o),
      "{\"session_id\":\"s-1\",\"model_seq_id\":1,\"base_model\":\"b\","
      "\"user_metadata\":{\"k\":\"v\"},\"path\":\"tinker://r/weights/x\","
      "\"optimizer\":false,\"optimizer_config\":{\"type\":\"dimuon\","
      "\"version\":1},\"weights_access_token\":\"t\",\"type\":"
      "\"load_weights\"}");
  o = (tnk_restore_options_t)TNK_RESTORE_OPTIONS_INIT;
  o.path = "tinker://r/weights/x";
  o.with_optimizer = TNK_YES;
  o.optimizer = TNK_OPTIMIZER_DIMUON;
  CHECK_WRITES(
      tnk__create_from_state_write(&out, "s-1", 1, &o),
      "{\"session_id\":\"s-1\",\"model_seq_id\":1,\"path\":\"tinker://r/"
      "weights/x\",\"optimizer\":true,\"type\":\"load_weights\"}");
}

TEST(P4_6_model_id_of_a_loaded_model) {
  CHECK_WRITES(tnk__model_id_write(&out, "s-1", 12), "s-1:train:12");
}

TEST(P4_1_bodies_that_ask) {
  CHECK_WRITES(tnk__get_info_write(&out, "s-1:train:0"),
               "{\"model_id\":\"s-1:train:0\",\"type\":\"get_info\"}");
  CHECK_WRITES(tnk__weights_info_write(&out, "tinker://r/weights/x"),
               "{\"tinker_path\":\"tinker://r/weights/x\"}");
  CHECK_WRITES(tnk__unload_model_write(&out, "m"),
               "{\"model_id\":\"m\",\"type\":\"unload_model\"}");
}

TEST(P5_6_save_bodies) {
  static const char *const keys[] = {"age1x", "ssh-ed25519 AAAA me"};
  tnk_save_options_t o = TNK_SAVE_OPTIONS_INIT;

  CHECK_WRITES(tnk__save_weights_write(&out, "m", 4, "step-1", NULL),
               "{\"model_id\":\"m\",\"path\":\"step-1\",\"seq_id\":4,"
               "\"overwrite\":false,\"type\":\"save_weights\"}");
  CHECK_WRITES(tnk__save_sampler_write(&out, "m", 5, "step-1", NULL),
               "{\"model_id\":\"m\",\"path\":\"step-1\","
               "\"seq_id\":5,\"type\":\"save_weights_for_sampler\"}");
  CHECK_WRITES(tnk__save_external_write(&out, "m", 6, "x", NULL),
               "{\"model_id\":\"m\",\"path\":\"x\",\"seq_id\":6,"
               "\"type\":\"save_weights_external\"}");
  o.ttl_seconds = 3600;
  o.overwrite = TNK_YES;
  o.user_metadata = pairs;
  o.n_user_metadata = 1;
  o.recipients = keys;
  o.n_recipients = 2;
  CHECK_WRITES(
      tnk__save_weights_write(&out, "m", 4, "step-1", &o),
      "{\"model_id\":\"m\",\"path\":\"step-1\",\"seq_id\":4,\"ttl_seconds\":"
      "3600,\"overwrite\":true,\"user_metadata\":{\"k\":\"v\"},"
      "\"type\":\"save_weights\"}");
  CHECK_WRITES(
      tnk__save_sampler_write(&out, "m", 5, "step-1", &o),
      "{\"model_id\":\"m\",\"path\":\"step-1\","
      "\"seq_id\":5,\"ttl_seconds\":3600,\"user_metadata\":{\"k\":\"v\"},"
      "\"type\":\"save_weights_for_sampler\"}");
  CHECK_WRITES(
      tnk__save_external_write(&out, "m", 6, "x", &o),
      "{\"model_id\":\"m\",\"path\":\"x\",\"seq_id\":6,\"ttl_seconds\":3600,"
      "\"age_encryption_recipients\":[\"age1x\",\"ssh-ed25519 AAAA me\"],"
      "\"type\":\"save_weights_external\"}");
}

TEST(P5_6_ephemeral_save_body) {
  CHECK_WRITES(
      tnk__save_ephemeral_write(&out, "m", 7, 0, TNK_SAMPLING_SNAPSHOT),
      "{\"model_id\":\"m\",\"sampling_session_seq_id\":0,\"seq_id\":7,\"type\":"
      "\"save_weights_for_sampler\"}");
  CHECK_WRITES(
      tnk__save_ephemeral_write(&out, "m", 7, 2, TNK_SAMPLING_INFLIGHT),
      "{\"model_id\":\"m\",\"sampling_session_seq_id\":2,\"kind\":"
      "\"inflight\",\"seq_id\":7,\"type\":\"save_weights_for_sampler\"}");
}

TEST(P5_6_load_body) {
  CHECK_WRITES(
      tnk__load_weights_write(&out, "m", 1, "tinker://r/weights/x", 0, NULL),
      "{\"model_id\":\"m\",\"seq_id\":1,\"path\":\"tinker://r/weights/x\","
      "\"optimizer\":false,\"type\":\"load_weights\"}");
  CHECK_WRITES(
      tnk__load_weights_write(&out, "m", 1, "tinker://r/weights/x", 1, "t"),
      "{\"model_id\":\"m\",\"seq_id\":1,\"path\":\"tinker://r/weights/x\","
      "\"optimizer\":true,\"weights_access_token\":\"t\","
      "\"type\":\"load_weights\"}");
}

TEST(P4_2_create_model_result) {
  const char *id = NULL;

#define CALL tnk__create_model_read(&id, &arena, body, n)
  CHECK_READS("{\"model_id\":\"s:train:0\",\"type\":null,\"base_model\":\"x\"}",
              CALL, CHECK_STR(id, "s:train:0"));
  CHECK_REFUSES("{\"model_id\":null}", CALL);
  CHECK_REFUSES("{\"model_id\":5}", CALL);
  CHECK_REFUSES("{}", CALL);
#undef CALL
}

TEST(P4_2_get_info_answer) {
  tnk_training_info_t info;

#define CALL tnk__get_info_read(&info, &arena, body, n)
  CHECK_READS("{\"model_id\":\"m\",\"model_data\":{\"arch\":\"qwen3\","
              "\"model_name\":\"Qwen/Qwen3-8B\",\"tokenizer_id\":\"a/b:c\"},"
              "\"optimizer_config\":{\"type\":\"dimuon\",\"version\":1},"
              "\"is_lora\":true,\"lora_rank\":16,\"model_name\":\"other\","
              "\"type\":\"get_info\"}",
              CALL, {
                CHECK_STR(info.model_id, "m");
                CHECK_STR(info.arch, "qwen3");
                CHECK_STR(info.base_model, "Qwen/Qwen3-8B");
                CHECK_STR(info.tokenizer_id, "a/b");
                CHECK_STR(info.optimizer, "dimuon");
                CHECK_INT(info.lora_rank, 16);
              });
  /* SkyRL's form */
  CHECK_READS("{\"model_id\":\"m\",\"status\":\"ready\",\"model_data\":{"
              "\"base_model\":\"b\",\"lora_config\":{\"rank\":8},"
              "\"model_name\":null}}",
              CALL, {
                CHECK_STR(info.base_model, "b");
                CHECK(info.arch == NULL && info.tokenizer_id == NULL);
                CHECK_STR(info.optimizer, "adamw");
                CHECK_INT(info.lora_rank, 8);
              });
  CHECK_READS("{\"model_id\":\"m\",\"optimizer_config\":{},\"lora_rank\":-1,"
              "\"model_name\":\"n\"}",
              CALL, {
                CHECK_STR(info.base_model, "n");
                CHECK_STR(info.optimizer, "adamw");
                CHECK_INT(info.lora_rank, 0);
              });
  CHECK_REFUSES("{\"model_data\":{}}", CALL);
  CHECK_REFUSES("{\"model_id\":\"m\",\"optimizer_config\":7}", CALL);
#undef CALL
}

TEST(P4_2_weights_info_answer) {
  tnk__weights_info_t info;

#define CALL tnk__weights_info_read(&info, &arena, body, n)
  CHECK_READS("{\"base_model\":\"b\",\"is_lora\":true,\"lora_rank\":8,"
              "\"train_mlp\":false,\"train_attn\":null,"
              "\"optimizer_config\":{\"type\":\"x\",\"a\":[1,null]}}",
              CALL, {
                CHECK_STR(info.base_model, "b");
                CHECK(info.is_lora);
                CHECK_INT(info.lora_rank, 8);
                CHECK_INT(info.train_mlp, TNK_NO);
                CHECK_INT(info.train_attn, TNK_YES);
                CHECK_INT(info.train_unembed, TNK_YES);
                CHECK_STR(info.optimizer, "x");
                CHECK_STR(info.optimizer_json,
                          "{\"type\":\"x\",\"a\":[1,null]}");
              });
  CHECK_READS("{\"base_model\":\"b\",\"is_lora\":false,\"lora_rank\":null}",
              CALL, {
                CHECK(!info.is_lora && info.optimizer_json == NULL);
                CHECK_STR(info.optimizer, "adamw");
              });
  CHECK_REFUSES("{\"base_model\":\"b\"}", CALL);
  CHECK_REFUSES("{\"is_lora\":true}", CALL);
  CHECK_REFUSES("{\"base_model\":\"b\",\"is_lora\":1}", CALL);
#undef CALL
}

TEST(P5_6_save_and_load_results) {
  tnk__saved_t saved;

#define CALL tnk__saved_read(&saved, &arena, body, n)
  CHECK_READS("{\"path\":\"tinker://m/weights/x\",\"type\":null}", CALL, {
    CHECK_STR(saved.path, "tinker://m/weights/x");
    CHECK(saved.sampling_session_id == NULL && saved.model_id == NULL);
    CHECK_INT(saved.size_bytes, -1);
  });
  CHECK_READS("{\"path\":null,\"sampling_session_id\":\"s:sample:0\"}", CALL, {
    CHECK(saved.path == NULL);
    CHECK_STR(saved.sampling_session_id, "s:sample:0");
  });
  CHECK_READS("{\"path\":\"tinker://m/x\",\"model_id\":\"m\","
              "\"size_bytes\":12}",
              CALL, {
                CHECK_STR(saved.path, "tinker://m/x");
                CHECK_STR(saved.model_id, "m");
                CHECK_INT(saved.size_bytes, 12);
              });
  CHECK_REFUSES("{\"path\":7}", CALL);
  CHECK_REFUSES("{\"size_bytes\":\"7\"}", CALL);
  CHECK_REFUSES("[]", CALL);
#undef CALL
}

TEST(P4_1_sampling_session_bodies) {
  CHECK_WRITES(tnk__create_sampling_write(&out, "s-1", 0, "b", NULL),
               "{\"session_id\":\"s-1\",\"sampling_session_seq_id\":0,"
               "\"base_model\":\"b\",\"type\":\"create_sampling_session\"}");
  CHECK_WRITES(
      tnk__create_sampling_write(&out, "s-1", 9, "b", "tinker://r/x/y"),
      "{\"session_id\":\"s-1\",\"sampling_session_seq_id\":9,"
      "\"base_model\":\"b\",\"model_path\":\"tinker://r/x/y\","
      "\"type\":\"create_sampling_session\"}");
  CHECK_WRITES(tnk__join_sampling_write(&out, "s:sample:0"),
               "{\"sampling_session_id\":\"s:sample:0\","
               "\"type\":\"join_sampling_session\"}");
}

TEST(P4_2_sampling_session_answers) {
  const char *id = NULL;
  uint64_t counter = 77;
  tnk__sampler_t sampler;

  CHECK_READS("{\"sampling_session_id\":\"s:sample:0\"}",
              tnk__create_sampling_read(&id, &arena, body, n),
              CHECK_STR(id, "s:sample:0"));
  CHECK_REFUSES("{\"sampling_session_id\":null}",
                tnk__create_sampling_read(&id, &arena, body, n));
#define JOIN ((void)arena, tnk__join_sampling_read(&counter, body, n))
  CHECK_REFUSES("{\"client_counter\":-1}", JOIN);
  CHECK_REFUSES("{\"client_counter\":9223372036}", JOIN);
  CHECK_REFUSES("{\"type\":\"join_sampling_session\"}", JOIN);
  CHECK_INT(counter, 77);
  CHECK_READS("{\"client_counter\":3}", JOIN, CHECK_INT(counter, 3));
#undef JOIN
#define CALL tnk__sampler_read(&sampler, &arena, body, n)
  CHECK_READS("{\"sampler_id\":\"s:sample:0\",\"base_model\":\"b\","
              "\"model_path\":null}",
              CALL, {
                CHECK_STR(sampler.sampler_id, "s:sample:0");
                CHECK_STR(sampler.base_model, "b");
                CHECK(sampler.model_path == NULL);
              });
  CHECK_REFUSES("{\"sampler_id\":\"s\"}", CALL);
  CHECK_REFUSES("{\"base_model\":\"b\",\"model_path\":[]}", CALL);
#undef CALL
}

TEST(P8_1_future_bodies) {
  CHECK_WRITES(tnk__retrieve_future_write(&out, "r-1", 1),
               "{\"request_id\":\"r-1\",\"allow_metadata_only\":true}");
  CHECK_WRITES(tnk__retrieve_future_write(&out, "r-1", 0),
               "{\"request_id\":\"r-1\",\"allow_metadata_only\":false}");
  CHECK_WRITES(tnk__cancel_future_write(&out, "r-1"),
               "{\"request_id\":\"r-1\"}");
}

/* The two bodies that the protocol gives as examples. */
TEST(P8_6_batch_bodies) {
  static const char *const ids[] = {"s:sample:6", "s:sample:8"};
  tnk__batch_request_t request = {.sampling_session_id = "s:sample:0"};

  CHECK_WRITES(tnk__retrieve_futures_write(&out, &request),
               "{\"target\":{\"type\":\"sampling_session\","
               "\"sampling_session_id\":\"s:sample:0\",\"cloned_sampler_id\":0}"
               ",\"prev_cursor\":0,\"retrieved_request_ids\":[]}");
  request.prev_cursor = 8;
  request.clone = 3;
  request.at_once = 1;
  request.retrieved = ids;
  request.n_retrieved = 2;
  CHECK_WRITES(tnk__retrieve_futures_write(&out, &request),
               "{\"target\":{\"type\":\"sampling_session\","
               "\"sampling_session_id\":\"s:sample:0\",\"cloned_sampler_id\":3}"
               ",\"prev_cursor\":8,\"timeout\":0.0,\"retrieved_request_ids\":"
               "[\"s:sample:6\",\"s:sample:8\"]}");
}

TEST(P8_6_batch_answers) {
  tnk__batch_answer_t answer;
#define CALL tnk__retrieve_futures_read(&answer, &arena, body, n)
  CHECK_READS("{\"completions\":[],\"cursor\":-3,\"more\":1}", CALL, {
    CHECK_INT(answer.n, 0);
    CHECK_INT(answer.cursor, -3);
  });
  CHECK_READS(
      "{\"completions\":[{\"state\":\"finished\",\"request_id\":\"a\","
      "\"response_payload_uncompressed_size\":77,\"x\":[]},{\"state\":"
      "\"failed\",\"request_id\":\"b\",\"response_payload_uncompressed_size\":"
      "5},{\"state\":\"finished\",\"request_id\":12,"
      "\"response_payload_uncompressed_size\":null}],\"cursor\":8}",
      CALL, {
        CHECK_INT(answer.n, 3);
        CHECK_INT(answer.cursor, 8);
        CHECK_STR(answer.completions[0].request_id, "a");
        CHECK_INT(answer.completions[0].result_bytes, 77);
        CHECK_STR(answer.completions[1].request_id, "b");
        CHECK_INT(answer.completions[1].result_bytes, 0);
        CHECK_STR(answer.completions[2].request_id, "12");
        CHECK_INT(answer.completions[2].result_bytes, 0);
      });
  /* What is not understood costs nobody else anything. */
  CHECK_READS("{\"completions\":[7,{},{\"state\":\"expired\",\"request_id\":"
              "\"a\"},{\"state\":\"finished\"},{\"state\":\"finished\","
              "\"request_id\":[]},{\"state\":1,\"request_id\":\"a\"},"
              "{\"state\":\"finished\",\"request_id\":\"b\","
              "\"response_payload_uncompressed_size\":-1}],\"cursor\":2}",
              CALL, {
                CHECK_INT(answer.n, 1);
                CHECK_STR(answer.completions[0].request_id, "b");
                CHECK_INT(answer.completions[0].result_bytes, 0);
              });
  CHECK_REFUSES("{\"completions\":[]}", CALL);
  CHECK_REFUSES("{\"cursor\":1}", CALL);
  CHECK_REFUSES("{\"completions\":[],\"cursor\":\"1\"}", CALL);
  CHECK_REFUSES("{\"completions\":[],\"cursor\":1.5}", CALL);
  CHECK_REFUSES("{\"completions\":{},\"cursor\":1}", CALL);
#undef CALL
}
