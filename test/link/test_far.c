/* SPDX-License-Identifier: MIT */
/*
 * Servers that are far away: a round trip of 150 ms.
 */
#include "link/samples.h"

static samples_t samples;

TEST_LIMIT(link_far_and_lossy_samples_all_come, 60) {
  samples_open(&samples, 1000);
  road_tell(&samples.road, "delay 75");
  road_tell(&samples.road, "loss 50");
  samples_run(&samples, 4000, 1000, 60000);
  samples_close(&samples);
}

/* 2,000 in flight and results at once: the round trip bounds the rate, and not
 * the number of submissions under way. A result comes a round trip after its
 * sample was accepted. */
TEST_LIMIT(link_far_samples_come_by_the_thousand, 60) {
  enum { N = 20000 };
  uint64_t took;

  samples_open(&samples, 0);
  road_tell(&samples.road, "delay 75");
  samples_run(&samples, N, 2000, 60000);
  took = samples.last_made_ms + 150;
  printf("# %llu samples a second\n", (unsigned long long)(N * 1000 / took));
  CHECK(took <= N / 4);
  samples_close(&samples);
}
