/* SPDX-License-Identifier: MIT */
/* Loaded in front of the C library by the tests of the bindings. It makes an
 * allocation of a binding fail, or holds the runtime's thread at an unlock. The
 * file TNK_TEST_CONTROL says what, see control_t, and TNK_TEST_OBJECT names the
 * shared object of the binding. Needs glibc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the file has. */
typedef struct {
  /* Counts allocations of the binding down. The one that makes it 0 fails. */
  _Atomic int64_t fail_at;
  /* Counts down where threads that are not Python's release the mutex that the
   * main thread has locked first since then. At 0 the thread waits for a writer
   * of the FIFO TNK_TEST_GATE. */
  _Atomic int64_t pause_at;
  _Atomic int64_t is_paused;
} control_t;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static control_t nothing;
static control_t *control = &nothing;
static const char *object_name = "?";
static _Atomic uintptr_t object_begin;
static _Atomic uintptr_t object_end;

__attribute__((constructor)) static void open_control(void) {
  const char *path = getenv("TNK_TEST_CONTROL");
  const char *name = getenv("TNK_TEST_OBJECT");
  const int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
  void *shared = MAP_FAILED;

  if (name != NULL)
    object_name = name;
  if (fd >= 0)
    shared = mmap(NULL, sizeof(control_t), PROT_READ | PROT_WRITE, MAP_SHARED,
                  fd, 0);
  if (fd >= 0)
    close(fd);
  if (shared != MAP_FAILED)
    control = shared;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *user) {
  int i;

  (void)size;
  (void)user;
  if (strstr(info->dlpi_name, object_name) == NULL)
    return 0;
  for (i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr;

    if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
      atomic_store(&object_end, begin + part->p_memsz);
      atomic_store(&object_begin, begin);
    }
  }
  return 1;
}

static int is_binding(const void *caller) {
  const uintptr_t at = (uintptr_t)caller;

  if (atomic_load(&object_begin) == 0)
    dl_iterate_phdr(look_at, NULL);
  return at >= atomic_load(&object_begin) && at < atomic_load(&object_end);
}

/* ---- Allocations ---- */

static int must_fail(const void *caller) {
  if (atomic_load(&control->fail_at) <= 0 || !is_binding(caller) ||
      atomic_fetch_sub(&control->fail_at, 1) != 1)
    return 0;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t size) {
  return must_fail(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  return must_fail(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size) {
  return must_fail(__builtin_return_address(0)) ? NULL
                                                : __libc_realloc(old, size);
}

/* ---- Locks ---- */

typedef int (*lock_t)(pthread_mutex_t *mutex);
typedef void *(*thread_state_t)(void);

static pthread_mutex_t *_Atomic watched;

static lock_t next(const char *name) {
  lock_t function;

  *(void **)&function = dlsym(RTLD_NEXT, name);
  return function;
}

static int is_of_python(void) {
  static thread_state_t state;

  if (state == NULL)
    *(void **)&state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  return state == NULL || state() != NULL;
}

static void wait_at_gate(void) {
  const char *gate = getenv("TNK_TEST_GATE");
  int fd;

  atomic_store(&control->is_paused, 1);
  fd = gate != NULL ? open(gate, O_RDONLY | O_CLOEXEC) : -1;
  if (fd >= 0)
    close(fd);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static lock_t lock;

  if (lock == NULL)
    lock = next("pthread_mutex_lock");
  if (atomic_load(&control->pause_at) > 0 && atomic_load(&watched) == NULL &&
      gettid() == getpid() && is_binding(__builtin_return_address(0)))
    atomic_store(&watched, mutex);
  return lock(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  static lock_t unlock;
  int err;

  if (unlock == NULL)
    unlock = next("pthread_mutex_unlock");
  err = unlock(mutex);
  if (atomic_load(&control->pause_at) > 0 && mutex == atomic_load(&watched) &&
      !is_of_python() && atomic_fetch_sub(&control->pause_at, 1) == 1)
    wait_at_gate();
  return err;
}
