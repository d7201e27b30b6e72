#ifndef TNK_LOCAL_SERVER_REST_H
#define TNK_LOCAL_SERVER_REST_H

#include "local/call/call.h"

/* Listing and managing what is on the disk. */
void local_weights_info(local_call_t *call);
void local_list_runs(local_call_t *call);
void local_get_run(local_call_t *call);
void local_list_run_checkpoints(local_call_t *call);
void local_list_checkpoints(local_call_t *call);
void local_delete_checkpoint(local_call_t *call);
void local_publish(local_call_t *call);
void local_unpublish(local_call_t *call);
void local_set_ttl(local_call_t *call);

/* The number in the query, or `fallback`. */
size_t local_query_number(const local_req_t *req, const char *name,
                          size_t fallback);

#endif
