/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_RUN_H
#define TNK_TEST_API_DEPTH_RUN_H

/* The rows of test_depth.c for tnk/train.h, which it includes behind the
 * macros. */
static const tnk_schedule_t schedule = {.size = sizeof(tnk_schedule_t)};

ROW(tnk_plan_new) {
  tnk_plan_options_t options = TNK_PLAN_OPTIONS_INIT;
  tnk_plan_t *plan;

  (void)s;
  options.n_examples = options.n_batch = 1;
  CHECK_INT(tnk_plan_new(&plan, &options, NULL, 0), TNK_OK);
  tnk_plan_free(plan);
}
GETS(tnk_plan_count, tnk_plan_count(NULL, 0))
GETS(tnk_plan_epoch, tnk_plan_epoch(NULL, 0))
GETS(tnk_plan_example, tnk_plan_example(NULL, 0, 0))
GETS(tnk_plan_free, tnk_plan_free(NULL))
GETS(tnk_plan_max_count, tnk_plan_max_count(NULL))
GETS(tnk_plan_steps, tnk_plan_steps(NULL))
GETS(tnk_plan_total, tnk_plan_total(NULL))
GETS(tnk_shuffle, tnk_shuffle(1, 2, 3, 0))
GETS(tnk_schedule_rate, tnk_schedule_rate(&schedule, 0))
GETS(tnk_default_rate, tnk_default_rate(NULL))
GETS(tnk_data_weight, tnk_data_weight(NULL, 0))
GETS(tnk_pass_loss_sum, tnk_pass_loss_sum(NULL))
GETS(tnk_promise_eval, tnk_promise_eval(s->settled))
KEEPS(tnk_training_evaluate,
      tnk_training_evaluate(s->script.training, script_data(2), 2, NULL))
GETS(tnk_numbers_last, tnk_numbers_last(NULL, NULL))
GETS(tnk_numbers_rewind, tnk_numbers_rewind(NULL, 0))
KEEPS(tnk_numbers_sync, tnk_numbers_sync(s->script.service, "/dev/null"))

#endif
