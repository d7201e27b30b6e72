/* SPDX-License-Identifier: MIT */
/*
 * Renders what it is given: lines of JSON {"template", "variables"} come in,
 * and for each a line goes out, {"text", "used"} or {"code", "error"}. "used"
 * is its work in units of cost.h. With "now" the template is told that time.
 * "max_work" is its budget in these units.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/jinja/template.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

#define MIB ((size_t)1024 * 1024)

static int64_t now_s;
static uint64_t used; /* units of work, by the last template */

static int64_t now(void *user) {
  (void)user;
  return now_s;
}

static int render(tnk__value_t line, tnk__heap_t *heap, tnk__buf_t *out,
                  tnk__buf_t *spans, tnk__why_t *why) {
  /* Kept, since many lines have the same one. */
  static tnk__template_t *tpl;
  static char *last;
  static size_t n_last;
  const tnk__value_t text = tnk__value_get(line, "template");
  const tnk__value_t time = tnk__value_get(line, "now");
  const tnk__value_t max = tnk__value_get(line, "max_work");
  const tnk__template_env_t env = {
      .now_s = time.kind == TNK__VALUE_INT ? now : NULL,
      .max_work = max.kind == TNK__VALUE_INT ? (uint64_t)max.as.number : 0,
      .used = &used};
  int err;

  if (text.kind != TNK__VALUE_TEXT)
    return TNK_EINVAL;
  now_s = time.kind == TNK__VALUE_INT ? time.as.number : 0;
  if (tpl == NULL || n_last != text.n_text ||
      memcmp(last, text.as.text, n_last) != 0) {
    tnk__template_free(tpl);
    free(last);
    last = malloc(text.n_text + 1);
    if (last == NULL)
      return TNK_ENOMEM;
    n_last = text.n_text;
    memcpy(last, text.as.text, n_last);
    err = tnk__template_compile(&tpl, tnk__allocator_default(), text.as.text,
                                text.n_text, why);
    if (err != TNK_OK)
      return err;
  }
  return tnk__template_render(tpl, heap, tnk__value_get(line, "variables"),
                              &env, out, spans, why);
}

static void answer(char *json, size_t n) {
  tnk__why_t why = {.code = 0};
  tnk__heap_t heap;
  tnk__value_t line;
  tnk__value_t reply;
  tnk__buf_t out;
  tnk__buf_t spans;
  int err;

  tnk__heap_init(&heap, tnk__allocator_default(), 512 * MIB);
  tnk__buf_init(&out, tnk__allocator_default(), 256 * MIB);
  tnk__buf_init(&spans, tnk__allocator_default(), 256 * MIB);
  err = tnk__value_from_json(&heap, json, n, &line);
  if (err == TNK_OK)
    err = render(line, &heap, &out, &spans, &why);
  reply = tnk__value_dict(&heap);
  if (err == TNK_OK) {
    const tnk__value_t list = tnk__value_list(&heap);

    tnk__value_set(&heap, reply, "text",
                   tnk__value_copy_text(&heap, (char *)out.data, out.len));
    for (size_t i = 0; i < spans.len / sizeof(tnk__template_span_t); i++) {
      tnk__template_span_t span;

      memcpy(&span, spans.data + i * sizeof(span), sizeof(span));
      tnk__value_append(&heap, list, tnk__value_int((int64_t)span.start));
      tnk__value_append(&heap, list, tnk__value_int((int64_t)span.end));
    }
    tnk__value_set(&heap, reply, "spans", list);
    tnk__value_set(&heap, reply, "used", tnk__value_int((int64_t)used));
  } else {
    tnk__value_set(&heap, reply, "code", tnk__value_int(err));
    tnk__value_set(&heap, reply, "error",
                   tnk__value_copy_text(&heap, why.text, strlen(why.text)));
  }
  tnk__buf_clear(&out);
  tnk__value_to_json(&out, reply, NULL);
  tnk__buf_byte(&out, '\n');
  fwrite(out.data, 1, out.len, stdout);
  fflush(stdout);
  tnk__buf_deinit(&spans);
  tnk__buf_deinit(&out);
  tnk__heap_deinit(&heap);
}

int main(void) {
  char *line = NULL;
  size_t size = 0;
  ssize_t n;

  while ((n = getline(&line, &size, stdin)) > 0)
    answer(line, (size_t)n);
  free(line);
  return 0;
}
