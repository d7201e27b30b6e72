/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/optim_wire.h"

#include <math.h>

#include "codec/wire.h"

static int read_json(void **out, const tnk_allocator_t *alloc, const void *body,
                     size_t n) {
  tnk_metrics_t *metrics;
  int err = tnk__optim_read(&metrics, alloc, body, n);

  *out = metrics;
  return err;
}

static tnk_metrics_t *from_json(const char *text) {
  tnk_metrics_t *metrics;

  CHECK_INT(tnk__optim_read(&metrics, test_allocator(), text, strlen(text)),
            TNK_OK);
  return metrics;
}

static void end(tnk_metrics_t *metrics) {
  tnk__metrics_free(test_allocator(), metrics);
  CHECK_INT(test_alloc_live(), 0);
}

TEST(vector_M_adam) {
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk__buf_t buf;

  step.learning_rate = 0.001;
  tnk__buf_init(&buf, test_allocator(), 4096);
  CHECK_INT(tnk__optim_write(&buf, "M", 1, &step), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf),
            "{\"model_id\":\"M\",\"seq_id\":1,\"type\":\"optim_step\","
            "\"adam_params\":{\"learning_rate\":0.001,\"beta1\":0.9,"
            "\"beta2\":0.95,\"eps\":1e-12,\"weight_decay\":0.0,"
            "\"grad_clip_norm\":0.0}}");
  tnk__buf_deinit(&buf);
}

TEST(vector_M_dimuon) {
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk__buf_t buf;

  step.optimizer = TNK_OPTIMIZER_DIMUON;
  step.learning_rate = 0.02;
  tnk__buf_init(&buf, test_allocator(), 4096);
  CHECK_INT(tnk__optim_write(&buf, "M", 2, &step), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf),
            "{\"model_id\":\"M\",\"seq_id\":2,\"type\":\"optim_step\","
            "\"optimizer_params\":{\"type\":\"dimuon\",\"learning_rate\":0.02,"
            "\"grad_clip_norm\":0.0,\"beta1\":0.9}}");
  tnk__buf_deinit(&buf);
}

TEST(raw_parameters_are_sent_as_they_are) {
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk__buf_t buf;

  step.optimizer = TNK_OPTIMIZER_RAW;
  step.json = "{\"type\": \"lion\", \"b\":1}";
  tnk__buf_init(&buf, test_allocator(), 4096);
  CHECK_INT(tnk__optim_write(&buf, "M", 3, &step), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf),
            "{\"model_id\":\"M\",\"seq_id\":3,\"type\":\"optim_step\","
            "\"optimizer_params\":{\"type\": \"lion\", \"b\":1}}");
  tnk__buf_deinit(&buf);
}

TEST(S3_26a_writing_without_memory) {
  tnk_optim_t step = TNK_OPTIM_INIT;
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 4096);
  test_alloc_fail_at(0);
  CHECK_INT(tnk__optim_write(&buf, "M", 1, &step), TNK_ENOMEM);
  test_alloc_fail_at(-1);
  tnk__buf_deinit(&buf);
}

TEST(S3_7_metrics_are_optional) {
  static const char *const none[] = {"{}", "{\"metrics\":null}",
                                     "{\"metrics\":{},\"type\":null}"};
  tnk_metrics_t *metrics;

  for (int i = 0; i < 3; i++) {
    metrics = from_json(none[i]);
    CHECK_INT(tnk_metrics_count(metrics), 0);
    CHECK(isnan(tnk_metrics_get(metrics, "a")));
    end(metrics);
  }
  metrics = from_json("{\"metrics\":{\"skyrl.ai/grad_norm\":1.5,\"b\":2,"
                      "\"c\":null,\"d\":\"x\",\"b\":3}}");
  CHECK_INT(tnk_metrics_count(metrics), 3);
  CHECK_STR(tnk_metrics_key(metrics, 0), "skyrl.ai/grad_norm");
  CHECK_NEAR(tnk_metrics_value(metrics, 0), 1.5, 0);
  CHECK_NEAR(tnk_metrics_get(metrics, "b"), 3, 0);
  CHECK(isnan(tnk_metrics_get(metrics, "c")));
  end(metrics);
}

TEST(S3_26a_damaged_json) {
  static const char body[] = "{\"metrics\":{\"a\":1.5,\"b\":2,\"c\":-3e4}}";
  tnk_metrics_t *metrics;

  wire_damage(read_json, tnk__metrics_free, body, strlen(body));
  wire_starve(read_json, tnk__metrics_free, body, strlen(body));
  CHECK_INT(tnk__optim_read(&metrics, test_allocator(), "[]", 2), TNK_EPROTO);
  CHECK_INT(tnk__optim_read(&metrics, test_allocator(), "{\"metrics\":[]}", 14),
            TNK_EPROTO);
}
