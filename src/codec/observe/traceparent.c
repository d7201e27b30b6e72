#include "codec/observe/traceparent.h"

#include <string.h>

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

void tnk__traceparent_write(const tnk__traceparent_t *trace, uint64_t span,
                            char out[TNK__TRACEPARENT + 1]) {
  char *to = out + VERSION + 1 + TRACE + 1;

  memcpy(out, "00-", VERSION + 1);
  memcpy(out + VERSION + 1, trace->trace_id, TRACE);
  to[-1] = to[SPAN] = '-';
  for (size_t i = SPAN; i-- > 0; span >>= 4)
    to[i] = "0123456789abcdef"[span & 15];
  memcpy(to + SPAN + 1, trace->flags, FLAGS + 1);
}
