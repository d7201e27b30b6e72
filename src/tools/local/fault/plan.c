#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/fault/state.h"
#include "tools/local/base/table.h"
#include "tnk/error.h"

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
  local_fault_log_close(faults);
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

/* ---- Numbers ---- */

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

/* ---- Matching ---- */

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
