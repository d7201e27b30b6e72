/* SPDX-License-Identifier: MIT */
#include "gateway/wire/known.h"

#include <string.h>

#define BIT(api) (1u << (api))
#define CHAT BIT(TNK__GW_CHAT)
#define COMPLETION BIT(TNK__GW_COMPLETION)
#define RESPONSE BIT(TNK__GW_RESPONSE)
#define MESSAGE BIT(TNK__GW_MESSAGE)
#define ALL (CHAT | COMPLETION | RESPONSE | MESSAGE)

/* The parameters of each API. Others are rejected, so that none is ignored
 * which would change the response. */
static const struct {
  const char *name;
  unsigned apis;
} known[] = {
    {"model", ALL},
    {"messages", CHAT | MESSAGE},
    {"input", RESPONSE},
    {"prompt", COMPLETION},
    {"stream", ALL},
    {"stream_options", ALL},
    {"max_tokens", CHAT | COMPLETION | MESSAGE},
    {"max_completion_tokens", CHAT},
    {"max_output_tokens", RESPONSE},
    {"temperature", ALL},
    {"top_p", ALL},
    {"top_k", ALL},
    {"seed", ALL},
    {"n", CHAT | COMPLETION},
    {"best_of", COMPLETION},
    {"echo", COMPLETION},
    {"stop", CHAT | COMPLETION},
    {"stop_sequences", MESSAGE},
    {"logprobs", CHAT | COMPLETION},
    {"top_logprobs", CHAT | RESPONSE},
    {"include", RESPONSE},
    {"tools", CHAT | RESPONSE | MESSAGE},
    {"tool_choice", CHAT | RESPONSE | MESSAGE},
    {"system", MESSAGE},
    {"instructions", RESPONSE},
    {"previous_response_id", RESPONSE},
    {"response_format", CHAT | COMPLETION},
    {"text", RESPONSE},
    {"output_config", MESSAGE},
    {"output_format", MESSAGE},
    {"modalities", CHAT},
    {"continue_final_message", CHAT},
    {"add_generation_prompt", CHAT},
    {"chat_template_kwargs", ALL},
    /* Without an effect here. They are for the operation of the service, or a
     * wish of which the response may fall short. */
    {"metadata", ALL},
    {"user", ALL},
    {"service_tier", ALL},
    {"store", CHAT | RESPONSE},
    {"safety_identifier", CHAT | RESPONSE},
    {"prompt_cache_key", CHAT | RESPONSE},
    {"prompt_cache_retention", CHAT | RESPONSE},
    {"cache_control", MESSAGE},
    {"truncation", RESPONSE},
    {"parallel_tool_calls", CHAT | RESPONSE},
    {"reasoning_effort", CHAT},
    {"verbosity", CHAT},
    {"reasoning", RESPONSE},
    {"thinking", MESSAGE},
};

static int is_known(tnk__gw_api_t api, const char *name) {
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if ((known[i].apis & BIT(api)) != 0 && strcmp(known[i].name, name) == 0)
      return 1;
  return 0;
}

/* Returns whether a value is what happens without the parameter. */
static int is_nothing(const char *name, const json_t *value) {
  static const char *const factors[] = {"repetition_penalty", "length_penalty"};
  static const char *const usual[] = {"add_generation_prompt",
                                      "skip_special_tokens",
                                      "spaces_between_special_tokens"};

  for (size_t i = 0; i < sizeof(factors) / sizeof(*factors); i++)
    if (strcmp(name, factors[i]) == 0)
      return json_is_null(value) || json_number_value(value) == 1;
  for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
    if (strcmp(name, usual[i]) == 0)
      return json_is_null(value) || json_is_true(value);
  /* An empty object may ask for something, as {} of web_search_options. */
  return json_is_null(value) || json_is_false(value) ||
         (json_is_number(value) && json_number_value(value) == 0) ||
         (json_is_string(value) && json_string_length(value) == 0) ||
         (json_is_array(value) && json_array_size(value) == 0) ||
         (json_is_object(value) && json_object_size(value) == 0 &&
          strcmp(name, "logit_bias") == 0);
}

/* Tool runners of Anthropic's clients start a thread by default. After the code
 * of this error they send the whole conversation without one. */
static int refuse_thread(tnk__gw_fault_t *fault) {
  (void)tnk__gw_fault(fault, 400, "thread",
                      "thread is not supported here: send the whole "
                      "conversation without it");
  fault->code = "thread_unsupported_request";
  return -1;
}

int tnk__gw_known_check(tnk__gw_api_t api, const json_t *body,
                        tnk__gw_fault_t *fault) {
  const char *name;
  json_t *value;

  json_object_foreach((json_t *)(uintptr_t)body, name, value) {
    if (is_known(api, name) || is_nothing(name, value))
      continue;
    if (api == TNK__GW_MESSAGE && strcmp(name, "thread") == 0)
      return refuse_thread(fault);
    return tnk__gw_fault(fault, 400, name, "%.200s is not supported here",
                         name);
  }
  return 0;
}
