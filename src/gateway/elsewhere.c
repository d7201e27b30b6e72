/* SPDX-License-Identifier: MIT */
#include "gateway/elsewhere.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

enum { N_HASH = 33 /* 128 bits in hexadecimal, with the NUL */ };

typedef enum {
  OPEN, /* its gateway is sampling it, or is dead */
  ANSWERED,
  FAILED /* it has no answer, or its gateway is dead */
} state_t;

/* A request of another gateway. */
typedef struct tnk__gw_other {
  tnk__gw_node_t by_name;   /* by the hash of its session and its key or body */
  tnk__gw_node_t by_number; /* by its number in the record */
  tnk__list_t link;         /* in `order` */
  tnk__list_t wait;         /* in `waiting`, while there are waiters */
  tnk__list_t waiters;      /* jobs, by `follow` */
  uint64_t at_ms;           /* loop time of its latest line */
  uint64_t heard_ms;        /* when its gateway was alive, or it was asked */
  uint64_t asked_ms;
  state_t state;
  uint8_t *answer;
  size_t n_answer;
  int has_key;
  char key[N_HASH];
  char body[N_HASH];
  char session[];
} other_t;

#define NAMED(at) tnk__container_of(at, other_t, by_name)
#define NUMBERED(at) tnk__container_of(at, other_t, by_number)
#define OTHER(at) tnk__container_of(at, other_t, link)
#define WAITING(at) tnk__container_of(at, other_t, wait)
#define WAITER(at) tnk__container_of(at, tnk__gw_job_t, follow)

static void forget(tnk_gateway_t *gateway, other_t *other) {
  tnk__gw_elsewhere_t *all = &gateway->elsewhere;

  tnk__list_remove(&other->link);
  tnk__list_remove(&other->wait);
  tnk__gw_map_remove(&all->names, &other->by_name);
  tnk__gw_map_remove(&all->numbers, &other->by_number);
  all->n--;
  all->n_bytes -= other->n_answer;
  tnk__free(&gateway->alloc, other->answer);
  tnk__free(&gateway->alloc, other);
}

/* Forget the oldest ones beyond the limits. Those that a job waits for stay. */
static void heed(tnk_gateway_t *gateway) {
  const tnk__gw_elsewhere_t *all = &gateway->elsewhere;
  uint64_t now_ms = uv_now(gateway->loop);

  TNK__LIST_FOREACH_SAFE (node, next, &gateway->elsewhere.order) {
    if (all->n <= TNK__GW_MAX_ELSEWHERE &&
        all->n_bytes <= TNK__GW_MAX_ELSEWHERE_BYTES &&
        now_ms - OTHER(node)->at_ms < TNK__GW_ELSEWHERE_KEEP_MS)
      return;
    if (tnk__list_empty(&OTHER(node)->waiters))
      forget(gateway, OTHER(node));
  }
}

void tnk__gw_elsewhere_init(tnk_gateway_t *gateway) {
  tnk__gw_map_init(&gateway->elsewhere.names, &gateway->alloc);
  tnk__gw_map_init(&gateway->elsewhere.numbers, &gateway->alloc);
  tnk__list_init(&gateway->elsewhere.order);
  tnk__list_init(&gateway->elsewhere.waiting);
  tnk__list_init(&gateway->elsewhere.claims);
}

void tnk__gw_elsewhere_deinit(tnk_gateway_t *gateway) {
  TNK__LIST_FOREACH_SAFE (node, next, &gateway->elsewhere.order) {
    forget(gateway, OTHER(node));
  }
  tnk__gw_map_deinit(&gateway->elsewhere.names);
  tnk__gw_map_deinit(&gateway->elsewhere.numbers);
}

static void on_timer(uv_timer_t *timer) {
  tnk__gw_elsewhere_tick(timer->data, uv_now(timer->loop));
}

/* Lines are taken while the store is read. Jobs continue in a later turn of the
 * loop. */
static void wake(tnk_gateway_t *gateway) {
  gateway->elsewhere.timer.data = gateway;
  (void)uv_timer_start(&gateway->elsewhere.timer, on_timer, 0,
                       TNK__GW_ELSEWHERE_TICK_MS);
}

/* ---- Lines ---- */

static uint64_t hash_of(const char *session, const char *id) {
  return tnk__gw_hash(tnk__gw_hash(4, session, strlen(session)), id,
                      strlen(id));
}

static void to_text(const uint64_t *hash, char *out) {
  (void)snprintf(out, N_HASH, "%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

static other_t *find_number(const tnk_gateway_t *gateway, uint64_t number) {
  tnk__gw_node_t *node = tnk__gw_map_find(&gateway->elsewhere.numbers, number);

  return node != NULL ? NUMBERED(node) : NULL;
}

static int is_hash(const char *text) {
  return text != NULL && strlen(text) == N_HASH - 1;
}

static int add(tnk_gateway_t *gateway, other_t *other, uint64_t number) {
  tnk__gw_elsewhere_t *all = &gateway->elsewhere;
  const char *id = other->has_key ? other->key : other->body;

  if (tnk__gw_map_add(&all->numbers, &other->by_number, number) != TNK_OK)
    return TNK_ENOMEM;
  if (tnk__gw_map_add(&all->names, &other->by_name,
                      hash_of(other->session, id)) != TNK_OK) {
    tnk__gw_map_remove(&all->numbers, &other->by_number);
    return TNK_ENOMEM;
  }
  tnk__list_append(&all->order, &other->link);
  all->n++;
  return TNK_OK;
}

static int take_asked(tnk_gateway_t *gateway, const json_t *line,
                      uint64_t number) {
  const char *session = tnk__json_str(line, "session");
  const char *key = tnk__json_str(line, "key");
  const char *body = tnk__json_str(line, "body");
  size_t n = session != NULL ? strlen(session) + 1 : 0;
  other_t *other;

  if (body == NULL) /* of a record that is not shared */
    return TNK_OK;
  if (session == NULL || !is_hash(body) || (key != NULL && !is_hash(key)) ||
      find_number(gateway, number) != NULL)
    return TNK_EPROTO;
  other = tnk__calloc(&gateway->alloc, 1, sizeof(*other) + n);
  if (other == NULL)
    return TNK_ENOMEM;
  tnk__list_init(&other->waiters);
  tnk__list_init(&other->wait);
  other->at_ms = uv_now(gateway->loop);
  other->has_key = key != NULL;
  memcpy(other->session, session, n);
  memcpy(other->body, body, N_HASH);
  if (key != NULL)
    memcpy(other->key, key, N_HASH);
  if (add(gateway, other, number) == TNK_OK)
    return TNK_OK;
  tnk__free(&gateway->alloc, other);
  return TNK_ENOMEM;
}

static other_t *find(const tnk_gateway_t *gateway, const tnk__gw_same_t *same);

/* The own line has been read. All requests of others that are known now were
 * before it. */
static void take_own(tnk_gateway_t *gateway, uint64_t number) {
  TNK__LIST_FOREACH (node, &gateway->elsewhere.claims) {
    tnk__gw_job_t *job = WAITER(node);
    const other_t *other;

    if (job->number != number || job->claim != TNK__GW_CLAIMING)
      continue;
    other = find(gateway, &job->same);
    job->claim = TNK__GW_CLAIM_WON;
    if (other != NULL && other->state != FAILED) {
      job->claim = TNK__GW_CLAIM_LOST;
      job->claimed_by = other->by_number.key;
    }
    wake(gateway);
    return;
  }
}

void tnk__gw_elsewhere_removed(tnk_gateway_t *gateway, const char *session) {
  TNK__LIST_FOREACH (node, &gateway->elsewhere.claims) {
    tnk__gw_job_t *job = WAITER(node);

    if (job->claim != TNK__GW_CLAIMING || strcmp(job->session, session) != 0)
      continue;
    /* Its line may have been refused. The job finds the reason. */
    job->claim = TNK__GW_CLAIM_WON;
    wake(gateway);
  }
}

/* Returns TNK_OK, or TNK_ENOMEM if the answer is not known then. */
static int take_answer(tnk_gateway_t *gateway, other_t *other,
                       const json_t *text) {
  size_t n = json_string_length(text);

  if (other->state != OPEN)
    return TNK_OK;
  other->answer = tnk__malloc(&gateway->alloc, n + 1);
  if (other->answer == NULL)
    return TNK_ENOMEM;
  memcpy(other->answer, json_string_value(text), n);
  other->n_answer = n;
  gateway->elsewhere.n_bytes += n;
  other->state = ANSWERED;
  return TNK_OK;
}

/* Another gateway waits for a request of this one. */
static void take_again(tnk_gateway_t *gateway, uint64_t number) {
  TNK__LIST_FOREACH (node, &gateway->jobs) {
    tnk__gw_job_t *job = tnk__container_of(node, tnk__gw_job_t, link);

    if (job->number != number || job->is_ending)
      continue;
    job->wanted = TNK__GW_WANTED;
    wake(gateway);
  }
}

/* A line about a request that is known. */
static int take_news(tnk_gateway_t *gateway, other_t *other, const char *type,
                     const json_t *line) {
  int err = TNK_OK;

  if (strcmp(type, "answer") == 0) {
    const json_t *text = json_object_get(line, "text");

    err = json_is_string(text) ? take_answer(gateway, other, text) : TNK_EPROTO;
  } else if (strcmp(type, "failed") == 0 || strcmp(type, "gone") == 0) {
    other->state = other->state == OPEN ? FAILED : other->state;
  } else if (strcmp(type, "here") != 0) {
    return TNK_OK;
  }
  other->at_ms = other->heard_ms = uv_now(gateway->loop);
  tnk__list_remove(&other->link);
  tnk__list_append(&gateway->elsewhere.order, &other->link);
  if (!tnk__list_empty(&other->waiters) && other->state != OPEN)
    wake(gateway);
  return err;
}

int tnk__gw_elsewhere_take(tnk_gateway_t *gateway, const char *type,
                           const json_t *line) {
  int64_t number = 0;
  other_t *other;
  int err = TNK_OK;

  if (strcmp(type, "asked") != 0 && strcmp(type, "again") != 0 &&
      strcmp(type, "here") != 0 && strcmp(type, "answer") != 0 &&
      strcmp(type, "failed") != 0 && strcmp(type, "gone") != 0)
    return TNK_OK;
  if (tnk__json_get_int(line, "number", 1, INT64_MAX, &number) !=
      TNK__JSON_FOUND)
    return TNK_EPROTO;
  /* While the record is opened, it has lines of earlier processes only. */
  if (gateway->record != NULL &&
      tnk__gw_record_is_own(gateway->record, (uint64_t)number)) {
    if (strcmp(type, "again") == 0)
      take_again(gateway, (uint64_t)number);
    else if (strcmp(type, "asked") == 0)
      take_own(gateway, (uint64_t)number);
    return TNK_OK;
  }
  other = find_number(gateway, (uint64_t)number);
  if (strcmp(type, "asked") == 0)
    err = take_asked(gateway, line, (uint64_t)number);
  else if (other != NULL && strcmp(type, "again") != 0)
    err = take_news(gateway, other, type, line);
  heed(gateway);
  return err;
}

int tnk__gw_elsewhere_asked(const tnk__gw_job_t *job,
                            const tnk__gw_same_t *same) {
  const tnk__gw_about_t about = {job->session, TNK__GW_IS_ASKED, job->number};
  tnk__json_writer_t w;
  char hash[N_HASH];
  tnk__buf_t line;

  tnk__buf_init(&line, &job->gateway->alloc, 4096);
  tnk__json_writer_init(&w, &line);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "asked");
  tnk__json_put_int(&w, "number", (int64_t)job->number);
  tnk__json_put_text(&w, "session", job->session);
  if (same->has_key) {
    to_text(same->key, hash);
    tnk__json_put_text(&w, "key", hash);
  }
  to_text(same->body, hash);
  tnk__json_put_text(&w, "body", hash);
  tnk__json_end(&w);
  return tnk__gw_record_write(job->gateway->record, &about, &line,
                              tnk__json_finish(&w));
}

int tnk__gw_elsewhere_answered(const tnk__gw_job_t *job) {
  const tnk__gw_about_t about = {job->session, TNK__GW_IS_ENDED, job->number};
  tnk__json_writer_t w;
  tnk__buf_t line;

  if (!job->gateway->elsewhere.is_on)
    return TNK_OK;
  if (job->once == NULL || job->answer.len > TNK__GW_MAX_ELSEWHERE_ANSWER)
    return tnk__gw_record_note(job->gateway->record, &about, "ended", NULL,
                               NULL, job->number);
  tnk__buf_init(&line, &job->gateway->alloc, SIZE_MAX);
  tnk__json_writer_init(&w, &line);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "answer");
  tnk__json_put_int(&w, "number", (int64_t)job->number);
  tnk__json_key(&w, "text");
  tnk__json_text_n(&w, (const char *)job->answer.data, job->answer.len);
  tnk__json_end(&w);
  return tnk__gw_record_write(job->gateway->record, &about, &line,
                              tnk__json_finish(&w));
}

/* ---- Finding ---- */

/* Returns how well a request is the same: 0 if it is not. */
static int rank(const other_t *other, const tnk__gw_same_t *same,
                const char *id) {
  int is_repeat = other->has_key || same->is_repeat;

  if (other->has_key != same->has_key ||
      strcmp(other->session, same->session) != 0 ||
      strcmp(other->has_key ? other->key : other->body, id) != 0)
    return 0;
  switch (other->state) {
  case ANSWERED:
    return is_repeat ? 3 : 0;
  case OPEN:
    return is_repeat || same->may_repeat ? 2 : 0;
  case FAILED: /* the key still belongs to its body */
    break;
  }
  return other->has_key;
}

static other_t *find(const tnk_gateway_t *gateway, const tnk__gw_same_t *same) {
  other_t *found = NULL;
  char id[N_HASH];
  int best = 0;

  to_text(same->has_key ? same->key : same->body, id);
  for (tnk__gw_node_t *node = tnk__gw_map_find(&gateway->elsewhere.names,
                                               hash_of(same->session, id));
       node != NULL; node = tnk__gw_map_next(node)) {
    int is = rank(NAMED(node), same, id);

    if (is > best) {
      found = NAMED(node);
      best = is;
    }
  }
  return found;
}

tnk__gw_elsewhere_is_t tnk__gw_elsewhere_find(tnk_gateway_t *gateway,
                                              const tnk__gw_same_t *same,
                                              struct tnk__gw_other **found,
                                              tnk__buf_t *answer) {
  char body[N_HASH];
  other_t *other;

  *found = NULL;
  heed(gateway);
  other = find(gateway, same);
  to_text(same->body, body);
  if (other == NULL)
    return TNK__GW_NOT_ELSEWHERE;
  if (strcmp(other->body, body) != 0)
    return TNK__GW_ELSEWHERE_OTHER;
  if (other->state == FAILED)
    return TNK__GW_NOT_ELSEWHERE;
  *found = other;
  if (other->state == OPEN)
    return TNK__GW_ELSEWHERE;
  return tnk__buf_append(answer, other->answer, other->n_answer) == TNK_OK
             ? TNK__GW_ELSEWHERE_ANSWER
             : TNK__GW_ELSEWHERE_NO_MEMORY;
}

/* ---- Waiting ---- */

static void ask(tnk_gateway_t *gateway, other_t *other, uint64_t now_ms) {
  const tnk__gw_about_t about = {.session = other->session};

  other->asked_ms = now_ms;
  /* Without it, the time bound ends the wait. */
  (void)tnk__gw_record_note(gateway->record, &about, "again", NULL, NULL,
                            other->by_number.key);
}

void tnk__gw_elsewhere_claim(tnk__gw_job_t *job, const tnk__gw_same_t *same) {
  tnk_gateway_t *gateway = job->gateway;

  job->claim = TNK__GW_CLAIMING;
  job->claimed_ms = uv_now(gateway->loop);
  job->same = *same;
  tnk__list_append(&gateway->elsewhere.claims, &job->follow);
  /* Ask for the line at once. If that fails, the next poll reads it. */
  tnk__gw_record_hurry(gateway->record);
  gateway->elsewhere.timer.data = gateway;
  if (!uv_is_active((uv_handle_t *)&gateway->elsewhere.timer))
    (void)uv_timer_start(&gateway->elsewhere.timer, on_timer,
                         TNK__GW_ELSEWHERE_TICK_MS, TNK__GW_ELSEWHERE_TICK_MS);
}

static tnk__gw_job_t *next_claim(const tnk_gateway_t *gateway,
                                 uint64_t now_ms) {
  TNK__LIST_FOREACH (node, &gateway->elsewhere.claims) {
    tnk__gw_job_t *job = WAITER(node);

    if (job->claim != TNK__GW_CLAIMING ||
        tnk__gw_record_error(gateway->record) != TNK_OK ||
        now_ms - job->claimed_ms >= TNK__GW_ELSEWHERE_AWAY_MS)
      return job;
  }
  return NULL;
}

/* End the claims that are decided. Each may end other jobs. A line that is not
 * read in time ends its claim too: the store is away, or has lost the line. */
static void end_claims(tnk_gateway_t *gateway, uint64_t now_ms) {
  tnk__gw_job_t *job;

  while ((job = next_claim(gateway, now_ms)) != NULL) {
    const tnk__gw_claim_t claim = job->claim;
    other_t *other = claim == TNK__GW_CLAIM_LOST
                         ? find_number(gateway, job->claimed_by)
                         : NULL;
    char body[N_HASH];
    int err = TNK_OK;

    tnk__list_remove(&job->follow);
    job->claim = TNK__GW_NO_CLAIM;
    if (other != NULL && other->state == FAILED)
      other = NULL;
    to_text(job->same.body, body);
    if (other != NULL && strcmp(body, other->body) != 0)
      err = TNK_EINVAL;
    tnk__gw_job_claimed(job, other,
                        claim == TNK__GW_CLAIMING ? TNK_ECONN : err);
  }
}

void tnk__gw_elsewhere_wait(tnk__gw_job_t *job, struct tnk__gw_other *other) {
  tnk_gateway_t *gateway = job->gateway;
  uint64_t now_ms = uv_now(gateway->loop);

  if (tnk__list_empty(&gateway->elsewhere.waiting))
    gateway->elsewhere.available_ms = now_ms;
  if (tnk__list_empty(&other->waiters)) {
    other->heard_ms = now_ms;
    ask(gateway, other, now_ms);
    tnk__list_remove(&other->wait);
    tnk__list_append(&gateway->elsewhere.waiting, &other->wait);
  }
  tnk__list_append(&other->waiters, &job->follow);
  wake(gateway);
}

/* End the wait of all jobs. Each may end others, whose clients have gone, or
 * wait again for another request. With an error, the request is still that of
 * the other gateway. */
static void tell(tnk_gateway_t *gateway, other_t *other, int err) {
  int is_answered = other->state == ANSWERED;
  tnk__list_t waiters;
  tnk__list_t *node;
  tnk__buf_t answer;

  tnk__list_move(&waiters, &other->waiters);
  tnk__list_remove(&other->wait);
  tnk__buf_init(&answer, &gateway->alloc, SIZE_MAX);
  if (is_answered)
    (void)tnk__buf_append(&answer, other->answer, other->n_answer);
  else if (err == TNK_OK)
    other->state = FAILED;
  while ((node = tnk__list_pop(&waiters)) != NULL)
    tnk__gw_job_told(WAITER(node), is_answered ? &answer : NULL,
                     is_answered ? TNK_OK : err);
  tnk__buf_deinit(&answer);
}

/* Returns whether the wait for this request ends. Its gateway is asked again
 * meanwhile. `away_ms`: how long the store has been unavailable. */
static int is_due(tnk_gateway_t *gateway, other_t *other, uint64_t now_ms,
                  uint64_t away_ms) {
  if (away_ms > 0)
    other->heard_ms = now_ms;
  if (tnk__list_empty(&other->waiters) || other->state != OPEN ||
      now_ms - other->heard_ms >= TNK__GW_ELSEWHERE_MS ||
      away_ms >= TNK__GW_ELSEWHERE_AWAY_MS)
    return 1;
  if (away_ms == 0 && now_ms - other->asked_ms >= TNK__GW_ELSEWHERE_ASK_MS)
    ask(gateway, other, now_ms);
  return 0;
}

static other_t *next_due(tnk_gateway_t *gateway, uint64_t now_ms,
                         uint64_t away_ms) {
  TNK__LIST_FOREACH (node, &gateway->elsewhere.waiting) {
    if (is_due(gateway, WAITING(node), now_ms, away_ms))
      return WAITING(node);
  }
  return NULL;
}

void tnk__gw_elsewhere_tick(tnk_gateway_t *gateway, uint64_t now_ms) {
  uint64_t away_ms;
  other_t *other;

  if (tnk__gw_record_why(gateway->record) == NULL)
    gateway->elsewhere.available_ms = now_ms;
  /* A record with an error cannot be used again, so nobody waits for it. */
  away_ms = tnk__gw_record_error(gateway->record) == TNK_OK
                ? now_ms - gateway->elsewhere.available_ms
                : TNK__GW_ELSEWHERE_AWAY_MS;
  tnk__gw_jobs_wanted(gateway);
  end_claims(gateway, now_ms);
  while ((other = next_due(gateway, now_ms, away_ms)) != NULL) {
    if (tnk__list_empty(&other->waiters)) /* their clients have gone */
      tnk__list_remove(&other->wait);
    else
      tell(gateway, other,
           away_ms >= TNK__GW_ELSEWHERE_AWAY_MS ? TNK_ECONN : TNK_OK);
  }
  if (tnk__list_empty(&gateway->elsewhere.waiting) &&
      tnk__list_empty(&gateway->elsewhere.claims))
    (void)uv_timer_stop(&gateway->elsewhere.timer);
}
