/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"

TEST(loss_names_and_defaults) {
  tnk__lm_loss_t loss;

  CHECK_INT(tnk__lm_loss_init(&loss, NULL, NULL, 0, NULL), TNK_OK);
  CHECK_INT(loss.kind, TNK__LM_CROSS_ENTROPY);
  CHECK_INT(tnk__lm_loss_init(&loss, "ppo", NULL, 0, NULL), TNK_OK);
  CHECK_NEAR(loss.clip_low, 0.8, 0);
  CHECK_NEAR(loss.clip_high, 1.2, 0);
  CHECK_INT(tnk__lm_loss_init(&loss, "cispo", NULL, 0, NULL), TNK_OK);
  CHECK_NEAR(loss.clip_low, 0.0, 0);
  CHECK_NEAR(loss.clip_high, 4.0, 0);
  CHECK_INT(tnk__lm_loss_init(&loss, "dro", NULL, 0, NULL), TNK_OK);
  CHECK_NEAR(loss.beta, 0.05, 0);
}

TEST(loss_settings) {
  tnk_loss_setting_t s[] = {{"clip_low_threshold", 0.5, NULL},
                            {"clip_high_threshold", 2, NULL}};
  tnk_loss_setting_t text = {"beta", 0, "x"};
  tnk__lm_loss_t loss;
  tnk__lm_why_t why;

  CHECK_INT(tnk__lm_loss_init(&loss, "ppo", s, 2, &why), TNK_OK);
  CHECK_NEAR(loss.clip_low, 0.5, 0);
  CHECK_NEAR(loss.clip_high, 2, 0);
  CHECK_INT(tnk__lm_loss_init(&loss, "dro", s, 1, &why), TNK_EINVAL);
  CHECK_STR(why.text, "dro has no setting \"clip_low_threshold\"");
  CHECK_INT(tnk__lm_loss_init(&loss, "dro", &text, 1, &why), TNK_EINVAL);
  CHECK_STR(why.text, "\"beta\" of dro must be a number of at least 0");
  s[0].number = 3;
  CHECK_INT(tnk__lm_loss_init(&loss, "ppo", s, 2, &why), TNK_EINVAL);
  CHECK_INT(tnk__lm_loss_init(&loss, "grpo", s, 2, &why), TNK_EUNSUPPORTED);
  CHECK_STR(why.text, "loss \"grpo\" is not known to this server");
}

TEST(a_datum_is_refused_with_its_place) {
  int32_t tokens[] = {65, 66, 258};
  int64_t targets[] = {66, 300, 67};
  float weights[] = {1, 1, 1};
  float logprobs[] = {-1, -1, NAN};
  tnk__lm_datum_t datum = {.tokens = tokens,
                           .n_tokens = 3,
                           .targets = targets,
                           .n_targets = 1,
                           .weights = weights};
  tnk__lm_loss_t ce;
  tnk__lm_loss_t ppo;
  tnk__lm_why_t why;

  CHECK_INT(tnk__lm_loss_init(&ce, NULL, NULL, 0, NULL), TNK_OK);
  CHECK_INT(tnk__lm_loss_init(&ppo, "ppo", NULL, 0, NULL), TNK_OK);
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
  CHECK_STR(why.text, "tokens[2] is 258, the vocabulary has ids 0 to 257");
  tokens[2] = 256;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
  CHECK_STR(why.text, "\"target_tokens\"[1] is 300, the vocabulary has ids 0 "
                      "to 257");
  weights[1] = 0;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_OK);
  CHECK_INT(tnk__lm_datum_check(&datum, &ppo, &why), TNK_EINVAL);
  CHECK_STR(why.text, "the loss needs \"logprobs\"");
  datum.logprobs = logprobs;
  CHECK_INT(tnk__lm_datum_check(&datum, &ppo, &why), TNK_EINVAL);
  CHECK_STR(why.text, "\"logprobs\"[2] is not finite");
  logprobs[2] = -1;
  CHECK_INT(tnk__lm_datum_check(&datum, &ppo, &why), TNK_EINVAL);
  CHECK_STR(why.text, "the loss needs \"advantages\"");
  datum.n_tokens = 0;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
  datum.n_tokens = TNK__LM_MAX_CONTEXT + 1;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
}
