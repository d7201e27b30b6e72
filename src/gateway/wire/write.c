/* SPDX-License-Identifier: MIT */
#include "gateway/wire/write.h"

#include "gateway/wire/parts.h"

int tnk__gw_answer_write(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  switch (answer->ask->api) {
  case TNK__GW_CHAT:
    return tnk__gw_chat_write(answer, out);
  case TNK__GW_COMPLETION:
    return tnk__gw_completion_write(answer, out);
  case TNK__GW_RESPONSE:
    return tnk__gw_response_write(answer, out);
  default:
    return tnk__gw_message_write(answer, out);
  }
}
