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
