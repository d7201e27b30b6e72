/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_BASE_INPUT_H
#define TNK_TOOLS_COMMON_BASE_INPUT_H

#include <stddef.h>
#include <stdio.h>

/* Read a whole file. The caller frees the NUL-terminated result. Returns NULL
 * with the reason in `why`. "-" is the standard input. */
char *cli_read_file(const char *path, size_t *n, char *why, size_t n_why);
/* Write a string as JSON, with its quotes. Each invalid UTF-8 byte becomes one
 * U+FFFD. */
void cli_put_json_text(FILE *to, const char *text, size_t n);

#endif
