/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/calls_session.h"

#include "bodies.h"

TEST(P4_1_session_bodies) {
  static const char *const tags[] = {"a", "b \"c\""};
  static const tnk_pair_t pairs[] = {{"run", "7"}, {"who", "me"}};

  CHECK_WRITES(tnk__client_config_write(&out), "{\"sdk_version\":\"0.38.0\"}");
  CHECK_WRITES(tnk__auth_token_write(&out), "{}");
  CHECK_WRITES(tnk__create_session_write(&out, NULL, 0, NULL, 0, NULL, NULL),
               "{\"tags\":[],\"user_metadata\":{},\"sdk_version\":\"0.38.0\","
               "\"type\":\"create_session\"}");
  CHECK_WRITES(
      tnk__create_session_write(&out, tags, 2, pairs, 2, "p-1", "night"),
      "{\"tags\":[\"a\",\"b \\\"c\\\"\"],\"user_metadata\":{\"run\":\"7\","
      "\"who\":\"me\"},\"sdk_version\":\"0.38.0\",\"project_id\":\"p-1\","
      "\"display_name\":\"night\",\"type\":\"create_session\"}");
  CHECK_WRITES(tnk__heartbeat_write(&out, "s-1"),
               "{\"session_id\":\"s-1\",\"type\":\"session_heartbeat\"}");
  CHECK_WRITES(tnk__finish_session_write(&out, "success", NULL),
               "{\"reason\":{\"type\":\"success\"},\"detail\":null}");
  CHECK_WRITES(tnk__finish_session_write(&out, "errored", "x"),
               "{\"reason\":{\"type\":\"errored\"},\"detail\":\"x\"}");
  CHECK_WRITE_FAILS(tnk__heartbeat_write(&out, "\xff"), TNK_EINVAL);
}

static int read_flags(tnk__flags_t *flags, const char *text) {
  return tnk__flags_read(flags, (const uint8_t *)text, strlen(text));
}

TEST(P3_1_flags_not_stated_are_the_defaults) {
  static const char *const texts[] = {
      "{}", "{\"pjwt_auth_enabled\":false}", "{\"unknown\":[1,{}]}",
      "{\"fwdbwd_max_chunk_len\":null,\"parallel_fwdbwd_chunks\":null}",
      "{\"credential_default_source\":null}"};
  tnk__flags_t flags;
  size_t i;

  for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    memset(&flags, 0xff, sizeof(flags));
    CHECK_INT(read_flags(&flags, texts[i]), TNK_OK);
    CHECK(!flags.use_jwt && !flags.credential_cmd && flags.parallel_chunks);
    CHECK(!flags.compress_train && !flags.sample_fail_fast);
    CHECK(flags.sample_watch && !flags.batched_polls);
    CHECK(!flags.join_samplers && !flags.server_losses);
    CHECK_INT(flags.train_chunk_items, 1024);
    CHECK_INT(flags.train_chunk_bytes, 5000000);
    CHECK_INT(flags.train_dispatch_bytes, 50000000);
    CHECK_INT(flags.sample_dispatch_bytes, 10485760);
    CHECK_INT(flags.sample_concurrency, 2000);
    CHECK_INT(flags.result_bytes, 52428800);
    CHECK_INT(flags.billing_pause_s, 3600);
  }
}

TEST(P3_1_flags_are_the_servers) {
  static const char text[] =
      "{\"pjwt_auth_enabled\":true,"
      "\"credential_default_source\":\"credential_cmd\","
      "\"sample_dispatch_bytes_semaphore_size\":1,"
      "\"inflight_response_bytes_semaphore_size\":2,"
      "\"parallel_fwdbwd_chunks\":false,\"proto_compress_fwdbwd\":true,"
      "\"fwdbwd_max_chunk_len\":3,\"fwdbwd_max_chunk_bytes_count\":4,"
      "\"fwdbwd_dispatch_bytes_semaphore_size\":5,"
      "\"billing_exception_max_pause_duration_sec\":6,"
      "\"sample_no_retries\":true,\"sample_enable_stuck_detection\":false,"
      "\"sample_max_concurrent_requests\":7,\"use_pyqwest_transport\":true,"
      "\"sample_use_retrieve_futures\":true,\"custom_loss_server_side\":true,"
      "\"sample_join_sampling_session\":true}";
  tnk__flags_t flags;

  CHECK_INT(read_flags(&flags, text), TNK_OK);
  CHECK(flags.use_jwt && flags.credential_cmd && !flags.parallel_chunks);
  CHECK(flags.compress_train && flags.sample_fail_fast);
  CHECK(!flags.sample_watch && flags.batched_polls);
  CHECK(flags.join_samplers && flags.server_losses);
  CHECK_INT(flags.sample_dispatch_bytes, 1);
  CHECK_INT(flags.result_bytes, 2);
  CHECK_INT(flags.train_chunk_items, 3);
  CHECK_INT(flags.train_chunk_bytes, 4);
  CHECK_INT(flags.train_dispatch_bytes, 5);
  CHECK_INT(flags.billing_pause_s, 6);
  CHECK_INT(flags.sample_concurrency, 7);
}

TEST(hostile_flags_change_nothing) {
  static const char *const texts[] = {
      "",
      "[]",
      "null",
      "{\"pjwt_auth_enabled\":1}",
      "{\"credential_default_source\":7}",
      "{\"parallel_fwdbwd_chunks\":\"true\"}",
      "{\"fwdbwd_max_chunk_len\":0}",
      "{\"fwdbwd_max_chunk_len\":1.5}",
      "{\"fwdbwd_max_chunk_len\":\"9\"}",
      "{\"fwdbwd_max_chunk_bytes_count\":-1}",
      "{\"fwdbwd_dispatch_bytes_semaphore_size\":9223372036854775807}",
      "{\"billing_exception_max_pause_duration_sec\":10000000000}",
      "{\"sample_max_concurrent_requests\":0}",
      "{\"sample_max_concurrent_requests\":99999999999999999999}"};
  tnk__flags_t flags, before;
  size_t i;

  memset(&before, 0x5a, sizeof(before));
  for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    flags = before;
    CHECK_INT(read_flags(&flags, texts[i]), TNK_EPROTO);
    CHECK_MEM(&flags, sizeof(flags), &before, sizeof(before));
  }
}

static int read_dynamic(tnk__dynamic_flags_t *flags, const char *text) {
  return tnk__dynamic_flags_read(flags, (const uint8_t *)text, strlen(text));
}

TEST(P3_2_dynamic_flags) {
  static const char *const bad[] = {"",
                                    "[]",
                                    "{\"refresh_interval_sec\":-1}",
                                    "{\"sample_cancel_max_batch_size\":0}",
                                    "{\"sample_cancel_enabled\":0}",
                                    "{\"refresh_interval_sec\":1e3}"};
  tnk__dynamic_flags_t flags;
  size_t i;

  CHECK_INT(read_dynamic(&flags, "{}"), TNK_OK);
  CHECK_INT(flags.refresh_interval_s, 300);
  CHECK(!flags.sample_cancel);
  CHECK_INT(flags.sample_cancel_batch, 64);
  CHECK_INT(read_dynamic(&flags, "{\"refresh_interval_sec\":20,"
                                 "\"sample_cancel_enabled\":true,"
                                 "\"sample_cancel_max_batch_size\":2}"),
            TNK_OK);
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_INT(read_dynamic(&flags, bad[i]), TNK_EPROTO);
  CHECK_INT(flags.refresh_interval_s, 20);
  CHECK(flags.sample_cancel);
  CHECK_INT(flags.sample_cancel_batch, 2);
}

TEST(P4_2_create_session_answer) {
  tnk__create_session_reply_t reply;

#define CALL tnk__create_session_read(&reply, &arena, body, n)
  CHECK_READS("{\"session_id\":\"s-1\",\"info_message\":\"i\","
              "\"warning_message\":null,\"error_message\":\"\","
              "\"type\":\"create_session\",\"more\":1}",
              CALL, {
                CHECK_STR(reply.session_id, "s-1");
                CHECK_STR(reply.info_message, "i");
                CHECK(reply.warning_message == NULL);
                CHECK_STR(reply.error_message, "");
              });
  CHECK_REFUSES("{\"session_id\":7}", CALL);
  CHECK_REFUSES("{\"session_id\":\"\"}", CALL);
  CHECK_REFUSES("{\"session_id\":null}", CALL);
  CHECK_REFUSES("{\"session_id\":\"s\",\"info_message\":{}}", CALL);
  CHECK_REFUSES("{\"type\":\"create_session\"}", CALL);
#undef CALL
}

TEST(P1_7_token_answer) {
  const char *jwt = NULL;

  CHECK_READS("{\"jwt\":\"eyJ.x.y\"}",
              tnk__auth_token_read(&jwt, &arena, body, n),
              CHECK_STR(jwt, "eyJ.x.y"));
  CHECK_REFUSES("{\"jwt\":1}", tnk__auth_token_read(&jwt, &arena, body, n));
  CHECK_REFUSES("{}", tnk__auth_token_read(&jwt, &arena, body, n));
}

TEST(P4_2_capabilities_answer) {
  tnk_capabilities_t *caps = NULL;

#define CALL tnk__capabilities_read(&caps, &arena, body, n)
  CHECK_READS(
      "{\"supported_models\":[{\"model_name\":\"Qwen/Qwen3-8B\","
      "\"max_context_length\":32768,\"trainable\":true,\"sampleable\":false},"
      "{\"model_name\":null,\"max_context_length\":null},{}],\"x\":1}",
      CALL, {
        CHECK_INT(tnk_capabilities_count(caps), 3);
        CHECK_STR(tnk_capabilities_model(caps, 0)->name, "Qwen/Qwen3-8B");
        CHECK_INT(tnk_capabilities_model(caps, 0)->max_context_length, 32768);
        CHECK_INT(tnk_capabilities_model(caps, 0)->trainable, TNK_YES);
        CHECK_INT(tnk_capabilities_model(caps, 0)->sampleable, TNK_NO);
        CHECK(tnk_capabilities_model(caps, 1)->name == NULL);
        CHECK_INT(tnk_capabilities_model(caps, 1)->max_context_length, 0);
        CHECK_INT(tnk_capabilities_model(caps, 2)->trainable, TNK_DEFAULT);
        CHECK(tnk_capabilities_model(caps, 3) == NULL);
      });
  CHECK_READS("{\"supported_models\":[]}", CALL,
              CHECK_INT(tnk_capabilities_count(caps), 0));
  CHECK_REFUSES("{\"supported_models\":{}}", CALL);
  CHECK_REFUSES("{\"supported_models\":[\"x\"]}", CALL);
  CHECK_REFUSES("{\"supported_models\":[{\"model_name\":1}]}", CALL);
  CHECK_REFUSES("{\"supported_models\":[{\"max_context_length\":-1}]}", CALL);
  CHECK_REFUSES("{\"supported_models\":[{\"trainable\":1}]}", CALL);
  CHECK_REFUSES("{\"models\":[]}", CALL);
  CHECK_INT(tnk_capabilities_count(NULL), 0);
  CHECK(tnk_capabilities_model(NULL, 0) == NULL);
#undef CALL
}

TEST(P4_2_health_answer) {
  static const char good[] = "{\"status\":\"ok\"}";

  CHECK_INT(tnk__health_read((const uint8_t *)good, sizeof(good) - 1), TNK_OK);
  CHECK_INT(tnk__health_read((const uint8_t *)"{}", 2), TNK_EPROTO);
  CHECK_INT(tnk__health_read((const uint8_t *)"ok", 2), TNK_EPROTO);
}
