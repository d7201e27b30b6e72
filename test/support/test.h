/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_TEST_H
#define TNK_TEST_SUPPORT_TEST_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * A small test runner. Each program is one suite; each TEST is one case and
 * runs in a process of its own, with a time limit, and must leave as many
 * descriptors open as it found. Output is TAP.
 *
 *   test_buf              run all cases
 *   test_buf --list       print their names
 *   test_buf NAME ...     run those whose name contains NAME
 *   test_buf --part=1/2   every second one, from the first one on
 *   test_buf --no-fork    all in this process, for a debugger
 *
 * A failed check ends the case's process at once, so it may stand anywhere,
 * in callbacks of a loop as well.
 */
typedef void (*test_fn)(void);

void test_register(const char *name, test_fn fn, unsigned limit_s);

/* Define one case. The name is shown with underscores; rows of
 * test/REQUIREMENTS.md are cited in it, as in TEST(S1_5_retry_after_dates). */
#define TEST(name) TEST_LIMIT(name, TEST_LEAST_LIMIT_S)

/* The time limit of a case only ends a hang, so it is at least a minute: a
 * loaded machine may be ten times slower than an idle one, and no result may
 * depend on that. */
enum { TEST_LEAST_LIMIT_S = 60 };

/* The same with a longer limit, in seconds; one below the least limit has no
 * effect. Sanitizer and valgrind runs multiply all limits by TNK_TEST_STRETCH.
 */
#define TEST_LIMIT(name, seconds)                                              \
  static void test_case_##name(void);                                          \
  __attribute__((constructor)) static void test_add_##name(void) {             \
    test_register(#name, test_case_##name, seconds);                           \
  }                                                                            \
  static void test_case_##name(void)

#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 3, 4)))
#endif
void test_fail(const char *file, int line, const char *format, ...);
/* What is being tried now: printed before the words of a failed check, and when
 * the case's time is over. Copied. */
void test_context(const char *text);
/* Whether this machine knows the name: a bare root may have no /etc/hosts. */
int test_has_localhost(void);
/* End the case as skipped, with the reason. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void test_skip(const char *reason);

#define CHECK(cond)                                                            \
  do {                                                                         \
    if (!(cond))                                                               \
      test_fail(__FILE__, __LINE__, "%s", #cond);                              \
  } while (0)

#define CHECK_INT(actual, expected)                                            \
  do {                                                                         \
    long long test_a = (long long)(actual);                                    \
    long long test_e = (long long)(expected);                                  \
    if (test_a != test_e)                                                      \
      test_fail(__FILE__, __LINE__, "%s is %lld, expected %lld", #actual,      \
                test_a, test_e);                                               \
  } while (0)

void test_check_str(const char *file, int line, const char *expr,
                    const char *actual, const char *expected);
#define CHECK_STR(actual, expected)                                            \
  test_check_str(__FILE__, __LINE__, #actual, actual, expected)

void test_check_mem(const char *file, int line, const char *expr,
                    const void *actual, size_t n_actual, const void *expected,
                    size_t n_expected);
#define CHECK_MEM(actual, n_actual, expected, n_expected)                      \
  test_check_mem(__FILE__, __LINE__, #actual, actual, n_actual, expected,      \
                 n_expected)

/* |actual - expected| <= tolerance; two NaNs are equal. */
void test_check_near(const char *file, int line, const char *expr,
                     double actual, double expected, double tolerance);
#define CHECK_NEAR(actual, expected, tolerance)                                \
  test_check_near(__FILE__, __LINE__, #actual, actual, expected, tolerance)

/*
 * An allocator that counts. The runner fails a case that leaves blocks of it
 * behind. `test_alloc_fail_at(n)` makes its n-th allocation from now (0-based)
 * fail once; a negative n switches that off.
 */
const tnk_allocator_t *test_allocator(void);
size_t test_alloc_live(void);
size_t test_alloc_count(void);
/* Bytes that are live, and the most there were since the last reset. */
size_t test_alloc_bytes(void);
size_t test_alloc_peak(void);
void test_alloc_reset_peak(void);
void test_alloc_fail_at(long n);
int test_alloc_did_fail(void);

/* Deterministic pseudo-random numbers, the same in every run. */
uint64_t test_random(uint64_t *state);

/* Decode hexadecimal text; returns the number of bytes. */
size_t test_unhex(uint8_t *out, size_t size, const char *hex);

#endif
