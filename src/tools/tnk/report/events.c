/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/le.h"
#include "tnk/error.h"

/* Fields of the messages, as wire type and number. */
enum {
  EVENT_TIME = 1 << 3 | 1,    /* double */
  EVENT_STEP = 2 << 3,        /* int64 */
  EVENT_VERSION = 3 << 3 | 2, /* string */
  EVENT_SUMMARY = 5 << 3 | 2,
  EVENT_SESSION = 7 << 3 | 2,
  SUMMARY_VALUE = 1 << 3 | 2,
  VALUE_TAG = 1 << 3 | 2,    /* string */
  VALUE_NUMBER = 2 << 3 | 5, /* float */
  SESSION_STATUS = 1 << 3,
  SESSION_START = 1
};

/* Larger than the numbers of a line of metrics. */
enum { MAX_EVENT = 4 << 20 };

/* TensorBoard finds the files by the first word, and reads them in the order of
 * their names. */
#define NAME "events.out.tfevents."
#define OWN ".tnk"

typedef struct {
  const cli_t *cli;
  const char *folder;
  int is_live;
  int is_settled;
  char *path;      /* of the file; NULL: there is none yet */
  uint64_t number; /* in its name */
  off_t n_bytes;   /* written completely */
  FILE *to;
  tnk__buf_t event;
  tnk__buf_t summary; /* the values of a line */
  tnk__buf_t part;    /* one of them */
} writer_t;

/* ---- Records ---- */

/* CRC-32C (Castagnoli), bit by bit reflected. */
static uint32_t crc32c(const uint8_t *data, size_t n) {
  static uint32_t table[256];
  uint32_t crc = 0xffffffff;

  for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
    uint32_t entry = i;

    for (int bit = 0; bit < 8; bit++)
      entry = entry >> 1 ^ (entry & 1 ? UINT32_C(0x82f63b78) : 0);
    table[i] = entry;
  }
  for (size_t i = 0; i < n; i++)
    crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
  return crc ^ 0xffffffff;
}

/* A record has masked checksums, because data may have a checksum itself. */
static uint32_t masked(const uint8_t *data, size_t n) {
  const uint32_t crc = crc32c(data, n);

  return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static void put_record(FILE *to, const uint8_t *data, size_t n) {
  uint8_t head[12], tail[4];

  tnk__le_put64(head, n);
  tnk__le_put32(head + 8, masked(head, 8));
  tnk__le_put32(tail, masked(data, n));
  (void)fwrite(head, 1, sizeof(head), to);
  (void)fwrite(data, 1, n, to);
  (void)fwrite(tail, 1, sizeof(tail), to);
}

/* ---- Messages ---- */

static void put_varint(tnk__buf_t *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    tnk__buf_byte(out, (uint8_t)(value | 0x80));
  tnk__buf_byte(out, (uint8_t)value);
}

static void put_bytes(tnk__buf_t *out, int field, const void *data, size_t n) {
  put_varint(out, (uint64_t)field);
  put_varint(out, n);
  tnk__buf_append(out, data, n);
}

static void begin_event(writer_t *writer, double time_s, int64_t step) {
  uint64_t bits;
  uint8_t time[8];

  memcpy(&bits, &time_s, sizeof(bits));
  tnk__le_put64(time, bits);
  tnk__buf_clear(&writer->event);
  put_varint(&writer->event, EVENT_TIME);
  tnk__buf_append(&writer->event, time, sizeof(time));
  put_varint(&writer->event, EVENT_STEP);
  put_varint(&writer->event, (uint64_t)step);
}

static int end_event(writer_t *writer) {
  if (writer->event.err != TNK_OK || writer->summary.err != TNK_OK ||
      writer->part.err != TNK_OK)
    return TNK_ENOMEM;
  put_record(writer->to, writer->event.data, writer->event.len);
  return TNK_OK;
}

static int put_version(writer_t *writer, double time_s) {
  static const char version[] = "brain.Event:2";

  begin_event(writer, time_s, 0);
  put_bytes(&writer->event, EVENT_VERSION, version, sizeof(version) - 1);
  return end_event(writer);
}

/* Forget the steps from this one on. */
static int put_restart(writer_t *writer, double time_s, int64_t step) {
  static const uint8_t start[] = {SESSION_STATUS, SESSION_START};

  begin_event(writer, time_s, step);
  put_bytes(&writer->event, EVENT_SESSION, start, sizeof(start));
  return end_event(writer);
}

/* Add a value to the summary. */
static void put_value(writer_t *writer, const char *key, double value) {
  /* null is not a number. A value that is too large for a float becomes
   * infinite. */
  const float number = (float)value;
  tnk__buf_t *part = &writer->part;
  uint32_t bits;
  uint8_t data[4];

  memcpy(&bits, &number, sizeof(bits));
  tnk__le_put32(data, bits);
  tnk__buf_clear(part);
  put_bytes(part, VALUE_TAG, key, strlen(key));
  put_varint(part, VALUE_NUMBER);
  tnk__buf_append(part, data, sizeof(data));
  put_bytes(&writer->summary, SUMMARY_VALUE, part->data, part->len);
}

static int put_row(writer_t *writer, const report_row_t *row) {
  const char *key;
  json_t *value;
  int err = TNK_OK;

  if (row->is_back)
    err = put_restart(writer, row->time_s, row->step);
  tnk__buf_clear(&writer->summary);
  json_object_foreach(row->line, key, value) {
    if (strcmp(key, "step") == 0 ||
        (!json_is_number(value) && !json_is_null(value)))
      continue;
    put_value(writer, key,
              json_is_null(value) ? NAN : json_number_value(value));
  }
  if (writer->summary.len == 0 || err != TNK_OK)
    return err;
  begin_event(writer, row->time_s, row->step);
  put_bytes(&writer->event, EVENT_SUMMARY, writer->summary.data,
            writer->summary.len);
  return end_event(writer);
}

/* ---- Files ---- */

static int failed(const writer_t *writer, int err, const char *path) {
  return err == TNK_ENOMEM
             ? cli_fail(writer->cli, CLI_EXIT_FAILED, "out of memory")
             : cli_fail(writer->cli, CLI_EXIT_FILE, "%s: %s", path,
                        strerror(errno));
}

static char *join(const writer_t *writer, const char *name) {
  const size_t n = strlen(writer->folder) + strlen(name) + 2;
  char *path = malloc(n);

  if (path != NULL)
    (void)snprintf(path, n, "%s/%s", writer->folder, name);
  return path;
}

/* Returns whether this program has written a file of this name. */
static int is_own(const char *name, uint64_t *number) {
  char *end;

  if (strncmp(name, NAME, sizeof(NAME) - 1) != 0 ||
      strspn(name + sizeof(NAME) - 1, "0123456789") == 0)
    return 0;
  errno = 0;
  *number = strtoull(name + sizeof(NAME) - 1, &end, 10);
  return errno == 0 && strcmp(end, OWN) == 0;
}

/* Find the greatest number. If `drops`, remove the files other than that of the
 * writer. */
static uint64_t look_at_others(const writer_t *writer, int drops) {
  DIR *dir = opendir(writer->folder);
  struct dirent *entry;
  uint64_t greatest = 0, number;

  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    char *path;

    if (!is_own(entry->d_name, &number))
      continue;
    if (number > greatest)
      greatest = number;
    if (!drops || number == writer->number)
      continue;
    path = join(writer, entry->d_name);
    if (path != NULL)
      (void)unlink(path);
    free(path);
  }
  if (dir != NULL)
    closedir(dir);
  return greatest;
}

static void drop_file(writer_t *writer) {
  if (writer->path != NULL)
    (void)unlink(writer->path);
  free(writer->path);
  writer->path = NULL;
}

/* Append to the file. A failure leaves it as it was. */
static int append(writer_t *writer,
                  int (*put)(writer_t *writer, const report_row_t *rows,
                             size_t n),
                  const report_row_t *rows, size_t n) {
  /* Not created: another process may have replaced it. */
  const int fd = open(writer->path, O_WRONLY | O_APPEND | O_CLOEXEC);
  struct stat about;
  int is_ok;
  int err, why;

  writer->to = fd >= 0 ? fdopen(fd, "a") : NULL;
  if (writer->to == NULL) {
    if (fd >= 0)
      close(fd);
    return failed(writer, TNK_EFILE, writer->path);
  }
  err = put(writer, rows, n);
  is_ok = fflush(writer->to) == 0 && fstat(fd, &about) == 0;
  is_ok = fclose(writer->to) == 0 && is_ok;
  if (err == TNK_OK && is_ok) {
    writer->n_bytes = about.st_size;
    return CLI_EXIT_OK;
  }
  why = errno;
  (void)truncate(writer->path, writer->n_bytes);
  errno = why;
  return failed(writer, err == TNK_OK ? TNK_EFILE : err, writer->path);
}

static int put_rows(writer_t *writer, const report_row_t *rows, size_t n) {
  int err = TNK_OK;

  for (size_t i = 0; i < n && err == TNK_OK; i++)
    err = put_row(writer, &rows[i]);
  return err;
}

/* ---- The target ---- */

static int put_head(writer_t *writer, const report_row_t *rows, size_t n) {
  const int err = put_version(writer, rows[0].time_s);

  (void)n;
  return err == TNK_OK && writer->is_live
             ? put_restart(writer, rows[0].time_s, 0)
             : err;
}

/* Make the folder and its missing parents. */
static int make_folders(const writer_t *writer) {
  char *copy = strdup(writer->folder);

  if (copy == NULL)
    return failed(writer, TNK_ENOMEM, "");
  for (char *at = copy; *at != '\0'; at++)
    if (*at == '/' && at > copy) {
      *at = '\0';
      (void)mkdir(copy, 0777);
      *at = '/';
    }
  free(copy);
  return mkdir(writer->folder, 0777) == 0 || errno == EEXIST
             ? CLI_EXIT_OK
             : failed(writer, TNK_EFILE, writer->folder);
}

static int create(writer_t *writer) {
  const uint64_t now_s = (uint64_t)time(NULL);
  uint64_t before;
  char name[64];
  const int status = make_folders(writer);
  int fd;

  if (status != CLI_EXIT_OK)
    return status;
  before = look_at_others(writer, 0);
  writer->number = !writer->is_live ? 0 : before >= now_s ? before + 1 : now_s;
  (void)snprintf(name, sizeof(name), NAME "%" PRIu64 OWN "%s", writer->number,
                 writer->is_live ? "" : ".new");
  writer->path = join(writer, name);
  if (writer->path == NULL)
    return failed(writer, TNK_ENOMEM, "");
  fd = open(writer->path,
            O_WRONLY | O_CREAT | O_CLOEXEC |
                (writer->is_live ? O_EXCL : O_TRUNC),
            0666);
  if (fd < 0)
    return failed(writer, TNK_EFILE, writer->path);
  close(fd);
  writer->n_bytes = 0;
  return CLI_EXIT_OK;
}

static int begin(void *target, const report_data_t *data) {
  writer_t *writer = target;
  const report_row_t head = {.time_s = report_steps_time(data, 0)};
  int status;

  /* The file before stays until this one has all steps. */
  free(writer->path);
  writer->path = NULL;
  writer->is_settled = 0;
  status = create(writer);
  if (status == CLI_EXIT_OK) {
    status = append(writer, put_head, &head, 1);
    if (status != CLI_EXIT_OK)
      drop_file(writer);
  } else {
    free(writer->path);
    writer->path = NULL;
  }
  return status;
}

static int write_rows(void *target, const report_row_t *rows, size_t n) {
  return append(target, put_rows, rows, n);
}

static int end(void *target, report_moment_t moment, int64_t last_step) {
  (void)target, (void)moment, (void)last_step;
  return CLI_EXIT_OK;
}

static int settle(void *target) {
  writer_t *writer = target;
  char *path;
  int status = CLI_EXIT_OK;

  if (!writer->is_live) {
    path = join(writer, NAME "0" OWN);
    if (path == NULL)
      return failed(writer, TNK_ENOMEM, "");
    if (rename(writer->path, path) != 0)
      status = failed(writer, TNK_EFILE, path);
    free(path);
  }
  if (status != CLI_EXIT_OK)
    return status;
  (void)look_at_others(writer, 1);
  writer->is_settled = 1;
  if (!writer->is_live) {
    free(writer->path);
    writer->path = NULL;
  }
  return CLI_EXIT_OK;
}

static int rest(void *target, int status) {
  (void)target;
  return status;
}

static void free_writer(void *target) {
  writer_t *writer = target;

  if (!writer->is_settled)
    drop_file(writer);
  tnk__buf_deinit(&writer->event);
  tnk__buf_deinit(&writer->summary);
  tnk__buf_deinit(&writer->part);
  free(writer->path);
  free(writer);
}

report_target_t report_events_open(const cli_t *cli, const char *folder,
                                   int is_live) {
  static const report_target_class_t class_ = {.begin = begin,
                                               .write = write_rows,
                                               .end = end,
                                               .settle = settle,
                                               .rest = rest,
                                               .free = free_writer};
  writer_t *writer = calloc(1, sizeof(*writer));

  if (writer != NULL) {
    *writer = (writer_t){.cli = cli, .folder = folder, .is_live = is_live};
    tnk__buf_init(&writer->event, tnk__allocator_default(), MAX_EVENT);
    tnk__buf_init(&writer->summary, tnk__allocator_default(), MAX_EVENT);
    tnk__buf_init(&writer->part, tnk__allocator_default(), MAX_EVENT);
  }
  return (report_target_t){.class_ = &class_, .target = writer};
}
