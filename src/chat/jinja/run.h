#ifndef TNK_CHAT_JINJA_RUN_H
#define TNK_CHAT_JINJA_RUN_H

#include "chat/jinja/cost.h"
#include "chat/jinja/library.h"
#include "chat/jinja/node.h"
#include "chat/jinja/template.h"
#include "tnk/error.h"

/*
 * A template while it is rendered. A failure is kept in `err`; after it
 * everything returns undefined values and does nothing, so that it is looked at
 * where that matters and not behind every call.
 */
typedef struct tnk__frame tnk__frame_t;
struct tnk__frame {
  tnk__frame_t *parent; /* of the unit around this one */
  tnk__value_t *slots;
};

typedef enum { TNK__GO_ON, TNK__GO_BREAK, TNK__GO_CONTINUE } tnk__flow_t;

/* A text that was put together, in its room. */
typedef struct {
  char *at;
  size_t n, cap;
} tnk__joined_t;

enum { TNK__MAX_JOINED = 4 };

typedef struct tnk__run {
  const tnk__library_t *tables;
  /* tnk__exec_all(): for loops and macros, which statements run and which run
   * statements. */
  void (*execute)(struct tnk__run *run, const tnk__nodes_t *body);
  tnk__heap_t *heap;
  tnk__buf_t *out;
  tnk__buf_t *spans;
  tnk__why_t *why;
  tnk__value_t variables;
  tnk__template_env_t env;
  tnk__frame_t *frame;
  uint64_t n_work;  /* units that were paid (cost.h) */
  size_t n_memory;  /* bytes of the heap that were paid */
  size_t out_start; /* of `out`, when the rendering began */
  size_t captured;  /* where the outermost text that is taken aside begins */
  unsigned n_captures;
  tnk__joined_t joined[TNK__MAX_JOINED];
  struct tnk__call *free_calls; /* of eval.c */
  unsigned depth;
  uint32_t line;
  int err;
  tnk__flow_t flow;
} tnk__run_t;

/* What undefined values have in `spare`. */
enum {
  TNK__IS_MISSING = 1, /* an argument that was not given */
  TNK__IS_UNSAFE = 2   /* a method that the sandbox hides */
};

typedef struct {
  int64_t start, stop, step;
  size_t n;
} tnk__range_t;

/* The number at a place below n. It fits, and what it takes to come there may
 * not. */
static inline int64_t tnk__range_at(const tnk__range_t *range, size_t at) {
  return (int64_t)((uint64_t)range->start +
                   (uint64_t)at * (uint64_t)range->step);
}

/* Items that were worked out at once; an error that came is told where it would
 * have come. */
typedef struct {
  tnk__value_t items; /* LIST */
  size_t at;
  tnk__why_t *why; /* NULL: none */
} tnk__stream_t;

typedef struct {
  tnk__value_t dict;
  char kind; /* 'i'tems, 'k'eys, 'v'alues */
} tnk__view_t;

/* The way through what can be gone through. */
typedef struct {
  tnk__value_t of;
  size_t at;
} tnk__iter_t;

/* ---- run.c ---- */

/* Note a failure, at the current line. Returns an undefined value. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
tnk__value_t
tnk__fail(tnk__run_t *run, int code, const char *format, ...);
/* Tell that a limit is reached. Both return 0. */
int tnk__is_too_deep(tnk__run_t *run);
int tnk__is_too_much(tnk__run_t *run);
/* Go levels deeper, which is as much of the stack as so many nodes take; 0:
 * that is too deep, and told. Only after a 1 they are to be given back, from
 * `depth`. */
static inline int tnk__enter(tnk__run_t *run, unsigned levels) {
  if (run->depth + levels > run->env.max_depth)
    return tnk__is_too_deep(run);
  run->depth += levels;
  return 1;
}
/* Pay for memory that the heap has taken since the last time. */
int tnk__charge_memory(tnk__run_t *run);
/* Pay the price of n bytes, items or operations (cost.h). 1: continue; 0: the
 * rendering has failed, perhaps because its budget is used up. */
static inline int tnk__charge(tnk__run_t *run, uint64_t price, uint64_t n) {
  const uint64_t left = run->env.max_work - run->n_work;

  if (price * n > left)
    return tnk__is_too_much(run);
  run->n_work += price * n;
  if (run->heap->arena.total != run->n_memory)
    return tnk__charge_memory(run);
  return run->err == TNK_OK;
}
/* Pay for going through all that a value holds, so many times. */
int tnk__charge_value(tnk__run_t *run, tnk__value_t value, uint64_t times);
/* Pay for comparing two values: all that the smaller one holds. */
int tnk__charge_equal(tnk__run_t *run, tnk__value_t a, tnk__value_t b);
/* Pay for a text that is looked up in a dict. Names of common length are part
 * of the price of a node. */
static inline int tnk__charge_name(tnk__run_t *run, tnk__value_t name) {
  return name.n_text < 64 || tnk__charge(run, TNK__COST_HASH, name.n_text);
}
/* The first place of a part from this byte on, or SIZE_MAX. Pays for each place
 * that it compares. */
size_t tnk__text_find(tnk__run_t *run, tnk__value_t text, tnk__value_t part,
                      size_t from);
/* Whether a value can be the key of a dict; pays for hashing it. */
int tnk__can_be_key(tnk__run_t *run, tnk__value_t value);
/* 0: there was a failure, also of the heap or the output. */
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
/* "must be a text" and the like, about an argument. */
tnk__value_t tnk__bad_type(tnk__run_t *run, const char *what,
                           tnk__value_t value);
tnk__value_t tnk__undefined(tnk__value_t name);
/* Refuse an undefined value by its name. Returns 1 when it was one. */
int tnk__refuse_undefined(tnk__run_t *run, tnk__value_t value);
/* A text again, in room for so many bytes more behind it; NULL: there is none.
 * They are written once: of two who go on from one text, the later has a copy.
 */
char *tnk__text_room(tnk__run_t *run, tnk__value_t text, size_t more);
/* Take the output aside from here on, and give it back as a text. */
size_t tnk__capture(tnk__run_t *run);
tnk__value_t tnk__captured(tnk__run_t *run, size_t mark);

/* ---- args.c ---- */

/* Call a function with its arguments in the order of the parameters. */
tnk__value_t tnk__builtin_call(tnk__run_t *run, const tnk__builtin_t *known,
                               tnk__value_t self, const tnk__args_t *args);
/* Arguments of a kind; where they are not given, `otherwise`. */
int tnk__arg_whole(tnk__run_t *run, tnk__value_t v, int64_t otherwise,
                   int64_t *out);
int tnk__arg_text(tnk__run_t *run, tnk__value_t v, const char *otherwise,
                  tnk__value_t *out);
int tnk__arg_truth(tnk__value_t v, int otherwise);

/* ---- print.c ---- */

/* Append str(), or repr(), of a value to the output, or to a buffer. */
void tnk__print(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value);
void tnk__print_repr(tnk__run_t *run, tnk__buf_t *out, tnk__value_t value);
/* Append the members of a dict in curly brackets; `depth` values are around. */
void tnk__print_members(tnk__run_t *run, tnk__buf_t *out,
                        const tnk__value_dict_t *dict, int depth);
/* str() of a value; a text is itself. */
tnk__value_t tnk__text_of(tnk__run_t *run, tnk__value_t value);
/* A buffer of its own, which holds no more than the budget pays for. */
void tnk__scratch(tnk__run_t *run, tnk__buf_t *buf);
/* The text in it, which is paid for; frees the buffer. */
tnk__value_t tnk__scratch_text(tnk__run_t *run, tnk__buf_t *buf);
/* Append a text to the output or a buffer. */
void tnk__put(tnk__run_t *run, tnk__buf_t *out, tnk__value_t text);
/* & < > " ' as HTML has them. */
tnk__value_t tnk__escape(tnk__run_t *run, tnk__value_t text);

/* ---- iter.c ---- */

/* 0: it cannot be gone through, which is told. */
int tnk__iter_begin(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t of);
int tnk__iter_next(tnk__run_t *run, tnk__iter_t *iter, tnk__value_t *out);
int tnk__is_iterable(tnk__value_t value);
/* len(), or -1. Pays for counting the characters of a text. */
int64_t tnk__length(tnk__run_t *run, tnk__value_t value);
/* bool(): empty ranges and views of dicts are false. */
int tnk__truth(tnk__value_t value);
/* The character at a byte of a text. */
tnk__value_t tnk__char_at(tnk__value_t text, size_t place);
/* All items in a new list. */
tnk__value_t tnk__list_of(tnk__run_t *run, tnk__value_t value);
/* A stream of the items of a list. After a failure of the template, which is
 * then none yet, it ends with that. */
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
/* The same, for the output. */
void tnk__eval_print(tnk__run_t *run, const tnk__node_t *node);
tnk__value_t tnk__eval_filter(tnk__run_t *run, const tnk__node_t *node,
                              tnk__value_t input);
/* `caller` is handed on where it is given. */
tnk__value_t tnk__eval_call(tnk__run_t *run, const tnk__node_t *node,
                            tnk__value_t caller);
tnk__value_t tnk__call(tnk__run_t *run, tnk__value_t callee,
                       const tnk__args_t *args);

/* ---- frame.c ---- */

tnk__frame_t *tnk__frame_new(tnk__run_t *run, tnk__frame_t *parent,
                             uint32_t n_slots);
void tnk__scope_enter(tnk__run_t *run, const tnk__scope_t *scope);
void tnk__scope_leave(tnk__run_t *run, const tnk__scope_t *scope);
void tnk__assign(tnk__run_t *run, const tnk__node_t *target,
                 tnk__value_t value);

/* ---- loop.c, macro.c, exec.c ---- */

void tnk__exec_for(tnk__run_t *run, const tnk__node_t *node);
tnk__value_t tnk__macro_new(tnk__run_t *run, const tnk__node_t *node,
                            int is_caller);
void tnk__exec_all(tnk__run_t *run, const tnk__nodes_t *body);

#endif
