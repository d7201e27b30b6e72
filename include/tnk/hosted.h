#ifndef TNK_HOSTED_H
#define TNK_HOSTED_H

#include "tnk/promise.h"
#include "tnk/service.h"

/*
 * The chat endpoints that a service has beside its sampling API: JSON goes in
 * as it is, and an answer comes back whole, or event by event while it is made.
 *
 * They take the forms of OpenAI and of Anthropic, and any server that takes one
 * of those can be asked, by a path of its own. What is in the JSON is between
 * the caller and the server; here only `stream` is looked at.
 */
#ifdef __cplusplus
extern "C" {
#endif

/** Which form; it says where a request goes and how a stream ends. */
typedef enum {
  /** POST oai/api/v1/chat/completions; a stream ends with "[DONE]". */
  TNK_HOSTED_CHAT = 0,
  /** POST oai/api/v1/completions; the same. */
  TNK_HOSTED_COMPLETIONS = 1,
  /** POST anthropic/api/v1/messages; a stream ends with message_stop. */
  TNK_HOSTED_MESSAGES = 2
} tnk_hosted_form_t;

/** One event of a stream. Texts end with a NUL and live until the callback
 * returns, whatever it does. */
typedef struct {
  const char *type; /**< "message" where the stream names none. */
  const char *data; /**< JSON, unless the server sends something else. */
  size_t n_data;
} tnk_hosted_event_t;

/** Hears of an event; anything but 0 ends the operation with TNK_ECANCELED. It
 * may cancel the promise and close the service as well. */
typedef int (*tnk_hosted_event_cb)(const tnk_hosted_event_t *event, void *user);

/** What is asked. Zero is the default of every member but `body`. */
typedef struct {
  size_t size; /**< Set by TNK_HOSTED_REQUEST_INIT. */
  /** A JSON object, at most 64 MiB; copied. Its member `stream` is true where
   * `on_event` is given, and only there. */
  const char *body;
  size_t n_body; /**< 0: up to its NUL. */
  /** Gets what comes, as it comes. NULL: the answer is wanted whole. */
  tnk_hosted_event_cb on_event;
  void *user;
  /** Path behind the base URL, such as "/v1/chat/completions"; copied. NULL:
   * that of the form. */
  const char *path;
  uint64_t silence_ms; /**< Nothing comes for so long: TNK_ETIMEDOUT; 0: ten
                            minutes. At most a day. */
  tnk_hosted_form_t form;
  uint32_t reserved;
} tnk_hosted_request_t;

#define TNK_HOSTED_REQUEST_INIT TNK_SIZED(tnk_hosted_request_t)

/**
 * Ask a chat endpoint of the service. Needs no session.
 *
 * The key goes along as X-API-Key, and in OpenAI's forms as a bearer token too.
 * What fails in a way that may pass is repeated as the option max_retries of
 * the service says, until the first event has been given out: an answer may be
 * generated, and paid for, twice, but is never given out twice.
 *
 * A stream is a success only with its end. One that breaks, or is over without
 * it, is TNK_ECONN, and the sentence tells after how many events; an event that
 * reports an error is TNK_ESERVER with the server's words, and is not given
 * out. The mark "[DONE]" is not given out either. A slow callback makes the
 * server wait: memory is bounded, and one event has at most 1 MiB
 * (TNK_ETOOBIG).
 *
 * @param service  Open and not closing.
 * @param request  Copied.
 *
 * Completion: cancel ends the request at once, and a server that notices stops
 * to generate. on_event is called on the loop thread, never inside of this
 * call, and not after the promise has settled.
 *
 * @return A promise of tnk_promise_hosted().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL for
 *   a body that is no JSON object or whose `stream` is not as told above;
 *   TNK_EPROTO where the answer is no stream of events, or no JSON object.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_service_hosted(tnk_service_t *service,
                                          const tnk_hosted_request_t *request);

/** What came of it. */
typedef struct tnk_hosted tnk_hosted_t;

/** The outcome of a promise of tnk_service_hosted(), which owns it; NULL while
 * it is not resolved, and of other promises. Thread: loop thread. Since: 0.1 */
TNK_API const tnk_hosted_t *tnk_promise_hosted(const tnk_promise_t *promise);
/** The answer in JSON, with a NUL behind it; of a stream NULL. @p n may be
 * NULL. Thread: loop thread. Since: 0.1 */
TNK_API const char *tnk_hosted_body(const tnk_hosted_t *hosted, size_t *n);
/** How many events were given out. Thread: loop thread. Since: 0.1 */
TNK_API uint64_t tnk_hosted_n_events(const tnk_hosted_t *hosted);

#ifdef __cplusplus
}
#endif

#endif
