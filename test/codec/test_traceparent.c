/* SPDX-License-Identifier: MIT */
/* The header of W3C's trace context. */
#include <string.h>

#include "lib/observe/traceparent.h"
#include "support/test.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

TEST(P9_trace_context_is_read_and_goes_on_with_a_span_of_its_own) {
  tnk__traceparent_t trace;
  char text[TNK__TRACEPARENT + 1];

  CHECK(tnk__traceparent_read(&trace, GOOD));
  CHECK_STR(trace.trace_id, "0af7651916cd43dd8448eb211c80319c");
  CHECK_STR(trace.flags, "01");
  tnk__traceparent_write(&trace, 0x12ab, text);
  CHECK_STR(text, "00-0af7651916cd43dd8448eb211c80319c-00000000000012ab-01");
  tnk__traceparent_write(&trace, UINT64_C(0xfedcba9876543210), text);
  CHECK_STR(text, "00-0af7651916cd43dd8448eb211c80319c-fedcba9876543210-01");
  /* A later version may have more. */
  CHECK(tnk__traceparent_read(
      &trace, "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x"));
}

TEST(P9_what_is_no_trace_context_is_refused) {
  static const char *const bad[] = {
      "",
      "00",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
      GOOD "-x",
      GOOD "0",
      "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.x",
      "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "00-00000000000000000000000000000000-b7ad6b7169203331-01",
      "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
      "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"};
  tnk__traceparent_t trace;

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    if (tnk__traceparent_read(&trace, bad[i]))
      test_fail(__FILE__, __LINE__, "was read: %s", bad[i]);
}
