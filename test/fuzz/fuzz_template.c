/* SPDX-License-Identifier: MIT */
/* A template, a NUL, and the variables as JSON. Limits are low, so that what
 * runs long ends. */
#include <string.h>

#include "chat/jinja/template.h"
#include "fuzz.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

static int64_t now(void *user) {
  (void)user;
  return 1767355954;
}

static void render(const tnk__template_t *tpl, const char *json, size_t n) {
  const tnk__template_env_t env = {.now_s = now,
                                   .max_work = 20000000,
                                   .max_output = 1 << 20,
                                   .max_depth = 200};
  tnk__why_t why;
  tnk__heap_t heap;
  tnk__value_t variables;
  tnk__buf_t out;
  tnk__buf_t spans;

  tnk__heap_init(&heap, tnk__allocator_default(), 1 << 24);
  tnk__buf_init(&out, tnk__allocator_default(), 1 << 22);
  tnk__buf_init(&spans, tnk__allocator_default(), 1 << 20);
  if (tnk__value_from_json(&heap, json, n, &variables) == TNK_OK)
    tnk__template_render(tpl, &heap, variables, &env, &out, &spans, &why);
  tnk__buf_deinit(&spans);
  tnk__buf_deinit(&out);
  tnk__heap_deinit(&heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *end = size > 0 ? memchr(text, '\0', size) : NULL;
  const size_t n = end != NULL ? (size_t)(end - text) : size;
  tnk__template_t *tpl;
  tnk__why_t why;

  if (tnk__template_compile(&tpl, tnk__allocator_default(), n > 0 ? text : "",
                            n, &why) != TNK_OK)
    return 0;
  if (end != NULL)
    render(tpl, end + 1, size - n - 1);
  else
    render(tpl, "{}", 2);
  tnk__template_free(tpl);
  return 0;
}
