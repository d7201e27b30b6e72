#ifndef TNK_TOOLS_LOCAL_LINKS_RANGE_H
#define TNK_TOOLS_LOCAL_LINKS_RANGE_H

#include <stdint.h>

/* The range of a request for an object of `size` bytes. */
typedef enum {
  LOCAL_RANGE_ALL,  /* no range, or one that a server may ignore */
  LOCAL_RANGE_PART, /* [first, end) */
  LOCAL_RANGE_NONE  /* outside the object: 416 */
} local_range_kind_t;
typedef struct {
  local_range_kind_t kind;
  uint64_t first;
  uint64_t end;
} local_range_t;

/* Parse the value of a Range header; NULL: no header. */
local_range_t local_range_read(const char *text, uint64_t size);

#endif
