#include "lib/client/session/foreign.h"

#include <string.h>

#include "lib/base/alloc.h"

static void on_ended(tnk__heartbeat_t *heartbeat, tnk__error_t *error) {
  tnk__foreign_t *foreign =
      tnk__container_of(heartbeat, tnk__foreign_t, heartbeat);

  foreign->has_ended = 1;
  tnk__session_answered(foreign->session);
  tnk__session_tell(foreign->session, foreign->id, TNK_QUEUE_SESSION_LOST,
                    error->pub.text);
}

static void on_kept(tnk__heartbeat_t *heartbeat) {
  tnk__session_answered(
      tnk__container_of(heartbeat, tnk__foreign_t, heartbeat)->session);
}

static void destroy(tnk__foreign_t *foreign) {
  const tnk_allocator_t *alloc = &foreign->session->context->alloc;

  tnk__heartbeat_close(&foreign->heartbeat);
  tnk__free(alloc, foreign->id);
  tnk__free(alloc, foreign);
}

static tnk__foreign_t *create(tnk__session_t *session, const char *id) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk__foreign_t *foreign = tnk__calloc(alloc, 1, sizeof(*foreign));

  if (foreign == NULL)
    return NULL;
  foreign->session = session;
  foreign->id = tnk__strdup(alloc, id);
  tnk__heartbeat_open(&foreign->heartbeat, alloc);
  foreign->heartbeat.ended = on_ended;
  foreign->heartbeat.kept = on_kept;
  if (foreign->id == NULL ||
      tnk__heartbeat_prepare(&foreign->heartbeat, &session->endpoint,
                             foreign->id) != TNK_OK) {
    destroy(foreign);
    return NULL;
  }
  tnk__list_append(&session->foreigners, &foreign->link);
  tnk__heartbeat_begin(&foreign->heartbeat);
  return foreign;
}

int tnk__foreign_enter(tnk__foreign_t **out, tnk__session_t *session,
                       const char *id) {
  tnk__foreign_t *found = NULL;

  *out = NULL;
  if (session->id != NULL && strcmp(session->id, id) == 0)
    return TNK_OK;
  TNK__LIST_FOREACH (node, &session->foreigners) {
    tnk__foreign_t *foreign = tnk__container_of(node, tnk__foreign_t, link);

    if (strcmp(foreign->id, id) == 0)
      found = foreign;
  }
  if (found == NULL)
    found = create(session, id);
  if (found == NULL)
    return TNK_ENOMEM;
  found->n_clients++;
  *out = found;
  return TNK_OK;
}

void tnk__foreign_leave(tnk__foreign_t *foreign) {
  if (foreign == NULL || --foreign->n_clients > 0)
    return;
  tnk__list_remove(&foreign->link);
  tnk__session_answered(foreign->session);
  destroy(foreign);
}
