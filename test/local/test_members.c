/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "support/test.h"
#include "tools/local/call/call.h"

/* A server of protocol 0.25 that reads its requests strictly. */

static void open_strict(rig_t *rig, char session[96], char model[96]) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.members = LOCAL_MEMBERS_STRICT;
  rig_open(rig, &options);
  rig_session(rig, session);
  rig_model(rig, session, model);
}

/* The member that entry i of the answer is about, "a.b" for an inner one. */
static void extra(const exchange_t *x, size_t i, char out[96]) {
  const json_t *entry = json_array_get(json_object_get(x->json, "detail"), i);
  const json_t *loc = json_object_get(entry, "loc");

  CHECK_STR(json_string_value(json_object_get(entry, "type")),
            "extra_forbidden");
  CHECK_STR(json_string_value(json_object_get(entry, "msg")),
            "Extra inputs are not permitted");
  CHECK_STR(json_string_value(json_array_get(loc, 0)), "body");
  snprintf(out, 96, "%s", json_string_value(json_array_get(loc, 1)));
  if (json_array_size(loc) == 3)
    snprintf(out + strlen(out), 96 - strlen(out), ".%s",
             json_string_value(json_array_get(loc, 2)));
}

static void check_extras(exchange_t *x, const char *const *names, size_t n) {
  char name[96];

  CHECK_INT(x->status, 422);
  CHECK_INT(json_array_size(json_object_get(x->json, "detail")), n);
  for (size_t i = 0; i < n; i++) {
    int found = 0;

    for (size_t k = 0; k < n; k++) {
      extra(x, k, name);
      found |= strcmp(name, names[i]) == 0;
    }
    CHECK(found);
  }
  rig_free(x);
}

TEST(each_member_that_the_protocol_did_not_have_is_named) {
  static const char *const of_model[] = {"optimizer_config", "lora_config.new"};
  static const char *const of_sample[] = {
      "topk_sample_logprobs", "prompt_alt_tokens_k", "record_stability_info"};
  static const char *const kind[] = {"kind"};
  char session[96];
  char model[96];
  rig_t rig;

  open_strict(&rig, session, model);
  check_extras(rig_post(&rig, "create_model",
                        "{\"session_id\":\"%s\",\"model_seq_id\":1,"
                        "\"base_model\":\"tnk/byte-lm\","
                        "\"lora_config\":{\"rank\":4,\"new\":1},"
                        "\"optimizer_config\":{\"type\":\"adamw\"}}",
                        session),
               of_model, 2);
  check_extras(
      rig_post(&rig, "asample",
               "{\"base_model\":\"tnk/byte-lm\",\"num_samples\":1,"
               "\"prompt\":{\"chunks\":[{\"type\":\"encoded_text\","
               "\"tokens\":[1]}]},\"sampling_params\":{\"max_tokens\":1,"
               "\"anything\":1},\"topk_sample_logprobs\":0,"
               "\"prompt_alt_tokens_k\":0,\"record_stability_info\":false}"),
      of_sample, 3);
  check_extras(rig_post(&rig, "save_weights_for_sampler",
                        "{\"model_id\":\"%s\",\"seq_id\":1,\"path\":\"a\","
                        "\"kind\":\"snapshot\"}",
                        model),
               kind, 1);
  rig_close(&rig);
}

TEST(the_number_of_a_request_with_an_unknown_member_is_no_gap) {
  char session[96];
  char model[96];
  rig_t rig;

  open_strict(&rig, session, model);
  CHECK_INT(rig_status(rig_start(&rig, "save_weights",
                                 "{\"model_id\":\"%s\",\"path\":\"s\","
                                 "\"seq_id\":1,\"user_metadata\":{}}",
                                 model)),
            422);
  rig_free(rig_done(&rig, rig_step(&rig, model, 2, 0.1)));
  rig_free(rig_done(&rig, rig_step(&rig, model, 1, 0.1)));
  rig_close(&rig);
}

TEST(what_the_protocol_had_is_taken) {
  char session[96];
  char model[96];
  char sampler[96];
  rig_t rig;

  open_strict(&rig, session, model);
  rig_sampler(&rig, session, sampler);
  rig_free(rig_done(&rig, rig_pass(&rig, model, 1, "abc")));
  rig_free(rig_done(&rig, rig_step(&rig, model, 2, 0.1)));
  rig_free(rig_done(&rig,
                    rig_post(&rig, "save_weights",
                             "{\"model_id\":\"%s\",\"path\":\"s\",\"seq_id\":3,"
                             "\"overwrite\":false,\"type\":\"save_weights\"}",
                             model)));
  rig_free(rig_done(
      &rig, rig_post(&rig, "asample",
                     "{\"num_samples\":1,\"prompt\":{\"chunks\":[{\"type\":"
                     "\"encoded_text\",\"tokens\":[1]}]},"
                     "\"sampling_params\":{\"max_tokens\":1},\"seq_id\":0,"
                     "\"sampling_session_id\":\"%s\",\"prompt_logprobs\":"
                     "false,\"topk_prompt_logprobs\":0,\"type\":\"sample\"}",
                     sampler)));
  rig_close(&rig);
}

TEST(no_model_is_made_from_a_checkpoint_in_one_call) {
  char session[96];
  char model[96];
  exchange_t *x;
  rig_t rig;

  open_strict(&rig, session, model);
  x = rig_post(&rig, "load_weights",
               "{\"session_id\":\"%s\",\"model_seq_id\":1,"
               "\"path\":\"tinker://a/weights/b\",\"optimizer\":false}",
               session);
  CHECK_INT(x->status, 400);
  CHECK_STR(rig_text(x, "detail"), "Missing model_id");
  rig_free(x);
  rig_close(&rig);
}

/* ---- The number in a body of protobuf ---- */

static int64_t scan(const char *bytes, size_t n) {
  return local_scan_seq((const uint8_t *)bytes, n);
}

TEST(the_number_of_a_pass_is_found_in_its_bytes) {
  /* model_id "m", seq_id 300, then what cannot be read any more. */
  CHECK_INT(scan("\x0a\x01m\x10\xac\x02", 6), 300);
  CHECK_INT(scan("\x0a\x01m\x10\xac\x02\x1a\x7f", 8), 300);
  CHECK_INT(scan("\x10\x01\x10\x02", 4), 2);
  /* Fields of eight and of four bytes are stepped over. */
  CHECK_INT(scan("\x21........\x10\x07", 11), 7);
  CHECK_INT(scan("\x25....\x10\x07", 7), 7);
  CHECK_INT(scan("\x10\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10), INT64_MAX);
}

TEST(what_has_no_number_or_breaks_off_has_none) {
  CHECK_INT(local_scan_seq(NULL, 0), -1);
  CHECK_INT(scan("\x0a\x01m", 3), -1);
  CHECK_INT(scan("\x0a\x7f\x10\x01", 4), -1);
  CHECK_INT(scan("\x10", 1), -1);
  CHECK_INT(scan("\x10\xac", 2), -1);
  CHECK_INT(scan("\x13\x10\x01", 3), -1);
  CHECK_INT(scan("\x21....", 5), -1);
  /* Eleven bytes, and one that is negative. */
  CHECK_INT(scan("\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12), -1);
  CHECK_INT(scan("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), -1);
}
