/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_TRAIN_H
#define TNK_TEST_API_DEPTH_TRAIN_H

/* Rows of test_depth.c: calls of a training client that need no data. */

KEEPS(tnk_training_optim_step, script_step(&s->script))
KEEPS(tnk_training_save_state,
      tnk_training_save_state(s->script.training, "a", NULL))
KEEPS(tnk_training_save_weights_for_sampler,
      tnk_training_save_weights_for_sampler(s->script.training, "a", NULL))
KEEPS(tnk_training_save_weights_external,
      tnk_training_save_weights_external(s->script.training, "a", NULL))
KEEPS(tnk_training_save_weights_and_get_sampling,
      tnk_training_save_weights_and_get_sampling(s->script.training,
                                                 TNK_SAMPLING_SNAPSHOT, NULL))
KEEPS(tnk_training_load_state,
      tnk_training_load_state(s->script.training, NULL))
ROW(tnk_training_go_on) {
  CHECK_INT(tnk_training_go_on(s->script.training), TNK_OK);
}
KEEPS(tnk_training_ready, tnk_training_ready(s->script.training))
KEEPS(tnk_training_unload, tnk_training_unload(s->script.training))
ROW(tnk_training_info) {
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;

  CHECK_INT(tnk_training_info(&info, s->script.training), TNK_OK);
}
GETS(tnk_training_close, tnk_training_close(NULL, on_closed, s))

#endif
