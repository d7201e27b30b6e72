/* SPDX-License-Identifier: MIT */
#ifndef TNK_DATA_H
#define TNK_DATA_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Views of the caller's data. A call reads these structs before it returns and
 * does not keep pointers to them. Each function says which data it copies.
 * Start from a zeroed struct: `reserved` members must be 0.
 */

/** Element types of the service's tensors. */
typedef enum {
  TNK_I64 = 1, /**< int64_t */
  TNK_F32 = 2, /**< float */
  TNK_I32 = 3, /**< int32_t; sent as i64. */
  TNK_F64 = 4  /**< double; sent as f32. An overflow is rejected. */
} tnk_dtype_t;

/** Maximum number of dimensions of a tensor. */
#define TNK_MAX_DIMS 8

/**
 * A tensor, dense or in CSR form. Protocol: protobuf, request encoding.
 *
 * Dense (`crow` is NULL): `data` holds n_values elements in row-major order.
 * The product of the shape must be n_values.
 *
 * Sparse (`crow` is set): the tensor has two dimensions, and `data` holds
 * n_values entries row by row. `crow` has rows + 1 entries: the index in `data`
 * at which each row begins, then n_values. `col` has n_values entries: the
 * column of each value, ascending within a row.
 *
 * Results use the same struct. Their memory belongs to the result, and only
 * TNK_I64 and TNK_F32 occur.
 */
typedef struct {
  tnk_dtype_t dtype;
  uint32_t n_dims;             /**< 0 means a vector of n_values. */
  int64_t shape[TNK_MAX_DIMS]; /**< The first n_dims are used. */
  const void *data;
  size_t n_values;
  const int64_t *crow; /**< NULL for a dense tensor. */
  const int64_t *col;
  uint64_t reserved;
} tnk_tensor_t;

/** The kinds of a model input chunk. */
typedef enum {
  TNK_CHUNK_TEXT = 0,          /**< Token ids. */
  TNK_CHUNK_IMAGE = 1,         /**< Bytes of a PNG or JPEG file. */
  TNK_CHUNK_IMAGE_POINTER = 2, /**< Location of a stored image. */
  /** Audio as a discretized mel spectrogram: a tensor in the service's own
   * container format. Its first dimension is the number of tokens. The service
   * rejects it for models without audio input. */
  TNK_CHUNK_DMEL = 3
} tnk_chunk_kind_t;

/** Image encodings. */
typedef enum { TNK_PNG = 1, TNK_JPEG = 2 } tnk_image_format_t;

/** One chunk of a model input. Protocol: sampling, chunk. */
typedef struct {
  tnk_chunk_kind_t kind;
  const int32_t *tokens;     /**< Text: vocabulary ids. */
  size_t n_tokens;           /**< Text: number of ids; may be 0. */
  const void *bytes;         /**< Image: contents of the file. dMel:
                                  the container. */
  size_t n_bytes;            /**< Image and dMel: number of bytes. */
  const char *location;      /**< Pointer: location of the image. */
  tnk_image_format_t format; /**< Image and pointer. */
  int32_t expected_tokens;   /**< Image and pointer: number of tokens
                                  that the image should have. 0 or -1 means
                                  not stated. */
  uint64_t reserved;
} tnk_chunk_t;

/**
 * The input of the model. Set `tokens` for text, or `chunks` for text with
 * images or audio. Setting both is an error.
 */
typedef struct {
  const int32_t *tokens; /**< Vocabulary ids; NULL selects chunks. */
  size_t n_tokens;
  const tnk_chunk_t *chunks;
  size_t n_chunks;
} tnk_model_input_t;

/** A tensor that the loss function reads, with its name there. */
typedef struct {
  const char *name; /**< "target_tokens", "weights", "advantages" ... */
  tnk_tensor_t tensor;
} tnk_loss_input_t;

/** Kind of a provenance span. */
typedef enum { TNK_SPAN_PROMPT = 1, TNK_SPAN_SAMPLED = 2 } tnk_span_kind_t;

/** Consecutive tokens from a sampled sequence or from its prompt. */
typedef struct {
  tnk_span_kind_t kind;
  const char *sequence_id; /**< tnk_samples_sequence_id(). */
  int64_t offset;          /**< First token of the span, from 0. */
  int64_t length;          /**< Number of tokens. */
} tnk_span_t;

/**
 * One training example. Protocol: protobuf, datum; protobuf, provenance of a
 * datum.
 *
 * Set both span lists or none. The spans of a list must cover its tokens
 * without gap or overlap.
 */
typedef struct {
  tnk_model_input_t input;
  /** Loss input "target_tokens": one value for each token of the input. NULL
   * means that loss_inputs has it, if the loss needs it. Setting it here and in
   * loss_inputs is an error. */
  const int64_t *targets;
  const float *weights; /**< Loss input "weights", as targets. */
  const tnk_loss_input_t *loss_inputs;
  size_t n_loss_inputs;
  const tnk_span_t *input_spans;
  size_t n_input_spans;
  const tnk_span_t *loss_input_spans;
  size_t n_loss_input_spans;
  uint64_t reserved;
} tnk_datum_t;

/** A setting of a loss function: a string if `text` is set, else a number. */
typedef struct {
  const char *name; /**< "clip_low_threshold", "beta" ... */
  double number;
  const char *text;
} tnk_loss_setting_t;

/**
 * Create a view of a vector of @p n i64 values. Never fails; the data is not
 * read.
 *
 * Lifetime: the view is valid as long as @p values.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_tensor_t tnk_tensor_i64(const int64_t *values, size_t n);

/**
 * Create a view of a vector of @p n f32 values. Never fails; the data is not
 * read.
 *
 * Lifetime: the view is valid as long as @p values.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_tensor_t tnk_tensor_f32(const float *values, size_t n);

/**
 * Create a text chunk of @p n_tokens ids. Never fails; the data is not read.
 * Lifetime: the view is valid as long as @p tokens. Thread: any. Since: 0.1
 */
TNK_API tnk_chunk_t tnk_chunk_text(const int32_t *tokens, size_t n_tokens);

/**
 * Validate examples as a training call would, without sending anything.
 *
 * Reads every element once. The checks cover shapes, element types, sizes,
 * finite numbers, ids within 32 bits, spans, and the inputs that @p loss_fn
 * needs.
 *
 * @param data      Examples.
 * @param n_data    At least 1.
 * @param loss_fn   Name of the loss function; NULL checks shapes only.
 * @param why       After an error, receives one sentence that names the invalid
 *                  value, such as
 *                  `datum 3: "weights" has 7 values, expected 9`. May be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is truncated.
 *
 * @return TNK_OK or TNK_EINVAL.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_data_check(const tnk_datum_t *data, size_t n_data,
                           const char *loss_fn, char *why, size_t why_size);

/** Kinds of stored checkpoints. */
typedef enum {
  TNK_PATH_WEIGHTS = 1,         /**< Training state. */
  TNK_PATH_SAMPLER_WEIGHTS = 2, /**< Weights for sampling. */
  TNK_PATH_EXTERNAL_WEIGHTS = 3 /**< Export in another layout. */
} tnk_path_kind_t;

/** The parts of `tinker://<run>/<kind>/<name>`. The pointers point into the
 * parsed string. */
typedef struct {
  size_t size; /**< Set by TNK_PATH_INIT. */
  tnk_path_kind_t kind;
  uint32_t reserved;
  const char *run; /**< Not NUL-terminated. */
  size_t run_length;
  const char *name; /**< NUL-terminated: the rest of the string. */
} tnk_path_t;

#define TNK_PATH_INIT TNK_SIZED(tnk_path_t)

/**
 * Split a checkpoint path into its parts. Protocol: reference, enumerations.
 *
 * @param[out] out  Initialize it with TNK_PATH_INIT. Receives the parts, which
 *                  point into @p text.
 * @param text      A path such as "tinker://run/weights/step-10".
 *
 * @return TNK_OK, or TNK_EINVAL if @p text does not have three parts or the
 *         size in @p out is not a size of tnk_path_t.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_path_parse(tnk_path_t *out, const char *text);

#ifdef __cplusplus
}
#endif

#endif
