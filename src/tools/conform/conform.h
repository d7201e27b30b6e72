#ifndef TNK_TOOLS_CONFORM_CONFORM_H
#define TNK_TOOLS_CONFORM_CONFORM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A suite of the protocol: sends requests as they are, without the repeats of
 * a client, and says of each rule how a server keeps it. Nothing that trains,
 * samples or stores is sent unless that is allowed, and what was made is
 * removed again.
 */
typedef struct {
  const char *url; /* NULL: TINKER_BASE_URL, else the hosted service */
  /* Train, sample and save as well, with a few tokens each. */
  int spend;
  /* The base model for that; NULL: the first one that is offered for it. */
  const char *model;
  /* A comma-separated list of rules, or of their beginnings with a star;
   * NULL: all. */
  const char *only;
  uint64_t timeout_ms;  /* for an answer; 0: 30 s, and 45 s for a poll */
  uint64_t patience_ms; /* for a result; 0: 120 s */
  int json;             /* one document in place of a table */
  int list;             /* name the rules and send nothing */
} conform_options_t;

/* The exit status of a run, as that of every command. */
enum {
  CONFORM_OK = 0,
  CONFORM_DEVIATES = 1,     /* differs in something that clients need */
  CONFORM_USAGE = 2,        /* the arguments */
  CONFORM_NO_ACCESS = 3,    /* there is no key, or it is refused */
  CONFORM_UNREACHABLE = 5,  /* nothing answers, or no longer */
  CONFORM_INTERRUPTED = 128 /* and the number of the signal */
};

enum { CONFORM_MAX_WHY = 240 };

/* Run it on a loop of its own, and write the report to `out`. Returns the
 * status; when nothing could be tried, `why` has a sentence and there is no
 * report. */
int conform_run(const conform_options_t *options, FILE *out, char *why,
                size_t n_why);

#endif
