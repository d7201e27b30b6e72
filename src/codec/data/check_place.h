#ifndef TNK_CODEC_DATA_CHECK_PLACE_H
#define TNK_CODEC_DATA_CHECK_PLACE_H

#include "tnk/data.h"

/* Where a complaint goes, and what is being looked at: "datum 3: " and the
 * like stands before each sentence. Shared by the check files only. */
typedef struct {
  char *text;
  size_t size;
  const char *kind; /* "datum", or NULL for no number */
  size_t index;
} tnk__place_t;

/* Write the sentence and return TNK_EINVAL. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int tnk__place_fail(const tnk__place_t *place, const char *format, ...);

/* Check the shape, element type, CSR order and numbers of one tensor. */
int tnk__place_tensor(const tnk__place_t *place, const char *name,
                      const tnk_tensor_t *tensor);
int tnk__place_input(const tnk__place_t *place, const tnk_model_input_t *input,
                     int allow_pointer);
int tnk__place_text(const tnk__place_t *place, const char *what,
                    const char *value);

#endif
