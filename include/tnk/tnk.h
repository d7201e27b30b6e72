/* SPDX-License-Identifier: MIT */
#ifndef TNK_H
#define TNK_H

/*
 * tnk: the Tinker training API on a libuv loop.
 *
 * Start at service.h (opening, creating clients), then training.h and
 * sampling.h. promise.h describes how results and errors arrive. A function
 * must be called on the thread that runs the loop, unless its comment says
 * otherwise. No callback runs inside the call that registered it. There are
 * two exceptions: the function that tnk_service_dump() writes with, and
 * `release` of tnk_pass_options_t where it cannot be called later. Allocators,
 * loggers, observers and the plug-ins of tokenizers are not callbacks in this
 * sense: they run inside calls, and must not call this library.
 *
 * A child made with fork() shares sockets with its parent, so there every
 * operation is refused with TNK_EFORKED, and closing and canceling do nothing.
 * Open a service of its own, on a loop of its own, in the child.
 *
 * src/lib/wire/protocol of the sources describes the protocol. A line such as
 * "Protocol: training." cites a document there, or a heading in it.
 */
#include "tnk/batch.h"
#include "tnk/bindings.h"
#include "tnk/common.h"
#include "tnk/data.h"
#include "tnk/error.h"
#include "tnk/hosted.h"
#include "tnk/hub.h"
#include "tnk/ledger.h"
#include "tnk/observe.h"
#include "tnk/otlp.h"
#include "tnk/promise.h"
#include "tnk/push.h"
#include "tnk/record.h"
#include "tnk/rest.h"
#include "tnk/result.h"
#include "tnk/rl.h"
#include "tnk/runtime.h"
#include "tnk/sampling.h"
#include "tnk/service.h"
#include "tnk/text.h"
#include "tnk/train.h"
#include "tnk/training.h"
#include "tnk/usage.h"
#include "tnk/version.h"
#include "tnk/weights.h"

#endif
