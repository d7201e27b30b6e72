/* SPDX-License-Identifier: MIT */
#include TNK_TEST_HEADER
int main(void) {
  return 0;
}
