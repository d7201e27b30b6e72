#include <tnk/script.h>

int main(void) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.connect_timeout_ms = 2000;
  options.timeout_ms = 20000;
  options.display_name = "connecting guide";
  tnk_service_t *service = tnk_must_open(&options);
  tnk_must(tnk_service_health(service));
  tnk_promise_t *asked = tnk_must_keep(tnk_service_capabilities(service));
  const tnk_capabilities_t *offer = tnk_promise_capabilities(asked);
  for (size_t i = 0; i < tnk_capabilities_count(offer); i++) {
    const tnk_model_t *model = tnk_capabilities_model(offer, i);
    printf("%s\n", model->name != NULL ? model->name : "(no name)");
  }
  tnk_promise_unref(asked);
  return tnk_must_close(service);
}
