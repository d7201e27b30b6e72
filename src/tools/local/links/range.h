#ifndef TNK_TOOLS_LOCAL_LINKS_RANGE_H
#define TNK_TOOLS_LOCAL_LINKS_RANGE_H

#include <stdint.h>

/* What a request asks for of something that has `size` bytes. */
typedef enum {
  LOCAL_RANGE_ALL,  /* no range, or one that a server may ignore */
  LOCAL_RANGE_PART, /* [first, end) */
  LOCAL_RANGE_NONE  /* none of its bytes: 416 */
} local_range_kind_t;
typedef struct {
  local_range_kind_t kind;
  uint64_t first;
  uint64_t end;
} local_range_t;

/* Read the value of a Range header; NULL: there is none. */
local_range_t local_range_read(const char *text, uint64_t size);

#endif
