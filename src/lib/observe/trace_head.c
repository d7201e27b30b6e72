/*
 * The head of a trace: repeated names, and the process.
 */
#include "lib/observe/trace_head.h"

#include "lib/observe/trace_bytes.h"
#include "lib/observe/trace_fields.h"
#include "tnk/observe.h"
#include "tnk/version.h"

static uint8_t *put_name(uint8_t *at, uint32_t field, uint8_t id,
                         const char *text, const char *more) {
  uint8_t *message;
  uint8_t *name;

  at = begin_message(at, field, &message);
  at = put_uint(at, NAME_ID, id);
  at = begin_message(at, NAME_TEXT, &name);
  for (; *text != '\0'; text++)
    *at++ = (uint8_t)*text;
  for (; *more != '\0'; more++)
    *at++ = (uint8_t)*more;
  end_message(name, at);
  end_message(message, at);
  return at;
}

static uint8_t *put_names(uint8_t *at) {
  static const char *const annotations[N_ANNOTATIONS] = {
      [ATTEMPT] = "attempt",       [BYTES] = "bytes",
      [STATUS] = "status",         [CODE] = "code",
      [REQUEST_ID] = "request_id", [OPERATION] = "operation"};
  uint8_t *packet;
  uint8_t *names;

  at = begin_message(at, PACKET, &packet);
  at = put_uint(at, SEQUENCE, 1);
  at = put_uint(at, FLAGS, NAMES_BEGIN);
  at = begin_message(at, NAMES, &names);
  for (uint8_t i = 0; tnk_phase_name(i)[0] != '\0'; i++)
    at =
        put_name(at, NAMES_EVENT, (uint8_t)(PHASES + i), tnk_phase_name(i), "");
  at = put_name(at, NAMES_EVENT, WAITS, "waits", "");
  for (uint8_t i = 1; tnk_waits_for_name(i)[0] != '\0'; i++)
    at = put_name(at, NAMES_EVENT, (uint8_t)(WAITS + i), "waits for ",
                  tnk_waits_for_name(i));
  for (int i = 1; i < N_ANNOTATIONS; i++)
    at = put_name(at, NAMES_ANNOTATION, (uint8_t)i, annotations[i], "");
  end_message(names, at);
  end_message(packet, at);
  return at;
}

static uint8_t *put_process(uint8_t *at, int pid) {
  uint8_t *packet;
  uint8_t *inner;
  uint8_t *process;

  at = begin_message(at, PACKET, &packet);
  at = put_uint(at, SEQUENCE, 1);
  at = begin_message(at, TRACK_DESCRIPTOR, &inner);
  at = put_uint(at, UUID, PROCESS);
  at = begin_message(at, TRACK_PROCESS, &process);
  at = put_uint(at, PID, (uint64_t)pid);
  at = put_text(at, PROCESS_NAME, "tnk " TNK_VERSION_STRING);
  end_message(process, at);
  end_message(inner, at);
  end_message(packet, at);
  return at;
}

uint8_t *tnk__trace_put_head(uint8_t *at, int pid) {
  return put_process(put_names(at), pid);
}
