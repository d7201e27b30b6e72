#ifndef TNK_CODEC_REST_SHAPES_H
#define TNK_CODEC_REST_SHAPES_H

#include "codec/rest/record.h"

/* The shapes of the records of include/tnk/rest.h. */
extern const tnk__shape_t tnk__shape_run;
extern const tnk__shape_t tnk__shape_checkpoint;

#endif
