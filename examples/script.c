#include "script.h"

#include <stdio.h>
#include <stdlib.h>

tnk_promise_t *done(tnk_promise_t *promise, const char *what) {
  if (tnk_wait(promise) == TNK_OK)
    return promise;
  fprintf(stderr, "\n%s: %s\n", what, tnk_promise_text(promise));
  exit(1);
}

static void write_warning(tnk_log_level_t level, const char *subject,
                          const char *message, size_t length, void *user) {
  (void)level;
  (void)user;
  fprintf(stderr, "\n%s: %.*s\n", subject, (int)length, message);
}

tnk_service_t *open_service(uv_loop_t *loop) {
  const tnk_logger_t logger = {TNK_LOG_WARN, write_warning, NULL};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  char why[256];

  options.logger = &logger;
  if (tnk_service_open(&service, loop, &options, why, sizeof(why)) == TNK_OK)
    return service;
  fprintf(stderr, "%s\n", why);
  exit(1);
}

const char *first_model(tnk_promise_t *promise) {
  const tnk_capabilities_t *offer = tnk_promise_capabilities(promise);

  for (size_t i = 0; i < tnk_capabilities_count(offer); i++) {
    const tnk_model_t *model = tnk_capabilities_model(offer, i);
    if (model->name != NULL && model->trainable != TNK_NO)
      return model->name;
  }
  fprintf(stderr, "the server offers no model; name one\n");
  exit(1);
}
