/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include "chat/message/message.h"
#include "lib/base/alloc.h"

/* Any JSON as a body with messages: the first byte chooses the shape, or
 * FUZZ_API does, by its name. What is read comes back as it was, and can be
 * tried in the other shapes. */

static const char *const shapes[] = {[TNK_CHAT_TEMPLATE] = "template",
                                     [TNK_CHAT_OPENAI] = "chat",
                                     [TNK_CHAT_RESPONSES] = "responses",
                                     [TNK_CHAT_ANTHROPIC] = "messages",
                                     NULL};

/* The member of a body is as it was. */
static void check_member(tnk__value_t body, tnk__value_t back,
                         const char *name) {
  tnk__value_t member = tnk__value_get(body, name);

  if (member.kind == TNK__VALUE_NONE)
    member = tnk__value_undefined();
  FUZZ_CHECK(tnk__value_equal(member, tnk__value_get(back, name)));
}

static void check_back(tnk_chat_shape_t shape, tnk__value_t body,
                       tnk__value_t back, size_t n_messages) {
  static const char *const systems[] = {
      [TNK_CHAT_RESPONSES] = "instructions", [TNK_CHAT_ANTHROPIC] = "system"};

  if (body.kind != TNK__VALUE_DICT || shape == TNK_CHAT_TEMPLATE)
    return;
  check_member(body, back, shape == TNK_CHAT_RESPONSES ? "input" : "messages");
  if (shape != TNK_CHAT_OPENAI)
    check_member(body, back, systems[shape]);
  /* Without a message there is no place to keep how they came. */
  if (n_messages > 0)
    check_member(body, back, "tools");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__value_t body, messages, tools, back;
  tnk_chat_shape_t shape;
  tnk__why_t why;
  tnk__heap_t heap;

  if (size == 0)
    return 0;
  shape = (tnk_chat_shape_t)fuzz_pick("FUZZ_API", shapes, data[0] % 4);
  tnk__heap_init(&heap, tnk__allocator_default(), (size_t)1 << 26);
  if (tnk__value_from_json(&heap, (const char *)data + 1, size - 1, &body) ==
          TNK_OK &&
      tnk__message_read(&heap, shape, body, &messages, &tools, &why) ==
          TNK_OK) {
    FUZZ_CHECK(tnk__message_write(&heap, shape, messages, tools, &back, &why) ==
               TNK_OK);
    check_back(shape, body, back, messages.as.list->n);
    for (int other = TNK_CHAT_TEMPLATE; other <= TNK_CHAT_ANTHROPIC; other++)
      (void)tnk__message_write(&heap, (tnk_chat_shape_t)other, messages, tools,
                               &back, &why);
  }
  tnk__heap_deinit(&heap);
  return 0;
}
