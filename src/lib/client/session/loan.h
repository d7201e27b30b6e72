#ifndef TNK_LIB_CLIENT_SESSION_LOAN_H
#define TNK_LIB_CLIENT_SESSION_LOAN_H

#include "lib/io/loop/context.h"

/*
 * Data that a caller has lent and gets back unread, because the call was
 * refused. The lender is notified in a later turn of the loop, even without
 * memory. A reserve is kept for as many refusals as one turn may bring.
 */
enum { TNK__LOANS_SPARE = 32 };

typedef struct {
  tnk__deferred_t call;
  struct tnk__loans *loans;
  void (*release)(void *user); /* NULL: not in use */
  void *user;
  int is_spare; /* part of the reserve */
} tnk__loan_t;

typedef struct tnk__loans {
  tnk__context_t *context;
  tnk__loan_t spare[TNK__LOANS_SPARE];
} tnk__loans_t;

void tnk__loans_open(tnk__loans_t *loans, tnk__context_t *context);
/* Notify the lender in the next turn of the loop. Exception: without memory,
 * and with the whole reserve in use, it is called at once. */
void tnk__loans_end(tnk__loans_t *loans, void (*release)(void *user),
                    void *user);

#endif
