/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_CONFORM_CONFORM_H
#define TNK_TOOLS_CONFORM_CONFORM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A conformance suite. It sends requests unmodified, without the retries of a
 * client, and reports for each rule whether the server follows it. Requests
 * that train, sample or store are sent only if that is allowed. Created objects
 * are removed again.
 */
typedef struct {
  const char *url; /* NULL: TINKER_BASE_URL, else the hosted service */
  /* Also train, sample and save, with a few tokens each. */
  int spend;
  /* The base model for that; NULL: the first suitable one that the server
   * offers. */
  const char *model;
  /* A comma-separated list of rules, or of prefixes with a star; NULL: all. */
  const char *only;
  uint64_t timeout_ms;  /* for an answer; 0: 30 s, and 45 s for a poll */
  uint64_t patience_ms; /* for a result; 0: 120 s */
  int json;             /* write one JSON document instead of a table */
  int list;             /* list the rules and send nothing */
} conform_options_t;

/* Exit status of a run, the same as for every command. */
enum {
  CONFORM_OK = 0,
  CONFORM_DEVIATES = 1,     /* the server violates a rule that clients need */
  CONFORM_USAGE = 2,        /* invalid arguments */
  CONFORM_NO_ACCESS = 3,    /* there is no valid key */
  CONFORM_UNREACHABLE = 5,  /* the server does not answer */
  CONFORM_INTERRUPTED = 128 /* plus the number of the signal */
};

enum { CONFORM_MAX_WHY = 240 };

/* Run the suite on its own loop, and write the report to `out`. Returns the
 * status. If no rule could be tried, `why` has the reason and no report is
 * written. */
int conform_run(const conform_options_t *options, FILE *out, char *why,
                size_t n_why);

#endif
