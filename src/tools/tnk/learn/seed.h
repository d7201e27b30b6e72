/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_SEED_H
#define TNK_TOOLS_TNK_LEARN_SEED_H

#include <stdint.h>

/* A seed that differs for each `number` of a run, in the range that all clients
 * accept. */
uint64_t learn_seed(uint64_t seed, uint64_t number);

#endif
