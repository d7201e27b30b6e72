/* SPDX-License-Identifier: MIT */
/* The library: tables of the filters, tests, methods and functions, and types
 * of values. */
#include "chat/jinja/library.h"

static const tnk__builtin_t *const filters[] = {
    tnk__filters_text, tnk__filters_list, tnk__filters_pick, tnk__filters_value,
    NULL};

static const tnk__builtin_t *const text[] = {
    tnk__methods_text, tnk__methods_split, tnk__methods_class, NULL};
static const tnk__builtin_t *const list[] = {tnk__methods_list, NULL};
static const tnk__builtin_t *const tuple[] = {tnk__methods_tuple, NULL};
static const tnk__builtin_t *const dict[] = {tnk__methods_dict, NULL};

static const char whole_lacks[] =
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes "
    "imag numerator real to_bytes";

static const tnk__class_t values[] = {
    [TNK__VALUE_UNDEFINED] = {.name = "Undefined"},
    [TNK__VALUE_NONE] = {.name = "NoneType"},
    [TNK__VALUE_BOOL] = {.name = "bool", .lacking = whole_lacks},
    [TNK__VALUE_INT] = {.name = "int", .lacking = whole_lacks},
    [TNK__VALUE_FLOAT] = {.name = "float",
                          .lacking = "as_integer_ratio conjugate fromhex hex "
                                     "imag is_integer real"},
    [TNK__VALUE_TEXT] = {.name = "str",
                         .lacking = "casefold encode expandtabs format_map "
                                    "isidentifier maketrans translate",
                         .methods = text},
    [TNK__VALUE_LIST] = {.name = "list",
                         .unsafe = "append clear pop reverse insert sort "
                                   "extend remove",
                         .methods = list},
    [TNK__VALUE_TUPLE] = {.name = "tuple", .methods = tuple},
    [TNK__VALUE_DICT] = {.name = "dict",
                         .lacking = "fromkeys",
                         .unsafe = "clear pop popitem setdefault update",
                         .methods = dict},
};

/* Objects that are plain data: iter.c and print.c handle them. */
static const tnk__class_t range = {.name = "range",
                                   .lacking = "count index start step stop"};
static const tnk__class_t stream = {.name = "generator",
                                    .lacking = "close send throw"};
static const tnk__class_t view = {.name = "view",
                                  .lacking = "isdisjoint mapping"};

static const tnk__class_t *const objects[] = {
    [TNK__OBJECT_NAMESPACE] = &tnk__class_namespace,
    [TNK__OBJECT_MACRO] = &tnk__class_macro,
    [TNK__OBJECT_LOOP] = &tnk__class_loop,
    [TNK__OBJECT_RANGE] = &range,
    [TNK__OBJECT_STREAM] = &stream,
    [TNK__OBJECT_METHOD] = &tnk__class_method,
    [TNK__OBJECT_FUNCTION] = &tnk__class_function,
    [TNK__OBJECT_CYCLER] = &tnk__class_cycler,
    [TNK__OBJECT_JOINER] = &tnk__class_joiner,
    [TNK__OBJECT_VIEW] = &view,
};

const tnk__library_t tnk__library = {
    .filters = filters,
    .tests = tnk__tests,
    .globals = tnk__globals,
    .values = values,
    .objects = objects,
};
