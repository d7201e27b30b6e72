/* SPDX-License-Identifier: MIT */
/* The data is generated: gen_unicode.py writes tables.inc. */
#include "tokenizers/unicode/tables.h"

#include "tokenizers/unicode/tables.inc"
