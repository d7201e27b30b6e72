/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_OTLP_H
#define TNK_LIB_API_OTLP_H

#include "lib/api/root.h"
#include "lib/otlp/exporter.h"
#include "lib/wire/format/proxy.h"

/*
 * An exporter with its context and its connections, in one allocation.
 *
 * States: open. Closing: the core exports what is queued, and then the
 * connections and the context close. Gone, just before the close callback is
 * called.
 */
struct tnk_otlp {
  tnk__root_t root;
  tnk__proxies_t proxies;
  tnk__otlp_t core;
};

#endif
