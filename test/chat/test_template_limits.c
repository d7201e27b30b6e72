/* SPDX-License-Identifier: MIT */
/* What an untrusted template may cost, and lack of memory. */
#include "chat/object.h"
#include "chat/render.h"
#include "toy.h"

static int strcmp_or_null(const char *a, const char *b) {
  return a == NULL || strcmp(a, b) != 0;
}

TEST(limits) {
  static const struct {
    const char *text;
    tnk__template_env_t env;
  } rows[] = {
      {"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}"
       "{% endfor %}",
       {.max_work = 20000000}},
      {"{% for a in range(9999) %}xxxxxxxxxx{% endfor %}",
       {.max_output = 5000}},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {.max_depth = 300}},
      {"{% set ns = namespace(s='x') %}{% for a in range(64) %}"
       "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       {.max_work = 0}},
      {"{{ 'x' * 999999999 }}", {.max_work = 0}},
      {"{{ [1] * 999999999 }}", {.max_memory = 100000}},
      {"{{ 'x' | center(999999999) }}", {.max_work = 0}},
      {"{{ '%999999999d' % 1 }}", {.max_work = 0}},
  };
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_STR(render_in(rows[i].text, &rows[i].env, NULL, &why, &err), NULL);
    CHECK_INT(err, TNK_ETOOBIG);
  }
}

/* A clock of the test: it advances by `tick_ns` with each look. */
static uint64_t clock_ns, tick_ns;
static unsigned n_looks;

static uint64_t look(void) {
  n_looks++;
  return clock_ns += tick_ns;
}

TEST(cpu_time_is_limited) {
  static const char work[] = "{% for a in range(9999) %}{% for b in range(999) "
                             "%}{% endfor %}{% endfor %}x";
  const tnk__template_env_t env = {.cpu_ns = look};
  const tnk__template_env_t less = {.cpu_ns = look, .max_cpu_ns = 1000000};
  tnk__why_t why;
  int err;

  /* 0.1 s after each look, whatever the work is. */
  tick_ns = 100000000;
  CHECK_STR(render_in(work, &env, NULL, &why, &err), NULL);
  CHECK_INT(err, TNK_ETOOBIG);
  CHECK(strstr(why.text, "more CPU time than is allowed") != NULL);
  CHECK_INT(n_looks, 7);
  /* At most one look for each millisecond that the work is charged. */
  tick_ns = 1000;
  n_looks = 0;
  CHECK_STR(render_in(work, &env, NULL, &why, &err), "x");
  CHECK(n_looks > 50 && n_looks < 500);
  CHECK_STR(render_in("x", &less, NULL, &why, &err), "x");
  tick_ns = 2000000;
  CHECK_STR(render_in(work, &less, NULL, &why, &err), NULL);
  CHECK_INT(err, TNK_ETOOBIG);
}

/* Renderings of the public functions have a clock: the thread's, which only
 * work moves. */
TEST_LIMIT(each_rendering_has_a_clock, 60) {
  static const char *const pairs[] = {"user", "Hi", NULL};
  const tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
  tnk_chat_template_t *of = toy_open(toy_turns);
  tnk_chat_t *chat = toy_chat(pairs);
  tnk__heap_t heap;
  tnk__prompt_t prompt;
  tnk__why_t why;
  uint64_t from;

  tnk__heap_init(&heap, test_allocator(), 1 << 20);
  CHECK_INT(tnk__chat_prompt(&prompt, &heap, of, chat, &options, &why), TNK_OK);
  CHECK(prompt.env.cpu_ns != NULL);
  CHECK_INT(prompt.env.max_cpu_ns, 0);
  from = prompt.env.cpu_ns();
  CHECK(from > 0);
  while (prompt.env.cpu_ns() == from) {
  }
  tnk__heap_deinit(&heap);
  tnk_chat_free(chat);
  tnk_chat_template_unref(of);
}

/* The caller cancels at this question; `asked` counts all. */
static int cancel_at;
static int n_asked;

static int is_canceled(void *user) {
  CHECK(user == &cancel_at);
  return ++n_asked >= cancel_at;
}

TEST(a_rendering_ends_when_it_is_canceled) {
  static const char work[] = "{% for a in range(9999) %}{% for b in range(999) "
                             "%}{% endfor %}{% endfor %}x";
  const tnk__template_env_t env = {.is_canceled = is_canceled,
                                   .user = &cancel_at};
  tnk__why_t why;
  int err;

  /* Before the first work, and after some of it. */
  for (cancel_at = 1; cancel_at < 50; cancel_at += 7) {
    n_asked = 0;
    CHECK_STR(render_in(work, &env, NULL, &why, &err), NULL);
    CHECK_INT(err, TNK_ECANCELED);
    CHECK(strstr(why.text, "the rendering was canceled") != NULL);
    CHECK_INT(n_asked, cancel_at);
  }
  /* Never: it is asked at most once for each millisecond that is charged. */
  cancel_at = 1000;
  n_asked = 0;
  CHECK_STR(render_in(work, &env, NULL, &why, &err), "x");
  CHECK(n_asked > 50 && n_asked < 500);
}

/* What the most expensive templates of models do for each of 1,250 calls in
 * 5,002 messages. */
TEST(long_conversations_are_within_the_budget) {
#define TALK                                                                   \
  "{% set ns = namespace(n=0) %}{% set messages = ["                           \
  "{'role': 'user', 'content': 'ask'}, {'role': 'assistant', 'tool_calls': "   \
  "[{'id': 'call', 'function': {'name': 'f'}}]}, "                             \
  "{'role': 'tool', 'tool_call_id': 'some'}, "                                 \
  "{'role': 'assistant', 'content': 'said'}] * 1251 %}"                        \
  "{% macro name(messages, id) %}"                                             \
  "{% for m in messages %}{% if m.role == 'assistant' and m.tool_calls %}"     \
  "{% for c in m.tool_calls %}{% if c.id == id %}{{ c.function.name }}"        \
  "{% endif %}{% endfor %}{% endif %}{% endfor %}{% endmacro %}"               \
  "{% for m in messages %}"
  static const char *const rows[] = {
      /* the name of the call that a result belongs to */
      TALK "{% if m.role == 'tool' %}{% set ns.n = ns.n + "
           "1 + (name(messages, m.tool_call_id) | length) %}{% endif %}"
           "{% endfor %}{{ ns.n }}",
      /* the last answer with calls before a result */
      TALK "{% if m['role'] == 'tool' %}{% set outer = loop.index0 %}"
           "{% set at = namespace(value=-1) %}{% for p in messages %}"
           "{% if p['role'] == 'assistant' and p['tool_calls'] and "
           "loop.index0 < outer %}{% set at.value = loop.index0 %}{% endif %}"
           "{% endfor %}{% set ns.n = ns.n + outer - at.value %}{% endif %}"
           "{% endfor %}{{ ns.n }}",
      /* the results behind an answer */
      TALK "{% if m.get('tool_calls') %}{% set scan = namespace(stop=false) %}"
           "{% for k in range(loop.index0 + 1, messages | length) %}"
           "{% if scan.stop %}{% elif messages[k]['role'] != 'tool' %}"
           "{% set scan.stop = true %}{% else %}{% set follow = messages[k] %}"
           "{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{% endif %}"
           "{% endfor %}{{ ns.n }}",
      /* whether an answer without calls follows */
      TALK "{% if 'tool_calls' in m %}{% set next = namespace(found=false) %}"
           "{% for f in messages[loop.index:] %}{% if f.role == 'assistant' "
           "and 'tool_calls' not in f %}{% set next.found = true %}{% endif %}"
           "{% endfor %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}"
           "{{ ns.n }}",
  };
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (strcmp_or_null(render_in(rows[i], NULL, NULL, &why, &err), "1251"))
      test_fail(__FILE__, __LINE__, "row %zu: %s", i, why.text);
}

/* A loop that something may still refer to keeps its memory. */
TEST(loops_that_are_kept_stay_as_they_are) {
  static const row_t rows[] = {
      {"{% set ns = namespace(l=[]) %}{% for a in [1, 2] %}"
       "{% set ns.l = ns.l + [loop] %}{% endfor %}{% for b in [5, 6, 7] %}"
       "{% endfor %}{% for l in ns.l %}{{ l.length }}{% endfor %}",
       "22"},
      {"{% set ns = namespace(f=0) %}{% for a in ['x', 'y'] %}"
       "{% set ns.f = loop.cycle %}{% endfor %}{% for b in [5, 6, 7] %}"
       "{{ ns.f('p', 'q') }}{% endfor %}",
       "qqq"},
      {"{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}"
       "{% endfor %}{% for b in 'xyz' %}{{ loop.index }}{% endfor %}"
       "{{ loop.index }}{% endfor %}",
       "121231121232"},
      {"{% for a in [1, 2] %}{% for b in [] %}{% else %}-{% endfor %}"
       "{{ loop.last }}{% endfor %}",
       "-False-True"},
  };

  CHECK_ROWS(rows);
}

/* A text that is added to again and again takes memory by its length, and not
 * by that of all its states; what it was stays. */
TEST(texts_are_put_together_in_little_memory) {
#define JOIN(how)                                                              \
  "{% set ns = namespace(a='', b='', c='') %}{% set p = 'x' * 1024 %}"         \
  "{% for i in range(1000) %}{% set ns.a = " how " %}"                         \
  "{% set ns.b = ns.b + 'ab' ~ i %}{% if i == 9 %}{% set ns.c = ns.b %}"       \
  "{% endif %}{% endfor %}{{ ns.a | length }} {{ ns.b[:9] }} {{ ns.c }} "      \
  "{{ ns.c ~ 'd' }} {{ ns.b[-5:] }} {{ ns.b[:33] }}"
#define JOINED                                                                 \
  "1024000 ab0ab1ab2 ab0ab1ab2ab3ab4ab5ab6ab7ab8ab9 "                          \
  "ab0ab1ab2ab3ab4ab5ab6ab7ab8ab9d ab999 ab0ab1ab2ab3ab4ab5ab6ab7ab8ab9ab1"
  static const char *const rows[] = {JOIN("ns.a + p"), JOIN("ns.a ~ p"),
                                     JOIN("ns.a ~ p ~ ''")};
  static const tnk__template_env_t env = {.max_memory = 8 << 20};
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_STR(render_in(rows[i], &env, NULL, &why, &err), JOINED);
}

/* Whole numbers at the ends of 64 bits. */
TEST(numbers_at_their_ends) {
#define LEAST "(-9223372036854775807 - 1)"
#define MOST "9223372036854775807"
  static const row_t rows[] = {
      {"{{ range(" LEAST ", " MOST ", 2 ** 62) | list }}",
       "[-9223372036854775808, -4611686018427387904, 0, "
       "4611686018427387904]"},
      {"{{ range(" LEAST ", " MOST ", 2 ** 62)[3] }}", "4611686018427387904"},
      {"{{ 'ab'[1::" MOST "] }}{{ l[1::" MOST "] }}", "b[1]"},
      {"{{ 'abcdefgh' | truncate(" MOST ") }}", "abcdefgh"},
      {"{{ 'abcdefgh' | truncate(3, leeway=" MOST ") }}", "abcdefgh"},
      {"{{ '-1'.zfill(" LEAST ") }} {{ '-1'.zfill(-1) }}", "-1 -1"},
  };

  CHECK_ROWS(rows);
  CHECK_STR(render("{{ '%*d' % (" LEAST ", 5) }}"), NULL);
  CHECK_STR(render("{{ '%.*f' % (" LEAST ", 5) }}"), NULL);
}

/* Work that grows faster than the nodes that ask for it. */
TEST(work_within_a_step_is_counted) {
#define DOUBLES                                                                \
  "{% set ns = namespace(a=(1,), b=(1,)) %}{% for i in range(60) %}"           \
  "{% set ns.a = (ns.a, ns.a) %}{% set ns.b = (ns.b, ns.b) %}{% endfor %}"
#define LONG "{% set s = 'a' * 999999 %}{% set p = 'a' * 99999 ~ 'b' %}"
  static const char *const rows[] = {
      DOUBLES "{{ ns.a == ns.b }}",
      DOUBLES "{{ ns.a < ns.b }}",
      DOUBLES "{{ ns.a in [ns.b] }}",
      DOUBLES "{{ {ns.a: 1} }}",
      DOUBLES "{{ d[ns.a] }}",
      DOUBLES "{{ d.get(ns.a) }}",
      DOUBLES "{{ ns.a in d }}",
      DOUBLES "{{ [ns.a].count(ns.b) }}",
      DOUBLES "{{ [ns.a].index(ns.b) }}",
      DOUBLES "{{ [ns.a] | unique | list }}",
      DOUBLES "{{ dict([(ns.a, 1)]) }}",
      DOUBLES "{{ ns.a is filter }}",
      DOUBLES "{{ [{'k': ns.a}, {'k': ns.b}] | groupby('k') }}",
      DOUBLES "{% for i in [ns.a, ns.b] %}{{ loop.changed(i) }}{% endfor %}",
      LONG "{% for i in range(99) %}{{ s[5:9] }}{% endfor %}",
      LONG "{{ p in s }}",
      LONG "{{ s.find(p) }}",
      LONG "{{ s.rfind(p) }}",
      LONG "{{ s.replace(p, '') }}",
      LONG "{{ s.split(p) }}",
      LONG "{{ s.rpartition(p) }}",
      LONG "{{ s.strip('b' * 99999 ~ 'a') }}",
      LONG "{{ s | trim('b' * 99999 ~ 'a') }}",
      LONG "{% for i in range(9999) %}{% if s is none or s | length == 1 %}"
           "{% endif %}{% endfor %}",
  };
  static const tnk__template_env_t env = {.max_work = 200000000};
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_STR(render_within((size_t)1 << 27, rows[i], &env, NULL, &why, &err),
              NULL);
    CHECK_INT(err, TNK_ETOOBIG);
    CHECK_STR(why.text, "line 1: more steps than are allowed");
  }
}

/* What is known before a template runs is worked out when it is compiled. */
TEST(compiling_is_bounded) {
  static char text[(1 << 20) + 1];
  static const char unit[] = "{{ {'a' * 500000: 1} | length }}";
  tnk__template_t *tpl;
  tnk__why_t why;
  size_t n = 0;

  while (n < 200 * (sizeof(unit) - 1)) {
    memcpy(text + n, unit, sizeof(unit) - 1);
    n += sizeof(unit) - 1;
  }
  CHECK_INT(tnk__template_compile(&tpl, test_allocator(), text, n, &why),
            TNK_ETOOBIG);
  CHECK_STR(why.text, "line 1: constants take too much work");
  memset(text, 'x', sizeof(text));
  CHECK_INT(
      tnk__template_compile(&tpl, test_allocator(), text, sizeof(text), &why),
      TNK_ETOOBIG);
  CHECK_INT(tnk__template_compile(&tpl, test_allocator(), text,
                                  sizeof(text) - 1, &why),
            TNK_OK);
  tnk__template_free(tpl);
}

/* Parts of a text, in both directions, take work by its length. */
TEST(slices_of_long_texts) {
  static const tnk__template_env_t env = {.max_work = 200000000};
  static const row_t rows[] = {
      {"{{ ('ab\u00e9' * 99999)[::-1][:4] }}", "\xc3\xa9"
                                               "ba\xc3\xa9"},
      {"{{ ('ab\u00e9' * 99999)[1::3] | length }}", "99999"},
      {"{{ ('ab\u00e9' * 99999)[-2:2:-3][-3:] }}", "bbb"},
      {"{{ 'a\u00e9c'[::-2] }}{{ 'a\u00e9c'[9::-9] }}{{ ''[::-1] }}", "cac"},
      {"{{ 'a\u00e9c'[1:] }}{{ 'a\u00e9c'[:-1] }}{{ 'a\u00e9c'[5:] }}",
       "\xc3\xa9"
       "ca\xc3\xa9"},
  };
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_STR(
        render_within((size_t)1 << 27, rows[i].text, &env, NULL, &why, &err),
        rows[i].expected);
}

/* What calls itself without a node of the template for each time. */
TEST(calls_of_filters_have_a_limit) {
  static const tnk__template_env_t env = {.max_work = 0};
  static const char *const rows[] = {
      "{% set ns = namespace(a=1) %}{% for i in range(99999) %}"
      "{% set ns.a = [ns.a] %}{% endfor %}"
      "{{ ns.a | map(*(['map'] * 99999)) | list }}",
      "{% set ns = namespace(a=(1,)) %}{% for i in range(99999) %}"
      "{% set ns.a = (ns.a,) %}{% endfor %}{{ ('%s' | safe) % ns.a }}",
  };
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_STR(render_within((size_t)1 << 27, rows[i], &env, NULL, &why, &err),
              NULL);
    CHECK_INT(err, TNK_ETOOBIG);
  }
}

TEST(fields_in_formats) {
  static const row_t rows[] = {
      {"{{ '[{:{}}]'.format('x', 3) }}", "[x  ]"},
      {"{{ '[{:>{w}}]'.format('x', w=3) }}", "[  x]"},
      {"{{ '[{0:{1}}{0:{1}}]'.format('x', 2) }}", "[x x ]"},
  };

  CHECK_ROWS(rows);
  CHECK_STR(render("{{ '{:{:{}}}'.format(1, 2, 3) }}"), NULL);
  CHECK_STR(render("{{ (('{:' * 99999) ~ ('}' * 99999)).format('') }}"), NULL);
}

TEST(nesting_has_a_limit) {
  static const char *const units[] = {"(",   "[",    "not ",         "-",
                                      "{1:", "a.b(", "1 if 1 else ", "1+"};
  char text[8192];
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
    size_t n = (size_t)snprintf(text, sizeof(text), "{{ ");

    for (int k = 0; k < 500; k++)
      n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", units[i]);
    snprintf(text + n, sizeof(text) - n, "1 }}");
    CHECK_STR(render_in(text, NULL, NULL, &why, &err), NULL);
    CHECK(err == TNK_ETOOBIG || err == TNK_EINVAL);
  }
}

TEST(spans_of_generation) {
  tnk__template_span_t span[2];
  tnk__why_t why;
  tnk__buf_t spans;
  int err;

  tnk__buf_init(&spans, test_allocator(), MAX);
  CHECK_STR(render_in("ab{% generation %}cd{% set i = 1 %}{% endgeneration %}"
                      "{{ i }}{% for x in [1] %}{% generation %}\xc3\xa9"
                      "{% endgeneration %}{% endfor %}",
                      NULL, &spans, &why, &err),
            "abcd7\xc3\xa9");
  CHECK_INT(spans.len, sizeof(span));
  memcpy(span, spans.data, sizeof(span));
  CHECK_INT(span[0].start, 2);
  CHECK_INT(span[0].end, 4);
  CHECK_INT(span[1].start, 5);
  CHECK_INT(span[1].end, 7);
  tnk__buf_deinit(&spans);
}

static void fail_each_allocation(const char *text) {
  int err = TNK_ENOMEM;
  tnk__why_t why;

  for (long at = 0; err == TNK_ENOMEM && at < 3000; at++) {
    int did_fail;

    test_alloc_fail_at(at);
    render_in(text, NULL, NULL, &why, &err);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(err, did_fail ? TNK_ENOMEM : TNK_OK);
    CHECK_INT(test_alloc_live(), 0);
    if (err == TNK_OK)
      CHECK(at > 10);
  }
  CHECK_INT(err, TNK_OK);
}

TEST(every_allocation_fails_once) {
  const char *text =
      "{% set ns = namespace(a=1) %}{% macro m(x, y=2) %}"
      "{{ x ~ y }}{{ caller() if caller }}{% endmacro %}"
      "{% for o in objs | sort(attribute='age') %}{{ m(o.name) }}"
      "{{ loop.length }}{{ o | tojson(sort_keys=true) }}"
      "{% if no %}{% set q = 1 %}{% endif %}{% endfor %}"
      "{% set z %}{{ 'a,b' .split(',') | join('-') }}{% endset %}"
      "{% call m('%s %d' % ('a', 3)) %}c{% endcall %}"
      "{{ z.replace('a', 'bb').upper() }}{{ d.items() | list }}";

  fail_each_allocation(text);
}

/* Texts that are long enough for memory of their own. */
TEST(every_allocation_of_a_long_text_fails_once) {
  fail_each_allocation("{% set s = 'x' * 70000 %}"
                       "{{ ('a' ~ s) | length }}"
                       "{{ d | tojson(sort_keys=true) | length }}"
                       "{{ l | tojson(indent=s) | length }}"
                       "{{ l | tojson(separators=(s, ':')) | length }}"
                       "{{ d | tojson(separators=(',', s)) | length }}");
}

TEST(text_that_is_no_utf8) {
  tnk__template_t *tpl;
  tnk__why_t why;

  CHECK_INT(tnk__template_compile(&tpl, test_allocator(), "a\xff", 2, &why),
            TNK_EINVAL);
  CHECK(tpl == NULL);
}
