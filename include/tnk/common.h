/* SPDX-License-Identifier: MIT */
#ifndef TNK_COMMON_H
#define TNK_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A binding whose parser knows no attributes defines it as nothing. */
#ifndef TNK_API
#if defined(__GNUC__)
#define TNK_API __attribute__((visibility("default")))
#else
#define TNK_API
#endif
#endif

/** Initializer of a sized struct: zero, except its size. */
#ifdef __cplusplus
/* A list of one value would be warned about in each of the caller's files. */
extern "C++" {
namespace tnk_detail {
template <typename T> inline T sized() {
  T value = T();
  value.size = sizeof(T);
  return value;
}
} // namespace tnk_detail
}
#define TNK_SIZED(type) tnk_detail::sized<type>()
#else
#define TNK_SIZED(type)                                                        \
  { .size = sizeof(type) }
#endif

/** The caller's libuv loop. Declared here so that <uv.h> is not needed. */
typedef struct uv_loop_s uv_loop_t;

/** A connection to one service with one credential. See service.h. */
typedef struct tnk_service tnk_service_t;
/** One model being trained. See training.h. */
typedef struct tnk_training tnk_training_t;
/** One set of weights that can be sampled. See sampling.h. */
typedef struct tnk_sampling tnk_sampling_t;
/** A custom loss that runs on the service. See training.h. */
typedef struct tnk_loss tnk_loss_t;
/** The future outcome of one operation. See promise.h. */
typedef struct tnk_promise tnk_promise_t;
/** A libuv loop on its own thread. See runtime.h. */
typedef struct tnk_runtime tnk_runtime_t;

/**
 * Memory functions for everything that one object allocates, the memory of
 * zstd, zlib and nghttp2 included. Exceptions: jansson, mbedTLS and libuv have
 * process-wide allocators. The program sets these with the functions of those
 * libraries, such as json_set_alloc_funcs().
 *
 * All four functions follow their namesakes in <stdlib.h>; `user` is passed
 * through. They are called on the loop thread, and on a worker thread of
 * libuv's pool while a large body is compressed or parsed or a gateway renders
 * a conversation, so they must be thread-safe. NULL in place of the struct
 * selects malloc and its family.
 *
 * Since: 0.1
 */
typedef struct {
  void *(*malloc)(size_t size, void *user);
  void *(*calloc)(size_t n, size_t size, void *user);
  void *(*realloc)(void *ptr, size_t size, void *user);
  void (*free)(void *ptr, void *user);
  void *user;
} tnk_allocator_t;

/** Severity of a log line. A logger receives lines of its level and of more
 * severe ones. */
typedef enum {
  TNK_LOG_NONE = 0,
  TNK_LOG_ERROR = 1,
  TNK_LOG_WARN = 2,
  TNK_LOG_INFO = 3,
  TNK_LOG_DEBUG = 4,
  TNK_LOG_TRACE = 5
} tnk_log_level_t;

/**
 * Receives one formatted log line.
 *
 * @param level    Severity of the line.
 * @param subject  The part of the library that logs: "http", "training" and so
 *                 on.
 * @param message  A string without a newline, NUL-terminated. It never contains
 *                 a credential, a prompt or a body.
 * @param length   Length of @p message in bytes.
 * @param user     tnk_logger_t.user.
 *
 * Lifetime: @p message is valid until the function returns.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_log_cb)(tnk_log_level_t level, const char *subject,
                           const char *message, size_t length, void *user);

/** A logger. Without a logger nothing is printed. Since: 0.1 */
typedef struct {
  tnk_log_level_t level; /**< Lines above this level are not formatted. */
  tnk_log_cb write;      /**< NULL means no output. */
  void *user;            /**< Passed to write. */
} tnk_logger_t;

/** A name and a value, both NUL-terminated. Since: 0.1 */
typedef struct {
  const char *name;
  const char *value;
} tnk_pair_t;

/**
 * An absent number, for options in which 0 is a valid value.
 * TNK_SAMPLING_PARAMS_INIT and TNK_LORA_OPTIONS_INIT set these options to it.
 * All other options are absent if they are 0, NULL or TNK_DEFAULT. An INIT
 * macro therefore sets every option to absent.
 */
#define TNK_ABSENT (-2147483647 - 1)

/** A yes-or-no option with a default. Zero means the default. Other values are
 * rejected with TNK_EINVAL. */
typedef enum { TNK_DEFAULT = 0, TNK_YES = 1, TNK_NO = 2 } tnk_choice_t;

/**
 * Get the version of the linked library, as "MAJOR.MINOR.PATCH".
 *
 * @return Static string. TNK_VERSION_STRING is the version of the header.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_version(void);

#ifdef __cplusplus
}
#endif

#endif
