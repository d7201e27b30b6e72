#include "api/dump_file.h"

#include "api/dump.h"
#include "api/file.h"
#include "api/service.h"
#include "base/alloc.h"
#include "base/log.h"
#include "tnk/error.h"

enum { EVERY_MS = 1000 };

static void on_due(tnk__timer_t *timer);

static tnk__context_t *context_of(const tnk__dump_file_t *file) {
  return &file->service->root.context;
}

static const char *path_of(const tnk__dump_file_t *file) {
  return file->service->config.options.dump_file;
}

static void wait_for_next(tnk__dump_file_t *file) {
  if (!file->is_closed)
    tnk__timer_start_background(context_of(file), &file->timer, EVERY_MS,
                                on_due);
}

/* On the thread pool. */
static void run(tnk__work_t *work) {
  tnk__dump_file_t *file = tnk__container_of(work, tnk__dump_file_t, work);

  file->err = tnk__file_replace(file->text.alloc, path_of(file),
                                file->text.data, file->text.len);
}

/* Told once a stretch. */
static void note(tnk__dump_file_t *file, int before) {
  if (file->err != TNK_OK && before == TNK_OK)
    tnk__log(&context_of(file)->logger, TNK_LOG_WARN, "service",
             "%s: the dump cannot be written: %s", path_of(file),
             tnk_strerror(file->err));
}

static void on_written(tnk__work_t *work) {
  tnk__dump_file_t *file = tnk__container_of(work, tnk__dump_file_t, work);

  tnk__buf_deinit(&file->text);
  note(file, file->was_err);
  wait_for_next(file);
}

static void begin_writing(tnk__dump_file_t *file) {
  file->was_err = file->err;
  file->err = tnk__dump_write(file->service, TNK_DUMP_JSON, &file->text);
  if (file->err == TNK_OK)
    file->err = tnk__work_start(context_of(file), &file->work, run, on_written);
  if (file->err == TNK_OK)
    return;
  tnk__buf_deinit(&file->text);
  note(file, file->was_err);
  wait_for_next(file);
}

static void on_due(tnk__timer_t *timer) {
  begin_writing(tnk__container_of(timer, tnk__dump_file_t, timer));
}

static void on_first(tnk__deferred_t *first) {
  begin_writing(tnk__container_of(first, tnk__dump_file_t, first));
}

void tnk__dump_file_open(tnk__dump_file_t *file, tnk_service_t *service) {
  file->service = service;
  tnk__deferred_init(&file->first, on_first);
  if (path_of(file) != NULL)
    tnk__defer(context_of(file), &file->first);
}

void tnk__dump_file_close(tnk__dump_file_t *file) {
  file->is_closed = 1;
  tnk__timer_stop(&file->timer);
  tnk__defer_cancel(&file->first);
}
