#ifndef TNK_TOOLS_LOCAL_LEDGER_FILE_H
#define TNK_TOOLS_LOCAL_LEDGER_FILE_H

#include "tools/local/ledger/ledger.h"

/* Read the ledger of earlier servers; an unreadable file counts as missing. */
void local_ledger_load(local_server_t *server);
/* Write the ledger if it is kept and has changed. */
void local_ledger_save(local_server_t *server);

#endif
