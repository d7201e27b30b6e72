/* SPDX-License-Identifier: MIT */
/* The report: a table for people, a JSON document for programs. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/json_write.h"
#include "tnk/version.h"
#include "tools/conform/state.h"

static const char *const words[CONFORM_N_VERDICTS] = {
    [CONFORM_HOLDS] = "holds",
    [CONFORM_ALLOWED] = "allowed",
    [CONFORM_DIFFERS] = "DIFFERS",
    [CONFORM_ABSENT] = "absent",
    [CONFORM_SKIPPED] = "skipped"};

static const char *const keys[CONFORM_N_VERDICTS] = {
    [CONFORM_HOLDS] = "holds",
    [CONFORM_ALLOWED] = "differs_allowed",
    [CONFORM_DIFFERS] = "differs",
    [CONFORM_ABSENT] = "not_offered",
    [CONFORM_SKIPPED] = "skipped"};

static size_t count(const conform_t *c, conform_verdict_t verdict) {
  size_t n = 0;

  for (size_t i = 0; i < c->n_findings; i++)
    n += c->findings[i].verdict == verdict;
  return n;
}

/* ---- The table ---- */

static void print_finding(const conform_finding_t *f, FILE *out) {
  fprintf(out, "  %-8s %-28s ", words[f->verdict], f->rule->id);
  /* A skipped rule is reported by its id and the reason. */
  fprintf(out, "%s", f->verdict == CONFORM_SKIPPED ? "" : f->rule->title);
  fprintf(out, "%s%s\n",
          f->verdict == CONFORM_SKIPPED || f->detail[0] == '\0' ? "" : ": ",
          f->detail);
}

static void print_left(const conform_t *c, FILE *out) {
  const char *at = (const char *)c->left.data;

  if (c->n_left > 0)
    fprintf(out, "\nleft behind, because they could not be removed\n");
  for (size_t i = 0; i < c->n_left; i++, at += strlen(at) + 1)
    fprintf(out, "  %s\n", at);
}

static void print_totals(const conform_t *c, FILE *out) {
  const conform_spent_t *s = &c->spent;

  print_left(c, out);
  fprintf(out,
          "\n%zu rules: %zu hold, %zu differ as others do (allowed), %zu "
          "differ,\n%zu are absent, %zu were skipped\n",
          c->n_findings, count(c, CONFORM_HOLDS), count(c, CONFORM_ALLOWED),
          count(c, CONFORM_DIFFERS), count(c, CONFORM_ABSENT),
          count(c, CONFORM_SKIPPED));
  fprintf(out,
          "sent: %u sessions, %u models, %u passes, %u steps, %u saves, %u "
          "samples\n",
          s->sessions, s->models, s->passes, s->steps, s->saves, s->samples);
}

void conform_report_last(const conform_t *c, FILE *out) {
  const conform_finding_t *f = &c->findings[c->n_findings - 1];

  if (c->options.json)
    return;
  if (c->n_findings == 1)
    fprintf(out, "%s\n", c->config.url.text);
  if (c->n_findings == 1 || f[-1].group != f->group)
    fprintf(out, "\n%s\n", f->group->title);
  print_finding(f, out);
  fflush(out);
}

/* ---- The document ---- */

static void put_rule(tnk__json_writer_t *w, const conform_group_t *group,
                     const conform_rule_t *rule) {
  tnk__json_put_text(w, "id", rule->id);
  tnk__json_put_text(w, "group", group->title);
  tnk__json_put_text(w, "title", rule->title);
  tnk__json_put_text(w, "section", rule->section);
  tnk__json_put_text(w, "needs",
                     rule->cost == CONFORM_SPENDS ? "spend" : "free");
}

static void put_finding(tnk__json_writer_t *w, const conform_finding_t *f) {
  tnk__json_begin_object(w);
  put_rule(w, f->group, f->rule);
  tnk__json_put_text(w, "verdict", keys[f->verdict]);
  tnk__json_put_text(w, "detail", f->detail);
  tnk__json_put_int(w, "ms", (int64_t)f->ms);
  tnk__json_end(w);
}

static void put_sent(tnk__json_writer_t *w, const conform_spent_t *s) {
  tnk__json_put_object(w, "sent");
  tnk__json_put_int(w, "sessions", s->sessions);
  tnk__json_put_int(w, "models", s->models);
  tnk__json_put_int(w, "passes", s->passes);
  tnk__json_put_int(w, "steps", s->steps);
  tnk__json_put_int(w, "saves", s->saves);
  tnk__json_put_int(w, "samples", s->samples);
  tnk__json_end(w);
}

static void put_all(tnk__json_writer_t *w, const conform_t *c) {
  const char *at = (const char *)c->left.data;

  tnk__json_put_text(w, "tnk", TNK_VERSION_STRING);
  tnk__json_put_text(w, "url", c->config.url.text);
  tnk__json_put_bool(w, "spend", c->options.spend);
  tnk__json_put_int(w, "exit", c->status);
  tnk__json_put_array(w, "rules");
  for (size_t i = 0; i < c->n_findings; i++)
    put_finding(w, &c->findings[i]);
  tnk__json_end(w);
  tnk__json_put_object(w, "summary");
  for (size_t i = 0; i < CONFORM_N_VERDICTS; i++)
    tnk__json_put_int(w, keys[i], (int64_t)count(c, (conform_verdict_t)i));
  tnk__json_end(w);
  put_sent(w, &c->spent);
  tnk__json_put_array(w, "left");
  for (size_t i = 0; i < c->n_left; i++, at += strlen(at) + 1)
    tnk__json_text(w, at);
  tnk__json_end(w);
}

/* ---- The list of rules ---- */

static void put_rules(tnk__json_writer_t *w, const conform_t *c) {
  const conform_group_t *group;

  tnk__json_put_array(w, "rules");
  for (size_t i = 0; (group = conform_group_at(i)) != NULL; i++)
    for (size_t k = 0; k < group->n; k++)
      if (conform_is_chosen(c, &group->rules[k])) {
        tnk__json_begin_object(w);
        put_rule(w, group, &group->rules[k]);
        tnk__json_end(w);
      }
  tnk__json_end(w);
}

static void print_rules(const conform_t *c, FILE *out) {
  const conform_group_t *group;

  for (size_t i = 0; (group = conform_group_at(i)) != NULL; i++) {
    fprintf(out, "%s%s\n", i > 0 ? "\n" : "", group->title);
    for (size_t k = 0; k < group->n; k++)
      if (conform_is_chosen(c, &group->rules[k]))
        fprintf(out, "  %-30s %-6s %s (%s)\n", group->rules[k].id,
                group->rules[k].cost == CONFORM_SPENDS ? "spend" : "free",
                group->rules[k].title, group->rules[k].section);
  }
}

/* ---- All ---- */

static void print_json(const conform_t *c, FILE *out,
                       void (*put)(tnk__json_writer_t *w, const conform_t *c)) {
  tnk__json_writer_t w;
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), 16 * TNK__MIB);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  put(&w, c);
  tnk__json_end(&w);
  if (tnk__json_finish(&w) == TNK_OK)
    fprintf(out, "%.*s\n", (int)buf.len, (const char *)buf.data);
  else
    fprintf(out, "{\"error\":{\"message\":\"out of memory\"}}\n");
  tnk__buf_deinit(&buf);
}

void conform_report_rules(const conform_t *c, FILE *out) {
  if (c->options.json)
    print_json(c, out, put_rules);
  else
    print_rules(c, out);
}

void conform_report(const conform_t *c, FILE *out) {
  if (c->options.json)
    print_json(c, out, put_all);
  else
    print_totals(c, out);
}
