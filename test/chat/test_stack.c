/* SPDX-License-Identifier: MIT */
/* What is nested as deeply as is allowed needs little of a stack: a thread of
 * musl has 128 KiB. More than that ends this program. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "chat/jinja/template.h"
#include "support/test.h"
#include "tnk/chat.h"

enum { STACK = 128 * 1024, MOST = 20000 };

typedef struct {
  const char *text;
  int err;
} job_t;

/* A template from its text to that of a conversation. */
static void *make_text(void *user) {
  static const char messages[] =
      "[{\"role\": \"user\", \"content\": \"Hi\", \"extra\": [[[[[]]]]]}]";
  tnk_chat_t *chat = tnk_chat_new(test_allocator());
  tnk_chat_template_t *tpl = NULL;
  job_t *job = user;
  char *text;

  job->err = chat == NULL ? TNK_ENOMEM
                          : tnk_chat_read(chat, TNK_CHAT_TEMPLATE, messages,
                                          sizeof(messages) - 1, NULL);
  if (job->err == TNK_OK)
    job->err =
        tnk_chat_template_open(&tpl, job->text, strlen(job->text), NULL, NULL);
  if (job->err == TNK_OK)
    job->err = tnk_chat_text(&text, NULL, tpl, chat, NULL, NULL);
  if (job->err == TNK_OK)
    tnk_chat_free_text(chat, text);
  tnk_chat_template_unref(tpl);
  tnk_chat_free(chat);
  return NULL;
}

static int on_stack(void *(*work)(void *user), const char *text) {
  job_t job = {.text = text};
  pthread_attr_t attr;
  pthread_t thread;

  CHECK_INT(pthread_attr_init(&attr), 0);
  CHECK_INT(pthread_attr_setstacksize(&attr, STACK), 0);
  CHECK_INT(pthread_create(&thread, &attr, work, &job), 0);
  CHECK_INT(pthread_join(thread, NULL), 0);
  CHECK_INT(pthread_attr_destroy(&attr), 0);
  return job.err;
}

static int on_small_stack(const char *text) {
  return on_stack(make_text, text);
}

/* Something that is nested: `front` so many times, `inside`, and `back` as many
 * times. */
typedef struct {
  const char *before, *front, *inside, *back, *after;
  size_t least; /* so deep it must do */
} nested_t;

static void write_nested(char *text, size_t size, const nested_t *row,
                         size_t depth) {
  size_t n = (size_t)snprintf(text, size, "%s", row->before);

  for (size_t i = 0; i < depth; i++)
    n += (size_t)snprintf(text + n, size - n, "%s", row->front);
  n += (size_t)snprintf(text + n, size - n, "%s", row->inside);
  for (size_t i = 0; i < depth; i++)
    n += (size_t)snprintf(text + n, size - n, "%s", row->back);
  n += (size_t)snprintf(text + n, size - n, "%s", row->after);
  CHECK(n < size);
}

TEST(what_is_written_nested) {
  static const nested_t rows[] = {
      {"{{ ", "(", "1", ")", " }}", 40},
      {"{{ ", "[", "1", "]", " }}", 40},
      {"{{ ", "{1:", "1", "}", " }}", 40},
      {"{{ ", "not ", "1", "", " }}", 100},
      {"{{ ", "1 if 1 else ", "1", "", " }}", 100},
      {"{{ ", "0 if 0 else ", "1", "", " }}", 100},
      {"{{ ", "1 + ", "1", "", " }}", 150},
      {"{{ 1", "|abs", "", "", " }}", 100},
      {"{{ ", "1|default(", "1", ")", " }}", 40},
      {"{{ ", "range(1, *", "[]", ")", " }}", 1},
      {"{{ ", "messages[", "0", "]", " }}", 1},
      {"{{ ", "1 is eq(", "1", ")", " }}", 40},
      {"", "{% if 1 %}", "x", "{% endif %}", "", 80},
      {"", "{% if 0 %}{% elif 1 %}", "x", "{% endif %}", "", 80},
      {"", "{% for x in [1] %}", "x", "{% endfor %}", "", 80},
      {"", "{% for x in [1] recursive %}", "x", "{% endfor %}", "", 80},
      {"", "{% with x = 1 %}", "x", "{% endwith %}", "", 80},
      {"", "{% set x %}", "x", "{% endset %}", "", 80},
      {"", "{% filter upper %}", "x", "{% endfilter %}", "", 80},
      {"", "{% generation %}", "x", "{% endgeneration %}", "", 80},
      {"{% macro m() %}{{ caller() }}{% endmacro %}", "{% call m() %}", "x",
       "{% endcall %}", "", 40},
      {"", "{% macro m() %}", "x", "{% endmacro %}{{ m() }}", "", 60},
  };
  char text[MOST];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    int err = TNK_OK;

    for (size_t depth = 1; err != TNK_ETOOBIG; depth += 7) {
      write_nested(text, sizeof(text), &rows[i], depth);
      err = on_small_stack(text);
      if (depth <= rows[i].least)
        CHECK_INT(err, TNK_OK);
    }
  }
}

/* A value that is nested so many times. */
#define DEEP(n, by)                                                            \
  "{% set ns = namespace(a=1) %}{% for i in range(" n ") %}{% set ns.a = " by  \
  " %}{% endfor %}"

TEST(what_calls_itself) {
  static const char *const rows[] = {
      "{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}",
      "{% macro m(n) %}{{ 'a' ~ (m(n - 1) if n) | upper }}{% endmacro %}",
      "{% macro m(n) %}{% if n %}{% for x in [1] %}{{ m(n - 1) }}{% endfor %}"
      "{% endif %}{% endmacro %}",
      "{% macro m(n) %}{{ ''.join(*[[m(n - 1)]]) if n }}{% endmacro %}",
      "{% macro m(n) %}{{ ''.join([m(n - 1)]) if n }}{% endmacro %}",
      "{% macro m(n, a=(m(n - 1) if n)) %}{% endmacro %}",
      "{% macro m(n) %}{% if n %}{% filter upper %}{{ m(n - 1) }}"
      "{% endfilter %}{% endif %}{% endmacro %}",
      "{% macro m(n) %}{% if n %}{% generation %}{{ m(n - 1) }}"
      "{% endgeneration %}{% endif %}{% endmacro %}",
      "{% macro c() %}{{ caller() }}{% endmacro %}{% macro m(n) %}{% if n %}"
      "{% call c() %}{{ m(n - 1) }}{% endcall %}{% endif %}{% endmacro %}",
      "{% macro m(n) %}{% for x in [n] recursive %}{{ loop([x - 1]) if x }}"
      "{% endfor %}{% endmacro %}",
      "{% macro m(n) %}{% set ns = namespace(a='b') %}{% for i in range(n) %}"
      "{% set ns.a = [ns.a] %}{% endfor %}"
      "{{ ns.a | map(*(['map'] * (n - 1) + ['upper'])) | list | length }}"
      "{% endmacro %}",
      /* and looks at a deep value in the end */
      DEEP("98", "[ns.a]") "{% macro m(n) %}{{ m(n - 1) if n else ns.a }}"
                           "{% endmacro %}",
      DEEP("98", "{1: ns.a}") "{% macro m(n) %}{{ m(n - 1) if n else ns.a }}"
                              "{% endmacro %}",
      DEEP("30",
           "{1: ns.a}.items()") "{% macro m(n) %}{{ m(*[n - 1]) if n else ns.a "
                                "}}{% endmacro %}",
      DEEP("98",
           "{'k': ns.a}") "{% macro m(n) %}{{ m(n - 1) if n else ns.a | "
                          "tojson(indent=1, sort_keys=true) }}{% endmacro %}",
      DEEP("98", "{1: ns.a}") "{% set b = ns.a %}" DEEP(
          "98",
          "{1: ns.a}") "{% macro m(n) %}{{ m(n - 1) if n else b == ns.a }}"
                       "{% endmacro %}",
      DEEP("98", "[ns.a]") "{% set b = ns.a %}" DEEP(
          "98", "[ns.a]") "{% macro m(n) %}{{ m(n - 1) if n else b < ns.a }}"
                          "{% endmacro %}",
      DEEP("98", "(ns.a,)") "{% macro m(n) %}{{ m(n - 1) if n else "
                            "('%s' | safe) % ns.a }}{% endmacro %}",
  };
  char text[1024];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    int err = TNK_OK;

    for (size_t depth = 1; err != TNK_ETOOBIG; depth++) {
      CHECK((size_t)snprintf(text, sizeof(text), "%s{{ m(%zu) }}", rows[i],
                             depth) < sizeof(text));
      err = on_small_stack(text);
      if (depth <= 20)
        CHECK_INT(err, TNK_OK);
    }
  }
}

/* Deeper ones are refused, and nothing else is made of them. */
TEST(values_that_are_nested_too_deep) {
  static const char *const rows[] = {
      "{{ ns.a }}",
      "{{ ns.a | tojson }}",
      "{{ ns.a == ns.a }}",
      "{{ ns.a in [ns.a] }}",
  };
  char text[1024];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    int err;

    CHECK((size_t)snprintf(text, sizeof(text), "%s%s",
                           DEEP("98", "{1: [ns.a]}"), rows[i]) < sizeof(text));
    err = on_small_stack(text);
    CHECK(err == TNK_ETOOBIG || err == TNK_EINVAL);
  }
}

/* Without a limit on levels the stack itself is the limit, as it is where
 * frames are larger. */
static void *render_without_limit(void *user) {
  tnk__template_t *tpl = NULL;
  tnk__heap_t heap;
  tnk__buf_t out;
  tnk__why_t why;
  job_t *job = user;
  const tnk__template_env_t env = {.max_depth = 1000000};

  tnk__heap_init(&heap, test_allocator(), (size_t)64 << 20);
  tnk__buf_init(&out, test_allocator(), 1 << 20);
  job->err = tnk__template_compile(&tpl, test_allocator(), job->text,
                                   strlen(job->text), &why);
  if (job->err == TNK_OK)
    job->err = tnk__template_render(tpl, &heap, tnk__value_undefined(), &env,
                                    &out, NULL, &why);
  tnk__template_free(tpl);
  tnk__buf_deinit(&out);
  tnk__heap_deinit(&heap);
  return NULL;
}

TEST(the_stack_is_a_limit_by_itself) {
  static const char *const rows[] = {
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ ''.join([m()]) }}{% endmacro %}{{ m() }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_INT(on_stack(render_without_limit, rows[i]), TNK_ETOOBIG);
}
