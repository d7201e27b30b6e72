/* SPDX-License-Identifier: MIT */
#ifndef TNK_HOSTED_H
#define TNK_HOSTED_H

#include "tnk/promise.h"
#include "tnk/service.h"

/*
 * Chat endpoints of the service. The caller provides the JSON body of a
 * request. The response arrives as a whole, or event by event while the server
 * generates it.
 *
 * The endpoints have the APIs of OpenAI and Anthropic. Other servers with these
 * APIs can be used with their own path. The library reads the member `stream`
 * of the body and passes everything else through.
 */
#ifdef __cplusplus
extern "C" {
#endif

/** API of a request. It determines the default path and the end of a stream. */
typedef enum {
  /** POST oai/api/v1/chat/completions; a stream ends with "[DONE]". */
  TNK_HOSTED_CHAT = 0,
  /** POST oai/api/v1/completions; a stream ends with "[DONE]". */
  TNK_HOSTED_COMPLETIONS = 1,
  /** POST anthropic/api/v1/messages; a stream ends with message_stop. */
  TNK_HOSTED_MESSAGES = 2
} tnk_hosted_form_t;

/** One event of a stream. The strings are NUL-terminated and valid until the
 * callback returns. */
typedef struct {
  const char *type; /**< "message" if the stream names no type. */
  const char *data; /**< JSON, unless the server sends something else. */
  size_t n_data;
} tnk_hosted_event_t;

/** Called for each event. A result other than 0 rejects the promise with
 * TNK_ECANCELED. The callback may also cancel the promise or close the service.
 */
typedef int (*tnk_hosted_event_cb)(const tnk_hosted_event_t *event, void *user);

/** A request. 0 or NULL selects the default of every member except `body`. */
typedef struct {
  size_t size; /**< Set by TNK_HOSTED_REQUEST_INIT. */
  /** A JSON object of at most 64 MiB; copied. Its member `stream` must be true
   * if `on_event` is set, and must not be true otherwise. */
  const char *body;
  size_t n_body; /**< Length in bytes; 0 means up to the NUL. */
  /** Called for each event of a stream. NULL requests one whole response. */
  tnk_hosted_event_cb on_event;
  void *user;
  /** Path below the base URL, such as "/v1/chat/completions"; copied. NULL
   * means the default path of the API. */
  const char *path;
  uint64_t silence_ms; /**< Maximum time without a byte, after which the promise
                            rejects with TNK_ETIMEDOUT. 0 means ten minutes. At
                            most one day. */
  tnk_hosted_form_t form;
  uint32_t reserved;
} tnk_hosted_request_t;

#define TNK_HOSTED_REQUEST_INIT TNK_SIZED(tnk_hosted_request_t)

/**
 * Send a request to a chat endpoint of the service. Needs no session.
 *
 * The key is sent as X-API-Key, and for OpenAI's APIs also as a bearer token.
 * Temporary failures are retried according to max_retries of the service, until
 * the first event was delivered. The server may therefore generate a response
 * twice and bill it twice, but the library delivers it once.
 *
 * A stream resolves only after its end marker. A stream that breaks or lacks
 * the marker rejects with TNK_ECONN, and the text says how many events came
 * before. An error event rejects with TNK_ESERVER and the server's message.
 * Error events and "[DONE]" are not passed to the callback. The library stops
 * reading while a callback is busy, so memory is bounded. An event may have at
 * most 1 MiB (TNK_ETOOBIG).
 *
 * @param service  Open and not closing.
 * @param request  Copied.
 *
 * Completion: cancel closes the request at once. A server that notices stops
 * generating. on_event is called on the loop thread, never inside this call,
 * and never after the promise has settled.
 *
 * @return A promise of tnk_promise_hosted().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL if
 *   the body is not a JSON object or its `stream` does not match on_event;
 *   TNK_EPROTO if the response is not an event stream or not a JSON object.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_service_hosted(tnk_service_t *service,
                                          const tnk_hosted_request_t *request);

/** The result of tnk_service_hosted(). */
typedef struct tnk_hosted tnk_hosted_t;

/** Get the result of tnk_service_hosted(). It belongs to the promise. NULL
 * unless resolved with that type. Thread: loop thread, or taker. Since: 0.1 */
TNK_API const tnk_hosted_t *tnk_promise_hosted(const tnk_promise_t *promise);
/** Get the JSON of the response, NUL-terminated; NULL for a stream. @p n
 * receives its length and may be NULL. Thread: loop thread. Since: 0.1 */
TNK_API const char *tnk_hosted_body(const tnk_hosted_t *hosted, size_t *n);
/** Get the number of delivered events. Thread: loop thread. Since: 0.1 */
TNK_API uint64_t tnk_hosted_n_events(const tnk_hosted_t *hosted);

#ifdef __cplusplus
}
#endif

#endif
