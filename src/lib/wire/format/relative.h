#ifndef TNK_LIB_WIRE_FORMAT_RELATIVE_H
#define TNK_LIB_WIRE_FORMAT_RELATIVE_H

#include <stddef.h>

/*
 * Names of files below a directory, as a server or an archive gives them:
 * "adapter_config.json", "parts/1.safetensors". They are written to, so what
 * they may be is decided here, and only here. Nothing is normalised: a name
 * that would need it is refused.
 */
#define TNK__RELATIVE_MAX 512 /* bytes of a name ... */
/* ... and of a part of it: file systems take 255, and the name that a file has
 * until it is complete is longer. */
#define TNK__RELATIVE_PART_MAX 200
#define TNK__RELATIVE_MAX_PARTS 16

/* What is wrong with the name, as the end of a sentence ("the name ..."), or
 * NULL: it is UTF-8 and names a file below any directory, on any system. */
const char *tnk__relative_check(const char *name, size_t n);
/* Whether two names that have passed cannot stand side by side: they are the
 * same, or one is a directory of the other. */
int tnk__relative_clash(const char *a, const char *b);

#endif
