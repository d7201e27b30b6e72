#include "base/options.h"

#include <string.h>

#include "tnk/error.h"

int tnk__options_load(void *dst, size_t dst_size, const void *src, size_t min) {
  const unsigned char *bytes = src;
  size_t size;
  size_t i;

  if (src == NULL)
    return TNK_OK;
  /* Every struct of options begins with its size. It is copied, because the
   * rest of our struct may lie outside of an older caller's. */
  memcpy(&size, src, sizeof(size));
  if (size < min)
    return TNK_EINVAL;
  for (i = dst_size; i < size; i++)
    if (bytes[i] != 0)
      return TNK_ENOTSUP;
  memcpy(dst, src, size < dst_size ? size : dst_size);
  /* What is ours has our size, whoever filled it. */
  memcpy(dst, &dst_size, sizeof(dst_size));
  return TNK_OK;
}
