#include "codec/observe/traceparent.h"

#include <string.h>

#include "codec/format/le.h"

enum { VERSION = 2, TRACE = 32, SPAN = 16, FLAGS = 2 };

/* Digits up to a dash or the end, and not all of them `never`. */
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
  memcpy(out->flags, flags, FLAGS);
  out->trace_id[TRACE] = out->flags[FLAGS] = '\0';
  return 1;
}

/* Eight digits, of which each has a byte of one word. */
static void put_hex(char *out, uint32_t value) {
  const uint64_t ones = 0x0101010101010101u;
  uint64_t x = value;
  uint64_t letters;

  /* The first digit is the last byte here, so that the lowest is written
   * last. */
  x = (x & 0xffff) << 32 | x >> 16;
  x = (x & 0x000000ff000000ff) << 16 | (x & 0x0000ff000000ff00) >> 8;
  x = (x & 0x000f000f000f000f) << 8 | (x & 0x00f000f000f000f0) >> 4;
  letters = (x + ones * 6) >> 4 & ones;
  x += ones * '0' + letters * ('a' - '0' - 10);
  tnk__le_put64((uint8_t *)out, x);
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
