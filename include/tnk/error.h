/* SPDX-License-Identifier: MIT */
#ifndef TNK_ERROR_H
#define TNK_ERROR_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * All error codes: name, value, text. Values never change. They start at
 * -50000 and do not overlap with libuv (down to -4095) or mbedTLS (down to
 * -0x7FFF). Bands: 0xx usage and resources, 1xx transport, 2xx TLS, 3xx
 * protocol, 4xx response of the service, 9xx broken invariant of this library.
 */
#define TNK_ERROR_MAP(XX)                                                      \
  XX(EINVAL, -50001, "invalid argument")                                       \
  XX(ENOTSUP, -50002, "option not known to this version of the library")       \
  XX(ECLOSED, -50003, "the object is closed or closing")                       \
  XX(ECANCELED, -50004, "canceled")                                            \
  XX(ETIMEDOUT, -50005, "deadline passed")                                     \
  XX(ENOMEM, -50006, "out of memory")                                          \
  XX(EREENTRANT, -50007, "not callable from inside a callback")                \
  XX(EFULL, -50008, "too many operations are waiting")                         \
  XX(ETHREAD, -50009, "called from another thread than the loop's")            \
  XX(EFORKED, -50010, "the object belongs to the parent process")              \
  XX(EPENDING, -50011, "the promise has not settled yet")                      \
  XX(EFILE, -50012, "a local file could not be read or written")               \
  XX(ESYSTEM, -50013, "the operating system refused a resource")               \
  XX(EBUDGET, -50014, "the budget of the program does not allow it")           \
  XX(EDNS, -50101, "host name could not be resolved")                          \
  XX(ECONN, -50102, "connection failed or was lost")                           \
  XX(ETOOBIG, -50103, "the answer is larger than the limit")                   \
  XX(EPROXY, -50104, "the proxy refused, or cannot be used")                   \
  XX(ETLS, -50201, "TLS handshake or record failed")                           \
  XX(ECERT, -50202, "the server's certificate was not accepted")               \
  XX(EPROTO, -50301, "malformed answer from the server")                       \
  XX(ECORRUPT, -50302, "what was received is not what was announced")          \
  XX(ECREDENTIAL, -50400, "no usable API key")                                 \
  XX(EAUTH, -50401, "credential rejected by the service")                      \
  XX(EREQUEST, -50402, "request rejected by the service")                      \
  XX(ESERVER, -50403, "the service failed")                                    \
  XX(ENOTFOUND, -50404, "not found on the service")                            \
  XX(ECONFLICT, -50405, "conflict with an earlier request")                    \
  XX(ERATE, -50406, "rate limit of the service")                               \
  XX(EBILLING, -50407, "the service refuses for billing reasons")              \
  XX(EFAILED, -50408, "the operation failed on the service")                   \
  XX(EEXPIRED, -50409,                                                         \
     "the service no longer has the result; submit a sample again, or "        \
     "restore a saved state")                                                  \
  XX(EUNSUPPORTED, -50410, "not offered by this server")                       \
  XX(ESESSION, -50411, "the session has ended")                                \
  XX(EUSER, -50412, "the caller's own function reported a failure")            \
  XX(EINTERNAL, -50901, "broken invariant in the library")

/** TNK_OK and every code of TNK_ERROR_MAP under its TNK_ name. */
typedef enum {
  TNK_OK = 0,
#define TNK__XX(name, code, text) TNK_##name = code,
  TNK_ERROR_MAP(TNK__XX)
#undef TNK__XX
} tnk_err_t;

/*
 * Groups of codes. The "Rejects with" lists of functions refer to them:
 *
 * Caller     TNK_EINVAL, TNK_ENOTSUP, TNK_ETHREAD, TNK_EFORKED, TNK_ECLOSED,
 *            TNK_ECANCELED, TNK_ENOMEM, TNK_EINTERNAL: the library rejects the
 *            call, or the caller canceled it.
 * Transport  TNK_EDNS, TNK_ECONN, TNK_ETOOBIG, TNK_EPROXY, TNK_ETLS, TNK_ECERT,
 *            TNK_ETIMEDOUT: the service was not reached, or its response was
 *            not received.
 * Service    TNK_ECREDENTIAL, TNK_EAUTH, TNK_EREQUEST, TNK_ESERVER,
 *            TNK_ENOTFOUND, TNK_ECONFLICT, TNK_ERATE, TNK_EBILLING,
 *            TNK_EUNSUPPORTED, TNK_EPROTO: the service sent a response.
 * Operation  TNK_EFULL, TNK_EBUDGET, TNK_ESESSION, TNK_EFAILED, TNK_EEXPIRED:
 *            additional errors of training and sampling operations.
 *            TNK_EEXPIRED: the service accepted the operation, and then lost
 *            its result (HTTP 410). A training client stops: restore a saved
 *            state, or call tnk_training_go_on().
 */

/** The side that caused the failure of an operation, as the service reports
 * it. */
typedef enum {
  TNK_CATEGORY_UNKNOWN = 0,
  TNK_CATEGORY_SERVER = 1,
  TNK_CATEGORY_USER = 2
} tnk_category_t;

/**
 * Whether the service ran an operation whose promise rejected, as far as the
 * library knows. Use it to decide whether to repeat the operation: repeating an
 * optimizer step that was run applies it twice.
 */
typedef enum {
  /** It may have been run. The request or its response was lost, the service
   * started it and reports a failure (TNK_EFAILED), or nothing is known. */
  TNK_RAN_UNKNOWN = 0,
  /** It was not run, and will not be. Repeating it is safe. */
  TNK_RAN_NO = 1,
  /** The service accepted it and has run it or will run it. Only the result is
   * lost or no longer needed. */
  TNK_RAN_YES = 2,
  /** Some requests of a pass were run. Others were not, or may not have been.
   * The service accumulated the gradients of the requests that were run. */
  TNK_RAN_PARTLY = 3
} tnk_ran_t;

/**
 * A failure. Strings are NULL if unknown.
 *
 * Only the library creates this struct, so later versions may append members.
 * Lifetime: belongs to its promise.
 * Since: 0.1
 */
typedef struct {
  int code;                /**< One of tnk_err_t, never 0. */
  int cause;               /**< Code of libuv or mbedTLS, or 0. */
  int http_status;         /**< 0 if there was no HTTP response. */
  tnk_category_t category; /**< Set if the service ran the operation. */
  uint32_t n_attempts;     /**< How often the request was sent. */
  uint64_t retry_after_ms; /**< Delay that the server asked for, or 0. */
  const char *request_id;  /**< The service's id of the operation. */
  const char *message;     /**< Message of the service. */
  const char *text;        /**< One complete sentence; never NULL. */
  tnk_ran_t ran; /**< Whether the operation was run. If known, `text` says so
                      too. For a sample: its last submission. */
} tnk_error_t;

/**
 * Get the general meaning of a code, such as "deadline passed".
 *
 * @param err  A code of tnk_err_t, or anything else.
 * @return Static string, never NULL. Allocates nothing.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_strerror(int err);

/**
 * Get the name of a code, such as "TNK_ETIMEDOUT".
 *
 * @param err  A code of tnk_err_t, or anything else.
 * @return Static string, never NULL; "TNK_EUNKNOWN" for an unknown code.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_err_name(int err);

/**
 * Check whether the same call may succeed later without a change by the caller.
 *
 * The library has already retried where that is safe. A program can use this
 * function to keep trying for longer.
 *
 * @param err  A code of tnk_err_t, or anything else.
 * @return 1 or 0.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_err_is_retryable(int err);

/**
 * Check whether the object that reported @p err can only be closed.
 *
 * @return 1 for the 9xx band, else 0.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_err_is_fatal(int err);

#ifdef __cplusplus
}
#endif

#endif
