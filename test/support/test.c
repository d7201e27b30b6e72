/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

/* That of gcc finds names in the process itself. */
#ifdef __clang__
#if __has_feature(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define WITH_THREAD_SANITIZER
#endif
#endif

enum { MAX_CASES = 512, EXIT_FAILED = 1, EXIT_SKIPPED = 77 };

struct test_case {
  const char *name;
  test_fn fn;
  unsigned limit_s;
};

static struct test_case cases[MAX_CASES];
static size_t n_cases;
/* The pool's threads allocate as well. */
static pthread_mutex_t alloc_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t live_blocks;
static size_t n_allocations;
static size_t live_bytes;
static size_t peak_bytes;
static long fail_at = -1;
static int did_fail;

void test_register(const char *name, test_fn fn, unsigned limit_s) {
  if (n_cases == MAX_CASES)
    abort();
  cases[n_cases++] = (struct test_case){
      name, fn, limit_s > TEST_LEAST_LIMIT_S ? limit_s : TEST_LEAST_LIMIT_S};
}

static char context[512];

static void on_alarm(int number) {
  (void)number;
  if (write(STDERR_FILENO, "out of time: ", 13) < 0 ||
      write(STDERR_FILENO, context, strlen(context)) < 0 ||
      write(STDERR_FILENO, "\n", 1) < 0)
    _exit(EXIT_FAILED);
  _exit(EXIT_FAILED);
}

void test_context(const char *text) {
  if (context[0] == '\0')
    signal(SIGALRM, on_alarm);
  snprintf(context, sizeof(context), "%s", text);
}

void test_fail(const char *file, int line, const char *format, ...) {
  va_list args;
  char text[1024];

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  fflush(stdout);
  if (context[0] != '\0')
    fprintf(stderr, "%s\n", context);
  printf("# %s:%d: %s\n", file, line, text);
  fflush(stdout);
  /* `meson test --print-errorlogs` shows no comments of TAP. */
  fprintf(stderr, "%s:%d: %s\n", file, line, text);
  _exit(EXIT_FAILED);
}

void test_skip(const char *reason) {
  printf("# skipped: %s\n", reason);
  fflush(stdout);
  _exit(EXIT_SKIPPED);
}

int test_has_localhost(void) {
  struct addrinfo *found = NULL;
  int err = getaddrinfo("localhost", NULL, NULL, &found);

  if (err == 0)
    freeaddrinfo(found);
  return err == 0;
}

void test_check_str(const char *file, int line, const char *expr,
                    const char *actual, const char *expected) {
  if (actual == expected)
    return;
  if (actual == NULL || expected == NULL || strcmp(actual, expected) != 0)
    test_fail(file, line, "%s is \"%s\", expected \"%s\"", expr,
              actual != NULL ? actual : "(null)",
              expected != NULL ? expected : "(null)");
}

void test_check_mem(const char *file, int line, const char *expr,
                    const void *actual, size_t n_actual, const void *expected,
                    size_t n_expected) {
  const unsigned char *a = actual;
  const unsigned char *e = expected;
  size_t i;

  for (i = 0; i < n_actual && i < n_expected; i++)
    if (a[i] != e[i])
      test_fail(file, line, "%s differs at byte %zu: %02x, expected %02x", expr,
                i, a[i], e[i]);
  if (n_actual != n_expected)
    test_fail(file, line, "%s has %zu bytes, expected %zu", expr, n_actual,
              n_expected);
}

void test_check_near(const char *file, int line, const char *expr,
                     double actual, double expected, double tolerance) {
  if (isnan(actual) && isnan(expected))
    return;
  if (actual == expected || fabs(actual - expected) <= tolerance)
    return;
  test_fail(file, line, "%s is %.17g, expected %.17g within %g", expr, actual,
            expected, tolerance);
}

/* Count an allocation; 0 when this one is to fail. */
static int count_allocation(void) {
  int allowed = 1;

  pthread_mutex_lock(&alloc_lock);
  n_allocations++;
  if (fail_at >= 0 && fail_at-- == 0) {
    did_fail = 1;
    allowed = 0;
  }
  if (allowed)
    live_blocks++;
  pthread_mutex_unlock(&alloc_lock);
  return allowed;
}

/* What the block really takes; returns it. */
static void *count_bytes(void *ptr) {
  pthread_mutex_lock(&alloc_lock);
  live_bytes += malloc_usable_size(ptr);
  if (live_bytes > peak_bytes)
    peak_bytes = live_bytes;
  pthread_mutex_unlock(&alloc_lock);
  return ptr;
}

static void count_free(void *ptr) {
  pthread_mutex_lock(&alloc_lock);
  live_blocks--;
  live_bytes -= malloc_usable_size(ptr);
  pthread_mutex_unlock(&alloc_lock);
}

static void *test_malloc(size_t size, void *user) {
  (void)user;
  return count_allocation() ? count_bytes(malloc(size)) : NULL;
}

static void *test_calloc(size_t n, size_t size, void *user) {
  (void)user;
  return count_allocation() ? count_bytes(calloc(n, size)) : NULL;
}

static void *test_realloc(void *ptr, size_t size, void *user) {
  (void)user;
  if (!count_allocation())
    return NULL;
  if (ptr != NULL)
    count_free(ptr);
  return count_bytes(realloc(ptr, size));
}

static void test_free(void *ptr, void *user) {
  (void)user;
  if (ptr != NULL)
    count_free(ptr);
  free(ptr);
}

const tnk_allocator_t *test_allocator(void) {
  static const tnk_allocator_t allocator = {test_malloc, test_calloc,
                                            test_realloc, test_free, NULL};
  return &allocator;
}

size_t test_alloc_live(void) {
  return live_blocks;
}

size_t test_alloc_count(void) {
  return n_allocations;
}

size_t test_alloc_bytes(void) {
  return live_bytes;
}

size_t test_alloc_peak(void) {
  return peak_bytes;
}

void test_alloc_reset_peak(void) {
  peak_bytes = live_bytes;
}

void test_alloc_fail_at(long n) {
  fail_at = n;
  did_fail = 0;
}

int test_alloc_did_fail(void) {
  return did_fail;
}

uint64_t test_random(uint64_t *state) {
  /* splitmix64 */
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);

  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static int nibble(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  abort();
}

size_t test_unhex(uint8_t *out, size_t size, const char *hex) {
  size_t n = strlen(hex) / 2;
  size_t i;

  if (n > size)
    abort();
  for (i = 0; i < n; i++)
    out[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  return n;
}

static int count_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  int n = 0;

  if (dir == NULL)
    return -1;
  while (readdir(dir) != NULL)
    n++;
  closedir(dir);
  return n;
}

/* libuv opens two descriptors for the whole process with its first loop. */
static void open_process_descriptors(void) {
  uv_loop_t loop;

  if (uv_loop_init(&loop) == 0)
    uv_loop_close(&loop);
}

#ifdef WITH_THREAD_SANITIZER
enum { SYMBOLIZER_DESCRIPTORS = 2 };

/* The sanitizer of threads compares its reports with a list of what to ignore.
 * For the first one it starts a program that finds names, and keeps two pipes
 * to it. Here it is started for certain, so that its pipes can be left out. */
static int count_own_descriptors(void) {
  char name[64];

  __sanitizer_symbolize_pc(__builtin_return_address(0), "%f", name,
                           sizeof(name));
  return count_descriptors() - SYMBOLIZER_DESCRIPTORS;
}
#else
static int count_own_descriptors(void) {
  return count_descriptors();
}
#endif

static void run_case(const struct test_case *test) {
  int before, after;

  open_process_descriptors();
  before = count_descriptors();
  live_blocks = 0;
  test->fn();
  test_alloc_fail_at(-1);
  if (live_blocks != 0)
    test_fail(__FILE__, __LINE__, "%zu blocks were not freed", live_blocks);
  after = count_descriptors();
  if (after != before)
    after = count_own_descriptors();
  if (after != before)
    test_fail(__FILE__, __LINE__, "%d descriptors before, %d after", before,
              after);
}

static unsigned stretch(void) {
  const char *text = getenv("TNK_TEST_STRETCH");
  long n = text != NULL ? strtol(text, NULL, 10) : 1;

  return n > 0 && n < 1000 ? (unsigned)n : 1;
}

/* Run a case in a child; returns its exit code, or 128 + signal. */
static int run_forked(const struct test_case *test) {
  int status;
  pid_t pid;

  fflush(stdout);
  pid = fork();
  if (pid < 0)
    return EXIT_FAILED;
  if (pid == 0) {
    alarm(test->limit_s * stretch());
    run_case(test);
    fflush(stdout);
    exit(0); /* not _exit: the leak checker runs at exit */
  }
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      return EXIT_FAILED;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int selected(const char *name, int argc, char **argv) {
  int any = 0;
  int i;

  for (i = 1; i < argc; i++) {
    if (argv[i][0] == '-')
      continue;
    any = 1;
    if (strstr(name, argv[i]) != NULL)
      return 1;
  }
  return !any;
}

static int has_flag(const char *flag, int argc, char **argv) {
  int i;

  for (i = 1; i < argc; i++)
    if (strcmp(argv[i], flag) == 0)
      return 1;
  return 0;
}

/* Returns whether `--part=K/N` leaves a case to this program: it takes the
 * cases K, K + N, K + 2N and so on. */
static int is_in_part(size_t i, int argc, char **argv) {
  size_t k, n;

  for (int j = 1; j < argc; j++)
    if (sscanf(argv[j], "--part=%zu/%zu", &k, &n) == 2 && n > 0)
      return i % n == k - 1;
  return 1;
}

/* The proxies of the machine are nothing for servers that live in a case. */
static void clear_proxies(void) {
  static const char *const names[] = {
      "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
      "ALL_PROXY",  "no_proxy",    "NO_PROXY"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    unsetenv(names[i]);
}

int main(int argc, char **argv) {
  int no_fork = has_flag("--no-fork", argc, argv);
  int n_run = 0;
  int n_failed = 0;
  size_t i;

  if (has_flag("--list", argc, argv)) {
    for (i = 0; i < n_cases; i++)
      printf("%s\n", cases[i].name);
    return 0;
  }
  signal(SIGPIPE, SIG_DFL);
  clear_proxies();
  for (i = 0; i < n_cases; i++) {
    int code = 0;
    if (!selected(cases[i].name, argc, argv) || !is_in_part(i, argc, argv))
      continue;
    n_run++;
    if (no_fork)
      run_case(&cases[i]);
    else
      code = run_forked(&cases[i]);
    if (code == 128 + SIGALRM)
      printf("# time limit of %u s\n", cases[i].limit_s * stretch());
    else if (code > 128)
      printf("# signal %d\n", code - 128);
    printf("%s %d - %s%s\n",
           code == 0 || code == EXIT_SKIPPED ? "ok" : "not ok", n_run,
           cases[i].name, code == EXIT_SKIPPED ? " # SKIP" : "");
    n_failed += code != 0 && code != EXIT_SKIPPED;
  }
  printf("1..%d\n", n_run);
  return n_failed > 0;
}
