#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/format/json_read.h"
#include "gateway/key.h"
#include "gateway/record/line.h"
#include "gateway/wire/ask.h"
#include "tnk/error.h"

/* The body of a request to the gateway, whose API the first byte says, or a
 * line of its record. */

static void check_ask(tnk__gw_api_t api, const uint8_t *data, size_t size) {
  tnk__gw_fault_t fault = {0};
  tnk__gw_ask_t ask;
  uint64_t key = 0;
  tnk__buf_t out;

  tnk__buf_init(&out, tnk__allocator_default(), 65536);
  if (tnk__gw_ask_read(&ask, api, data, size, &fault) != 0) {
    FUZZ_CHECK(fault.status >= 400 && fault.text[0] != '\0');
    FUZZ_CHECK(tnk__gw_fault_write(&fault, api, &out) == TNK_OK);
  } else {
    const json_t *messages = json_object_get(ask.body, "messages");

    FUZZ_CHECK(ask.n >= 1 && ask.n <= TNK__GW_MAX_CHOICES);
    FUZZ_CHECK(ask.n_stops <= TNK__GW_MAX_STOPS);
    FUZZ_CHECK(!(ask.top_p > 1) && ask.n_top <= TNK__GW_MAX_TOP);
    for (size_t i = 0; i < json_array_size(messages); i++)
      key = tnk__gw_key_add(key, json_array_get(messages, i));
  }
  tnk__gw_ask_drop(&ask);
  tnk__buf_deinit(&out);
}

static void check_line(const uint8_t *data, size_t size) {
  tnk__gw_line_t line;
  uint64_t number;
  double reward;
  json_t *json;

  if (tnk__json_parse_object(&json, data, size) != TNK_OK)
    return;
  if (tnk__gw_line_read(json, &line) == 0) {
    FUZZ_CHECK(line.number > 0 && line.session != NULL);
    if (line.n_prompt < 4096) {
      int32_t ids[4096];

      if (tnk__gw_line_ids(json, "prompt", ids, line.n_prompt) == 0)
        for (size_t i = 0; i < line.n_prompt; i++)
          FUZZ_CHECK(ids[i] >= 0);
    }
  }
  if (tnk__gw_line_reward_read(json, &number, &reward) == 0)
    FUZZ_CHECK(number > 0 && !isnan(reward));
  json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unsigned api = size > 0 ? (unsigned)data[0] - '0' : 5;

  if (api <= TNK__GW_MESSAGE)
    check_ask((tnk__gw_api_t)api, data + 1, size - 1);
  else if (api == 4)
    check_line(data + 1, size - 1);
  return 0;
}
