/* SPDX-License-Identifier: MIT */
/* What hub/push.py drives: push_tool DIRECTORY CHECKPOINT REPO. The hub is that
 * of the environment. */
#include <stdio.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

int main(int argc, char **argv) {
  tnk_push_options_t options = TNK_PUSH_OPTIONS_INIT;
  tnk_promise_t *promise;
  tnk_hub_t *hub;
  char why[256];
  int status;

  if (argc != 4)
    return 2;
  if (tnk_hub_open(&hub, uv_default_loop(), NULL, why, sizeof(why)) != TNK_OK) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  options.checkpoint = argv[2];
  options.repo = argv[3];
  options.base_model = "org/Model-8B";
  options.message = "Upload";
  promise = tnk_hub_push(hub, argv[1], &options);
  status = tnk_wait(promise);
  if (status != TNK_OK)
    fprintf(stderr, "%s\n", tnk_promise_text(promise));
  else
    printf("%s\n", tnk_promise_pushed(promise)->repo);
  tnk_promise_unref(promise);
  tnk_hub_close(hub, NULL, NULL);
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  uv_loop_close(uv_default_loop());
  return status == TNK_OK ? 0 : 1;
}
