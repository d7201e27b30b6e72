/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/trackio.h"

/* Instead of trackio.c, in a build without SQLite. */

static int begin(void *target, const report_data_t *data) {
  (void)data;
  return cli_fail(target, CLI_EXIT_USAGE,
                  "--trackio: this program was built without SQLite");
}

static int rest(void *target, int status) {
  (void)target;
  return status;
}

static void free_nothing(void *target) {
  (void)target;
}

/* Nothing else is called after `begin` has failed. */
report_target_t report_trackio_open(const cli_t *cli, const char *path,
                                    int is_live) {
  static const report_target_class_t class_ = {
      .begin = begin, .rest = rest, .free = free_nothing};

  (void)path, (void)is_live;
  return (report_target_t){.class_ = &class_, .target = (void *)(uintptr_t)cli};
}
