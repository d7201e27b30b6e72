/* What operations make of a wire that is slow, limited, or fails. */
#include "task/script.h"

/* ---- Lanes of polls ---- */

static void hold_samples(mock_request_t *request, void *user) {
  if (strstr((const char *)request->body, "asample") == NULL)
    script_result(request, user);
}

/* The polls of samples may take long, and there may be as many as can be held.
 * The result of a step is ready at once, and has a place of its own. */
TEST(polls_of_samples_do_not_hold_up_a_step) {
  enum { N = 6 };
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  outcome_t samples[N];
  outcome_t step;
  script_t script;

  options.max_polls = 2;
  script_open_with(&script, options);
  script_train(&script);
  script_sampler(&script);
  mock_on(script.mock, "POST", "/api/v1/retrieve_future", hold_samples,
          &script);
  for (int i = 0; i < N; i++)
    outcome_of(&samples[i], script_sample(&script));
  script_turns(&script);
  script_turns(&script);
  CHECK_INT(mock_n_held(script.mock), 2);
  script_ok(&script, &step, script_step(&script));
  CHECK_INT(mock_n_held(script.mock), 2);
  outcome_drop(&step);
  tnk_service_close(script.service, script_closed, &script);
  script_turns(&script);
  for (int i = 0; i < N; i++)
    CHECK_INT(samples[i].status, TNK_ECLOSED);
  outcome_drop_all(samples, N);
  script_end(&script);
}
