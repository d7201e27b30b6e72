/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_NODE_H
#define TNK_CHAT_JINJA_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "chat/value/value.h"

/* The syntax tree of a template. The comment of each kind lists the members
 * that it uses. */
typedef enum {
  TNK__NODE_CONST,   /* value */
  TNK__NODE_NAME,    /* value: the name; ref */
  TNK__NODE_LIST,    /* list */
  TNK__NODE_TUPLE,   /* list */
  TNK__NODE_DICT,    /* list: keys and values, alternating */
  TNK__NODE_NOT,     /* a */
  TNK__NODE_NEG,     /* a */
  TNK__NODE_POS,     /* a */
  TNK__NODE_BINARY,  /* op, a, b */
  TNK__NODE_CONCAT,  /* list */
  TNK__NODE_AND,     /* a, b */
  TNK__NODE_OR,      /* a, b */
  TNK__NODE_COMPARE, /* a; list of OPERAND */
  TNK__NODE_OPERAND, /* op, a */
  TNK__NODE_COND,    /* a: test, b: then, c: else or NULL */
  TNK__NODE_GETATTR, /* a, value: the name; flag: in a dict it can only be a
                        member; known: the method of texts, or NULL */
  TNK__NODE_GETITEM, /* a, b; flag: b is a name, and in a dict it can only be a
                        member */
  TNK__NODE_SLICE,   /* a, b, c; each may be NULL */
  TNK__NODE_CALL,    /* a; list, more: KEYWORDs, b: *args, c: **kwargs */
  TNK__NODE_KEYWORD, /* value: the name, a */
  TNK__NODE_FILTER,  /* a or NULL, value: the name; list, more, b, c */
  TNK__NODE_TEST,    /* the same */
  TNK__NODE_OUTPUT,  /* list */
  TNK__NODE_IF,      /* a: test; body, more: IFs, other */
  TNK__NODE_FOR, /* a: target, b: iterable, c: test, list: target of the test;
                    body, other; flag: recursive */
  TNK__NODE_SET, /* a: target, b */
  TNK__NODE_SETBLOCK,    /* a: target, b: filter or NULL; body */
  TNK__NODE_MACRO,       /* a: NAME; list: parameters, more: defaults; body */
  TNK__NODE_CALLBLOCK,   /* b: CALL; list, more, body as MACRO */
  TNK__NODE_FILTERBLOCK, /* b: filter; body */
  TNK__NODE_WITH,        /* list: targets, more: values; body */
  TNK__NODE_GENERATION,  /* as CALLBLOCK without a call */
  TNK__NODE_NSREF,       /* value: the attribute, a: NAME */
  TNK__NODE_BREAK,
  TNK__NODE_CONTINUE
} tnk__node_kind_t;

typedef enum {
  TNK__OP_ADD = 1,
  TNK__OP_SUB,
  TNK__OP_MUL,
  TNK__OP_DIV,
  TNK__OP_FLOORDIV,
  TNK__OP_MOD,
  TNK__OP_POW,
  TNK__OP_EQ,
  TNK__OP_NE,
  TNK__OP_LT,
  TNK__OP_LE,
  TNK__OP_GT,
  TNK__OP_GE,
  TNK__OP_IN,
  TNK__OP_NOTIN
} tnk__op_t;

typedef struct tnk__node tnk__node_t;

typedef struct {
  tnk__node_t **items;
  uint32_t n, cap;
} tnk__nodes_t;

/* Location of a variable: the slot, and how many units outward it is. */
typedef struct {
  uint32_t up, slot;
} tnk__ref_t;

/* Initial value of a slot when its scope is entered. */
typedef enum {
  TNK__LOAD_PARAM, /* set by the caller */
  TNK__LOAD_RESOLVE,
  TNK__LOAD_ALIAS,
  TNK__LOAD_UNDEFINED
} tnk__load_kind_t;

typedef struct {
  tnk__load_kind_t kind;
  uint32_t slot;
  tnk__ref_t alias;
  tnk__value_t name;
} tnk__load_t;

/* The variables of a scope: a template, the body of a loop, or a macro. */
typedef struct {
  tnk__load_t *loads;
  uint32_t n_loads;
  uint32_t n_slots; /* number of slots of the unit if the scope is its
                       outermost, else 0 */
} tnk__scope_t;

/* Implicit variables of a macro, as slots. */
typedef struct {
  uint32_t caller, kwargs, varargs; /* slot + 1, or 0 */
  uint32_t explicit_caller;         /* index of the parameter + 1, or 0 */
} tnk__macro_extras_t;

struct tnk__builtin;

struct tnk__node {
  uint8_t kind;
  uint8_t op;
  uint8_t flag;
  uint16_t height; /* height of the tree below; limited */
  uint32_t line;
  tnk__value_t value;
  tnk__node_t *a, *b, *c;
  tnk__ref_t ref; /* of NAME */
  tnk__nodes_t list, more, body, other;
  const struct tnk__builtin *known; /* of FILTER, TEST and GETATTR */
  tnk__scope_t *scope;              /* scope of the body */
  tnk__scope_t *second;             /* of FOR: scope of `other` */
  tnk__scope_t *third;              /* of FOR: scope of the test */
  tnk__macro_extras_t *extras;      /* of MACRO, CALLBLOCK */
  uint32_t loop_slot;               /* of FOR: slot of `loop` */
};

/* parse.c: tnk__node_reads() returns whether a body reads a name before it
 * writes it. tnk__node_sets_loop() returns whether anything in a loop assigns
 * to `loop`. */
int tnk__node_reads(const tnk__nodes_t *body, const char *name);
int tnk__node_sets_loop(const tnk__node_t *node);
/* Returns whether an expression is constant: 0 no, 1 yes, 2 it is also not
 * valid as the name of a member. The work is subtracted from *budget (cost.h),
 * which is 0 if it was not enough. */
typedef int (*tnk__is_known_cb)(const tnk__node_t *node,
                                const tnk_allocator_t *alloc, uint64_t *budget);
/* scope.c: assign a slot to each variable of a template. This also reports the
 * errors that the reference reports before a template runs. These are unknown
 * filters and tests, unless they are in code that may never run, and invalid
 * constants. */
int tnk__scope_resolve(tnk__node_t *root, tnk__is_known_cb is_known,
                       tnk__heap_t *heap, tnk__why_t *why);

#endif
