/* What the reference made of these templates is written beside them. */
#include <stdio.h>
#include <string.h>

#include "chat/template/template.h"
#include "support/test.h"
#include "tnk/error.h"

enum { MAX = 1 << 22 };

static const char variables[] =
    "{\"i\": 7, \"z\": 0, \"neg\": -3, \"f\": 2.5, \"s\": \"Hello World\", "
    "\"u\": \"h\303\251\303\237\316\243 \346\227\245\346\234\254\", \"e\": "
    "\"\", \"l\": [3, 1, 2], \"ls\": [\"b\", \"A\", \"c\", \"a\"], \"t\": [[1, "
    "\"x\"], [2, \"y\"]], \"d\": {\"a\": 1, \"B\": \"two\", \"items\": 5, "
    "\"c\": null}, \"dd\": {\"k\": {\"x\": [1, {\"y\": 2}]}, \"z\": \"q\"}, "
    "\"n\": null, \"yes\": true, \"no\": false, \"m\": [[1, 2], [3]], "
    "\"objs\": [{\"name\": \"ann\", \"age\": 3, \"on\": true}, {\"name\": "
    "\"Bob\", \"age\": 1, \"on\": false}, {\"name\": \"cy\", \"age\": 3}]}";

typedef struct {
  const char *text, *expected;
} row_t;

static int64_t now(void *user) {
  (void)user;
  return 1767355954; /* a Friday */
}

/* Render with these limits. The text stays until the next call; NULL: it was
 * refused, and *err says how. */
static const char *render_within(size_t max, const char *text,
                                 const tnk__template_env_t *env,
                                 tnk__buf_t *spans, tnk__why_t *why, int *err) {
  static char made[8192];
  tnk__template_t *tpl = NULL;
  tnk__heap_t heap;
  tnk__value_t vars;
  tnk__buf_t out;

  tnk__heap_init(&heap, test_allocator(), max);
  tnk__buf_init(&out, test_allocator(), MAX);
  *err = tnk__value_from_json(&heap, variables, sizeof(variables) - 1, &vars);
  if (*err == TNK_OK)
    *err =
        tnk__template_compile(&tpl, test_allocator(), text, strlen(text), why);
  if (*err == TNK_OK)
    *err = tnk__template_render(tpl, &heap, vars, env, &out, spans, why);
  CHECK(out.len < sizeof(made));
  CHECK(*err == TNK_OK || out.len == 0);
  if (out.len > 0)
    memcpy(made, out.data, out.len);
  made[out.len] = '\0';
  tnk__template_free(tpl);
  tnk__buf_deinit(&out);
  tnk__heap_deinit(&heap);
  return *err == TNK_OK ? made : NULL;
}

static const char *render_in(const char *text, const tnk__template_env_t *env,
                             tnk__buf_t *spans, tnk__why_t *why, int *err) {
  return render_within(MAX, text, env, spans, why, err);
}

static const char *render(const char *text) {
  const tnk__template_env_t env = {.now_s = now};
  tnk__why_t why = {.code = 0};
  const char *made;
  int err;

  made = render_in(text, &env, NULL, &why, &err);
  CHECK_INT(why.code, err);
  CHECK((err == TNK_OK) == (why.text[0] == '\0'));
  return made;
}

static void check_rows(const row_t *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const char *made = render(rows[i].text);

    if (made == NULL || strcmp(made, rows[i].expected) != 0)
      test_fail(__FILE__, __LINE__, "%s gives \"%s\", expected \"%s\"",
                rows[i].text, made != NULL ? made : "(refused)",
                rows[i].expected);
  }
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

TEST(output_and_blanks) {
  static const row_t rows[] = {
      {"a{{ 1 }}b", "a1b"},
      {"{{- 1 -}}  x", "1x"},
      {"x  {{- 1 -}}  y", "x1y"},
      {"  {% if true %}\n  a\n  {% endif %}\nb", "  a\nb"},
      {"a {%+ if true %} b {%+ endif +%}\nc", "a  b \nc"},
      {"{# c #}\nx{#- d -#} \n y", "xy"},
      {"{% raw %}{{ x }}{% endraw %}\nq", "{{ x }}q"},
      {"{%- raw -%}  {{ }} {%- endraw -%} z", "{{ }}z"},
      {"a\r\nb\rc\n\n", "a\nb\nc\n"},
      {"{{ 'a' 'b' }}", "ab"},
      {"{{ '\\n\\t\\x41\\u00e9\\q' }}", "\n\tA\303\251\\q"},
      {"{{ 0x1f }} {{ 1_000 }} {{ 1.5e3 }} {{ 0b11 }}", "31 1000 1500.0 3"},
  };

  CHECK_ROWS(rows);
}

TEST(operators) {
  static const row_t rows[] = {
      {"{{ [1e999, -1e999, 'nan' | float] | tojson }}",
       "[Infinity, -Infinity, NaN]"},
      {"{{ range(0) or {}.items() or 5 }}{{ range(1) and 6 }}", "56"},
      {"{{ 1 + 2 * 3 ** 2 // 4 % 5 - 1 }}", "4"},
      {"{{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** -1 }}", "3.5 -4 2 0.5"},
      {"{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ [1] + [2] }} {{ (1,) * 2 }}",
       "ab ababab [1, 2] (1, 1)"},
      {"{{ 1 ~ 'a' ~ none ~ 1.0 }}", "1aNone1.0"},
      {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }}", "True False True"},
      {"{{ 'a' in 'cab' }} {{ 4 not in l }} {{ 'a' in d }}", "True True True"},
      {"{{ not e and l or 5 }} {{ 'y' if no else 'n' }}[{{ 'y' if no }}]",
       "[3, 1, 2] n[]"},
      {"{{ -i }} {{ +neg }} {{ true + true }}", "-7 -3 2"},
      {"{{ '%s|%5d|%-5.1f|%x|%r' % ('a', 42, 2.25, 255, 'q') }}",
       "a|   42|2.2  |ff|'q'"},
      {"{{ '%(a)s' % d }} {{ '%d%%' % 5 }}", "1 5%"},
      {"{{ -5.5 // 2 }} {{ 5.5 % -2 }} {{ 1e16 }} {{ 0.1 + 0.2 }}",
       "-3.0 -0.5 1e+16 0.30000000000000004"},
  };

  CHECK_ROWS(rows);
}

TEST(attributes) {
  static const row_t rows[] = {
      {"{{ d.a }} {{ d['B'] }} {{ d.items() }} {{ d['items'] }}",
       "1 two dict_items([('a', 1), ('B', 'two'), ('items', 5), ('c', None)]) "
       "5"},
      {"{{ l[0] }} {{ l[-1] }} {{ l[9] }}x {{ u[1] }} {{ u[-1] }}",
       "3 2 x \303\251 \346\234\254"},
      {"{{ l[1:] }} {{ l[::-1] }} {{ u[1:3] }} {{ s[::-2] }} {{ t[0][1] }}",
       "[1, 2] [2, 1, 3] \303\251\303\237 drWolH x"},
      {"{{ nope is defined }} {{ d.nope is defined }} {{ none.x is defined "
       "}}[{{ nope }}]",
       "False False False[]"},
      {"{{ s.append is defined }} {{ l.append is defined }}", "False False"},
      {"{{ dd.k.x.1.y }}", "2"},
  };

  CHECK_ROWS(rows);
}

TEST(text_methods) {
  static const row_t rows[] = {
      {"{{ s.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a b c'.split(none, 1) }} "
       "{{ 'a b c'.rsplit(' ', 1) }}",
       "['Hello', 'World'] ['a', 'b', '', 'c'] ['a', 'b c'] ['a b', 'c']"},
      {"{{ ' x '.strip() }}|{{ 'xxax'.strip('x') }}|{{ 'xxax'.lstrip('x') "
       "}}|{{ 'xxax'.rstrip('x') }}",
       "x|a|ax|xxa"},
      {"{{ s.startswith('Hell') }} {{ s.endswith(('x', 'ld')) }} {{ "
       "s.find('o') }} {{ u.find('\346\227\245') }} {{ s.rfind('o') }}",
       "True True 4 5 7"},
      {"{{ u.upper() }} {{ u.title() }} {{ '\316\221\316\243'.lower() }} {{ "
       "'\303\237'.upper() }} {{ 'aBc'.swapcase() }} {{ u.capitalize() }}",
       "H\303\211SS\316\243 \346\227\245\346\234\254 H\303\251\303\237\317\202 "
       "\346\227\245\346\234\254 \316\261\317\202 SS AbC "
       "H\303\251\303\237\317\202 \346\227\245\346\234\254"},
      {"{{ 'a\\nb\\r\\nc'.splitlines() }} {{ 'a-b-c'.partition('-') }} {{ "
       "'a-b-c'.rpartition('-') }}",
       "['a', 'b', 'c'] ('a', '-', 'b-c') ('a-b', '-', 'c')"},
      {"{{ 'aaa'.replace('a', 'b', 2) }} {{ ','.join(ls) }} {{ 'x'.center(5, "
       "'*') }} {{ '-7'.zfill(4) }}",
       "bba b,A,c,a **x** -007"},
      {"{{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ '\\u00b2'.isdecimal() }} "
       "{{ ' '.isspace() }} {{ 'Ab'.istitle() }}",
       "True True False True True"},
      {"{{ '{} {a:>4} {0!r}'.format('q', a=1) if false }}{{ '{0} {a:>4} "
       "{0!r}'.format('q', a=1) }} {{ '{{{}}}'.format(2.5) }}",
       "q    1 'q' {2.5}"},
  };

  CHECK_ROWS(rows);
}

TEST(filters) {
  static const row_t rows[] = {
      {"{{ nope | default('x') }} {{ e | default('y', true) }} {{ l | length "
       "}} {{ l | first }} {{ l | last }}",
       "x y 3 3 2"},
      {"{{ ls | join('-') }} {{ objs | join(',', attribute='name') }}",
       "b-A-c-a ann,Bob,cy"},
      {"{{ l | sort }} {{ ls | sort }} {{ ls | sort(case_sensitive=true, "
       "reverse=true) }} {{ objs | sort(attribute='age,name') | "
       "map(attribute='name') | list }}",
       "[1, 2, 3] ['A', 'a', 'b', 'c'] ['c', 'b', 'a', 'A'] ['Bob', 'ann', "
       "'cy']"},
      {"{{ l | map('string') | list }} {{ l | select('odd') | list }} {{ l | "
       "reject('gt', 1) | list }}",
       "['3', '1', '2'] [3, 1] [1]"},
      {"{{ objs | selectattr('on') | map(attribute='name') | list }} {{ objs | "
       "rejectattr('age', 'equalto', 3) | list }}",
       "['ann'] [{'name': 'Bob', 'age': 1, 'on': False}]"},
      {"{{ ['a', 'A', 'b'] | unique | list }} {{ l | sum }} {{ l | min }} {{ l "
       "| max }} {{ l | reverse | list }} {{ 'abc' | reverse }}",
       "['a', 'b'] 6 1 3 [2, 1, 3] cba"},
      {"{{ d | dictsort }} {{ d | items | list }} {{ d | tojson }} {{ d | "
       "tojson(indent=1) }} {{ u | tojson(ensure_ascii=true) }}",
       "[('a', 1), ('B', 'two'), ('c', None), ('items', 5)] [('a', 1), ('B', "
       "'two'), ('items', 5), ('c', None)] {\"a\": 1, \"B\": \"two\", "
       "\"items\": 5, \"c\": null} {\n \"a\": 1,\n \"B\": \"two\",\n "
       "\"items\": 5,\n \"c\": null\n} \"h\\u00e9\\u00df\\u03a3 "
       "\\u65e5\\u672c\""},
      {"{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ "
       "'a\\n' | indent }}|",
       "a\n    b\n\n    c|  a\n  b|a\n|"},
      {"{{ '42' | int }} {{ 'x' | int(7) }} {{ '1f' | int(0, 16) }} {{ '2.9' | "
       "int }} {{ '1e2' | float }} {{ 2.5 | round }} {{ 2.567 | round(2) }} {{ "
       "2.1 | round(0, 'ceil') }} {{ -3 | abs }}",
       "42 7 31 2 100.0 2.0 2.57 3.0 3"},
      {"{{ '<a>' | e }} {{ ('<a>' | e) + '<' }} {{ '<' | safe }} {{ 'hello "
       "wOrld-foo (bar' | title }} {{ 'hello world foo' | truncate(9) }} {{ 'a "
       "b-c' | wordcount }}",
       "&lt;a&gt; &lt;a&gt;&lt; < Hello World-Foo (Bar hello... 3"},
      {"{{ l | batch(2, 'x') | list }} {{ l | slice(2) | list }} {% for g in "
       "objs | groupby('age') %}{{ g.grouper }}:{{ g.list | length }} {% "
       "endfor %}",
       "[[3, 1], [2, 'x']] [[3, 1], [2]] 1:1 3:2 "},
      {"{{ ' x ' | trim }}{{ 'Ab' | upper | lower | capitalize }}{{ 'aXbX' | "
       "replace('X', '-', 1) }}{{ '%s %s' | format(1, 'a') }}{{ l | string }}",
       "xAba-bX1 a[3, 1, 2]"},
  };

  CHECK_ROWS(rows);
}

TEST(tests_of_values) {
  static const row_t rows[] = {
      {"{{ i is integer }} {{ f is float }} {{ yes is number }} {{ yes is "
       "boolean }} {{ s is string }} {{ d is mapping }} {{ l is sequence }} {{ "
       "i is iterable }}",
       "True True True True True True True False"},
      {"{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ n is none "
       "}} {{ n is not none }} {{ yes is sameas true }} {{ 1 is in l }} {{ 'a' "
       "is lower }}",
       "True True True True False True True True"},
      {"{{ 1 is eq 1 }} {{ 1 is lt(2) }} {{ range is callable }} {{ 'upper' is "
       "filter }} {{ 'odd' is test }} {{ ('a' | e) is escaped }}",
       "True True True True True True"},
  };

  CHECK_ROWS(rows);
}

TEST(loops) {
  static const row_t rows[] = {
      {"{% for x in l %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ "
       "loop.last }}{{ loop.revindex }} {% else %}none{% endfor %}",
       "1/3TrueFalse3 2/3FalseFalse2 3/3FalseTrue1 "},
      {"{% for x in e %}{{ x }}{% else %}none{% endfor %}", "none"},
      {"{% for a, b in t if a > 1 %}{{ a }}{{ b }}{{ loop.length }}{% endfor "
       "%}",
       "2y1"},
      {"{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}{{ "
       "loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }} {% endfor %}",
       "<3>1aTrue 3<1>2bTrue 1<2>aTrue "},
      {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x "
       "== 2 %}{% break %}{% endif %}{% endfor %}",
       "32"},
      {"{% for x in m recursive %}[{{ loop.depth }}{{ loop(x) if x is iterable "
       "else x }}]{% endfor %}",
       "[1[21][22]][1[23]]"},
      {"{% for x in l %}{% break %}{% else %}ran{% endfor %}", "ran"},
      {"{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x "
       "%}{% endfor %}{{ ns.n }}",
       "6"},
      {"{% set ns = namespace(go=true) %}{% for x in l if ns.go %}{{ x }}{% "
       "set ns.go = false %}{% endfor %}",
       "3"},
  };

  CHECK_ROWS(rows);
}

TEST(scopes) {
  static const row_t rows[] = {
      {"{% set x = 1 %}{% for y in l %}{{ x }}{% set x = y %}{{ x }} {% endfor "
       "%}{{ x }}",
       "13 11 12 1"},
      {"{{ i }}{% set i = 1 %}{{ i }}", "71"},
      {"{% for y in [1] %}{{ i }}{% endfor %}{% set i = 1 %}{{ i }}", "1"},
      {"{% if no %}{% set i = 1 %}{% endif %}{{ i }}", "7"},
      {"{% macro mac() %}{{ i }}{% endmacro %}{{ mac() }}{% set i = 9 %}{{ "
       "mac() }}",
       "9"},
      {"{% with x = 1, y = i %}{{ x }}{{ y }}{% set i = 2 %}{{ i }}{% endwith "
       "%}{{ i }}{{ x }}",
       "1727"},
      {"{% for x in l %}{% for x in ls %}{{ x }}{% endfor %}{{ x }}{% endfor "
       "%}",
       "bAca3bAca1bAca2"},
  };

  CHECK_ROWS(rows);
}

TEST(macros) {
  static const row_t rows[] = {
      {"{% macro mac(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ "
       "mac(1) }}|{{ mac(1, c=3) }}|{{ mac(b=5) }}",
       "121|123|5"},
      {"{% macro mac() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ mac(1, 2, "
       "x=3) }}",
       "(1, 2){'x': 3}"},
      {"{% macro mac(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) mac(5) "
       "%}{{ y }}!{% endcall %}",
       "<5!>"},
      {"{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% "
       "endmacro %}{{ f(4) }}",
       "43210"},
      {"{{ mac }}{% macro mac(x) %}{% endmacro %}{{ mac.name }}{{ mac }}",
       "mac<Macro 'mac'>"},
      {"{% set x %}a{{ i }}{% endset %}{{ x }}{% set y | upper %}b{% endset "
       "%}{{ y }}{% filter upper | trim %} c {% endfilter %}",
       "a7BC"},
  };

  CHECK_ROWS(rows);
}

TEST(functions) {
  static const row_t rows[] = {
      {"{{ range(3) }}{{ range(5, 0, -2) | list }}{{ dict(a=1, b=2) }}{{ "
       "dict([(1, 2)]) }}",
       "range(0, 3)[5, 3, 1]{'a': 1, 'b': 2}{1: 2}"},
      {"{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}",
       "3|1|2"},
      {"{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() "
       "}}{{ c.current }}",
       "abab"},
      {"{{ namespace(a=1) }}{{ strftime_now('%d %b %Y %H:%M %A %B %j') }}",
       "<Namespace {'a': 1}>02 Jan 2026 12:12 Friday January 002"},
  };

  CHECK_ROWS(rows);
}

TEST(refused) {
  static const char *const rows[] = {
      "{{ 1 + 'a' }}",
      "{{ nope.x }}",
      "{{ nope() }}",
      "{{ [] + () }}",
      "{{ 1 / 0 }}",
      "{{ raise_exception('no') }}",
      "{{ l.append(1) }}",
      "{% for x in 5 %}{% endfor %}",
      "{% if x %}",
      "{{ x | nofilter }}",
      "{{ x is notest }}",
      "{{ (1 }}",
      "{{ 'a }}",
      "{% endfor %}",
      "{% set 1 = 2 %}",
      "{{ {[]: 1} }}",
      "{% for loop in l %}{% endfor %}",
      "{# x",
      "{% raw %}x",
      "{{ range(200000) }}",
      "{% include 'x' %}",
      "{{ l | map('nofilter') | list }}",
      "{{ (l | select) | length }}",
      "{% break %}",
      "{{ 'a'.split('') }}",
      "{{ '%d' % 'a' }}",
      "{{ '{}'.format() }}",
      "{% set s.x = 1 %}",
      "{% for a, b in l %}{% endfor %}",
      "{{ d | tojson(5, 6, 7, 8, 9) }}",
      "{{ nope + 1 }}",
      "{{ s[::0] }}",
      "{{ f(1)(2 }}",
      "{{ (l * 9) | truncate(5, true) }}",
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    CHECK_STR(render(rows[i]), NULL);
}

TEST(reasons_have_the_line_and_the_name) {
  static const struct {
    const char *text, *why;
    int code;
  } rows[] = {
      {"\n\n{{ x | foo }}", "line 3: there is no filter \"foo\"",
       TNK_EUNSUPPORTED},
      {"{% if no %}{{ x | foo }}{% endif %}{{ 1 is bar }}",
       "line 1: there is no test \"bar\"", TNK_EUNSUPPORTED},
      {"a\n{{ q.r }}", "line 2: \"q\" is undefined", TNK_EINVAL},
      {"{{ raise_exception('No ' ~ i) }}", "line 1: the template refuses: No 7",
       TNK_EINVAL},
      {"{% block x %}{% endblock %}", "line 1: there is no tag \"block\"",
       TNK_EUNSUPPORTED},
      {"{{ strftime_now('%Y') }}",
       "line 1: the template asks for the time, which it is not given",
       TNK_EINVAL},
      {"{{ 9223372036854775807 + 1 }}",
       "line 1: a whole number has more than 64 bits", TNK_EUNSUPPORTED},
      {"{% macro m(x) %}\n{{ x.y.z }}{% endmacro %}\n{{ m(1) }}",
       "line 2: \"y\" is undefined", TNK_EINVAL},
  };
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_STR(render_in(rows[i].text, NULL, NULL, &why, &err), NULL);
    CHECK_STR(why.text, rows[i].why);
    CHECK_INT(err, rows[i].code);
  }
}

TEST(limits) {
  static const struct {
    const char *text;
    tnk__template_env_t env;
  } rows[] = {
      {"{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}"
       "{% endfor %}",
       {.max_steps = 100000}},
      {"{% for a in range(9999) %}xxxxxxxxxx{% endfor %}",
       {.max_output = 5000}},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", {.max_depth = 300}},
      {"{% set ns = namespace(s='x') %}{% for a in range(64) %}"
       "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       {.max_steps = 0}},
      {"{{ 'x' * 999999999 }}", {.max_steps = 0}},
      {"{{ [1] * 999999999 }}", {.max_memory = 100000}},
      {"{{ 'x' | center(999999999) }}", {.max_steps = 0}},
      {"{{ '%999999999d' % 1 }}", {.max_steps = 0}},
  };
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_STR(render_in(rows[i].text, &rows[i].env, NULL, &why, &err), NULL);
    CHECK_INT(err, TNK_ETOOBIG);
  }
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
      LONG "{{ p in s }}",
      LONG "{{ s.find(p) }}",
      LONG "{{ s.rfind('b' ~ p) }}",
      LONG "{{ s.replace(p, '') }}",
      LONG "{{ s.split(p) }}",
      LONG "{{ s.rpartition(p) }}",
      LONG "{{ s.strip('b' * 99999 ~ 'a') }}",
      LONG "{{ s | trim('b' * 99999 ~ 'a') }}",
      LONG "{% for i in range(9999) %}{% if s is none or s | length == 1 %}"
           "{% endif %}{% endfor %}",
  };
  static const tnk__template_env_t env = {.max_steps = 1000000};
  tnk__why_t why;
  int err;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_STR(render_within((size_t)1 << 27, rows[i], &env, NULL, &why, &err),
              NULL);
    CHECK_INT(err, TNK_ETOOBIG);
    CHECK_STR(why.text, "line 1: more steps than are allowed");
  }
}

/* What calls itself without a node of the template for each time. */
TEST(calls_of_filters_have_a_limit) {
  static const tnk__template_env_t env = {.max_steps = 0};
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
