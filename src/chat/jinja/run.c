/* SPDX-License-Identifier: MIT */
#include "chat/jinja/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tnk/error.h"

static void fail_heap(tnk__run_t *run) {
  run->err =
      tnk__why(run->why, run->heap->err, run->line, "%s",
               run->heap->err == TNK_ENOMEM ? "no memory is left"
                                            : "more memory than is allowed");
}

/* Find the message that is being rendered: the item of a loop that is one of
 * the caller's messages. Returns 0 if there is none. */
static int find_message(const tnk__run_t *run, size_t *index) {
  const tnk__value_t messages = tnk__value_get(run->variables, "messages");

  if (messages.kind != TNK__VALUE_LIST)
    return 0;
  for (const tnk__item_t *item = run->item; item != NULL; item = item->outer)
    for (size_t i = 0;
         item->value.kind == TNK__VALUE_DICT && i < messages.as.list->n; i++)
      if (messages.as.list->items[i].kind == TNK__VALUE_DICT &&
          messages.as.list->items[i].as.dict == item->value.as.dict) {
        *index = i;
        return 1;
      }
  return 0;
}

void tnk__fail_at(tnk__why_t *why, tnk__value_t member) {
  tnk__why_t said;

  if (why == NULL || member.kind != TNK__VALUE_TEXT || member.n_text >= 64)
    return;
  said = *why;
  (void)tnk__why(why, said.code, 0, "%.280s, member \"%.*s\"", said.text,
                 (int)member.n_text, member.as.text);
  why->line = said.line;
}

tnk__value_t tnk__fail(tnk__run_t *run, int code, const char *format, ...) {
  size_t index;
  char text[sizeof(run->why->text)];
  va_list args;

  /* If memory is out, report that instead of its effect on the template. */
  if (run->err == TNK_OK && run->heap->err != TNK_OK)
    fail_heap(run);
  if (run->err != TNK_OK)
    return tnk__value_undefined();
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  if (find_message(run, &index))
    run->err = tnk__why(run->why, code, run->line, "%.280s, in message %zu",
                        text, index);
  else
    run->err = tnk__why(run->why, code, run->line, "%s", text);
  return tnk__value_undefined();
}

int tnk__is_fine(tnk__run_t *run) {
  if (run->err != TNK_OK)
    return 0;
  if (run->heap->err != TNK_OK)
    fail_heap(run);
  else if (run->out->err != TNK_OK)
    tnk__fail(run, run->out->err, "the text becomes too long");
  else if (run->out->len - run->out_start > run->env.max_output)
    tnk__fail(run, TNK_ETOOBIG, "the text becomes too long");
  else if (run->env.max_memory > 0 &&
           run->heap->arena.total > run->env.max_memory)
    tnk__fail(run, TNK_ETOOBIG, "more memory than is allowed");
  return run->err == TNK_OK;
}

int tnk__charge_memory(tnk__run_t *run) {
  const size_t more = run->heap->arena.total - run->n_memory;

  run->n_memory = run->heap->arena.total;
  return tnk__charge(run, TNK__COST_MEMORY, more);
}

int tnk__is_too_deep(tnk__run_t *run) {
  tnk__fail(run, TNK_ETOOBIG, "calls are nested too deep");
  return 0;
}

/* Fail, and allow no more work. Returns 0. */
static int end_work(tnk__run_t *run, int code, const char *text) {
  run->n_work = run->env.max_work;
  run->checked = run->env.max_work;
  tnk__fail(run, code, "%s", text);
  return 0;
}

int tnk__is_too_much(tnk__run_t *run) {
  return end_work(run, TNK_ETOOBIG, "more steps than are allowed");
}

int tnk__check_work(tnk__run_t *run, uint64_t more) {
  const tnk__template_env_t *env = &run->env;
  const uint64_t left = env->max_work - run->n_work;
  const uint64_t step = more + TNK__COST_CHECK;
  const int checks = env->cpu_ns != NULL || env->is_canceled != NULL;

  if (more > left)
    return tnk__is_too_much(run);
  if (env->is_canceled != NULL && env->is_canceled(env->user))
    return end_work(run, TNK_ECANCELED, "the rendering was canceled");
  if (env->cpu_ns != NULL && env->cpu_ns() - run->cpu_ns > env->max_cpu_ns)
    return end_work(run, TNK_ETOOBIG, "more CPU time than is allowed");
  run->checked = checks && step < left ? run->n_work + step : env->max_work;
  return 1;
}

static uint64_t weigh_key(tnk__value_t key) {
  return key.kind == TNK__VALUE_TEXT ? (uint64_t)key.n_text * TNK__COST_HASH
                                     : TNK__COST_VALUE;
}

/* Estimate the cost of comparing a value. A shared part counts each time it
 * occurs, because it is compared each time. Fails if values are nested too
 * deeply. The sum stops at `max`. */
static uint64_t weigh(tnk__run_t *run, tnk__value_t value, uint64_t max,
                      int depth) {
  const tnk__value_list_t *list = value.as.list;
  const tnk__value_dict_t *dict = value.as.dict;
  uint64_t n = TNK__COST_VALUE;

  if (value.kind == TNK__VALUE_TEXT)
    return n + (uint64_t)value.n_text * TNK__COST_COPY;
  if (value.kind != TNK__VALUE_LIST && value.kind != TNK__VALUE_TUPLE &&
      value.kind != TNK__VALUE_DICT)
    return n;
  if (depth > TNK__VALUE_DEPTH || tnk__stack_is_used_up(&run->stack))
    tnk__fail(run, TNK_ETOOBIG, "a value is nested too deep to be compared");
  if (run->err != TNK_OK)
    return n;
  if (value.kind != TNK__VALUE_DICT)
    for (size_t i = 0; i < list->n && n < max; i++)
      n += weigh(run, list->items[i], max - n, depth + 1);
  else
    for (size_t i = 0; i < dict->n && n < max; i++)
      n += weigh_key(dict->entries[i].key) +
           weigh(run, dict->entries[i].key, max - n, depth + 1) +
           weigh(run, dict->entries[i].value, max - n, depth + 1);
  return n;
}

int tnk__charge_value(tnk__run_t *run, tnk__value_t value, uint64_t times) {
  const uint64_t left = run->env.max_work - run->n_work;

  return tnk__charge(run, weigh(run, value, left / times + 1, 0), times);
}

int tnk__charge_equal(tnk__run_t *run, tnk__value_t a, tnk__value_t b) {
  if (a.kind != b.kind)
    return tnk__charge(run, TNK__COST_VALUE, 1);
  if (a.kind == TNK__VALUE_TEXT && b.n_text < a.n_text)
    return tnk__charge_value(run, b, 1);
  return tnk__charge_value(run, a, 1);
}

int tnk__can_be_key(tnk__run_t *run, tnk__value_t value) {
  if (value.kind == TNK__VALUE_TEXT &&
      !tnk__charge(run, TNK__COST_HASH, value.n_text))
    return 0;
  if (value.kind == TNK__VALUE_TUPLE &&
      !tnk__charge_value(run, value, TNK__COST_HASH / TNK__COST_COPY))
    return 0;
  return tnk__value_is_hashable(value);
}

size_t tnk__text_find(tnk__run_t *run, tnk__value_t text, tnk__value_t part,
                      size_t from) {
  const uint64_t price = TNK__COST_TRY + (uint64_t)TNK__COST_COPY * part.n_text;
  const char *p = text.as.text + from;
  const char *end = text.as.text + text.n_text;
  const char *at;

  if (part.n_text == 0)
    return from;
  while ((size_t)(end - p) >= part.n_text) {
    at = memchr(p, part.as.text[0], (size_t)(end - p) - part.n_text + 1);
    if (!tnk__charge(run, TNK__COST_COPY,
                     (size_t)((at != NULL ? at : end) - p)) ||
        at == NULL || !tnk__charge(run, price, 1))
      break;
    if (memcmp(at, part.as.text, part.n_text) == 0)
      return (size_t)(at - text.as.text);
    p = at + 1;
  }
  return SIZE_MAX;
}

tnk__value_t tnk__object(tnk__object_kind_t kind, void *object) {
  return object == NULL ? tnk__value_undefined()
                        : (tnk__value_t){.kind = TNK__VALUE_OBJECT,
                                         .spare = (uint16_t)kind,
                                         .as.object = object};
}

int tnk__is_object(tnk__value_t value, tnk__object_kind_t kind) {
  return value.kind == TNK__VALUE_OBJECT && value.spare == kind;
}

tnk__value_t tnk__undefined(tnk__value_t name) {
  return (tnk__value_t){.kind = TNK__VALUE_UNDEFINED,
                        .n_text = name.n_text,
                        .as.text = name.as.text};
}

const tnk__class_t *tnk__class_of(const tnk__run_t *run, tnk__value_t value) {
  return value.kind == TNK__VALUE_OBJECT ? run->tables->objects[value.spare]
                                         : &run->tables->values[value.kind];
}

int tnk__refuse_undefined(tnk__run_t *run, tnk__value_t value) {
  if (value.kind != TNK__VALUE_UNDEFINED)
    return 0;
  if (value.spare == TNK__IS_UNSAFE)
    tnk__fail(run, TNK_EINVAL, "\"%.*s\" would change a value",
              (int)value.n_text, value.as.text);
  else if (value.n_text > 0 && value.n_text < 100)
    tnk__fail(run, TNK_EINVAL, "\"%.*s\" is undefined", (int)value.n_text,
              value.as.text);
  else
    tnk__fail(run, TNK_EINVAL, "a value is undefined");
  return 1;
}

tnk__value_t tnk__bad_type(tnk__run_t *run, const char *what,
                           tnk__value_t value) {
  if (tnk__refuse_undefined(run, value))
    return tnk__value_undefined();
  return tnk__fail(run, TNK_EINVAL, "%s, and not \"%s\"", what,
                   tnk__class_of(run, value)->name);
}

/* Find the entry of a concatenated text. If it is missing, return the entry of
 * the shortest text, which is the cheapest to copy again. */
static tnk__joined_t *find_joined(tnk__run_t *run, tnk__value_t text,
                                  int *is_there) {
  tnk__joined_t *least = &run->joined[0];

  *is_there = 1;
  for (unsigned i = 0; i < TNK__MAX_JOINED; i++) {
    tnk__joined_t *joined = &run->joined[i];

    if (joined->at != NULL && joined->at == text.as.text &&
        joined->n == text.n_text)
      return joined;
    if (joined->n < least->n)
      least = joined;
  }
  *is_there = 0;
  return least;
}

/* Give a text exactly the memory that it needs the first time. A text that is
 * extended again is likely to be extended often, so it gets more. Otherwise the
 * heap would contain all of its intermediate states. */
char *tnk__text_room(tnk__run_t *run, tnk__value_t text, size_t more) {
  size_t cap = text.n_text + more;
  int is_there;
  tnk__joined_t *joined = find_joined(run, text, &is_there);
  char *at;

  if (is_there && joined->cap - joined->n >= more) {
    joined->n += more;
    return joined->at;
  }
  if (!tnk__charge(run, TNK__COST_COPY, text.n_text))
    return NULL;
  if (is_there)
    cap += cap / 2;
  at = tnk__heap_alloc(run->heap, cap + 1);
  if (at == NULL)
    return NULL;
  if (text.n_text > 0)
    memcpy(at, text.as.text, text.n_text);
  *joined = (tnk__joined_t){at, text.n_text + more, cap};
  return at;
}

size_t tnk__capture(tnk__run_t *run) {
  if (run->n_captures++ == 0)
    run->captured = run->out->len;
  return run->out->len;
}

tnk__value_t tnk__captured(tnk__run_t *run, size_t mark) {
  tnk__value_t text = tnk__value_undefined();

  run->n_captures--;
  if (run->out->err != TNK_OK) {
    tnk__is_fine(run);
    return text;
  }
  if (run->out->len > mark &&
      tnk__charge(run, TNK__COST_COPY, run->out->len - mark))
    text = tnk__value_copy_text(run->heap, (const char *)run->out->data + mark,
                                run->out->len - mark);
  else
    text = tnk__value_text("", 0);
  run->out->len = mark;
  return text;
}
