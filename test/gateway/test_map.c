/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "gateway/base/map.h"
#include "support/test.h"
#include "tnk/error.h"

/* The table by which turns are found. */

/* Many samples of one prompt have one key. With work for all of them at each
 * of them this would not end within the time of a test. */
TEST(a_key_may_be_there_a_million_times) {
  enum { MANY = 1 << 20 };
  tnk__gw_node_t *nodes = calloc(MANY, sizeof(*nodes));
  tnk__gw_node_t other = {0};
  tnk__gw_node_t *at;
  tnk__gw_map_t map;
  int n = 0;

  CHECK(nodes != NULL);
  tnk__gw_map_init(&map, test_allocator());
  CHECK_INT(tnk__gw_map_add(&map, &other, 8), TNK_OK);
  for (int i = 0; i < MANY; i++)
    n += tnk__gw_map_add(&map, &nodes[i], 7) == TNK_OK;
  CHECK_INT(n, MANY);
  at = tnk__gw_map_find(&map, 7);
  for (n = MANY - 1; at == &nodes[n] && n > 0; n--)
    at = tnk__gw_map_next(at);
  CHECK_INT(n, 0);
  CHECK(at == &nodes[0] && tnk__gw_map_next(at) == NULL);
  CHECK(tnk__gw_map_find(&map, 8) == &other);
  for (n = MANY; n-- > 0;)
    tnk__gw_map_remove(&map, &nodes[n]);
  CHECK(tnk__gw_map_find(&map, 7) == NULL);
  CHECK_INT((long long)map.n, 1);
  tnk__gw_map_deinit(&map);
  free(nodes);
}
