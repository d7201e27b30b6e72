/* SPDX-License-Identifier: MIT */
#include "tools/tnk/account/account.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/common/base/terminal.h"

/* ---- The file ---- */

/*
 * The file of stored keys. A command that changes it takes a lock next to it,
 * reads it again, and replaces it by a new file. So readers never see a partial
 * file, and concurrent changes are not lost.
 */

#define NAME "~/" TNK__CREDENTIALS_FILE
#define FOLDER ".tinker"

/* The time to wait for the lock, and the interval between attempts. */
enum { LOCK_MS = 10000, LOOK_MS = 20 };

typedef struct {
  char folder[PATH_MAX];
  char file[PATH_MAX]; /* its real path, if it is a link */
  char fresh[PATH_MAX];
  char lock[PATH_MAX];
} places_t;

/* ---- The file: paths ---- */

static int fits(int n) {
  return n >= 0 && n < PATH_MAX;
}

/* Resolve a link, so that the link itself is kept. */
static void resolve(char out[PATH_MAX], const char *link) {
  uv_fs_t req;
  int err = uv_fs_realpath(NULL, &req, link, NULL);

  (void)snprintf(out, PATH_MAX, "%s", err == 0 ? (const char *)req.ptr : link);
  uv_fs_req_cleanup(&req);
}

static int find_places(const cli_t *cli, places_t *at) {
  const char *home = getenv("HOME");
  char link[PATH_MAX];

  if (home == NULL || home[0] == '\0')
    return cli_fail(cli, CLI_EXIT_FILE,
                    "HOME is not set: it is where keys are "
                    "stored");
  if (!fits(snprintf(at->folder, PATH_MAX, "%s/" FOLDER, home)) ||
      !fits(snprintf(link, PATH_MAX, "%s/" TNK__CREDENTIALS_FILE, home)) ||
      !fits(
          snprintf(at->lock, PATH_MAX, "%s/" FOLDER "/credentials.lock", home)))
    return cli_fail(cli, CLI_EXIT_FILE, "HOME is too long");
  resolve(at->file, link);
  if (!fits(snprintf(at->fresh, PATH_MAX, "%.*s.new", PATH_MAX - 5, at->file)))
    return cli_fail(cli, CLI_EXIT_FILE, "HOME is too long");
  return CLI_EXIT_OK;
}

static int fail(const cli_t *cli, const char *what) {
  return cli_fail(cli, CLI_EXIT_FILE, "cannot %s " NAME ": %s", what,
                  strerror(errno));
}

/* ---- The file: reading ---- */

static int parse(const cli_t *cli, const tnk__buf_t *buf, json_t **out) {
  int err = tnk__credentials_open(out, buf->data, buf->len);

  if (err == TNK_OK)
    return CLI_EXIT_OK;
  if (err == TNK_ENOMEM)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  return cli_report(
      cli, &(cli_problem_t){.status = CLI_EXIT_FILE,
                            .message = NAME " is not a credentials file",
                            .hint = "Check it, or move it away. It was not "
                                    "changed."});
}

static int read_open(const cli_t *cli, FILE *file, tnk__buf_t *buf) {
  for (;;) {
    uint8_t *to = tnk__buf_reserve(buf, 4096);
    size_t n;

    if (to == NULL)
      return cli_fail(cli, CLI_EXIT_FILE, NAME " is too large");
    n = fread(to, 1, 4096, file);
    buf->len += n;
    if (n < 4096)
      return ferror(file) ? fail(cli, "read") : CLI_EXIT_OK;
  }
}

static void warn_of_mode(const cli_t *cli, FILE *file) {
  struct stat info;

  if (fstat(fileno(file), &info) == 0 && (info.st_mode & 044) != 0)
    cli_note(cli,
             "Others can read the keys in " NAME "; chmod 600 prevents it.");
}

static int read_store(const cli_t *cli, const places_t *at, json_t **out) {
  FILE *file = fopen(at->file, "re");
  tnk__buf_t buf;
  int status;

  *out = NULL;
  if (file == NULL && (errno == ENOENT || errno == ENOTDIR)) {
    *out = json_object();
    return *out != NULL ? CLI_EXIT_OK
                        : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  }
  if (file == NULL)
    return fail(cli, "read");
  tnk__buf_init(&buf, tnk__allocator_default(), TNK__MAX_CREDENTIALS);
  status = read_open(cli, file, &buf);
  if (status == CLI_EXIT_OK)
    status = parse(cli, &buf, out);
  if (status == CLI_EXIT_OK)
    warn_of_mode(cli, file);
  fclose(file);
  tnk__wipe(buf.data, buf.cap);
  tnk__buf_deinit(&buf);
  return status;
}

/* Read ~/.tinker/credentials.json. The caller closes it with
 * tnk__credentials_close(). A missing file counts as an empty store. Returns
 * the exit status; errors have been reported, and then *out is NULL. */
static int store_read(const cli_t *cli, json_t **out) {
  places_t at;
  int status = find_places(cli, &at);

  *out = NULL;
  return status == CLI_EXIT_OK ? read_store(cli, &at, out) : status;
}

/* ---- The file: the lock ---- */

/* Returns the lock's descriptor, or -1 with errno. The end of the process
 * releases it at the latest. */
static int take_lock(const places_t *at) {
  const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int fd = open(at->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

  for (int ms = 0; fd >= 0 && fcntl(fd, F_SETLK, &lock) != 0; ms += LOOK_MS) {
    if ((errno != EACCES && errno != EAGAIN && errno != EINTR) ||
        ms >= LOCK_MS) {
      int reason = errno;

      close(fd);
      errno = reason == EACCES ? EAGAIN : reason;
      return -1;
    }
    nanosleep(&pause, NULL);
  }
  return fd;
}

static int lock_store(const cli_t *cli, const places_t *at, int *fd) {
  if (mkdir(at->folder, 0700) != 0 && errno != EEXIST)
    return cli_fail(cli, CLI_EXIT_FILE, "cannot make %s: %s", at->folder,
                    strerror(errno));
  *fd = take_lock(at);
  if (*fd >= 0)
    return CLI_EXIT_OK;
  if (errno == EAGAIN)
    return cli_fail(cli, CLI_EXIT_FILE,
                    "another command is changing " NAME
                    " and does not end; its lock is %s",
                    at->lock);
  return fail(cli, "lock");
}

/* ---- The file: writing ---- */

static int write_all(int fd, const uint8_t *data, size_t n) {
  while (n > 0) {
    ssize_t written = write(fd, data, n);

    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return -1;
    data += written;
    n -= (size_t)written;
  }
  return 0;
}

/* Write a new file and synchronize it. A file that a killed command left is
 * removed first. Only the owner of the lock uses that name. */
static int write_fresh(const places_t *at, const tnk__buf_t *buf) {
  int fd;
  int failed;

  unlink(at->fresh);
  fd = open(at->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return -1;
  failed = fchmod(fd, 0600) != 0 || write_all(fd, buf->data, buf->len) != 0 ||
           fsync(fd) != 0;
  if (close(fd) != 0 || failed)
    return -1;
  return rename(at->fresh, at->file);
}

/* Synchronize the folder, so that the rename survives a crash. Behind a link
 * the file may be in another folder. */
static void sync_folder(const places_t *at) {
  const size_t n = (size_t)(strrchr(at->file, '/') - at->file);
  char folder[PATH_MAX];
  int fd;

  (void)snprintf(folder, sizeof(folder), "%.*s", n > 0 ? (int)n : 1, at->file);
  fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return;
  (void)fsync(fd);
  close(fd);
}

static int write_store(const cli_t *cli, const places_t *at,
                       const json_t *store) {
  int status = CLI_EXIT_OK;
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), 2 * TNK__MAX_CREDENTIALS);
  if (tnk__credentials_write(store, &buf) != TNK_OK) {
    status = cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  } else if (write_fresh(at, &buf) != 0) {
    status = fail(cli, "write");
    unlink(at->fresh);
  } else {
    sync_folder(at);
  }
  tnk__wipe(buf.data, buf.cap);
  tnk__buf_deinit(&buf);
  return status;
}

int cli_store_change(const cli_t *cli, int (*change)(json_t *store, void *user),
                     void *user) {
  json_t *store = NULL;
  places_t at;
  int lock = -1;
  int status = find_places(cli, &at);

  if (status == CLI_EXIT_OK)
    status = lock_store(cli, &at, &lock);
  if (status == CLI_EXIT_OK)
    status = read_store(cli, &at, &store);
  if (status == CLI_EXIT_OK)
    status = change(store, user);
  if (status == CLI_EXIT_OK)
    status = write_store(cli, &at, store);
  tnk__credentials_close(store);
  if (lock >= 0)
    close(lock);
  return status;
}

/* ---- Keys ---- */

enum { MAX_TEXTS = 65536 };

static const char *variable(const char *name) {
  const char *value = getenv(name);

  return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *find_override(void) {
  static const char *const names[] = {"TINKER_API_KEY",
                                      "TINKER_CREDENTIAL_CMD"};

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    if (variable(names[i]) != NULL)
      return names[i];
  return NULL;
}

static int read_url(cli_account_t *account) {
  const cli_t *cli = account->cli;
  const char *text = cli->base_url;
  const char *why = "";
  int err;

  if (text == NULL || text[0] == '\0')
    text = variable("TINKER_BASE_URL");
  if (text == NULL)
    text = TNK__HOSTED_URL;
  err = tnk__url_parse(&account->url, &account->arena, text, &why);
  if (err == TNK_OK)
    return CLI_EXIT_OK;
  /* The URL may contain a password, so it is not shown. */
  return err == TNK_EINVAL ? cli_fail(cli, CLI_EXIT_USAGE, "%s", why)
                           : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

int cli_account_open(cli_account_t *account, const cli_t *cli) {
  int status;

  memset(account, 0, sizeof(*account));
  account->cli = cli;
  account->override = find_override();
  tnk__arena_init(&account->arena, tnk__allocator_default(), MAX_TEXTS);
  status = read_url(account);
  if (status != CLI_EXIT_OK)
    return status;
  /* For example in a container: with a variable set, no stored keys are
   * needed. */
  if (account->override != NULL && variable("HOME") == NULL)
    return CLI_EXIT_OK;
  return store_read(cli, &account->store);
}

void cli_account_close(cli_account_t *account) {
  tnk__credentials_close(account->store);
  tnk__arena_deinit(&account->arena);
}

tnk__stored_t cli_account_key(const cli_account_t *account,
                              tnk__stored_key_t *out) {
  return tnk__credentials_find(out, account->store, &account->url);
}

int cli_account_is_hosted(const cli_account_t *account) {
  return strcmp(account->url.text, TNK__HOSTED_URL) == 0;
}

void cli_account_tell_override(const cli_account_t *account) {
  if (account->override != NULL)
    cli_note(account->cli, "%s is set: it is used, and the stored key is not.",
             account->override);
}

void cli_account_say(const char *format, ...) {
  char line[1024];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  cli_clean(line);
  printf("%s\n", line);
}
