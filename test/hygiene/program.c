/* SPDX-License-Identifier: MIT */
/* A program outside of this tree, for check_install.sh and check_subproject.sh:
 * the loop ends, so the service has closed. */
#include <stdio.h>
#include <tnk/tnk.h>
#include <uv.h>

int main(void) {
  tnk_service_t *service;
  if (tnk_service_open(&service, uv_default_loop(), NULL, NULL, 0) != TNK_OK)
    return 1;
  printf("version %s\n", tnk_version());
  tnk_service_close(service, NULL, NULL);
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
