#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"
#include "tools/local/fault/state.h"

/*
 * Records injected faults: counts by name, the latest ones in memory, all of
 * them in a file. Without memory for the list the other two still work.
 */

enum { MAX_LINE = 1024 };

int local_faults_log_to(local_faults_t *faults, const char *path) {
  faults->file = fopen(path, "ae");
  return faults->file != NULL ? TNK_OK : uv_translate_sys_error(errno);
}

void local_fault_log_close(local_faults_t *faults) {
  if (faults->file != NULL)
    fclose(faults->file);
  tnk__free(faults->alloc, faults->log);
}

void local_fault_write_entry(tnk__json_writer_t *w,
                             const local_fault_entry_t *entry) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "fault", entry->name);
  tnk__json_put_int(w, entry->call[0] != '\0' ? "request" : "connection",
                    (int64_t)entry->n);
  if (entry->call[0] != '\0')
    tnk__json_put_text(w, "call", entry->call);
  if (entry->seq_id >= 0)
    tnk__json_put_int(w, "seq_id", entry->seq_id);
  tnk__json_end(w);
}

/* Flushed at once, so that the line is there when the effect is visible. */
static void write_line(local_faults_t *faults,
                       const local_fault_entry_t *entry) {
  tnk__json_writer_t w;
  tnk__buf_t line;

  tnk__buf_init(&line, faults->alloc, MAX_LINE);
  tnk__json_writer_init(&w, &line);
  local_fault_write_entry(&w, entry);
  if (tnk__json_finish(&w) == TNK_OK)
    fprintf(faults->file, "%.*s\n", (int)line.len, (const char *)line.data);
  fflush(faults->file);
  tnk__buf_deinit(&line);
}

/* There is space for as many names as a specification can have faults. Repeated
 * specifications may bring more names; those count only in the sum. */
static void add_count(local_faults_t *faults, const char *name) {
  size_t i = 0;

  while (i < faults->n_counts && strcmp(faults->counts[i].name, name) != 0)
    i++;
  if (i == LOCAL_MAX_FAULT_RULES)
    return;
  if (i == faults->n_counts) {
    faults->n_counts++;
    memcpy(faults->counts[i].name, name, strlen(name) + 1);
  }
  faults->counts[i].n++;
}

void local_faults_note(local_faults_t *faults, const local_fault_t *fault,
                       uint64_t n, const char *path, int64_t seq_id) {
  static const char prefix[] = "/api/v1/";
  local_fault_entry_t entry = {.n = n, .seq_id = seq_id};

  local_fault_name(fault, entry.name);
  if (path != NULL)
    snprintf(entry.call, sizeof(entry.call), "%s",
             strncmp(path, prefix, sizeof(prefix) - 1) == 0
                 ? path + sizeof(prefix) - 1
                 : path);
  /* A path from a client, decoded and cut. One invalid byte would make the JSON
   * list invalid. */
  tnk__utf8_repair(entry.call);
  add_count(faults, entry.name);
  if (faults->file != NULL)
    write_line(faults, &entry);
  if (faults->log == NULL)
    faults->log =
        tnk__calloc(faults->alloc, LOCAL_FAULT_LOG_SIZE, sizeof(*faults->log));
  if (faults->log != NULL)
    faults->log[faults->n_logged % LOCAL_FAULT_LOG_SIZE] = entry;
  faults->n_logged++;
}

uint64_t local_faults_count(const local_faults_t *faults, const char *name) {
  if (name == NULL)
    return faults->n_logged;
  for (size_t i = 0; i < faults->n_counts; i++)
    if (strcmp(faults->counts[i].name, name) == 0)
      return faults->counts[i].n;
  return 0;
}

const local_fault_entry_t *local_faults_entry(const local_faults_t *faults,
                                              size_t i) {
  uint64_t oldest = faults->n_logged > LOCAL_FAULT_LOG_SIZE
                        ? faults->n_logged - LOCAL_FAULT_LOG_SIZE
                        : 0;

  if (faults->log == NULL || i >= faults->n_logged - oldest)
    return NULL;
  return &faults->log[(oldest + i) % LOCAL_FAULT_LOG_SIZE];
}

void local_faults_open_control(local_faults_t *faults) {
  faults->is_open = 1;
}
