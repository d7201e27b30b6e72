/*
 * Somebody between the client and the server grants few connections. Polls hold
 * them for as long as samples take, and submissions must come through.
 */
#include "link/samples.h"

static samples_t samples;

TEST_LIMIT(link_limit_of_3_connections, 60) {
  samples_open(&samples, 500);
  road_tell(&samples.road, "limit 3 close");
  samples_run(&samples, 100, 100, 300000);
  samples_close(&samples);
}

/* The limit falls while hundreds of polls are held, and rises again. */
TEST_LIMIT(link_limit_that_changes_under_load, 60) {
  samples_open(&samples, 2000);
  road_tell(&samples.road, "@1000 limit 20 close");
  road_tell(&samples.road, "@1000 reset");
  road_tell(&samples.road, "@20000 limit 0");
  samples_run(&samples, 5000, 500, 120000);
  samples_close(&samples);
}
