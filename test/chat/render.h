/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CHAT_RENDER_H
#define TNK_TEST_CHAT_RENDER_H

#include <stdio.h>
#include <string.h>

#include "chat/jinja/template.h"
#include "support/test.h"
#include "tnk/error.h"

/* Templates with the variables below, rendered. */

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
  const char *text, *expected; /* NULL: it is refused */
} row_t;

static inline int64_t now(void *user) {
  (void)user;
  return 1767355954; /* a Friday */
}

/* Render with these limits. The text stays until the next call; NULL: it was
 * refused, and *err says how. */
static inline const char *render_within(size_t max, const char *text,
                                        const tnk__template_env_t *env,
                                        tnk__buf_t *spans, tnk__why_t *why,
                                        int *err) {
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

static inline const char *render_in(const char *text,
                                    const tnk__template_env_t *env,
                                    tnk__buf_t *spans, tnk__why_t *why,
                                    int *err) {
  return render_within(MAX, text, env, spans, why, err);
}

static inline const char *render(const char *text) {
  const tnk__template_env_t env = {.now_s = now};
  tnk__why_t why = {.code = 0};
  const char *made;
  int err;

  made = render_in(text, &env, NULL, &why, &err);
  CHECK_INT(why.code, err);
  CHECK((err == TNK_OK) == (why.text[0] == '\0'));
  return made;
}

static inline void check_rows(const row_t *rows, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const char *made = render(rows[i].text);

    if (rows[i].expected == NULL
            ? made != NULL
            : made == NULL || strcmp(made, rows[i].expected) != 0)
      test_fail(__FILE__, __LINE__, "%s gives \"%s\", expected \"%s\"",
                rows[i].text, made != NULL ? made : "(refused)",
                rows[i].expected != NULL ? rows[i].expected : "(refused)");
  }
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(rows[0]))

#endif
