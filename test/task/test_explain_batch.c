/* SPDX-License-Identifier: MIT */
#include "task/batch.h"

/* What samples wait for whose ends are told together; see test_explain.c. */

static char sentence[1024];

static const char *explain(const tnk_promise_t *promise) {
  size_t n = tnk_promise_explain(promise, sentence, sizeof(sentence));

  CHECK_INT(n, strlen(sentence));
  return sentence;
}

/* The time of its own poll is drawn at random; what comes before it is not. */
static void check_awaiting(const tnk_promise_t *promise, const char *before) {
  const char *own = strstr(explain(promise), "; its own poll follows in ");
  char text[1024];

  CHECK(own != NULL);
  snprintf(text, sizeof(text), "%.*s", (int)(own - sentence), sentence);
  CHECK_STR(text, before);
}

TEST(explain_samples_that_are_polled_for_together) {
  script_t script;

  open_default(&script);
  start(&script, 0, 2);
  script_advance(&script, 3000);
  check_awaiting(promises[1],
                 "sample: was accepted 3.0 s ago as asample:1:0; the poll for "
                 "2 samples of the client waits for the server's answer, "
                 "attempt 1, since 3.0 s");
  finish(&script, 2);
}

TEST(explain_the_pause_of_a_poll_for_many) {
  script_t script;

  open_default(&script);
  start(&script, 0, 1);
  mock_reply(last_batch(&script), 429, "Retry-After: 8\r\n", "{}", 2);
  turns(&script);
  CHECK(strstr(explain(promises[0]),
               "sample: was accepted 0 ms ago as asample:0:0; the poll for 1 "
               "sample of the client ") == sentence);
  CHECK(strstr(sentence, "follows in ") != NULL);
  finish(&script, 1);
}

TEST(explain_a_place_among_fetches) {
  enum { N = 200 };
  script_t script;
  size_t n_fetching;
  char text[256];

  open_default(&script);
  mock_on(script.mock, "POST", fetch_path, mock_hold, NULL);
  start(&script, 0, N);
  for (int i = 0; i < 20; i++)
    turns(&script);
  tell(&script, 0, N, 1);
  for (int i = 0; i < 20; i++)
    turns(&script);
  n_fetching = n_fetches(&script);
  CHECK(n_fetching > 0 && n_fetching < N);
  CHECK_STR(explain(promises[0]),
            "sample: was accepted 0 ms ago as asample:0:0; poll 1 of its "
            "result waits for the server's answer, attempt 1, since 0 ms");
  snprintf(text, sizeof(text),
           "sample: was accepted 0 ms ago as asample:%d:0; its result is ready "
           "and waits for one of %zu slots",
           N - 1, n_fetching);
  CHECK_STR(explain(promises[N - 1]), text);
  finish(&script, N);
}
