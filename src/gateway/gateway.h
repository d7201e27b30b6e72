#ifndef TNK_GATEWAY_GATEWAY_H
#define TNK_GATEWAY_GATEWAY_H

#include "tnk/chat.h"
#include "tnk/sampling.h"

/*
 * A server that speaks the APIs of OpenAI and Anthropic to agents, and samples
 * from a service: by the public calls of libtnk and libtnk-chat. Every
 * token that was sampled is recorded as it was drawn, and the next turn of its
 * conversation goes on from it: what was sampled is never tokenized again.
 *
 *     tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why));
 *     tnk_wait(tnk_gateway_use(gateway, &model));
 *     puts(tnk_gateway_address(gateway));
 *     uv_run(&loop, UV_RUN_DEFAULT);
 *
 * Endpoints: POST /v1/chat/completions, /v1/completions, /v1/responses,
 * /v1/messages; GET /v1/models. For those who train: POST /tnk/reward, POST
 * /tnk/sampler, GET /tnk/datums. In front of each path may stand /s/NAME, which
 * names the session of the request; so do the header X-Tnk-Session, and a key
 * with ":NAME" behind it.
 */

/** A server; of the loop's thread. */
typedef struct tnk_gateway tnk_gateway_t;

/** How it serves. Zero is the default of every member but the tokenizer. */
typedef struct {
  /** A numeric address; NULL: 127.0.0.1. Others than loopback ones need a key.
   */
  const char *host;
  /** What clients must send, as a bearer token or in X-Api-Key; NULL: none. It
   * has nothing to do with the key of the service, which never leaves it. */
  const char *key;
  const char *model; /**< What clients call it; NULL: the base model. */
  /** A file that everything is recorded in, on the disk before the answer is
   * sent; one of an earlier process is gone on with. NULL: in memory. */
  const char *record;
  /** Of the model. Borrowed until the gateway is closed. `decode` is needed. */
  tnk_chat_tokenizer_t tokenizer;
  /** Of the model; a reference is taken. NULL: the plain one of the roles. */
  tnk_chat_template_t *template_;
  const tnk_pair_t *variables; /**< For templates; values in JSON. Copied. */
  size_t n_variables;
  tnk_chat_family_t family; /**< How answers are parsed. */
  int32_t port;             /**< 0: any free one. */
  uint32_t max_requests;    /**< Under way at a time; 0: 16,384. More: 503. */
  int32_t max_tokens;       /**< Where a client names none; 0: 1,024. */
  uint64_t max_memory;      /**< For what is recorded, in bytes; 0: 256 MiB. */
  const tnk_allocator_t *allocator; /**< Copied; NULL: malloc. */
  const char *tls_cert;             /**< PEM files; NULL, both: no TLS. */
  const char *tls_key;
} tnk_gateway_options_t;

/**
 * Open a gateway and listen. It answers 503 until it has what to sample from:
 * tnk_gateway_use().
 *
 * SIGPIPE is blocked in the calling thread.
 *
 * @param[out] out  To be closed by the caller, before the service. NULL on
 *                  failure.
 * @param loop      That of @p service; outlives the gateway.
 * @param service   What samplers are made with; outlives the gateway.
 * @param options   Copied.
 * @param why       On failure, receives one sentence; may be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * @return TNK_OK, or TNK_EINVAL (an option out of range, no tokenizer that can
 *   decode, another address than a loopback one without a key), TNK_EFILE (the
 *   record), TNK_ESYSTEM (the address cannot be listened on), TNK_ENOMEM.
 * Blocks: reads the record. Thread: loop thread. Since: 0.1
 */
int tnk_gateway_open(tnk_gateway_t **out, uv_loop_t *loop,
                     tnk_service_t *service,
                     const tnk_gateway_options_t *options, char *why,
                     size_t why_size);

/**
 * Where it listens: "http://127.0.0.1:PORT", without a slash behind it. Clients
 * of OpenAI want "/v1" added.
 * Lifetime: the gateway's. Thread: loop thread. Since: 0.1
 */
const char *tnk_gateway_address(const tnk_gateway_t *gateway);

/**
 * Sample from these weights from now on. Requests under way end with those that
 * they began with; none is dropped. Each recorded turn has the number of the
 * weights that drew it: 1 for the first, and so on; a gateway that goes on with
 * a record goes on with the numbers.
 *
 * @param options  As of tnk_service_create_sampling(). Copied.
 * @return A promise of tnk_sampling_t, which belongs to the gateway; once it
 * has resolved, requests are served with it. Its errors are those of
 *   tnk_service_create_sampling(); earlier weights stay in use then. NULL from
 * a gateway that is closing, and without memory. Thread: loop thread. Callable
 * from callbacks: yes. Since: 0.1
 */
tnk_promise_t *tnk_gateway_use(tnk_gateway_t *gateway,
                               const tnk_sampling_options_t *options);

/**
 * Close it. Connections are closed, samples under way canceled; what was
 * answered is on the disk. Then @p cb runs, from the loop, and the gateway is
 * gone.
 *
 * @param gateway  NULL calls nothing.
 * @param cb       May be NULL.
 * @param user     Handed to @p cb.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
void tnk_gateway_close(tnk_gateway_t *gateway, tnk_close_cb cb, void *user);

#endif
