/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_CODES_H
#define TNK_TEST_SUPPORT_CODES_H

/* Whether the public headers list `code` for the operation whose name a
 * sentence begins with; 1 for a sentence of no such operation. */
int test_code_is_listed(const char *sentence, int code);

#endif
