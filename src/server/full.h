#ifndef TNK_SERVER_FULL_H
#define TNK_SERVER_FULL_H

/* What becomes of connections beyond the most there may be. */
typedef enum {
  TNK__SRV_FULL_WAIT = 0, /* they wait until another one ends */
  TNK__SRV_FULL_CLOSE,    /* they are closed as soon as they are made */
  TNK__SRV_FULL_RESET,    /* the same by a reset */
  TNK__SRV_FULL_503       /* their first request gets 503, then they close */
} tnk__srv_full_t;

#endif
