#include "api/opened.h"

#include <stdio.h>

#include "base/alloc.h"
#include "tnk/error.h"

static _Thread_local tnk__list_t all;

static tnk__list_t *list(void) {
  if (all.next == NULL)
    tnk__list_init(&all);
  return &all;
}

void tnk__opened_add(tnk__opened_t *opened, const uv_loop_t *uv,
                     void (*close)(tnk__opened_t *self)) {
  opened->uv = uv;
  opened->close = close;
  tnk__list_append(list(), &opened->link);
}

void tnk__opened_remove(tnk__opened_t *opened) {
  tnk__list_remove(&opened->link);
}

size_t tnk__opened_close_on(const uv_loop_t *uv) {
  size_t n = 0;

  TNK__LIST_FOREACH_SAFE (node, next, list()) {
    tnk__opened_t *opened = tnk__container_of(node, tnk__opened_t, link);
    if (opened->uv != uv)
      continue;
    opened->close(opened);
    n++;
  }
  return n;
}

int tnk__opened_say(char *text, size_t size, int err, const char *what) {
  if (text != NULL && size > 0)
    snprintf(text, size, "%s", what != NULL ? what : tnk_strerror(err));
  return err;
}
