/* SPDX-License-Identifier: MIT */
#ifndef TNK_VERSION_H
#define TNK_VERSION_H

/* The one place that names the version; the build reads it from here. */
#define TNK_VERSION_MAJOR 0
#define TNK_VERSION_MINOR 1
#define TNK_VERSION_PATCH 0
#define TNK_VERSION_STRING "0.1.0"

#endif
