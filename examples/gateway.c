/*
 * Serves a model to agents until Ctrl-C, then prints what was recorded as
 * examples to train on. The service is that of TINKER_BASE_URL:
 *
 *     gateway [PORT] >data.jsonl
 */
#include <stdio.h>
#include <stdlib.h>
#include <tnk/gateway.h>
#include <tnk/tnk.h>
#include <uv.h>

static int print_line(void *user, const char *line, size_t n) {
  (void)user;
  return fwrite(line, 1, n, stdout) == n ? TNK_OK : TNK_EFILE;
}

static void on_signal(uv_signal_t *signal, int number) {
  (void)number;
  uv_stop(signal->loop);
}

int main(int argc, char **argv) {
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  tnk_sampling_options_t weights = TNK_SAMPLING_OPTIONS_INIT;
  uv_loop_t *loop = uv_default_loop();
  tnk_gateway_t *gateway = NULL;
  tnk_service_t *service = NULL;
  uv_signal_t interrupt;
  char why[256];
  int err = tnk_service_open(&service, loop, NULL, why, sizeof(why));

  options.port = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 0;
  options.tokenizer.plugin = tnk_chat_bytes_plugin();
  weights.base_model = "tnk/byte-lm";
  if (err == TNK_OK)
    err = tnk_gateway_open(&gateway, loop, service, &options, why, sizeof(why));
  if (err != TNK_OK) {
    fprintf(stderr, "gateway: %s\n", why);
    tnk_service_close(service, NULL, NULL);
    return 1;
  }
  uv_signal_init(loop, &interrupt);
  uv_signal_start(&interrupt, on_signal, SIGINT);
  tnk_promise_t *ready = tnk_gateway_use(gateway, &weights);
  err = tnk_wait(ready);
  fprintf(stderr, "%s\n",
          err == TNK_OK ? tnk_gateway_address(gateway)
                        : tnk_promise_text(ready));
  tnk_promise_unref(ready);
  if (err == TNK_OK)
    uv_run(loop, UV_RUN_DEFAULT);
  if (err == TNK_OK)
    err = tnk_gateway_datums(gateway, NULL, 0, print_line, NULL);
  uv_close((uv_handle_t *)&interrupt, NULL);
  tnk_gateway_close(gateway, NULL, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  tnk_service_close(service, NULL, NULL);
  return uv_run(loop, UV_RUN_DEFAULT) != 0 || err != TNK_OK;
}
