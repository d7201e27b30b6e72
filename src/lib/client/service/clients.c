#include "lib/client/service/service.h"

#include "lib/base/alloc.h"
#include "lib/client/future/errand.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/training.h"

void tnk__clients_close(tnk__session_t *session) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&session->registry.errands)) != NULL)
    tnk__errand_fail(tnk__container_of(node, tnk__errand_t, link),
                     tnk__error_static(TNK_ECLOSED));
  TNK__LIST_FOREACH_SAFE (training, next, &session->registry.trainings)
    tnk__training_close(tnk__container_of(training, tnk_training_t, link), NULL,
                        NULL);
  TNK__LIST_FOREACH_SAFE (sampling, next, &session->registry.samplings)
    tnk__sampling_close(tnk__container_of(sampling, tnk_sampling_t, link), NULL,
                        NULL);
}
