#ifndef TNK_BINDINGS_H
#define TNK_BINDINGS_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a binding to another language needs and a C program does not. The rest
 * is made for both: handles are opaque, arrays are read by index, no function
 * has a variable number of arguments, and the structs that tnk_tensor_i64() and
 * its like return by value can as well be filled member by member.
 *
 * A garbage collector that frees a promise on a thread of its own hands it to
 * tnk_runtime_unref(). A loop that is not libuv's watches uv_backend_fd() of
 * the one that the service is open on: see examples/foreign_loop.c.
 */

/**
 * Do what the INIT macro of a struct does, for those who cannot see macros.
 *
 * @param type      Its name, such as "tnk_sampling_params_t".
 * @param[out] out  @p size bytes of it, which may be another size than that of
 *                  this library: what is not known here becomes zero.
 * @param size      As the binding knows the struct; written to its first
 *                  member.
 *
 * @return TNK_OK; TNK_EINVAL for NULL, a name that is of no sized struct, and a
 *         size that it never had. Then nothing is written.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_init(const char *type, void *out, size_t size);

/**
 * The version of libuv that this library runs with, as "MAJOR.MINOR.PATCH": a
 * binding that opens libuv itself compares it with uv_version_string() of what
 * it opened, to learn whether both have the same one.
 *
 * @return Static text. Thread: any. Since: 0.1
 */
TNK_API const char *tnk_libuv_version(void);

/**
 * The version of nghttp2 that this library speaks HTTP/2 with.
 *
 * @return Static text, or NULL: it was built without, and speaks HTTP/1.1 only.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_http2_version(void);

#ifdef __cplusplus
}
#endif

#endif
