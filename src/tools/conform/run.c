/* SPDX-License-Identifier: MIT */
/* The list of rules. Runs one rule after the other, each from a clean state. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/message/pass_result.h"
#include "lib/wire/message/sample_wire.h"
#include "tools/conform/state.h"

/* After this many consecutive requests without an answer the server counts as
 * gone. */
enum { MAX_SILENT = 6 };

/* ---- The list of rules, and the selection ---- */

static const conform_group_t *const groups[] = {
    &conform_http,     &conform_calls,   &conform_session,  &conform_model,
    &conform_sequence, &conform_futures, &conform_training, &conform_weights,
    &conform_files,    &conform_sampler, &conform_sampling, &conform_rest,
    &conform_end};

const conform_group_t *conform_group_at(size_t i) {
  return i < sizeof(groups) / sizeof(*groups) ? groups[i] : NULL;
}

static int item_names(const char *item, size_t n, const char *id) {
  if (n > 0 && item[n - 1] == '*')
    return strncmp(item, id, n - 1) == 0;
  return strlen(id) == n && memcmp(item, id, n) == 0;
}

int conform_is_chosen(const conform_t *c, const conform_rule_t *rule) {
  const char *only = c->options.only;

  if (only == NULL)
    return 1;
  while (*only != '\0') {
    size_t n = strcspn(only, ",");

    if (item_names(only, n, rule->id))
      return 1;
    only += n + (only[n] == ',');
  }
  return 0;
}

/* Each item of `only` must name a rule, because a run without rules would look
 * like a success. Returns CONFORM_OK, or CONFORM_USAGE with an error message.
 */
static int check_rules(conform_t *c) {
  const char *only = c->options.only;

  while (only != NULL && *only != '\0') {
    size_t n = strcspn(only, ",");
    int is_known = 0;

    for (size_t i = 0; conform_group_at(i) != NULL; i++)
      for (size_t k = 0; k < conform_group_at(i)->n; k++)
        is_known |= item_names(only, n, conform_group_at(i)->rules[k].id);
    if (!is_known) {
      snprintf(c->complaint, sizeof(c->complaint),
               "there is no rule \"%.*s\": --list names them", (int)n, only);
      return CONFORM_USAGE;
    }
    only += n + (only[n] == ',');
  }
  return CONFORM_OK;
}

/* ---- One rule ---- */

static int lost_contact(const conform_t *c) {
  return c->n_silent >= MAX_SILENT;
}

static conform_verdict_t take_steps(conform_t *c, const conform_rule_t *rule) {
  c->about = rule->about;
  c->size = -1;
  if (rule->needs != NULL && !rule->needs(c))
    return conform_told(c);
  if (rule->send != NULL)
    c->call = rule->send(c);
  return rule->judge(c);
}

/* Free what the rule had. */
static void end_steps(conform_t *c) {
  for (size_t i = 0; i < 2; i++) {
    tnk__samples_free(tnk__allocator_default(), c->samples[i]);
    tnk__pass_result_free(tnk__allocator_default(), c->passes[i]);
    c->samples[i] = NULL;
    c->passes[i] = NULL;
  }
  conform_wire_free(&c->wire);
  memset(&c->wire, 0, sizeof(c->wire));
  memset(&c->end, 0, sizeof(c->end));
  c->model = NULL;
  c->fresh = NULL;
  c->call = NULL;
  c->id = NULL;
  c->path = NULL;
  c->urls = NULL;
  conform_clean(c, 0);
  conform_forget_calls(c);
}

static void run_rule(conform_t *c, const conform_group_t *group,
                     const conform_rule_t *rule) {
  const uint64_t since = tnk__context_now_ms(&c->context);
  conform_finding_t *f;

  if (c->n_findings == CONFORM_MAX_RULES)
    return;
  f = c->finding = &c->findings[c->n_findings++];
  f->group = group;
  f->rule = rule;
  if (c->is_interrupted) {
    f->verdict = conform_tell(c, CONFORM_SKIPPED, "interrupted");
  } else if (lost_contact(c)) {
    f->verdict =
        conform_tell(c, CONFORM_SKIPPED, "the server does not respond");
  } else if (rule->cost == CONFORM_SPENDS && !c->options.spend) {
    f->verdict = conform_tell(c, CONFORM_SKIPPED, "costs money; use --spend");
  } else {
    conform_renew(c);
    f->verdict = take_steps(c, rule);
  }
  if (c->is_interrupted && f->verdict == CONFORM_DIFFERS)
    f->verdict = conform_tell(c, CONFORM_SKIPPED, "interrupted");
  /* The rule may have left the model in any state. */
  if (f->verdict == CONFORM_DIFFERS && c->any != NULL) {
    c->any->is_kept = 0;
    c->any = NULL;
  }
  end_steps(c);
  f->ms = tnk__context_now_ms(&c->context) - since;
}

static void run_all(conform_t *c, FILE *out) {
  const conform_group_t *group;

  for (size_t i = 0; (group = conform_group_at(i)) != NULL; i++) {
    if (group == &conform_end) { /* they also judge the remains */
      conform_clean(c, 1);
      conform_forget_calls(c);
    }
    for (size_t k = 0; k < group->n; k++)
      if (conform_is_chosen(c, &group->rules[k])) {
        run_rule(c, group, &group->rules[k]);
        conform_report_last(c, out);
      }
  }
}

static int status_of(const conform_t *c) {
  if (c->was_interrupted)
    return CONFORM_INTERRUPTED + c->signal;
  if (lost_contact(c))
    return CONFORM_UNREACHABLE;
  for (size_t i = 0; i < c->n_findings; i++)
    if (c->findings[i].verdict == CONFORM_DIFFERS)
      return CONFORM_DEVIATES;
  return c->n_unmet > 0 ? CONFORM_DEVIATES : CONFORM_OK;
}

static void run(conform_t *c, FILE *out) {
  c->status = check_rules(c);
  if (c->status != CONFORM_OK)
    return;
  if (c->options.list) {
    conform_report_rules(c, out);
    return;
  }
  c->status = conform_open(c);
  if (c->status == CONFORM_OK) {
    run_all(c, out);
    c->status = status_of(c);
    conform_report(c, out);
  }
  conform_close(c);
}

int conform_run(const conform_options_t *options, FILE *out, char *why,
                size_t n_why) {
  conform_t *c = tnk__calloc(tnk__allocator_default(), 1, sizeof(*c));
  int status;

  if (c == NULL) {
    snprintf(why, n_why, "out of memory");
    return CONFORM_DEVIATES;
  }
  c->options = *options;
  run(c, out);
  snprintf(why, n_why, "%s", c->complaint);
  status = c->status;
  tnk__free(tnk__allocator_default(), c);
  return status;
}
