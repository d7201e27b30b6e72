#ifndef TNK_LOCAL_BASE_FULL_H
#define TNK_LOCAL_BASE_FULL_H

/* What becomes of connections beyond the most there may be. */
typedef enum {
  LOCAL_FULL_WAIT = 0, /* they wait until another one ends */
  LOCAL_FULL_CLOSE,    /* they are closed as soon as they are made */
  LOCAL_FULL_RESET,    /* the same by a reset */
  LOCAL_FULL_503       /* their first request gets 503, then they close */
} local_full_t;

#endif
