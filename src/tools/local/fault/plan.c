/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"
#include "tools/local/base/table.h"
#include "tools/local/fault/calls.h"
#include "tools/local/fault/state.h"

/* ---- The log ---- */

/*
 * Records injected faults: counts by name, the latest ones in memory, all of
 * them in a file. Without memory for the list the other two still work.
 */

enum { MAX_LINE = 1024 };

int local_faults_log_to(local_faults_t *faults, const char *path) {
  faults->file = fopen(path, "ae");
  return faults->file != NULL ? TNK_OK : uv_translate_sys_error(errno);
}

static void fault_log_close(local_faults_t *faults) {
  if (faults->file != NULL)
    fclose(faults->file);
  tnk__free(faults->alloc, faults->log);
}

/* Write an injected fault as an object. */
static void fault_write_entry(tnk__json_writer_t *w,
                              const local_fault_entry_t *entry) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "fault", entry->name);
  tnk__json_put_int(w, entry->call[0] != '\0' ? "request" : "connection",
                    (int64_t)entry->n);
  if (entry->call[0] != '\0')
    tnk__json_put_text(w, "call", entry->call);
  if (entry->seq_id >= 0)
    tnk__json_put_int(w, "seq_id", entry->seq_id);
  tnk__json_end(w);
}

/* Flushed at once, so that the line is there when the effect is visible. */
static void write_line(local_faults_t *faults,
                       const local_fault_entry_t *entry) {
  tnk__json_writer_t w;
  tnk__buf_t line;

  tnk__buf_init(&line, faults->alloc, MAX_LINE);
  tnk__json_writer_init(&w, &line);
  fault_write_entry(&w, entry);
  if (tnk__json_finish(&w) == TNK_OK)
    fprintf(faults->file, "%.*s\n", (int)line.len, (const char *)line.data);
  fflush(faults->file);
  tnk__buf_deinit(&line);
}

/* There is space for as many names as a specification can have faults. Repeated
 * specifications may bring more names; those count only in the sum. */
static void add_count(local_faults_t *faults, const char *name) {
  size_t i = 0;

  while (i < faults->n_counts && strcmp(faults->counts[i].name, name) != 0)
    i++;
  if (i == LOCAL_MAX_FAULT_RULES)
    return;
  if (i == faults->n_counts) {
    faults->n_counts++;
    memcpy(faults->counts[i].name, name, strlen(name) + 1);
  }
  faults->counts[i].n++;
}

void local_faults_note(local_faults_t *faults, const local_fault_t *fault,
                       uint64_t n, const char *path, int64_t seq_id) {
  static const char prefix[] = "/api/v1/";
  local_fault_entry_t entry = {.n = n, .seq_id = seq_id};

  local_fault_name(fault, entry.name);
  if (path != NULL)
    snprintf(entry.call, sizeof(entry.call), "%s",
             strncmp(path, prefix, sizeof(prefix) - 1) == 0
                 ? path + sizeof(prefix) - 1
                 : path);
  /* A path from a client, decoded and cut. One invalid byte would make the JSON
   * list invalid. */
  tnk__utf8_repair(entry.call);
  add_count(faults, entry.name);
  if (faults->file != NULL)
    write_line(faults, &entry);
  if (faults->log == NULL)
    faults->log =
        tnk__calloc(faults->alloc, LOCAL_FAULT_LOG_SIZE, sizeof(*faults->log));
  if (faults->log != NULL)
    faults->log[faults->n_logged % LOCAL_FAULT_LOG_SIZE] = entry;
  faults->n_logged++;
}

uint64_t local_faults_count(const local_faults_t *faults, const char *name) {
  if (name == NULL)
    return faults->n_logged;
  for (size_t i = 0; i < faults->n_counts; i++)
    if (strcmp(faults->counts[i].name, name) == 0)
      return faults->counts[i].n;
  return 0;
}

const local_fault_entry_t *local_faults_entry(const local_faults_t *faults,
                                              size_t i) {
  uint64_t oldest = faults->n_logged > LOCAL_FAULT_LOG_SIZE
                        ? faults->n_logged - LOCAL_FAULT_LOG_SIZE
                        : 0;

  if (faults->log == NULL || i >= faults->n_logged - oldest)
    return NULL;
  return &faults->log[(oldest + i) % LOCAL_FAULT_LOG_SIZE];
}

void local_faults_open_control(local_faults_t *faults) {
  faults->is_open = 1;
}

/* ---- The plan ---- */

/*
 * Selects faults and does nothing else. A plan is a specification and the
 * counts of all calls. A new specification resets the counts.
 */

local_faults_t *local_faults_new(const tnk_allocator_t *alloc) {
  local_faults_t *faults = tnk__calloc(alloc, 1, sizeof(*faults));

  if (faults == NULL)
    return NULL;
  faults->alloc = alloc;
  if (local_faults_set(faults, "", NULL, 0) == TNK_OK)
    return faults;
  local_faults_free(faults);
  return NULL;
}

void local_faults_free(local_faults_t *faults) {
  if (faults == NULL)
    return;
  fault_log_close(faults);
  tnk__free(faults->alloc, faults->text);
  tnk__free(faults->alloc, faults);
}

int local_faults_set(local_faults_t *faults, const char *text, char *why,
                     size_t n_why) {
  local_fault_spec_t *spec = tnk__malloc(faults->alloc, sizeof(*spec));
  char *copy = tnk__strdup(faults->alloc, text != NULL ? text : "");
  int err = TNK_ENOMEM;

  if (spec != NULL && copy != NULL)
    err = local_fault_spec_read(spec, text, why, n_why);
  if (err == TNK_OK) {
    tnk__free(faults->alloc, faults->text);
    faults->text = copy;
    faults->spec = *spec;
    faults->n_connections = 0;
    memset(faults->call_hash, 0, sizeof(faults->call_hash));
    memset(faults->n_of_call, 0, sizeof(faults->n_of_call));
  } else {
    tnk__free(faults->alloc, copy);
  }
  tnk__free(faults->alloc, spec);
  return err;
}

/* ---- The plan: numbers ---- */

/* The next number of this call, from 1. Calls without a free entry, and calls
 * with equal hashes, are counted together. */
static uint64_t count(local_faults_t *faults, uint64_t hash) {
  size_t at = 0;

  while (at + 1 < LOCAL_FAULT_CALLS && faults->call_hash[at] != 0 &&
         faults->call_hash[at] != hash)
    at++;
  /* All further calls share the last entry. */
  faults->call_hash[at] = hash;
  return ++faults->n_of_call[at];
}

/* A value below 2^32 that depends only on one request, not on other
 * requests. */
static uint32_t draw(uint64_t seed, uint64_t hash, uint64_t n, uint64_t use) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + hash + n * 0xbf58476d1ce4e5b9u +
               use * 0x94d049bb133111ebu;

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ (z >> 31)) >> 32);
}

/* ---- The plan: matching ---- */

/* The call of a rule matches the first part or parts of the path, or the
 * separate name at its end. */
static int is_about(const local_fault_rule_t *rule, const char *call,
                    const char *path) {
  size_t n = strlen(rule->call);

  if (n > 0)
    return path != NULL && (strcmp(rule->call, call) == 0 ||
                            (strncmp(path, rule->call, n) == 0 &&
                             (path[n] == '\0' || path[n] == '/')));
  if (rule->group == NULL)
    return local_fault_suits(&rule->fault, call);
  for (size_t i = 0; i < rule->n_group; i++)
    if (local_fault_suits(&rule->group[i], call))
      return 1;
  return 0;
}

/* One of the rule's faults that is possible for the call. */
static const local_fault_t *pick(const local_fault_rule_t *rule,
                                 const char *call, uint32_t random) {
  size_t n = 0;

  if (rule->group == NULL)
    return &rule->fault;
  for (size_t i = 0; i < rule->n_group; i++)
    n += (size_t)local_fault_suits(&rule->group[i], call);
  if (n == 0)
    return NULL;
  n = random % n;
  for (size_t i = 0; i < rule->n_group; i++)
    if (local_fault_suits(&rule->group[i], call) && n-- == 0)
      return &rule->group[i];
  return NULL;
}

/* `call` and `path` are NULL for a connection. Positions have priority over
 * shares. Shares occupy disjoint ranges, so that each has its full
 * frequency. */
static const local_fault_t *decide(local_faults_t *faults, const char *call,
                                   const char *path, uint64_t n) {
  local_fault_spec_t *spec = &faults->spec;
  const char *name = call != NULL ? call : "";
  /* Never 0, which marks a free entry. */
  uint64_t hash = local_hash(5, name, strlen(name)) | 1;
  const local_fault_rule_t *hit = NULL;
  uint64_t sum = 0;
  uint32_t at;

  if (call != NULL)
    n = count(faults, hash);
  /* A number below a million, the unit of shares. */
  at = (uint32_t)((uint64_t)draw(spec->seed, hash, n, 1) * 1000000 >> 32);
  for (size_t i = 0; i < spec->n_rules; i++) {
    local_fault_rule_t *rule = &spec->rules[i];

    if (!is_about(rule, call, path))
      continue;
    rule->n_seen++;
    if (rule->share == 0 && rule->n_seen >= rule->first &&
        rule->n_seen <= rule->last && (hit == NULL || hit->share > 0))
      hit = rule;
    sum += rule->share;
    if (hit == NULL && at < sum)
      hit = rule;
  }
  return hit != NULL ? pick(hit, call, draw(spec->seed, hash, n, 2)) : NULL;
}

int local_faults_refuses(local_faults_t *faults) {
  const local_fault_t *fault;

  if (faults->spec.n_rules == 0)
    return 0;
  faults->n_connections++;
  fault = decide(faults, NULL, NULL, faults->n_connections);
  if (fault != NULL)
    local_faults_note(faults, fault, faults->n_connections, NULL, -1);
  return fault != NULL;
}

/* The path below /api/v1 without its query, or the path of a file; NULL:
 * another path. */
static const char *below(const char *path, char out[LOCAL_FAULT_CALL]) {
  static const char prefix[] = "/api/v1/";
  static const char files[] = "/files/";
  size_t n;

  if (strncmp(path, prefix, sizeof(prefix) - 1) == 0)
    path += sizeof(prefix) - 1;
  else if (strncmp(path, files, sizeof(files) - 1) == 0)
    path += 1;
  else
    return NULL;
  n = strcspn(path, "?");
  n = n < LOCAL_FAULT_CALL ? n : LOCAL_FAULT_CALL - 1;
  memcpy(out, path, n);
  out[n] = '\0';
  return out;
}

/* Calls about a checkpoint or session are distinguished by their last part. */
static void name_call(const char *path, const char *rest,
                      char out[LOCAL_FAULT_CALL]) {
  static const char *const ends[] = {"external_weights_urls", "archive",
                                     "publish", "ttl", "trace_export"};
  size_t n = strcspn(path, "?");

  memcpy(out, rest, LOCAL_FAULT_CALL);
  out[strcspn(out, "/")] = '\0';
  if (strcmp(out, "training_runs") != 0 && strcmp(out, "sessions") != 0)
    return;
  for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
    size_t n_end = strlen(ends[i]);

    if (n > n_end && path[n - n_end - 1] == '/' &&
        memcmp(path + n - n_end, ends[i], n_end) == 0)
      memcpy(out, ends[i], n_end + 1);
  }
}

void local_faults_decide(local_faults_t *faults, const char *path,
                         local_fault_t *out) {
  const local_fault_t *fault;
  char rest[LOCAL_FAULT_CALL];
  char call[LOCAL_FAULT_CALL];

  *out = (local_fault_t){0};
  if (faults->spec.n_rules == 0 || below(path, rest) == NULL)
    return;
  name_call(path, rest, call);
  fault = decide(faults, call, rest, 0);
  if (fault != NULL)
    *out = *fault;
}

/* ---- The endpoint ---- */

/* The endpoint that lists injected faults and sets the next ones. */

/* Takes the buffer's contents. */
static void reply(tnk__srv_req_t *req, int status, tnk__buf_t *buf,
                  tnk__json_writer_t *w) {
  size_t len = 0;
  uint8_t *body;

  if (tnk__json_finish(w) != TNK_OK)
    tnk__buf_deinit(buf);
  body = tnk__buf_take(buf, &len);
  if (body == NULL) {
    tnk__buf_deinit(buf);
    tnk__srv_req_reply_text(req, 500, "text/plain", "Internal Server Error");
    return;
  }
  tnk__srv_req_reply(req, status, "application/json", NULL, body, len);
}

static void begin(tnk__srv_req_t *req, tnk__buf_t *buf, tnk__json_writer_t *w) {
  tnk__buf_init(buf, req->http->config.alloc, (size_t)1 << 30);
  tnk__json_writer_init(w, buf);
  tnk__json_begin_object(w);
}

/* The message may quote arbitrary bytes from the client. */
static void reply_error(tnk__srv_req_t *req, int status, const char *sentence) {
  char text[512];
  tnk__json_writer_t w;
  tnk__buf_t buf;

  snprintf(text, sizeof(text), "%s", sentence);
  tnk__utf8_repair(text);
  begin(req, &buf, &w);
  tnk__json_put_text(&w, "detail", text);
  tnk__json_end(&w);
  reply(req, status, &buf, &w);
}

static void list(const local_faults_t *faults, tnk__srv_req_t *req) {
  const local_fault_entry_t *entry;
  tnk__json_writer_t w;
  tnk__buf_t buf;

  begin(req, &buf, &w);
  tnk__json_put_text(&w, "faults", faults->text);
  tnk__json_put_int(&w, "n", (int64_t)faults->n_logged);
  tnk__json_put_object(&w, "counts");
  for (size_t i = 0; i < faults->n_counts; i++)
    tnk__json_put_int(&w, faults->counts[i].name, (int64_t)faults->counts[i].n);
  tnk__json_end(&w);
  tnk__json_put_array(&w, "last");
  for (size_t i = 0; (entry = local_faults_entry(faults, i)) != NULL; i++)
    fault_write_entry(&w, entry);
  tnk__json_end(&w);
  tnk__json_end(&w);
  reply(req, 200, &buf, &w);
}

static void set(local_faults_t *faults, tnk__srv_req_t *req) {
  char why[512] = "out of memory";
  const char *text = tnk__buf_cstr(&req->body);

  if (text != NULL &&
      local_faults_set(faults, text, why, sizeof(why)) == TNK_OK)
    list(faults, req);
  else
    reply_error(req, text != NULL ? 400 : 503, why);
}

int local_faults_control(local_faults_t *faults, tnk__srv_req_t *req) {
  if (faults == NULL || !faults->is_open ||
      strcmp(req->path, LOCAL_FAULTS_PATH) != 0)
    return 0;
  if (strcmp(req->method, "GET") == 0)
    list(faults, req);
  else if (strcmp(req->method, "PUT") == 0)
    set(faults, req);
  else
    reply_error(req, 405, "Method Not Allowed");
  return 1;
}
