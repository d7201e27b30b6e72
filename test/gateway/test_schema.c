/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/schema/schema.h"
#include "lib/wire/format/json_read.h"
#include "support/test.h"
#include "tnk/error.h"

/* JSON Schema, as far as it is supported. */

static json_t *json(const char *text) {
  json_t *value = NULL;

  if (tnk__json_parse(&value, text, strlen(text)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", text);
  return value;
}

static const struct {
  const char *schema;
  const char *fits;   /* values in a list */
  const char *misfit; /* values in a list */
  const char *why;    /* of the last misfit */
} cases[] = {
    {"true", "[1,null]", "[]", NULL},
    {"false", "[]", "[1,null]", "$: is not allowed"},
    {"{\"type\":\"integer\"}", "[1,-3,2.0]", "[1.5,\"1\",true]",
     "$: must be of type integer"},
    {"{\"type\":\"number\"}", "[1,1.5]", "[\"1\",null]",
     "$: must be of type number"},
    {"{\"type\":[\"string\",\"null\"]}", "[\"a\",null]", "[1,[],{}]",
     "$: has none of the types"},
    {"{\"type\":\"boolean\"}", "[true,false]", "[0,null]",
     "$: must be of type boolean"},
    {"{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"],"
     "\"additionalProperties\":false}",
     "[{\"a\":\"x\"},1]", "[{},{\"a\":1},{\"a\":\"x\",\"b\":1}]",
     "$: has b, which is not in the schema"},
    {"{\"properties\":{\"a\":{\"items\":{\"type\":\"integer\"}}}}",
     "[{\"a\":[1,2]},{\"a\":{}}]", "[{\"a\":[1,\"x\"]}]",
     "$.a[1]: must be of type integer"},
    {"{\"additionalProperties\":{\"type\":\"integer\"}}", "[{\"z\":1},{}]",
     "[{\"z\":\"1\"}]", "$.z: must be of type integer"},
    {"{\"required\":[\"b\"]}", "[{\"b\":null}]", "[{\"a\":1}]", "$: lacks b"},
    {"{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}",
     "[[],[\"a\"]]", "[[1],[\"a\",2]]", "$[1]: is not allowed"},
    /* A tuple of an earlier draft. */
    {"{\"items\":[{\"type\":\"string\"},{\"$ref\":\"#/items/0\"}],"
     "\"additionalItems\":false}",
     "[[],[\"a\",\"b\"]]", "[[1],[\"a\",2],[\"a\",\"b\",3]]",
     "$[2]: is not allowed"},
    {"{\"items\":[{\"type\":\"string\"}],\"additionalItems\":"
     "{\"type\":\"null\"}}",
     "[[\"a\"],[\"a\",null]]", "[[null],[\"a\",\"b\"]]",
     "$[1]: must be of type null"},
    {"{\"items\":[true]}", "[[],[1,2]]", "[]", NULL},
    {"{\"items\":{\"type\":\"null\"},\"additionalItems\":false}", "[[null]]",
     "[[1]]", "$[0]: must be of type null"},
    {"{\"minItems\":1,\"maxItems\":2,\"uniqueItems\":true}", "[[1],[1,2]]",
     "[[],[1,2,3],[1,1.0]]", "$: has equal items"},
    {"{\"enum\":[\"a\",1,{\"x\":[1]}]}", "[\"a\",1.0,{\"x\":[1]}]",
     "[\"b\",2,{\"x\":[2]},{}]", "$: is no value of enum"},
    {"{\"const\":null}", "[null]", "[0,false]", "$: is not the value of const"},
    {"{\"minimum\":1,\"maximum\":3}", "[1,3,\"x\"]", "[0.5,3.5]",
     "$: violates maximum"},
    {"{\"exclusiveMinimum\":1,\"exclusiveMaximum\":3}", "[2]", "[1,3]",
     "$: violates exclusiveMaximum"},
    {"{\"multipleOf\":0.1}", "[0.3,7,-0.2]", "[0.35]",
     "$: violates multipleOf"},
    {"{\"minLength\":2,\"maxLength\":3}", "[\"\\u00e4\\u00e4\",\"abc\"]",
     "[\"\\u00e4\",\"abcd\"]", "$: violates maxLength"},
    {"{\"minProperties\":1,\"maxProperties\":1}", "[{\"a\":1}]",
     "[{},{\"a\":1,\"b\":2}]", "$: violates maxProperties"},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":5}]}", "[\"a\",6]", "[4]",
     "$: fits nothing of anyOf"},
    {"{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":5}]}", "[4,5.5]",
     "[6,4.5]", "$: does not fit exactly one schema of oneOf"},
    {"{\"allOf\":[{\"type\":\"integer\"},{\"minimum\":5}]}", "[6]", "[5.5,4]",
     "$: violates minimum"},
    {"{\"not\":{\"type\":\"integer\"}}", "[\"a\"]", "[1]",
     "$: fits what it must not"},
    {"{\"$defs\":{\"n/a~\":{\"type\":\"integer\"}},\"properties\":{\"a\":"
     "{\"$ref\":\"#/$defs/n~1a~0\"}}}",
     "[{\"a\":1}]", "[{\"a\":\"1\"}]", "$.a: must be of type integer"},
    {"{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":[{\"$ref\":"
     "\"#\"},{\"type\":\"null\"}]}},\"required\":[\"next\"]}",
     "[{\"next\":{\"next\":null}}]", "[{\"next\":{\"next\":1}},{\"next\":{}}]",
     "$.next: fits nothing of anyOf"},
    {"{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"items\":"
     "{\"type\":\"string\"}}]},\"b\":{\"$ref\":"
     "\"#/properties/a/anyOf/1/items\"}}}",
     "[{\"b\":\"x\"}]", "[{\"b\":1}]", "$.b: must be of type string"},
    {"{\"pattern\":\"^[a-z]{2,3}$\"}", "[\"ab\",\"abc\",7,null]",
     "[\"a\",\"abcd\",\"ab\\n\",\"\"]", "$: violates pattern"},
    {"{\"items\":{\"pattern\":\"b\",\"minLength\":2}}", "[[\"abc\",\"bb\"]]",
     "[[\"b\"],[\"bb\",\"cc\"]]", "$[1]: violates pattern"},
    {"{\"format\":\"date\"}", "[\"2024-02-29\",5]",
     "[\"2023-02-29\",\"2024-13-01\",\"2024-1-1\",\"2024-01-01x\"]",
     "$: is not a text of format date"},
    {"{\"format\":\"time\"}", "[\"23:59:60Z\",\"01:02:03.5+01:00\"]",
     "[\"24:00:00Z\",\"01:02:03\",\"01:02:03.Z\",\"01:02:03+24:00\"]",
     "$: is not a text of format time"},
    {"{\"format\":\"date-time\"}", "[\"2024-01-01T00:00:00Z\"]",
     "[\"2024-01-01 00:00:00Z\",\"2024-01-01T\"]",
     "$: is not a text of format date-time"},
    {"{\"format\":\"duration\"}", "[\"P1Y2M\",\"PT3S\",\"P1DT2H\"]",
     "[\"P\",\"PT\",\"P1\",\"P1DT\",\"P1S\",\"P1M1Y\"]",
     "$: is not a text of format duration"},
    {"{\"format\":\"uuid\"}", "[\"01234567-89ab-cdef-0123-456789ABCDEF\"]",
     "[\"01234567-89ab-cdef-0123-456789ABCDE\",\"x\"]",
     "$: is not a text of format uuid"},
    {"{\"format\":\"ipv4\"}", "[\"127.0.0.1\"]", "[\"127.0.0\",\"256.0.0.1\"]",
     "$: is not a text of format ipv4"},
    {"{\"format\":\"ipv6\"}", "[\"::1\"]", "[\"::1%lo\",\":::\"]",
     "$: is not a text of format ipv6"},
    {"{\"format\":\"hostname\"}", "[\"a-b.example\"]",
     "[\"\",\"-a\",\"a-\",\"a..b\",\"a-.b\",\"a_b\"]",
     "$: is not a text of format hostname"},
    {"{\"format\":\"email\"}", "[\"a+b@c.example\"]",
     "[\"a\",\"@c\",\"a@\",\"a b@c\"]", "$: is not a text of format email"},
    {"{\"format\":\"uri\"}", "[\"https://a.example/b?c#d\",\"urn:x\"]",
     "[\"a\",\"/b\",\"1:x\",\"http://a b\"]", "$: is not a text of format uri"},
};

TEST(values_fit_or_do_not) {
  char why[TNK__GW_SCHEMA_WHY];

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    json_t *schema = json(cases[i].schema);
    json_t *fits = json(cases[i].fits);
    json_t *misfit = json(cases[i].misfit);

    if (tnk__gw_schema_read(schema, why) != 0)
      test_fail(__FILE__, __LINE__, "%s: %s", cases[i].schema, why);
    for (size_t k = 0; k < json_array_size(fits); k++)
      if (tnk__gw_schema_fit(schema, json_array_get(fits, k), why) !=
          TNK__GW_FITS)
        test_fail(__FILE__, __LINE__, "%s, %zu: %s", cases[i].schema, k, why);
    for (size_t k = 0; k < json_array_size(misfit); k++)
      if (tnk__gw_schema_fit(schema, json_array_get(misfit, k), why) !=
          TNK__GW_MISFIT)
        test_fail(__FILE__, __LINE__, "%s, %zu fits", cases[i].schema, k);
    if (cases[i].why != NULL)
      CHECK_STR(why, cases[i].why);
    json_decref(schema);
    json_decref(fits);
    json_decref(misfit);
  }
}

TEST(what_is_not_checked_is_refused_by_name) {
  static const struct {
    const char *schema;
    const char *why;
  } refused[] = {
      {"1", "a schema must be an object, true or false"},
      {"{\"patternProperties\":{}}",
       "\"patternProperties\" is not supported in a schema here"},
      {"{\"pattern\":1}", "\"pattern\" must be a regular expression"},
      {"{\"items\":{\"pattern\":\"(?=a)\"}}",
       "\"pattern\" has a lookahead or a lookbehind, which is not supported"},
      {"{\"items\":[{\"if\":{}}]}", "\"if\" is not supported in a schema here"},
      {"{\"items\":[]}", "\"items\" must be a list of schemas"},
      {"{\"items\":[true,1]}", "a schema must be an object, true or false"},
      {"{\"additionalItems\":[true]}",
       "a schema must be an object, true or false"},
      {"{\"items\":[true],\"$ref\":\"#/items/1\"}",
       "\"#/items/1\" is not the place of a schema in this schema"},
      {"{\"items\":[true],\"$ref\":\"#/items\"}",
       "\"#/items\" is not the place of a schema in this schema"},
      {"{\"items\":{\"if\":{}}}", "\"if\" is not supported in a schema here"},
      {"{\"type\":\"float\"}", "\"type\" names an unknown type"},
      {"{\"type\":[]}", "\"type\" must be a name, or a list of names"},
      {"{\"type\":[1]}", "\"type\" names an unknown type"},
      {"{\"required\":[1]}", "\"required\" must be a list of names"},
      {"{\"required\":{}}", "\"required\" must be a list of names"},
      {"{\"enum\":{}}", "\"enum\" must be a list"},
      {"{\"minLength\":-1}", "\"minLength\" must be a whole number from 0"},
      {"{\"minimum\":\"1\"}", "\"minimum\" must be a number"},
      {"{\"multipleOf\":0}", "\"multipleOf\" must be a number above 0"},
      {"{\"uniqueItems\":1}", "\"uniqueItems\" must be true or false"},
      {"{\"anyOf\":[]}", "\"anyOf\" must be a list of schemas"},
      {"{\"properties\":[]}", "\"properties\" must be an object of schemas"},
      {"{\"format\":\"regex\"}",
       "\"regex\" is not a format that is supported here"},
      {"{\"$ref\":\"#/$defs/a\"}",
       "\"#/$defs/a\" is not the place of a schema in this schema"},
      {"{\"$ref\":\"http://x/y\"}",
       "\"http://x/y\" is not the place of a schema in this schema"},
      {"{\"enum\":[{\"if\":1}],\"$ref\":\"#/enum/0\"}",
       "\"#/enum/0\" is not the place of a schema in this schema"},
      {"{\"$ref\":1}", "\"$ref\" is not the place of a schema in this schema"}};
  char why[TNK__GW_SCHEMA_WHY];

  for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
    json_t *schema = json(refused[i].schema);

    CHECK_INT(tnk__gw_schema_read(schema, why), -1);
    CHECK_STR(why, refused[i].why);
    json_decref(schema);
  }
}

/* ---- Patterns ---- */

/* `found` and `missed` are texts that are separated by a line feed. */
static const struct {
  const char *pattern;
  const char *found;
  const char *missed;
} patterns[] = {
    {"", "\na", NULL},
    {"b", "b\nabc", "\na\nB"},
    {"^ab$", "ab", "\nxab\nabx"},
    {"a|^b|", "\nx", NULL},
    {"^(a|b|cd)$", "a\nb\ncd", "c\nab\n"},
    {"^a*$", "\na\naaa", "b\naab"},
    {"^a+b?$", "a\naab", "\nb\nabb"},
    {"^a{2}$", "aa", "a\naaa"},
    {"^a{2,}$", "aa\naaaa", "a"},
    {"^a{1,3}b$", "ab\naab\naaab", "b\naaaab"},
    {"^a{0}b$", "b", "ab"},
    {"^(ab){2}$", "abab", "ab\nababab"},
    {"^a{1,3}?$", "a\naaa", "aaaa"},
    {"^(?:a(?<n>b)*)+$", "a\nabba", "b\nabc"},
    {"^(a*)*b$", "b\naaab", "aaaa"},
    {"^(|a)+$", "\naa", "b"},
    {"^.$", "a\n\xc3\xa9\n\xf0\x9f\x98\x80", "\r\n\xe2\x80\xa8\nab\n"},
    {"^[^a-c]$", "d\n-", "a\nb\nc\n"},
    {"^[a\\-c]$", "a\n-\nc", "b"},
    {"^[-a]$", "-\na", "b"},
    {"^[a-]$", "-\na", "b"},
    {"^[\\]\\\\^]$", "]\n\\\n^", "["},
    {"^[[.*]$", "[\n.\n*", "a"},
    {"^\\d$", "0\n9", "a\n\xd9\xa0"},
    {"^\\D\\W\\S$", "a-b", "1-b\naab\na- "},
    {"^[\\d_]+$", "1_2", "a"},
    {"^[^\\s\\w]$", "-\n\xc3\xa9", "a\n "},
    {"^[\\D]$", "a", "1"},
    {"^\\s$", " \n\xc2\xa0\n\xef\xbb\xbf\n\xe3\x80\x80", "a\n\xe2\x80\x8b"},
    {"\\bab\\b", "ab\nx ab y\nab.", "cab\nabc"},
    {"a\\Bb", "ab", "a b"},
    {"^\\x41\\u00e9\\u{1F600}\\ud83d\\ude00$",
     "A\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80", "A\xc3\xa9\xf0\x9f\x98\x80"},
    {"^[\\u{1F600}-\\u{1F602}]$", "\xf0\x9f\x98\x81", "\xf0\x9f\x98\x83"},
    {"^\\t\\.\\/\\-\\@\\{}]$", "\t./-@{}]", "."},
    {"^[\\b]$", "\b", "b"},
    {"^\\d{4}-\\d{2}$", "2026-11", "2026-1\n226-111"},
};

/* Report the first text with another result. */
static void check_texts(const char *pattern, const char *texts, int wanted) {
  char schema_why[TNK__GW_SCHEMA_WHY];
  json_t *schema = json_pack("{s:s}", "pattern", pattern);

  if (tnk__gw_schema_read(schema, schema_why) != 0)
    test_fail(__FILE__, __LINE__, "%s: %s", pattern, schema_why);
  while (texts != NULL) {
    size_t n = strcspn(texts, "\n");
    json_t *value = json_stringn(texts, n);

    if ((tnk__gw_schema_fit(schema, value, schema_why) == TNK__GW_FITS) !=
        wanted)
      test_fail(__FILE__, __LINE__, "%s: %.*s", pattern, (int)n, texts);
    json_decref(value);
    texts = texts[n] == '\n' ? texts + n + 1 : NULL;
  }
  json_decref(schema);
}

TEST(patterns_are_found_or_missed) {
  for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
    check_texts(patterns[i].pattern, patterns[i].found, 1);
    check_texts(patterns[i].pattern, patterns[i].missed, 0);
  }
  check_texts("^a$", "a", 1);
}

/* What other languages read in another way, or what needs more than one look at
 * each character. */
TEST(patterns_beyond_the_subset_are_refused) {
  static const struct {
    const char *pattern;
    const char *why;
  } refused[] = {
      {"a(?!b)", "\"pattern\" has a lookahead or a lookbehind, which is not "
                 "supported"},
      {"(?<=a)b", "\"pattern\" has a lookahead or a lookbehind, which is not "
                  "supported"},
      {"(a)\\1", "\"pattern\" has a back reference, which is not supported"},
      {"(?<n>a)\\k<n>",
       "\"pattern\" has a back reference, which is not supported"},
      {"\\p{L}", "\"pattern\" has a property of Unicode (\\p), which is not "
                 "supported"},
      {"(?i)a",
       "\"pattern\" has a group with flags or of an unknown kind, which "
       "is not supported"},
      {"(?P<n>a)", "\"pattern\" has a group with flags or of an unknown kind, "
                   "which is not supported"},
      {"(?<1>a)", "\"pattern\" has a group with a malformed name"},
      {"\\Aa\\Z", "\"pattern\" has an unknown escape of a letter"},
      {"a\\", "\"pattern\" ends with a backslash"},
      {"\\x4", "\"pattern\" has an incomplete escape of a character"},
      {"\\u{}", "\"pattern\" has an incomplete escape of a character"},
      {"\\u{110000}", "\"pattern\" has an escape of no character"},
      {"[]a]", "\"pattern\" has an empty class"},
      {"[^]", "\"pattern\" has an empty class"},
      {"[a", "\"pattern\" has a [ without a ]"},
      {"[b-a]",
       "\"pattern\" has a range that does not go from one character to "
       "a later one"},
      {"[\\w-a]", "\"pattern\" has a range that does not go from one character "
                  "to a later one"},
      {"[a-\\d]", "\"pattern\" has a range that does not go from one character "
                  "to a later one"},
      {"(a", "\"pattern\" has a ( without a )"},
      {"a)", "\"pattern\" has a ) without a ("},
      {"*a", "\"pattern\" has a quantifier without anything before it"},
      {"a**", "\"pattern\" has a quantifier without anything before it"},
      {"a|+", "\"pattern\" has a quantifier without anything before it"},
      {"a{,3}", "\"pattern\" has a { that begins no repeat"},
      {"a{b", "\"pattern\" has a { that begins no repeat"},
      {"a{3,2}",
       "\"pattern\" has a repeat whose bounds are in the wrong order"},
      {"^*", "\"pattern\" repeats a ^, $, \\b or \\B"},
      {"a{70000}", "\"pattern\" is too large"},
      {"a{3000}", "\"pattern\" is too large"},
      {"((a{100}){100}){100}", "\"pattern\" is too large"},
      {"((((){1000}){1000}){1000}){1000}", "\"pattern\" is too large"},
  };
  char why[TNK__GW_SCHEMA_WHY];

  for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
    json_t *schema = json_pack("{s:s}", "pattern", refused[i].pattern);

    CHECK_INT(tnk__gw_schema_read(schema, why), -1);
    CHECK_STR(why, refused[i].why);
    json_decref(schema);
  }
}

/* Parts that are too many: each is one more than the limit. */
TEST(patterns_have_a_size) {
  static const struct {
    const char *part;
    int n;
  } rows[] = {{"a", 1023}, {"[ab]", 512}, {"(", 65}, {"a|", 600}};
  char why[TNK__GW_SCHEMA_WHY];
  char text[8192];

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    size_t at = 0, n = strlen(rows[i].part);
    json_t *schema;

    for (int k = 0; k <= rows[i].n; k++, at += n)
      memcpy(text + at, rows[i].part, n + 1);
    schema = json_pack("{s:s}", "pattern", text);
    CHECK_INT(tnk__gw_schema_read(schema, why), -1);
    CHECK_STR(why, rows[i].part[0] == '(' ? "\"pattern\" is nested too deeply"
                                          : "\"pattern\" is too large");
    json_decref(schema);
  }
}

/* Each of these takes exponential time where patterns are matched by trying,
 * and the last ones have many states or a long text. */
TEST(patterns_take_linear_time) {
  static const struct {
    const char *pattern;
    size_t n; /* letters a before an x */
    tnk__gw_fit_t fits;
  } rows[] = {
      {"^(a+)+$", 5000, TNK__GW_MISFIT},
      {"^(a|a)*$", 5000, TNK__GW_MISFIT},
      {"^(a|aa)+$", 5000, TNK__GW_MISFIT},
      {"^(a*)*$", 5000, TNK__GW_MISFIT},
      {"^(a?){500}a{500}x$", 900, TNK__GW_FITS},
      {"(x+x+)+y", 5000, TNK__GW_MISFIT},
      {"^[a-z]{0,1000}$", 5000, TNK__GW_MISFIT},
      {"a{0,1000}y", 5000, TNK__GW_UNDECIDED},
      {"^(.*)y$", 300000, TNK__GW_UNDECIDED},
  };
  char why[TNK__GW_SCHEMA_WHY];

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    json_t *schema = json_pack("{s:s}", "pattern", rows[i].pattern);
    char *text = malloc(rows[i].n + 2);
    json_t *value;

    CHECK(text != NULL);
    memset(text, 'a', rows[i].n);
    memcpy(text + rows[i].n, "x", 2);
    value = json_string(text);
    CHECK_INT(tnk__gw_schema_read(schema, why), 0);
    if (tnk__gw_schema_fit(schema, value, why) != rows[i].fits)
      test_fail(__FILE__, __LINE__, "%s: %s", rows[i].pattern, why);
    json_decref(schema);
    json_decref(value);
    free(text);
  }
}

/* Reading counts too: many patterns, each of which is read again for each item.
 */
TEST(reading_patterns_is_bounded) {
  static const char large[] = "(a{0,30}){30}";
  char why[TNK__GW_SCHEMA_WHY];
  json_t *list = json_array();
  json_t *schema = json_pack("{s:o}", "allOf", list);
  json_t *value = json_array();

  for (int i = 0; i < 1000; i++)
    CHECK_INT(json_array_append_new(list, json_pack("{s:s}", "pattern", large)),
              0);
  CHECK_INT(tnk__gw_schema_read(schema, why), -1);
  CHECK_STR(why, "the schema is too large");
  json_decref(schema);
  schema = json_pack("{s:{s:s}}", "items", "pattern", large);
  CHECK_INT(tnk__gw_schema_read(schema, why), 0);
  for (int i = 0; i < 1000; i++)
    CHECK_INT(json_array_append_new(value, json_string("a")), 0);
  CHECK_INT(tnk__gw_schema_fit(schema, value, why), TNK__GW_UNDECIDED);
  json_decref(schema);
  json_decref(value);
}

/* A check that needs too much work has no result, and ends soon. */
TEST(work_is_bounded) {
  static const char *const schemas[] = {
      "{\"$ref\":\"#\"}",
      "{\"anyOf\":[{\"$ref\":\"#\"},{\"$ref\":\"#\"},{\"$ref\":\"#\"}]}",
      "{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"},{\"$ref\":"
      "\"#/$defs/b\"}]},\"b\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"}]}},"
      "\"$ref\":\"#/$defs/a\"}"};
  char why[TNK__GW_SCHEMA_WHY];
  json_t *list = json_array();
  json_t *schema;

  for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
    schema = json(schemas[i]);
    CHECK_INT(tnk__gw_schema_read(schema, why), 0);
    CHECK_INT(tnk__gw_schema_fit(schema, list, why), TNK__GW_UNDECIDED);
    CHECK_STR(why, "the check needs too much work");
    json_decref(schema);
  }
  for (int i = 0; i < 2000; i++)
    CHECK_INT(json_array_append_new(list, json_integer(i)), 0);
  schema = json("{\"uniqueItems\":true}");
  CHECK_INT(tnk__gw_schema_read(schema, why), 0);
  CHECK_INT(tnk__gw_schema_fit(schema, list, why), TNK__GW_UNDECIDED);
  json_decref(schema);
  json_decref(list);
}

/* Many schemas look at each member, each item or each name of a type, and none
 * of them says anything about it. */
TEST(work_without_comparisons_is_bounded) {
  static const struct {
    const char *branch;
    int is_object;
  } rows[] = {{"{\"type\":\"object\"}", 1},
              {"{\"type\":\"array\"}", 0},
              {"{\"type\":[\"null\",\"string\",\"number\",\"array\"]}", 0}};
  char why[TNK__GW_SCHEMA_WHY];
  char name[16];

  for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
    json_t *value = rows[r].is_object ? json_object() : json_array();
    json_t *branches = json_array();
    json_t *schema = json_pack("{s:o}", "allOf", branches);

    for (int i = 0; i < 2000; i++) {
      snprintf(name, sizeof(name), "m%d", i);
      CHECK_INT(rows[r].is_object
                    ? json_object_set_new(value, name, json_null())
                    : json_array_append_new(value, json_null()),
                0);
    }
    for (int i = 0; i < 200; i++)
      CHECK_INT(json_array_append_new(branches, json(rows[r].branch)), 0);
    CHECK_INT(tnk__gw_schema_read(schema, why), 0);
    CHECK_INT(tnk__gw_schema_fit(schema, value, why), TNK__GW_UNDECIDED);
    json_decref(schema);
    json_decref(value);
  }
}

/* A reference leads to the same long list of types each time. */
TEST(names_of_types_are_counted) {
  char why[TNK__GW_SCHEMA_WHY];
  json_t *names = json_array();
  json_t *value = json_array();
  json_t *schema;

  for (int i = 0; i < 1000; i++) {
    CHECK_INT(json_array_append_new(names, json_string("null")), 0);
    CHECK_INT(json_array_append_new(value, json_integer(i)), 0);
  }
  CHECK_INT(json_array_append_new(names, json_string("number")), 0);
  schema = json_pack("{s:{s:{s:o}}, s:{s:s}}", "$defs", "a", "type", names,
                     "items", "$ref", "#/$defs/a");
  CHECK_INT(tnk__gw_schema_read(schema, why), 0);
  CHECK_INT(tnk__gw_schema_fit(schema, value, why), TNK__GW_UNDECIDED);
  json_decref(schema);
  json_decref(value);
}

TEST(a_schema_that_is_too_large_is_refused) {
  char why[TNK__GW_SCHEMA_WHY];
  json_t *list = json_array();
  json_t *schema = json_pack("{s:o}", "enum", list);
  json_t *deep = json_object();

  for (int i = 0; i <= TNK__GW_MAX_SCHEMA; i++)
    CHECK_INT(json_array_append_new(list, json_null()), 0);
  CHECK_INT(tnk__gw_schema_read(schema, why), -1);
  CHECK_STR(why, "the schema is too large");
  json_decref(schema);
  for (int i = 0; i < 70; i++)
    deep = json_pack("{s:o}", "items", deep);
  CHECK_INT(tnk__gw_schema_read(deep, why), -1);
  CHECK_STR(why, "the schema is nested too deeply");
  json_decref(deep);
}

/* A place in a value is cut where it is too long. */
TEST(a_long_path_is_cut) {
  char why[TNK__GW_SCHEMA_WHY];
  json_t *schema = json("{\"additionalProperties\":{\"$ref\":\"#\"},\"type\":"
                        "\"object\"}");
  json_t *value = json_integer(1);

  for (int i = 0; i < 40; i++)
    value = json_pack("{s:o}", "a-long-name", value);
  CHECK_INT(tnk__gw_schema_read(schema, why), 0);
  CHECK_INT(tnk__gw_schema_fit(schema, value, why), TNK__GW_MISFIT);
  CHECK(strlen(why) < sizeof(why) && strstr(why, "must be of type") != NULL);
  json_decref(schema);
  json_decref(value);
}
