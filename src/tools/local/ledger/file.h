#ifndef TNK_TOOLS_LOCAL_LEDGER_FILE_H
#define TNK_TOOLS_LOCAL_LEDGER_FILE_H

#include "tools/local/ledger/ledger.h"

/* Read what is kept of earlier servers; a file that cannot be read is like
 * none. */
void local_ledger_load(local_server_t *server);
/* Keep the ledger, where anything is kept and there is news. */
void local_ledger_save(local_server_t *server);

#endif
