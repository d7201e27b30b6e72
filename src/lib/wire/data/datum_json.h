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
 * and perhaps "model_input_spans" and "loss_fn_input_spans", where the tokens
 * are from: [{"kind": "prompt" or "sampled", "sequence_id": text, "offset": 0,
 * "length": 3}, ...]. Other members are passed over.
 *
 * TNK_OK; TNK_EINVAL when it has not got this form, with the reason and where
 * it is in `text`: `model_input.chunks[2].tokens[5] is not an integer`; or
 * TNK_ENOMEM. Whether the values make sense is lib/wire/data/check.h's to say.
 * What *out points to lies in the arena, but for texts, which are the JSON's.
 */
int tnk__datum_read(tnk_datum_t *out, tnk__arena_t *arena, const json_t *datum,
                    char *text, size_t size);

#endif
