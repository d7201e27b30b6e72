/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_FORMAT_RELATIVE_H
#define TNK_LIB_WIRE_FORMAT_RELATIVE_H

#include <stddef.h>

/*
 * Names of files below a directory, from a server or an archive:
 * "adapter_config.json", "parts/1.safetensors". Files are written to them, so
 * only this file decides which names are allowed. Names are not normalized: a
 * name that would need it is rejected.
 */
#define TNK__RELATIVE_MAX 512 /* bytes of a name ... */
/* ... and of each component. File systems allow 255, but a file has a longer
 * name until it is complete. */
#define TNK__RELATIVE_PART_MAX 200
#define TNK__RELATIVE_MAX_PARTS 16

/* The fault of the name, as the end of a sentence ("the name ..."). NULL means
 * that it is UTF-8 and is valid below any directory on any system. */
const char *tnk__relative_check(const char *name, size_t n);
/* Returns whether two valid names cannot coexist: they are equal, or one is a
 * directory of the other. */
int tnk__relative_clash(const char *a, const char *b);

#endif
