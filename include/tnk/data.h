#ifndef TNK_DATA_H
#define TNK_DATA_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Views of the caller's data. Every struct here is read during the call that
 * receives it and is not kept; see each function for what it copies.
 * Start from a zeroed struct: `reserved` members must be 0.
 */

/** Element types of the service's tensors. */
typedef enum {
  TNK_I64 = 1, /**< int64_t */
  TNK_F32 = 2, /**< float */
  TNK_I32 = 3, /**< int32_t; widened to i64 before it is sent. */
  TNK_F64 = 4  /**< double; narrowed to f32, an overflow is refused. */
} tnk_dtype_t;

/** Most dimensions a tensor can have. */
#define TNK_MAX_DIMS 8

/**
 * A tensor, dense or in CSR form. Protocol: protobuf, request encoding.
 *
 * Dense: `data` holds n_values elements in row-major order and the product of
 * the shape is n_values. Sparse (`crow` set): two dimensions, `data` holds
 * the n_values listed entries row by row; crow has rows + 1 entries, where each
 * row begins in `data` and, last, n_values; col has n_values entries, the
 * column of each, ascending within a row.
 *
 * A tensor in a result uses the same struct; there its memory belongs to the
 * result, and only TNK_I64 and TNK_F32 occur.
 */
typedef struct {
  tnk_dtype_t dtype;
  uint32_t n_dims;             /**< 0: a vector of n_values elements. */
  int64_t shape[TNK_MAX_DIMS]; /**< Used up to n_dims. */
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
  /** Audio as a mel spectrogram in discrete steps: a tensor in the service's
   * own container, of which the first dimension counts its tokens. Models that
   * hear nothing refuse it. */
  TNK_CHUNK_DMEL = 3
} tnk_chunk_kind_t;

/** Image encodings. */
typedef enum { TNK_PNG = 1, TNK_JPEG = 2 } tnk_image_format_t;

/** One run of a model input. Protocol: sampling, chunk. */
typedef struct {
  tnk_chunk_kind_t kind;
  const int32_t *tokens;     /**< Text: vocabulary ids. */
  size_t n_tokens;           /**< Text: how many; 0 is legal. */
  const void *bytes;         /**< Image: the file's contents. dMel: the
                                  container. */
  size_t n_bytes;            /**< Image and dMel: their number. */
  const char *location;      /**< Pointer: where the image is stored. */
  tnk_image_format_t format; /**< Image and pointer. */
  int32_t expected_tokens;   /**< Image and pointer; -1 or 0: not stated. */
  uint64_t reserved;
} tnk_chunk_t;

/**
 * What the model reads: tokens, or chunks in order where there is more than
 * text. Both at once are refused.
 */
typedef struct {
  const int32_t *tokens; /**< Text alone: vocabulary ids. NULL: see chunks. */
  size_t n_tokens;
  const tnk_chunk_t *chunks;
  size_t n_chunks;
} tnk_model_input_t;

/** A tensor the loss reads, under the loss's own name for it. */
typedef struct {
  const char *name; /**< "target_tokens", "weights", "advantages" ... */
  tnk_tensor_t tensor;
} tnk_loss_input_t;

/** Where a provenance span points. */
typedef enum { TNK_SPAN_PROMPT = 1, TNK_SPAN_SAMPLED = 2 } tnk_span_kind_t;

/** A run of tokens that came from a sampled sequence, or from its prompt. */
typedef struct {
  tnk_span_kind_t kind;
  const char *sequence_id; /**< tnk_samples_sequence_id(). */
  int64_t offset;          /**< First token of the run, from 0. */
  int64_t length;          /**< Tokens in the run. */
} tnk_span_t;

/**
 * One training example. Protocol: protobuf, datum; protobuf, provenance of a
 * datum.
 *
 * Set both span lists or neither; each tiles what it describes.
 */
typedef struct {
  tnk_model_input_t input;
  /** "target_tokens", one for each token of the input, which says how many it
   * has; NULL: see loss_inputs. Beside both in loss_inputs it is refused. */
  const int64_t *targets;
  const float *weights; /**< "weights", under the same rules. */
  const tnk_loss_input_t *loss_inputs;
  size_t n_loss_inputs;
  const tnk_span_t *input_spans;
  size_t n_input_spans;
  const tnk_span_t *loss_input_spans;
  size_t n_loss_input_spans;
  uint64_t reserved;
} tnk_datum_t;

/** A setting of a loss function: a text when `text` is set, else a number. */
typedef struct {
  const char *name; /**< "clip_low_threshold", "beta" ... */
  double number;
  const char *text;
} tnk_loss_setting_t;

/**
 * A view of a vector of @p n i64. Never fails; the data is not read.
 * Lifetime: the view is valid as long as @p values. Thread: any. Since: 0.1
 */
TNK_API tnk_tensor_t tnk_tensor_i64(const int64_t *values, size_t n);

/**
 * A view of a vector of @p n f32. Never fails; the data is not read.
 * Lifetime: the view is valid as long as @p values. Thread: any. Since: 0.1
 */
TNK_API tnk_tensor_t tnk_tensor_f32(const float *values, size_t n);

/**
 * A text chunk over @p n_tokens ids. Never fails; the data is not read.
 * Lifetime: the view is valid as long as @p tokens. Thread: any. Since: 0.1
 */
TNK_API tnk_chunk_t tnk_chunk_text(const int32_t *tokens, size_t n_tokens);

/**
 * Check examples without sending anything, as a training call would.
 *
 * Reads every element once: shapes, element types, sizes, finite numbers,
 * ids within 32 bits, span tiling, and the inputs that @p loss_fn needs.
 *
 * @param data      Examples.
 * @param n_data    At least 1.
 * @param loss_fn   Loss the data is meant for; NULL checks shapes only.
 * @param why       Receives one sentence that names the place, such as
 *                  `datum 3: "weights" has 7 values, expected 9`. May be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * @return TNK_OK or TNK_EINVAL.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_data_check(const tnk_datum_t *data, size_t n_data,
                           const char *loss_fn, char *why, size_t why_size);

/** The kinds of a stored checkpoint. */
typedef enum {
  TNK_PATH_WEIGHTS = 1,         /**< Training state. */
  TNK_PATH_SAMPLER_WEIGHTS = 2, /**< Weights for sampling. */
  TNK_PATH_EXTERNAL_WEIGHTS = 3 /**< Export in a foreign layout. */
} tnk_path_kind_t;

/** The parts of `tinker://<run>/<kind>/<name>`; they point into that text. */
typedef struct {
  size_t size; /**< Set by TNK_PATH_INIT. */
  tnk_path_kind_t kind;
  uint32_t reserved;
  const char *run; /**< Not NUL-terminated. */
  size_t run_length;
  const char *name; /**< NUL-terminated: the rest of the text. */
} tnk_path_t;

#define TNK_PATH_INIT TNK_SIZED(tnk_path_t)

/**
 * Take a checkpoint path apart. Protocol: reference, enumerations.
 *
 * @param[out] out  Begins with TNK_PATH_INIT. The parts; they point into
 *                  @p text.
 * @param text      A path such as "tinker://run/weights/step-10".
 *
 * @return TNK_OK, or TNK_EINVAL when it is not a path of three parts, or for a
 *         size that is none of tnk_path_t.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_path_parse(tnk_path_t *out, const char *text);

#ifdef __cplusplus
}
#endif

#endif
