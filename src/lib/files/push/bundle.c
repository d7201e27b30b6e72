#include "lib/files/push/bundle.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/push/card.h"
#include "tnk/error.h"

enum { MAX_TEXTS = 1 << 20 };

static int copy(tnk__arena_t *arena, const char **text) {
  if (*text == NULL)
    return 1;
  *text = tnk__arena_strdup(arena, *text);
  return *text != NULL;
}

static int copy_list(tnk__arena_t *arena, const char *const **list, size_t n) {
  const char **own;

  if (n == 0)
    return 1;
  own = tnk__arena_calloc(arena, n, sizeof(*own));
  if (own == NULL)
    return 0;
  for (size_t i = 0; i < n; i++) {
    own[i] = (*list)[i];
    if (!copy(arena, &own[i]))
      return 0;
  }
  *list = own;
  return 1;
}

static int copy_all(tnk__bundle_t *bundle, const char **directory) {
  tnk_push_options_t *o = &bundle->options;
  tnk__arena_t *arena = &bundle->arena;

  return copy(arena, directory) && copy(arena, &o->checkpoint) &&
         copy(arena, &o->repo) && copy(arena, &o->revision) &&
         copy(arena, &o->message) && copy(arena, &o->base_model) &&
         copy_list(arena, &o->allow, o->n_allow) &&
         copy_list(arena, &o->ignore, o->n_ignore);
}

/* Derive missing names from the checkpoint's. */
static int choose_names(tnk__bundle_t *bundle) {
  const tnk_push_options_t *o = &bundle->options;
  char repo[TNK__PUSH_NAME + 1];
  char revision[TNK__PUSH_NAME + 1] = "main";
  const char *slash = o->repo != NULL ? strchr(o->repo, '/') : NULL;

  tnk__push_default_repo(repo, o);
  if (o->repo == NULL)
    tnk__push_default_revision(revision, o);
  bundle->revision = o->revision != NULL ? o->revision : revision;
  bundle->name = o->repo == NULL ? repo : slash != NULL ? slash + 1 : o->repo;
  if (slash != NULL) {
    bundle->owner =
        tnk__arena_strndup(&bundle->arena, o->repo, (size_t)(slash - o->repo));
    if (bundle->owner == NULL)
      return 0;
  }
  return copy(&bundle->arena, &bundle->revision) &&
         copy(&bundle->arena, &bundle->name);
}

static void dispose(tnk__bundle_t *bundle) {
  const tnk_allocator_t *alloc = bundle->folder.alloc;

  tnk__folder_deinit(&bundle->folder);
  tnk__arena_deinit(&bundle->arena);
  tnk__free(alloc, bundle);
}

tnk__bundle_t *tnk__bundle_new(const tnk_allocator_t *alloc,
                               const char *directory,
                               const tnk_push_options_t *options) {
  tnk__bundle_t *bundle = tnk__calloc(alloc, 1, sizeof(*bundle));
  int is_good;

  if (bundle == NULL)
    return NULL;
  bundle->options = *options;
  tnk__arena_init(&bundle->arena, alloc, MAX_TEXTS);
  is_good = copy_all(bundle, &directory) && choose_names(bundle);
  tnk__folder_init(&bundle->folder, alloc, directory, &bundle->options);
  if (!is_good) {
    dispose(bundle);
    return NULL;
  }
  return bundle;
}

static void run(tnk__work_t *work) {
  tnk__bundle_t *bundle = tnk__container_of(work, tnk__bundle_t, work);

  bundle->job(&bundle->folder);
}

static void on_done(tnk__work_t *work) {
  tnk__bundle_t *bundle = tnk__container_of(work, tnk__bundle_t, work);

  bundle->is_busy = 0;
  if (bundle->is_free)
    dispose(bundle);
  else
    bundle->done(bundle);
}

int tnk__bundle_run(tnk__bundle_t *bundle, tnk__context_t *context,
                    void (*job)(tnk__folder_t *folder)) {
  int err;

  bundle->job = job;
  err = tnk__work_start(context, &bundle->work, run, on_done);
  bundle->is_busy = err == TNK_OK;
  return err;
}

void tnk__bundle_free(tnk__bundle_t *bundle) {
  if (bundle == NULL)
    return;
  bundle->is_free = 1;
  atomic_store(&bundle->folder.is_unwanted, 1);
  if (!bundle->is_busy)
    dispose(bundle);
}
