#include "lib/files/push/pushed.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"

typedef struct {
  tnk_pushed_t pub;
  char texts[];
} own_t;

static size_t size_of(const char *text) {
  return text != NULL ? strlen(text) + 1 : 1;
}

static const char *put(char **at, const char *text) {
  char *begin = *at;

  memcpy(begin, text != NULL ? text : "", size_of(text));
  *at += size_of(text);
  return begin;
}

tnk_pushed_t *tnk__pushed_new(const tnk_allocator_t *alloc,
                              const tnk_pushed_t *pushed,
                              const json_t *answer) {
  const char *commit = tnk__json_str(answer, "commitOid");
  const char *url = tnk__json_str(answer, "pullRequestUrl");
  own_t *own;
  char *at;

  if (url == NULL)
    url = tnk__json_str(answer, "commitUrl");
  own = tnk__malloc(alloc, sizeof(*own) + size_of(pushed->repo) +
                               size_of(pushed->revision) + size_of(commit) +
                               size_of(url));
  if (own == NULL)
    return NULL;
  at = own->texts;
  own->pub = *pushed;
  own->pub.repo = put(&at, pushed->repo);
  own->pub.revision = put(&at, pushed->revision);
  own->pub.commit = put(&at, commit);
  own->pub.url = put(&at, url);
  return &own->pub;
}

void tnk__pushed_free(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}
