/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_RUN_H
#define TNK_CHAT_JINJA_RUN_H

#include "chat/jinja/cost.h"
#include "chat/jinja/library.h"
#include "chat/jinja/node.h"
#include "chat/jinja/stack.h"
#include "chat/jinja/template.h"
#include "tnk/error.h"

/*
 * State of a rendering. The first error is kept in `err`. After it all
 * functions return undefined values and do nothing. Callers therefore check
 * `err` only where it matters, not after every call.
 */
typedef struct tnk__frame tnk__frame_t;
struct tnk__frame {
  tnk__frame_t *parent; /* frame of the enclosing unit */
  tnk__value_t *slots;
};

typedef enum { TNK__GO_ON, TNK__GO_BREAK, TNK__GO_CONTINUE } tnk__flow_t;

/* A concatenated text with spare memory. */
typedef struct {
  char *at;
  size_t n, cap;
} tnk__joined_t;

enum { TNK__MAX_JOINED = 4 };

/* The current item of a running loop. */
typedef struct tnk__item {
  const struct tnk__item *outer; /* of the loop around it */
  tnk__value_t value;
} tnk__item_t;

typedef struct tnk__run {
  const tnk__library_t *tables;
  tnk__heap_t *heap;
  tnk__buf_t *out;
  tnk__buf_t *spans;
  tnk__why_t *why;
  tnk__value_t variables;
  tnk__template_env_t env;
  tnk__frame_t *frame;
  uint64_t n_work;  /* units charged (cost.h) */
  uint64_t checked; /* the CPU time is checked beyond so many units */
  uint64_t cpu_ns;  /* CPU time of the thread at the start */
  size_t n_memory;  /* bytes of the heap that were charged */
  size_t out_start; /* length of `out` at the start */
  size_t captured;  /* start of the outermost captured output in `out` */
  unsigned n_captures;
  tnk__joined_t joined[TNK__MAX_JOINED];
  struct tnk__call *free_calls; /* of eval.c */
  struct tnk__loop *free_loops; /* of loop.c */
  const tnk__item_t *item;      /* of the innermost loop; errors name it */
  /* Number of values that may refer to a loop after its end: macros, and the
   * variable `loop` as a value. */
  uint64_t n_kept;
  unsigned depth;
  uintptr_t stack; /* where it began; see stack.h */
  uint32_t line;
  int err;
  tnk__flow_t flow;
} tnk__run_t;

/* Kinds of undefined values, in `spare`. */
enum {
  TNK__IS_MISSING = 1, /* an argument that was not given */
  TNK__IS_UNSAFE = 2   /* a method that the sandbox hides */
};

typedef struct {
  int64_t start, stop, step;
  size_t n;
} tnk__range_t;

/* The number at index `at`, which is less than n. The result fits in 64 bits,
 * but intermediate results may not, so the arithmetic is unsigned. */
static inline int64_t tnk__range_at(const tnk__range_t *range, size_t at) {
  return (int64_t)((uint64_t)range->start +
                   (uint64_t)at * (uint64_t)range->step);
}

/* Items that were computed in advance. If that failed, the error is reported at
 * the item where it would have occurred. */
typedef struct {
  tnk__value_t items; /* LIST */
  size_t at;
  tnk__why_t *why; /* the error, or NULL */
} tnk__stream_t;

typedef struct {
  tnk__value_t dict;
  char kind; /* 'i', 'k' or 'v': items, keys or values */
} tnk__view_t;

/* An iterator over an iterable value. */
typedef struct {
  tnk__value_t of;
  size_t at;
} tnk__iter_t;

/* ---- run.c ---- */

/* Record an error at the current line. Returns an undefined value. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
tnk__value_t
tnk__fail(tnk__run_t *run, int code, const char *format, ...);
/* Add the name of a member to an error. `why` may be NULL. */
void tnk__fail_at(tnk__why_t *why, tnk__value_t member);
/* Report that a limit is reached. Both return 0. */
int tnk__is_too_deep(tnk__run_t *run);
int tnk__is_too_much(tnk__run_t *run);
/* Check the budget and the CPU time before work beyond `checked`. Returns 0 and
 * fails if a limit is reached. */
int tnk__check_work(tnk__run_t *run, uint64_t more);
/* Enter `levels` levels of nesting, each of which uses as much stack as a node.
 * Returns 0 and fails if it is too deep. After a 1, subtract them from `depth`
 * again. */
static inline int tnk__enter(tnk__run_t *run, unsigned levels) {
  if (run->depth + levels > run->env.max_depth ||
      tnk__stack_is_used_up(&run->stack))
    return tnk__is_too_deep(run);
  run->depth += levels;
  return 1;
}
/* Charge for the memory that the heap has allocated since the last call. */
int tnk__charge_memory(tnk__run_t *run);
/* Charge for n bytes, items or operations at a price of cost.h. Returns 1 to
 * continue, and 0 if the rendering has failed, for example because its budget
 * is used up. */
static inline int tnk__charge(tnk__run_t *run, uint64_t price, uint64_t n) {
  const uint64_t left = run->checked - run->n_work;

  if (price * n > left && !tnk__check_work(run, price * n))
    return 0;
  run->n_work += price * n;
  if (run->heap->arena.total != run->n_memory)
    return tnk__charge_memory(run);
  return run->err == TNK_OK;
}
/* Charge for visiting all parts of a value, `times` times. */
int tnk__charge_value(tnk__run_t *run, tnk__value_t value, uint64_t times);
/* Charge for comparing two values: all parts of the smaller one. */
int tnk__charge_equal(tnk__run_t *run, tnk__value_t a, tnk__value_t b);
/* Charge for looking up a text in a dict. The cost of a node includes short
 * names. */
static inline int tnk__charge_name(tnk__run_t *run, tnk__value_t name) {
  return name.n_text < 64 || tnk__charge(run, TNK__COST_HASH, name.n_text);
}
/* Find the first occurrence of a substring from this byte on, or SIZE_MAX.
 * Charges for each position that is compared. */
size_t tnk__text_find(tnk__run_t *run, tnk__value_t text, tnk__value_t part,
                      size_t from);
/* Returns whether a value can be the key of a dict. Charges for hashing it. */
int tnk__can_be_key(tnk__run_t *run, tnk__value_t value);
/* Returns 0 after any error, including errors of the heap and the output. */
int tnk__is_fine(tnk__run_t *run);
tnk__value_t tnk__object(tnk__object_kind_t kind, void *object);
int tnk__is_object(tnk__value_t value, tnk__object_kind_t kind);
static inline tnk__value_t tnk__missing(void) {
  return (tnk__value_t){.kind = TNK__VALUE_UNDEFINED, .spare = TNK__IS_MISSING};
}
static inline int tnk__is_given(tnk__value_t value) {
  return value.kind != TNK__VALUE_UNDEFINED || value.spare != TNK__IS_MISSING;
}
/* The type of a value; never NULL. */
const tnk__class_t *tnk__class_of(const tnk__run_t *run, tnk__value_t value);
/* Fail with a message such as "must be a text" about an argument. */
tnk__value_t tnk__bad_type(tnk__run_t *run, const char *what,
                           tnk__value_t value);
tnk__value_t tnk__undefined(tnk__value_t name);
/* Fail if a value is undefined, and name it. Returns 1 if it is. */
int tnk__refuse_undefined(tnk__run_t *run, tnk__value_t value);
/* Get a text in memory that has space for `more` bytes after it. NULL: out of
 * memory. The space is used only once. If two texts continue the same text, the
 * later one gets a copy. */
char *tnk__text_room(tnk__run_t *run, tnk__value_t text, size_t more);
/* Capture the output from here on. tnk__captured() ends that and returns the
 * output as a text. */
size_t tnk__capture(tnk__run_t *run);
tnk__value_t tnk__captured(tnk__run_t *run, size_t mark);

/* ---- builtins.c ---- */

/* Call a function with its arguments sorted in the order of the parameters. */
tnk__value_t tnk__builtin_call(tnk__run_t *run, const tnk__builtin_t *known,
                               tnk__value_t self, const tnk__args_t *args);
/* Get an argument of a type, or `otherwise` if it is not given. */
int tnk__arg_whole(tnk__run_t *run, tnk__value_t v, int64_t otherwise,
                   int64_t *out);
int tnk__arg_text(tnk__run_t *run, tnk__value_t v, const char *otherwise,
                  tnk__value_t *out);
int tnk__arg_truth(tnk__value_t v, int otherwise);

/* ---- print.c ---- */

/* Append str() or repr() of a value to the output or a buffer. */
void tnk__print(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value);
void tnk__print_repr(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value);
/* Append the members of a dict in braces; `depth` is the number of values
 * around it. */
void tnk__print_members(tnk__run_t *run, tnk__buf_t *out,
                        const tnk__value_dict_t *dict, int depth);
/* str() of a value. A text is returned unchanged. */
tnk__value_t tnk__text_of(tnk__run_t *run, tnk__value_t value);
/* Initialize a separate buffer. Its limit is the remaining budget. */
void tnk__scratch(tnk__run_t *run, tnk__buf_t *buf);
/* Return the content of the buffer as a text, charge for it, and free the
 * buffer. */
tnk__value_t tnk__scratch_text(tnk__run_t *run, tnk__buf_t *buf);
/* Append a text to the output or a buffer. */
void tnk__put(tnk__run_t *run, tnk__buf_t *out, tnk__value_t text);
/* Escape & < > " ' as in HTML. */
tnk__value_t tnk__escape(tnk__run_t *run, tnk__value_t text);

/* ---- iter.c ---- */

/* Returns 0 and fails if the value is not iterable. */
int tnk__iter_begin(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t of);
int tnk__iter_next(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t *out);
int tnk__is_iterable(tnk__value_t value);
/* len(), or -1. Charges for counting the characters of a text. */
int64_t tnk__length(tnk__run_t *run, tnk__value_t value);
/* bool(): empty ranges and dict views are false. */
int tnk__truth(tnk__value_t value);
/* The character at a byte offset. */
tnk__value_t tnk__char_at(tnk__value_t text, size_t place);
/* A new list with all items. */
tnk__value_t tnk__list_of(tnk__run_t *run, tnk__value_t value);
/* Make a stream of the items of a list. If the template has just failed, the
 * error is removed, and the stream ends with it. */
tnk__value_t tnk__stream(tnk__run_t *run, tnk__value_t list);
int tnk__contains(tnk__run_t *run, tnk__value_t in, tnk__value_t item);

/* ---- attr.c ---- */

tnk__value_t tnk__getattr(tnk__run_t *run, tnk__value_t of, tnk__value_t name);
tnk__value_t tnk__getitem(tnk__run_t *run, tnk__value_t of, tnk__value_t key);
tnk__value_t tnk__slice(tnk__run_t *run, tnk__value_t of, tnk__value_t start,
                        tnk__value_t stop, tnk__value_t step);

/* ---- op.c ---- */

tnk__value_t tnk__binary(tnk__run_t *run, tnk__op_t op, tnk__value_t a,
                         tnk__value_t b);
tnk__value_t tnk__negate(tnk__run_t *run, tnk__value_t value, int is_minus);
int tnk__compare(tnk__run_t *run, tnk__op_t op, tnk__value_t a, tnk__value_t b);
tnk__value_t tnk__add_texts(tnk__run_t *run, tnk__value_t a, tnk__value_t b);
/* "..." % args */
tnk__value_t tnk__percent(tnk__run_t *run, tnk__value_t format,
                          tnk__value_t args);

/* ---- eval.c ---- */

tnk__value_t tnk__eval(tnk__run_t *run, const tnk__node_t *node);
/* The same, printed to the output. */
void tnk__eval_print(tnk__run_t *run, const tnk__node_t *node);
tnk__value_t tnk__eval_filter(tnk__run_t *run, const tnk__node_t *node,
                              tnk__value_t input);
/* `caller` is passed on if it is given. */
tnk__value_t tnk__eval_call(tnk__run_t *run, const tnk__node_t *node,
                            tnk__value_t caller);
tnk__value_t tnk__call(tnk__run_t *run, tnk__value_t callee,
                       const tnk__args_t *args);

/* ---- exec.c ---- */

tnk__frame_t *tnk__frame_new(tnk__run_t *run, tnk__frame_t *parent,
                             uint32_t n_slots);
void tnk__scope_enter(tnk__run_t *run, const tnk__scope_t *scope);
void tnk__scope_leave(tnk__run_t *run, const tnk__scope_t *scope);
void tnk__assign(tnk__run_t *run, const tnk__node_t *target,
                 tnk__value_t value);

/* ---- loop.c and exec.c ---- */

void tnk__exec_for(tnk__run_t *run, const tnk__node_t *node);
void tnk__exec_all(tnk__run_t *run, const tnk__nodes_t *body);

#endif
