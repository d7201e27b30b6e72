#ifndef TNK_TASK_SERVICE_CLIENTS_H
#define TNK_TASK_SERVICE_CLIENTS_H

#include "task/session/session.h"

/* Fail all operations of a session that is closing, and close its clients.
 * Their memory is freed in later turns of the loop. */
void tnk__clients_close(tnk__session_t *session);

#endif
