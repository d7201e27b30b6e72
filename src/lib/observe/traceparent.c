/* SPDX-License-Identifier: MIT */
#include "lib/observe/traceparent.h"

#include <string.h>

enum { VERSION = 2, TRACE = 32, SPAN = 16, FLAGS = 2 };

/* Accepts n hexadecimal digits that are not all `never`, followed by `end`. */
static int is_field(const char *text, size_t n, char never, char end) {
  size_t n_never = 0;

  for (size_t i = 0; i < n; i++) {
    if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f'))
      return 0;
    n_never += text[i] == never;
  }
  return n_never < n && text[n] == end;
}

int tnk__traceparent_read(tnk__traceparent_t *out, const char *text) {
  const char *trace = text + VERSION + 1;
  const char *span = trace + TRACE + 1;
  const char *flags = span + SPAN + 1;
  const size_t n = strlen(text);

  if (n < TNK__TRACEPARENT || !is_field(text, VERSION, 'f', '-') ||
      !is_field(trace, TRACE, '0', '-') || !is_field(span, SPAN, '0', '-') ||
      !is_field(flags, FLAGS, '-', n > TNK__TRACEPARENT ? '-' : '\0') ||
      (n > TNK__TRACEPARENT && memcmp(text, "00", VERSION) == 0))
    return 0;
  memcpy(out->trace_id, trace, TRACE);
  memcpy(out->span_id, span, SPAN);
  memcpy(out->flags, flags, FLAGS);
  out->trace_id[TRACE] = out->span_id[SPAN] = out->flags[FLAGS] = '\0';
  return 1;
}

/* The two digits of each byte, as one string. */
#define BYTES_OF(d)                                                            \
  d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9" d "a" d "b" d    \
    "c" d "d" d "e" d "f"
static const char digits[] = BYTES_OF("0") BYTES_OF("1") BYTES_OF("2")
    BYTES_OF("3") BYTES_OF("4") BYTES_OF("5") BYTES_OF("6") BYTES_OF("7")
        BYTES_OF("8") BYTES_OF("9") BYTES_OF("a") BYTES_OF("b") BYTES_OF("c")
            BYTES_OF("d") BYTES_OF("e") BYTES_OF("f");
#undef BYTES_OF

static inline void put_byte(char *out, uint32_t byte) {
  memcpy(out, digits + 2 * (byte & 0xff), 2);
}

static inline void put_hex(char *out, uint32_t value) {
  put_byte(out, value >> 24);
  put_byte(out + 2, value >> 16);
  put_byte(out + 4, value >> 8);
  put_byte(out + 6, value);
}

void tnk__traceparent_write(const tnk__traceparent_t *trace, uint64_t span,
                            char out[TNK__TRACEPARENT + 1]) {
  char *to = out + VERSION + 1 + TRACE + 1;

  memcpy(out, "00-", VERSION + 1);
  memcpy(out + VERSION + 1, trace->trace_id, TRACE);
  to[-1] = to[SPAN] = '-';
  put_hex(to, (uint32_t)(span >> 32));
  put_hex(to + SPAN / 2, (uint32_t)span);
  memcpy(to + SPAN + 1, trace->flags, FLAGS + 1);
}
