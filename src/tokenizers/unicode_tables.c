/* The data is generated: gen_unicode.py writes unicode_tables.inc. */
#include "tokenizers/unicode_tables.h"

#include "tokenizers/unicode_tables.inc"
