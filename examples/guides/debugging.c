#include <tnk/script.h>

static void print(const char *text, size_t length, void *user) {
  fwrite(text, 1, length, user);
}

static void on_timer(uv_timer_t *timer) {
  tnk_promise_t *sample = timer->data;
  char text[512];

  tnk_promise_explain(sample, text, sizeof(text));
  printf("%s\n", text);
  tnk_promise_cancel(sample);
  uv_close((uv_handle_t *)timer, NULL);
}

int main(void) {
  const int32_t ids[] = {'H', 'i'};
  const tnk_model_input_t prompt = {.tokens = ids, .n_tokens = 2};
  tnk_sampling_options_t from = TNK_SAMPLING_OPTIONS_INIT;
  tnk_service_t *service = tnk_must_open(NULL);
  uv_timer_t timer;

  from.base_model = "tnk/byte-lm";
  tnk_sampling_t *sampler =
      tnk_must_sampling(tnk_service_create_sampling(service, &from));
  tnk_promise_t *sample = tnk_sampling_sample(sampler, &prompt, NULL, NULL);
  uv_timer_init(uv_default_loop(), &timer);
  timer.data = sample;
  uv_timer_start(&timer, on_timer, 0, 0);
  if (tnk_wait(sample) != TNK_OK)
    printf("%s\n", tnk_promise_text(sample));
  tnk_promise_unref(sample);
  tnk_service_dump(service, TNK_DUMP_TEXT, print, stdout);
  return tnk_must_close(service);
}
