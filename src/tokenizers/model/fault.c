/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int tnk__fault(tnk_tokenizer_error_t *error, int code, uint64_t offset,
               const char *format, ...) {
  va_list args;

  if (error == NULL)
    return code;
  error->code = code;
  error->offset = offset;
  va_start(args, format);
  (void)vsnprintf(error->text, sizeof(error->text), format, args);
  va_end(args);
  /* The text may quote the file. Remove control characters, as they could
   * control a terminal. */
  for (char *p = error->text; *p != '\0'; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' ';
  return code;
}

int tnk__fault_memory(tnk_tokenizer_error_t *error) {
  return tnk__fault(error, TNK_ENOMEM, 0, "out of memory");
}

void tnk__fault_clear(tnk_tokenizer_error_t *error) {
  if (error != NULL)
    memset(error, 0, sizeof(*error));
}
