#ifndef TNK_LIB_OBSERVE_TRACE_FIELDS_H
#define TNK_LIB_OBSERVE_TRACE_FIELDS_H

/* Constants that the parts of a trace share. */

/* Tags of the fields. */
enum {
  VARINT = 0,
  LENGTH = 2,
  PACKET = 1 << 3 | LENGTH,
  TIMESTAMP = 8 << 3 | VARINT,
  SEQUENCE = 10 << 3 | VARINT,
  TRACK_EVENT = 11 << 3 | LENGTH,
  NAMES = 12 << 3 | LENGTH,
  FLAGS = 13 << 3 | VARINT,
  TRACK_DESCRIPTOR = 60 << 3 | LENGTH,
  UUID = 1 << 3 | VARINT,
  TRACK_NAME = 2 << 3 | LENGTH,
  TRACK_PROCESS = 3 << 3 | LENGTH,
  PARENT = 5 << 3 | VARINT,
  PID = 1 << 3 | VARINT,
  PROCESS_NAME = 6 << 3 | LENGTH,
  ANNOTATION = 4 << 3 | LENGTH,
  EVENT_TYPE = 9 << 3 | VARINT,
  EVENT_ID = 10 << 3 | VARINT, /* of its name */
  EVENT_TRACK = 11 << 3 | VARINT,
  EVENT_NAME = 23 << 3 | LENGTH,
  ANNOTATION_ID = 1 << 3 | VARINT,
  ANNOTATION_UINT = 3 << 3 | VARINT,
  ANNOTATION_TEXT = 6 << 3 | LENGTH,
  NAMES_EVENT = 2 << 3 | LENGTH,
  NAMES_ANNOTATION = 3 << 3 | LENGTH,
  NAME_ID = 1 << 3 | VARINT,
  NAME_TEXT = 2 << 3 | LENGTH
};

/* Values of a packet's flags about names. */
enum { NAMES_BEGIN = 1, NAMES_NEEDED = 2 };

/* Numbers of the annotations' names and of the phases' names, which the waiting
 * reasons follow. All are below 128, so each is a varint of one byte. */
enum {
  ATTEMPT = 1,
  BYTES,
  STATUS,
  CODE,
  REQUEST_ID,
  OPERATION,
  N_ANNOTATIONS,
  PHASES = 1,
  WAITS = 32
};

/* The track of the process; the tracks of clients follow. */
enum { PROCESS = 1 };

#endif
