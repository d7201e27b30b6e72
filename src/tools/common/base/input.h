#ifndef TNK_TOOLS_COMMON_BASE_INPUT_H
#define TNK_TOOLS_COMMON_BASE_INPUT_H

#include <stddef.h>
#include <stdio.h>

/* Read all of a file, NUL-terminated and to be freed; NULL with a sentence in
 * `why`. "-" is the standard input. */
char *cli_read_file(const char *path, size_t *n, char *why, size_t n_why);
/* Write text as a JSON string with its quotes. What is not UTF-8 is written as
 * one U+FFFD a byte. */
void cli_put_json_text(FILE *to, const char *text, size_t n);

#endif
