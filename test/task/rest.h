/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_TASK_REST_H
#define TNK_TEST_TASK_REST_H

#include "task/script.h"
#include "tnk/rest.h"

/* What the tests of calls about what a service keeps share. */

/* The last request that came. */
static inline const mock_request_t *rest_last(const script_t *script) {
  return mock_request(script->mock, mock_n_requests(script->mock) - 1);
}

/* That it was this one, with this body; NULL: without any. */
static inline void rest_check(const script_t *script, const char *method,
                              const char *target, const char *sdk_method,
                              const char *body) {
  const mock_request_t *request = rest_last(script);

  CHECK_STR(request->method, method);
  CHECK_STR(request->target, target);
  CHECK_STR(mock_header(request, "x-sdk-method"), sdk_method);
  CHECK_STR(mock_header(request, "x-api-key"), script_key());
  if (body != NULL)
    CHECK_MEM(request->body, request->body_len, body, strlen(body));
  else
    CHECK_INT(request->body_len, 0);
}

#endif
