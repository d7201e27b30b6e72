#ifndef TNK_COMMON_H
#define TNK_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TNK_API __attribute__((visibility("default")))
#else
#define TNK_API
#endif

/** Initializer of a sized struct: all zero but its size. */
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

/** The caller's libuv loop; declared here so that <uv.h> is not needed. */
typedef struct uv_loop_s uv_loop_t;

/** A connection to one service with one credential. See service.h. */
typedef struct tnk_service tnk_service_t;
/** One model being trained. See training.h. */
typedef struct tnk_training tnk_training_t;
/** One set of weights that can be sampled. See sampling.h. */
typedef struct tnk_sampling tnk_sampling_t;
/** A loss of the caller's that runs on the service. See training.h. */
typedef struct tnk_loss tnk_loss_t;
/** The outcome, now or later, of one operation. See promise.h. */
typedef struct tnk_promise tnk_promise_t;
/** A libuv loop on a thread of its own. See runtime.h. */
typedef struct tnk_runtime tnk_runtime_t;

/**
 * Memory functions for everything that one object allocates, the memory of
 * zstd, zlib and nghttp2 included. Exceptions: jansson, mbedTLS and libuv have
 * process-wide allocators. The program sets these with the functions of those
 * libraries, such as json_set_alloc_funcs().
 *
 * All four functions follow their namesakes in <stdlib.h>; `user` is passed
 * through. They are called on the loop thread, and on a worker thread of
 * libuv's pool while a large body is compressed or parsed, so they must be
 * thread-safe. NULL in place of the struct selects malloc and its family.
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

/** How much a log line matters; a logger sees its level and the ones above. */
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
 * @param level    How much the line matters.
 * @param subject  The part of the library that speaks: "http", "training" ...
 * @param message  Text without a newline; not only NUL-terminated but also
 *                 measured. Never holds a credential, a prompt or a body.
 * @param length   Bytes in @p message.
 * @param user     tnk_logger_t.user.
 *
 * Lifetime: @p message is valid until the function returns.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_log_cb)(tnk_log_level_t level, const char *subject,
                           const char *message, size_t length, void *user);

/** Where log lines go. Without a logger nothing is printed. Since: 0.1 */
typedef struct {
  tnk_log_level_t level; /**< Lines above this level are not formatted. */
  tnk_log_cb write;      /**< NULL: no output. */
  void *user;            /**< Handed to write. */
} tnk_logger_t;

/** A name and a text, both NUL-terminated. Since: 0.1 */
typedef struct {
  const char *name;
  const char *value;
} tnk_pair_t;

/**
 * The number of an option that is absent, where 0 is a value like any other:
 * TNK_SAMPLING_PARAMS_INIT and TNK_LORA_OPTIONS_INIT put it there. Every other
 * option is absent when it is 0, NULL or TNK_DEFAULT, so what an INIT macro
 * holds is always "absent".
 */
#define TNK_ABSENT (-2147483647 - 1)

/** Three states of a yes-or-no option, so that zero can mean "default". Any
 * other number is refused with TNK_EINVAL. */
typedef enum { TNK_DEFAULT = 0, TNK_YES = 1, TNK_NO = 2 } tnk_choice_t;

/**
 * The version of the library that is linked, as "MAJOR.MINOR.PATCH".
 *
 * @return Static text. Compare with TNK_VERSION_STRING, the header's version.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_version(void);

#ifdef __cplusplus
}
#endif

#endif
