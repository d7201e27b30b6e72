/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_HTML_H
#define TNK_TOOLS_TNK_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes HTML. Strings from files are written only with these functions, as
 * text or as a quoted attribute. Errors stay in the FILE.
 */

/* Write a string that may be anything. Characters of HTML are escaped. Invalid
 * UTF-8, control characters other than tabs and newlines, and characters that
 * change the text direction become U+FFFD. */
void report_put_text(FILE *to, const char *text);
/* Write at most this many bytes of a string, and then "...", as above. */
void report_put_some(FILE *to, const char *text, size_t most);
/* Write a time in UTC, in seconds since 1970; "-" for 0. */
void report_put_time(FILE *to, long long time_s);
/* Write a duration for people: "12.3 s", "5 min 3 s". */
void report_put_duration(FILE *to, double seconds);
/* Write a count: 12 345, 12.3 M. */
void report_put_count(FILE *to, unsigned long long n);

/* The parts of the document that are the same in all reports. */
extern const char *const report_style[];  /* lines, up to NULL */
extern const char *const report_script[]; /* lines, up to NULL */
/* The digest of the script, which the policy of the page permits. */
extern const char report_script_digest[];
void report_put_lines(FILE *to, const char *const *lines);

#endif
