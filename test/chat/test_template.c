/* SPDX-License-Identifier: MIT */
/* What the reference made of these templates is written beside them. */
#include "chat/render.h"

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

/* The operands of a sum of texts are put together at once, as many as there
 * are, and anything else where it stands. */
TEST(sums) {
  static const row_t rows[] = {
      {"{{ s + '-' + e + 'b' }}|{{ e + e }}|{{ e + s }}",
       "Hello World-b||Hello World"},
      {"{{ '1'+'2'+'3'+'4'+'5'+'6'+'7'+'8'+'9'+'a'+'b'+'c'+'d'+'e'+'f'+'g'+"
       "'h'+'i' }}",
       "123456789abcdefghi"},
      {"{% set x = '1'+'2'+'3'+'4'+'5'+'6'+'7'+'8' %}{% set y = x + '9' %}"
       "{% set z = x + 'a' + y %}{{ x }} {{ y }} {{ z }}",
       "12345678 123456789 12345678a123456789"},
      {"{{ 'a' + ('b' + ('c' + 'd') + 'e') + 'f' }}", "abcdef"},
      {"{{ (1 + 2) ~ 'a' + 'b' }} {{ (i + 2 + f) }} {{ [1] + l + [2] }}",
       "3ab 11.5 [1, 3, 1, 2, 2]"},
      {"{{ '<' + '&' + ('<' | safe) + '>' }} {{ ('<' | safe) + '&' + '<' }}",
       "&lt;&amp;<&gt; <&amp;&lt;"},
      {"{% macro m(x) %}[{{ x + '!' }}]{% endmacro %}"
       "{{ 'a' + m('b' + 'c') + 'd' + m('e') }}",
       "a[bc!]d[e!]"},
      {"{{ 'a' + 'b' + 1 }}", NULL},
      {"{{ 1 + 'a' + 'b' }}", NULL},
      {"{{ 'a' + none + raise_exception('no') }}", NULL},
  };

  CHECK_ROWS(rows);
}

/* Names that texts or dicts have of their own, and those that they have not. */
TEST(attributes_that_are_methods_of_others) {
  static const row_t rows[] = {
      {"{% set x = {'strip': 1, 'lower': 'q', 'keys': 2} %}{{ x.strip }} "
       "{{ x.lower }} {{ x.keys is mapping }} {{ x['keys'] }}",
       "1 q False 2"},
      {"{{ s.strip is defined }} {{ s.items is defined }} "
       "{{ d.update is defined }} {{ d.a is defined }}",
       "True False False True"},
      {"{{ s.lower().upper().strip('H').replace('L', 'x') }}", "ExxO WORxD"},
      {"{% set x = namespace(strip='n') %}{{ x.strip }}", "n"},
      {"{{ {'strip': 1}.strip() }}", NULL},
      {"{{ d.update({}) }}", NULL},
      {"{{ none.strip() }}", NULL},
      {"{{ nope.strip() }}", NULL},
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
       "'\303\237'.upper() }} {{ 'aBc'.swapcase() }} {{ '\316\221\316\243 "
       "\307\205'.swapcase() }} {{ u.capitalize() }}",
       "H\303\211SS\316\243 \346\227\245\346\234\254 H\303\251\303\237\317\202 "
       "\346\227\245\346\234\254 \316\261\317\202 SS AbC "
       "\316\261\317\202 \307\205 "
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
      "{{ (1,) and x is notest }}",
      "{{ x and y is notest }}",
      "{{ 'a'.upper() or x is notest }}",
      "{{ ('ab' | batch(2)) or x is notest }}",
      "{{ ([1] | map('string')) or x | nofilter }}",
      "{{ 1 < 2 < x | nofilter }}",
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

/* What the reference leaves out when it compiles is not looked at. */
TEST(what_is_known_beforehand_needs_no_filters) {
  static const row_t rows[] = {
      {"{{ () and x is notest }}", "()"},
      {"{{ 1 or x | nofilter }}", "1"},
      {"{{ not 'a' | upper == 'B' or x is notest }}", "True"},
      {"{{ 2 < 1 < x | nofilter }}", "False"},
      {"{{ x | nofilter if false else 3 }}", "3"},
      {"{{ [0 and x is notest, 5] }}", "[0, 5]"},
      {"{% set a = {} and {'b': x | nofilter} %}{{ a }}", "{}"},
  };

  CHECK_ROWS(rows);
}

/* The reference works out constants of operations before it runs a template. */
TEST(constants_that_cannot_be_are_refused_where_they_are_not_reached) {
  static const char *const bad[] = {
      "{{ {[]: 1}.x }}",
      "{{ -[{[]: 1}][0] }}",
      "{{ x or {[]: 1}.x }}",
      "{{ x['q' or {[]: 1}.x] }}",
      "{{ x[{[]: 1}] }}",
      "{{ {[]: 1} if x }}",
      "{{ f(a={1: 2, (1, [2]): 3}) }}",
      "{{ f(**{{}: 1}) }}",
      "{{ x is eq({'a' | list: 1}) }}",
      "{% filter replace({[]: 1}, 'a') %}{% endfilter %}",
      "{% for i in {[]: 1}.a %}{% endfor %}",
  };
  static const char *const good[] = {
      "{{ {[]: 1} }}",
      "{{ [{[]: 1}] }}",
      "{{ 'q' or {[]: 1}.x }}",
      "{{ x == {[]: y} }}",
      "{{ x == {1: y, []: 1} }}",
      "{{ x == {(1, 2): 1} }}",
      "{{ {{}: 1 / 0}.b }}",
      "{% for i in {[]: 1} %}{% endfor %}",
      "{% macro m(a={[]: 1}) %}{% endmacro %}",
  };
  char text[200];

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    snprintf(text, sizeof(text), "{%% if no %%}%s{%% endif %%}", bad[i]);
    CHECK_STR(render(text), NULL);
  }
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    snprintf(text, sizeof(text), "{%% if no %%}%s{%% endif %%}", good[i]);
    CHECK_STR(render(text), "");
  }
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
