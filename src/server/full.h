/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_FULL_H
#define TNK_SERVER_FULL_H

/* The treatment of connections beyond the maximum. */
typedef enum {
  TNK__SRV_FULL_WAIT = 0, /* they wait until another connection ends */
  TNK__SRV_FULL_CLOSE,    /* they are accepted and closed at once */
  TNK__SRV_FULL_RESET,    /* they are accepted and reset at once */
  TNK__SRV_FULL_503       /* the first request gets 503, then they are closed */
} tnk__srv_full_t;

#endif
