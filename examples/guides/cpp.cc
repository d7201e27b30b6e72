#include <tnk/tnk.hpp>
#include <uv.h>

#include <cstdio>

static const std::int32_t text[] = {'h', 'e', 'l', 'l', 'o'};

static tnk::task<> run(tnk::service &service) {
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  tnk::batch batch;

  lora.base_model = "tnk/byte-lm";
  params.max_tokens = 8;
  batch.add_tokens(text);
  tnk::training model(co_await service.create_lora(lora));
  for (int step = 1; step <= 20; step++) {
    /* Both are sent before the first one is waited for. */
    tnk::promise pass = model.forward_backward(batch.data());
    tnk::promise update = model.optim_step();
    std::printf("step %d: loss %.3f\n", step, (co_await pass).loss());
    co_await update;
  }
  tnk::sampling sampler(
      co_await model.save_weights_and_get_sampling(TNK_SAMPLING_SNAPSHOT));
  tnk::promise sampled =
      co_await sampler.sample(std::span(text).first(2), params);
  std::printf("he -> ");
  for (std::int32_t token : sampled.samples().tokens(0))
    std::printf("%d ", token);
  std::printf("\n");
}

int main() {
  uv_loop_t *loop = uv_default_loop();
  int status = 0;

  try {
    tnk::service service(loop);
    tnk::task<> task = run(service);
    while (!task.is_done())
      uv_run(loop, UV_RUN_ONCE);
    task.get();
  } catch (const tnk::error &caught) {
    std::fprintf(stderr, "%s\n", caught.what());
    status = 1;
  }
  uv_run(loop, UV_RUN_DEFAULT); /* The service closes. */
  return status;
}
