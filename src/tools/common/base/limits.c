/* SPDX-License-Identifier: MIT */
#include "tools/common/base/limits.h"

#include <sys/resource.h>

void cli_raise_file_limit(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}
