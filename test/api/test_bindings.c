/* SPDX-License-Identifier: MIT */
/*
 * What bindings need: macros as functions, clients without their promises.
 */
#include "tnk/bindings.h"

#include <string.h>
#include <uv.h>

#include "lib/base/options.h"
#include "task/script.h"

#define EXPECT_INIT(type, init, ...)                                           \
  do {                                                                         \
    const type macro = init;                                                   \
    type got;                                                                  \
    memset(&got, 0x5a, sizeof(got));                                           \
    CHECK_INT(tnk_init(#type, &got, sizeof(got)), TNK_OK);                     \
    CHECK_MEM(&got, sizeof(got), &macro, sizeof(macro));                       \
  } while (0);

TEST(each_INIT_has_a_function){TNK__STRUCTS_IN(EXPECT_INIT)
                                   TNK__STRUCTS_OUT(EXPECT_INIT)}

TEST(a_binding_that_is_older_or_newer_gets_its_own_size) {
  const tnk_optim_t macro = TNK_OPTIM_INIT;
  struct {
    tnk_optim_t known;
    uint64_t newer;
  } big;

  memset(&big, 0x5a, sizeof(big));
  CHECK_INT(tnk_init("tnk_optim_t", &big, sizeof(big)), TNK_OK);
  CHECK_INT(big.known.size, sizeof(big));
  CHECK_INT(big.newer, 0);
  CHECK(big.known.learning_rate == macro.learning_rate);
  CHECK_INT(tnk_init("tnk_optim_t", &big, sizeof(macro) - 1), TNK_EINVAL);
  CHECK_INT(tnk_init("tnk_datum_t", &big, sizeof(big)), TNK_EINVAL);
  CHECK_INT(tnk_init(NULL, &big, sizeof(big)), TNK_EINVAL);
  CHECK_INT(tnk_init("tnk_optim_t", NULL, sizeof(big)), TNK_EINVAL);
  CHECK_INT(big.known.size, sizeof(big));
}

TEST(the_version_of_libuv_is_that_of_the_process) {
  CHECK_STR(tnk_libuv_version(), uv_version_string());
}

TEST(the_version_of_nghttp2_is_told_where_it_is_used) {
#if TNK__HAS_HTTP2
  CHECK(tnk_http2_version() != NULL && tnk_http2_version()[0] == '1');
#else
  CHECK(tnk_http2_version() == NULL);
#endif
}

TEST(a_client_is_taken_from_its_promise) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  char why[200] = "";
  tnk_training_t *training;
  tnk_sampling_t *sampling;
  script_t script;

  script_open(&script);
  lora.base_model = "b";
  training = tnk_take_training(tnk_service_create_lora(script.service, &lora),
                               why, sizeof(why));
  CHECK_STR(why, "");
  CHECK(training != NULL);
  sampling = tnk_take_sampling(tnk_training_save_weights_and_get_sampling(
                                   training, TNK_SAMPLING_SNAPSHOT, NULL),
                               why, sizeof(why));
  CHECK_STR(why, "");
  CHECK(sampling != NULL);
  script_close(&script);
}

TEST(a_client_that_cannot_be_taken_says_why) {
  char why[200] = "";
  script_t script;

  script_open(&script);
  CHECK(tnk_take_training(tnk_service_create_lora(script.service, NULL), why,
                          sizeof(why)) == NULL);
  CHECK(strstr(why, "create_lora: ") == why);
  CHECK(strstr(why, "base_model") != NULL);
  CHECK(tnk_take_sampling(tnk_service_health(script.service), why,
                          sizeof(why)) == NULL);
  CHECK(strstr(why, "no client of this kind") != NULL);
  CHECK(tnk_take_training(NULL, why, 8) == NULL);
  CHECK_STR(why, "there i");
  CHECK(tnk_take_sampling(NULL, NULL, 0) == NULL);
  script_close(&script);
}
