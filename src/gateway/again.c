/* SPDX-License-Identifier: MIT */
#include "gateway/again.h"

#include <string.h>

#include "gateway/elsewhere.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

/* A request that may be repeated. Its name has the session, and the key of the
 * client or the hash of the body. */
typedef struct tnk__gw_once {
  tnk__gw_node_t node; /* by the hash of its name; several may have one name */
  tnk__list_t link;    /* in `ended`, the latest last; else empty */
  tnk__gw_job_t *job;  /* NULL: it has ended */
  uint64_t at_ms;      /* loop time when it ended, or was kept */
  uint64_t body[2];    /* hash of the API and the body */
  uint8_t *answer;     /* NULL: it has failed */
  size_t n_answer;
  int has_key;   /* the client has named it */
  int may_retry; /* the client counts its retries */
  int is_unseen; /* the client has disconnected before its answer */
  size_t n_name;
  char name[];
} once_t;

#define ONCE(at) tnk__container_of(at, once_t, node)
#define ENDED(at) tnk__container_of(at, once_t, link)

void tnk__gw_again_init(tnk__gw_again_t *again, const tnk_allocator_t *alloc) {
  again->alloc = alloc;
  tnk__gw_map_init(&again->map, alloc);
  tnk__list_init(&again->ended);
}

/* ---- Names ---- */

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ (hash >> 29);
}

/* Compute two hashes of 64 bits, eight bytes at a time, because each request is
 * hashed. A client that makes two bodies with the same hash harms only its own
 * session. */
static void hash_body(tnk__gw_api_t api, const tnk__buf_t *body,
                      uint64_t *out) {
  uint64_t word = 0;
  size_t i = 0;

  out[0] = (uint64_t)api + 1;
  out[1] = ~out[0];
  for (; i + sizeof(word) <= body->len; i += sizeof(word)) {
    memcpy(&word, body->data + i, sizeof(word));
    out[0] = mix(out[0], word);
    out[1] = mix(out[1] + word, body->len);
  }
  word = 0;
  if (i < body->len)
    memcpy(&word, body->data + i, body->len - i);
  out[0] = mix(out[0], word ^ body->len);
  out[1] = mix(out[1] + word, body->len);
}

/* Make a request that can be found. A NUL follows its name, so that a key can
 * be printed. Returns NULL without memory. */
static once_t *new_once(tnk__gw_job_t *job, const char *key,
                        const uint64_t *body) {
  const char *id = key != NULL ? key : (const char *)body;
  size_t n_id = key != NULL ? strlen(key) : 2 * sizeof(*body);
  size_t n_session = strlen(job->session) + 1;
  once_t *once = tnk__calloc(&job->gateway->alloc, 1,
                             sizeof(*once) + n_session + 1 + n_id + 1);

  if (once == NULL)
    return NULL;
  tnk__list_init(&once->link);
  once->has_key = key != NULL;
  once->body[0] = body[0];
  once->body[1] = body[1];
  memcpy(once->name, job->session, n_session);
  once->name[n_session] = key != NULL;
  memcpy(once->name + n_session + 1, id, n_id);
  once->n_name = n_session + 1 + n_id;
  return once;
}

static int is_same(const once_t *a, const once_t *b) {
  return a->n_name == b->n_name && memcmp(a->name, b->name, a->n_name) == 0;
}

static int has_body(const once_t *a, const once_t *b) {
  return a->body[0] == b->body[0] && a->body[1] == b->body[1];
}

/* ---- Forgetting ---- */

static void forget(tnk__gw_again_t *again, once_t *once) {
  if (!tnk__list_empty(&once->link)) {
    tnk__list_remove(&once->link);
    again->n_ended--;
  }
  again->n_bytes -= once->n_answer;
  tnk__gw_map_remove(&again->map, &once->node);
  if (once->job != NULL)
    once->job->once = NULL;
  tnk__free(again->alloc, once->answer);
  tnk__free(again->alloc, once);
}

void tnk__gw_again_deinit(tnk__gw_again_t *again) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&again->ended)) != NULL)
    forget(again, ENDED(node));
  tnk__gw_map_deinit(&again->map);
}

tnk__gw_job_t *tnk__gw_again_expired(tnk__gw_again_t *again, uint64_t now_ms) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&again->ended)) != NULL) {
    once_t *once = ENDED(node);

    if (now_ms - once->at_ms < TNK__GW_AGAIN_MS &&
        again->n_ended <= TNK__GW_MAX_AGAIN &&
        again->n_bytes <= TNK__GW_MAX_AGAIN_BYTES &&
        again->n_kept <= TNK__GW_MAX_KEPT)
      return NULL;
    if (once->job != NULL)
      return once->job;
    forget(again, once);
  }
  return NULL;
}

static void put_last(once_t *once, tnk_gateway_t *gateway) {
  if (tnk__list_empty(&once->link))
    gateway->again.n_ended++;
  tnk__list_remove(&once->link);
  tnk__list_append(&gateway->again.ended, &once->link);
  once->at_ms = uv_now(gateway->loop);
}

/* ---- Finding ---- */

typedef struct {
  int counts;   /* the client counts its retries */
  int is_retry; /* it says that this is one */
} said_t;

static said_t said_of(const tnk__srv_req_t *req) {
  const char *count = tnk__srv_req_header(req, "x-stainless-retry-count");

  return (said_t){.counts = count != NULL,
                  .is_retry = count != NULL && strcmp(count, "0") != 0};
}

/* Returns how well an earlier request is the same: 0 if it is not. */
static int rank(const once_t *once, const tnk__gw_job_t *job, said_t said) {
  int is_repeat = once->has_key || said.is_retry;

  if (once->job == NULL) /* a failure is not repeated */
    return once->answer != NULL && (is_repeat || once->is_unseen)
               ? 1 + once->is_unseen
               : once->has_key;
  if (!tnk__gw_job_has_client(once->job))
    /* No client has seen the answer. Another request gets it only if it comes
     * from the current weights. */
    return is_repeat || once->job->sampler == job->gateway->sampler ? 3 : 0;
  return is_repeat ||
                 (!said.counts && strcmp(job->session, TNK__GW_UNNAMED) != 0)
             ? 1
             : 0;
}

static once_t *find(const tnk__gw_job_t *job, const once_t *new_, uint64_t hash,
                    said_t said) {
  once_t *found = NULL;
  int best = 0;

  for (tnk__gw_node_t *node = tnk__gw_map_find(&job->gateway->again.map, hash);
       node != NULL; node = tnk__gw_map_next(node)) {
    once_t *once = ONCE(node);
    int is = is_same(once, new_) ? rank(once, job, said) : 0;

    if (is > best) {
      found = once;
      best = is;
    }
  }
  return found;
}

static int read_key(const tnk__srv_req_t *req, const char **key,
                    tnk__gw_fault_t *fault) {
  static const char name[] = "Idempotency-Key";

  *key = tnk__srv_req_header(req, "idempotency-key");
  if (*key != NULL && (*key)[0] == '\0')
    *key = NULL;
  return *key == NULL || strlen(*key) <= TNK__GW_MAX_AGAIN_KEY
             ? 0
             : tnk__gw_fault(fault, 400, name, "%s has more than %d characters",
                             name, TNK__GW_MAX_AGAIN_KEY);
}

static tnk__gw_again_is_t no_memory(tnk__gw_fault_t *fault) {
  (void)tnk__gw_fault(fault, 500, NULL, "out of memory");
  return TNK__GW_AGAIN_WRONG;
}

static tnk__gw_again_is_t other_body(const char *key, tnk__gw_fault_t *fault) {
  (void)tnk__gw_fault(fault, 422, "Idempotency-Key",
                      "the Idempotency-Key \"%.80s\" was used with another "
                      "request",
                      key);
  return TNK__GW_AGAIN_WRONG;
}

/* Decide about a request that repeats `once`. */
static tnk__gw_again_is_t repeat(tnk__gw_job_t *job, once_t *once,
                                 const char *key, const once_t *new_,
                                 tnk__gw_fault_t *fault) {
  if (key != NULL && !has_body(once, new_))
    return other_body(key, fault);
  if (once->job != NULL) {
    job->leader = once->job;
    return TNK__GW_AGAIN_JOINED;
  }
  if (once->answer == NULL)
    return TNK__GW_AGAIN_NEW;
  if (tnk__buf_append(&job->answer, once->answer, once->n_answer) != TNK_OK)
    return no_memory(fault);
  once->is_unseen = 0;
  return TNK__GW_AGAIN_ANSWERED;
}

/* The values by which other gateways recognize a request. */
static tnk__gw_same_t same_of(const tnk__gw_job_t *job, const once_t *once) {
  size_t n_session = strlen(job->session) + 2;
  const char *key = once->name + n_session;
  size_t n_key = once->n_name - n_session;
  tnk__gw_same_t same = {.session = job->session,
                         .has_key = once->has_key,
                         .body = {once->body[0], once->body[1]},
                         .is_repeat = job->says_repeat,
                         .may_repeat = job->may_repeat};

  if (once->has_key)
    for (size_t i = 0; i < 2; i++)
      same.key[i] = tnk__gw_hash(5 + i, key, n_key);
  return same;
}

int tnk__gw_again_asked(const tnk__gw_job_t *job) {
  const tnk__gw_about_t about = {job->session, TNK__GW_IS_ASKED, job->number};
  tnk__gw_same_t same;

  if (!job->gateway->elsewhere.is_on || job->once == NULL)
    return tnk__gw_record_note(job->gateway->record, &about, "asked", "session",
                               job->session, job->number);
  same = same_of(job, job->once);
  return tnk__gw_elsewhere_asked(job, &same);
}

int tnk__gw_again_same(const tnk__gw_job_t *job, tnk__gw_same_t *same) {
  if (!job->gateway->elsewhere.has_claims || job->once == NULL)
    return 0;
  *same = same_of(job, job->once);
  return same->has_key || same->is_repeat || same->may_repeat;
}

int tnk__gw_again_other_body(const tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  (void)other_body(job->once->name + strlen(job->session) + 2, fault);
  return -1;
}

/* Decide about a request that is new to this gateway. Another gateway may know
 * it. */
static tnk__gw_again_is_t find_elsewhere(tnk__gw_job_t *job, const once_t *new_,
                                         const char *key, said_t said,
                                         struct tnk__gw_other **other,
                                         tnk__gw_fault_t *fault) {
  tnk__gw_same_t same;

  if (!job->gateway->elsewhere.is_on)
    return TNK__GW_AGAIN_NEW;
  job->says_repeat = said.is_retry;
  job->may_repeat = !said.counts && strcmp(job->session, TNK__GW_UNNAMED) != 0;
  same = same_of(job, new_);
  switch (tnk__gw_elsewhere_find(job->gateway, &same, other, &job->answer)) {
  case TNK__GW_NOT_ELSEWHERE:
    break;
  case TNK__GW_ELSEWHERE:
    return TNK__GW_AGAIN_ELSEWHERE;
  case TNK__GW_ELSEWHERE_ANSWER:
    return TNK__GW_AGAIN_ANSWERED;
  case TNK__GW_ELSEWHERE_OTHER:
    return other_body(key, fault);
  case TNK__GW_ELSEWHERE_NO_MEMORY:
    return no_memory(fault);
  }
  return TNK__GW_AGAIN_NEW;
}

tnk__gw_again_is_t tnk__gw_again_find(tnk__gw_job_t *job,
                                      struct tnk__gw_other **other,
                                      tnk__gw_fault_t *fault) {
  tnk__gw_again_t *again = &job->gateway->again;
  tnk__gw_again_is_t is = TNK__GW_AGAIN_NEW;
  said_t said = said_of(job->req);
  const char *key;
  uint64_t body[2];
  uint64_t hash;
  once_t *new_, *found;

  if (read_key(job->req, &key, fault) != 0)
    return TNK__GW_AGAIN_WRONG;
  hash_body(job->ask.api, &job->req->body, body);
  new_ = new_once(job, key, body);
  if (new_ == NULL)
    return no_memory(fault);
  new_->may_retry = said.counts;
  hash = tnk__gw_hash(3, new_->name, new_->n_name);
  found = find(job, new_, hash, said);
  if (found != NULL)
    is = repeat(job, found, key, new_, fault);
  if (is == TNK__GW_AGAIN_NEW)
    is = find_elsewhere(job, new_, key, said, other, fault);
  if (found != NULL && is == TNK__GW_AGAIN_NEW)
    forget(again, found);
  if (is == TNK__GW_AGAIN_NEW &&
      tnk__gw_map_add(&again->map, &new_->node, hash) != TNK_OK)
    is = no_memory(fault);
  if (is == TNK__GW_AGAIN_NEW) {
    new_->job = job;
    job->once = new_;
  } else {
    tnk__free(again->alloc, new_);
  }
  return is;
}

/* ---- The end of a request ---- */

void tnk__gw_again_keep(tnk__gw_job_t *job) {
  job->is_kept = 1;
  job->gateway->again.n_kept++;
  put_last(job->once, job->gateway);
}

void tnk__gw_again_take(tnk__gw_job_t *job) {
  if (!job->is_kept)
    return;
  job->is_kept = 0;
  job->gateway->again.n_kept--;
  tnk__list_remove(&job->once->link);
  job->gateway->again.n_ended--;
}

void tnk__gw_again_answered(tnk__gw_job_t *job) {
  tnk__gw_again_t *again = &job->gateway->again;
  once_t *once = job->once;
  int is_unseen = !tnk__gw_job_has_client(job);

  if (once == NULL)
    return;
  if (once->has_key || once->may_retry || is_unseen)
    once->answer = tnk__malloc(again->alloc, job->answer.len + 1);
  if (once->answer == NULL) {
    forget(again, once);
    return;
  }
  if (job->answer.len > 0)
    memcpy(once->answer, job->answer.data, job->answer.len);
  once->n_answer = job->answer.len;
  again->n_bytes += once->n_answer;
  once->is_unseen = is_unseen;
  once->job = NULL;
  job->once = NULL;
  put_last(once, job->gateway);
}

void tnk__gw_again_failed(tnk__gw_job_t *job) {
  once_t *once = job->once;

  tnk__gw_again_take(job);
  if (once == NULL)
    return;
  if (!once->has_key) {
    forget(&job->gateway->again, once);
    return;
  }
  /* The key still belongs to this body. */
  once->job = NULL;
  job->once = NULL;
  put_last(once, job->gateway);
}
