/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_CHECK_WHERE_H
#define TNK_LIB_WIRE_DATA_CHECK_WHERE_H

#include "tnk/data.h"

/* The output of a check and the object being checked. "datum 3: " or a similar
 * text precedes each sentence. Only for the check files. */
typedef struct {
  char *text;
  size_t size;
  const char *kind; /* "datum", or NULL: no prefix */
  size_t index;
} tnk__where_t;

/* Write the sentence and return TNK_EINVAL. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int tnk__refuse(const tnk__where_t *where, const char *format, ...);

/* Check the shape, element type, CSR order and numbers of one tensor. */
int tnk__check_tensor_at(const tnk__where_t *where, const char *name,
                         const tnk_tensor_t *tensor);
int tnk__check_input_at(const tnk__where_t *where,
                        const tnk_model_input_t *input, int allow_pointer);
int tnk__check_text_at(const tnk__where_t *where, const char *what,
                       const char *value);

#endif
