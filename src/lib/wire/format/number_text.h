/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_NUMBER_TEXT_H
#define TNK_LIB_WIRE_FORMAT_NUMBER_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Size that suffices for one number. No terminator is written. */
enum { TNK__NUMBER_TEXT = 32 };

/* Write numbers as decimal text, independent of the locale. All return the
 * length. */
size_t tnk__int_text(char *out, int64_t value);
size_t tnk__uint_text(char *out, uint64_t value);
/* The same for a list, with a comma after each number. */
size_t tnk__int32s_text(char *out, const int32_t *values, size_t n);
/* The shortest text that reads back as `value`, which must be finite. */
size_t tnk__double_text(char *out, double value);
size_t tnk__float_text(char *out, float value);

#endif
