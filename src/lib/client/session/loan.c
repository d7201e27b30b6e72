#include "lib/client/session/loan.h"

#include "lib/base/alloc.h"

static void on_over(tnk__deferred_t *call) {
  tnk__loan_t *loan = tnk__container_of(call, tnk__loan_t, call);
  const tnk__loan_t copy = *loan;

  if (loan->is_spare)
    loan->release = NULL;
  else
    tnk__free(&copy.loans->context->alloc, loan);
  tnk__callout_begin();
  copy.release(copy.user);
  tnk__callout_end();
}

void tnk__loans_open(tnk__loans_t *loans, tnk__context_t *context) {
  *loans = (tnk__loans_t){.context = context};
}

static tnk__loan_t *find_spare(tnk__loans_t *loans) {
  size_t i;

  for (i = 0; i < TNK__LOANS_SPARE; i++)
    if (loans->spare[i].release == NULL)
      return &loans->spare[i];
  return NULL;
}

void tnk__loans_end(tnk__loans_t *loans, void (*release)(void *user),
                    void *user) {
  tnk__loan_t *loan = tnk__malloc(&loans->context->alloc, sizeof(*loan));
  const int is_spare = loan == NULL;

  if (is_spare)
    loan = find_spare(loans);
  if (loan == NULL) {
    release(user);
    return;
  }
  *loan = (tnk__loan_t){
      .loans = loans, .release = release, .user = user, .is_spare = is_spare};
  tnk__deferred_init(&loan->call, on_over);
  tnk__defer(loans->context, &loan->call);
}
