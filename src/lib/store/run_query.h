/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_RUN_QUERY_H
#define TNK_LIB_STORE_RUN_QUERY_H

#include "lib/client/recover/run_query.h"

/* The query for the monitor of lost runs. */
extern const tnk__run_query_t tnk__store_run_query;

#endif
