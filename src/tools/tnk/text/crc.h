/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_CRC_H
#define TNK_TOOLS_TNK_TEXT_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continue the CRC-32 `sum`, which begins with 0, as zlib's crc32(). It uses
 * the processor's multiplication of polynomials, if there is one. */
uint32_t cli_crc32(uint32_t sum, const void *bytes, size_t n);

#endif
