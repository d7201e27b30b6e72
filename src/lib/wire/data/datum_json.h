/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_DATA_DATUM_JSON_H
#define TNK_LIB_WIRE_DATA_DATUM_JSON_H

#include <jansson.h>

#include "lib/base/arena.h"
#include "tnk/data.h"

/*
 * Read one training example in the protocol's JSON form, for checking it
 * offline:
 *
 *   {"model_input": {"chunks": [...]}, "loss_fn_inputs": {name: tensor, ...}}
 *
 * "model_input_spans" and "loss_fn_input_spans" are optional and give the
 * source of the tokens: [{"kind": "prompt" or "sampled", "sequence_id": text,
 * "offset": 0, "length": 3}, ...]. Other members are ignored.
 *
 * Returns TNK_OK or TNK_ENOMEM. Returns TNK_EINVAL for another form, with the
 * reason and its path in `text`: `model_input.chunks[2].tokens[5] is not an
 * integer`. Values must then be checked with lib/wire/data/check.h. *out points
 * into the arena; its strings belong to the JSON.
 */
int tnk__datum_read(tnk_datum_t *out, tnk__arena_t *arena, const json_t *datum,
                    char *text, size_t size);

#endif
