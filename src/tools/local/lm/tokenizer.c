/* SPDX-License-Identifier: MIT */
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"
#include "tools/local/lm/file.h"
#include "tools/local/lm/lm.h"

/*
 * The model's tokenizer for other programs: byte-level BPE without merges, so
 * that each byte of a text is a token. Such files contain characters instead of
 * bytes; each byte is represented by a visible character.
 */

static int is_seen(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
         byte >= 0xae;
}

/* A visible byte represents itself; the n-th other byte is character 256 +
 * n. */
static void put_byte(tnk__json_writer_t *w, unsigned byte) {
  unsigned c = byte;
  char text[4 + 1] = {0};

  if (!is_seen(byte)) {
    c = 256;
    for (unsigned b = 0; b < byte; b++)
      c += !is_seen(b);
  }
  (void)tnk__utf8_put((uint8_t *)text, c);
  tnk__json_put_int(w, text, byte);
}

typedef struct {
  const char *name;
  int value;
} flag_t;

static void put_flags(tnk__json_writer_t *w, const flag_t *flags, size_t n) {
  for (size_t i = 0; i < n; i++)
    tnk__json_put_bool(w, flags[i].name, flags[i].value);
}

static void put_special(tnk__json_writer_t *w, int id, const char *text) {
  static const flag_t flags[] = {{"single_word", 0},
                                 {"lstrip", 0},
                                 {"rstrip", 0},
                                 {"normalized", 0},
                                 {"special", 1}};

  tnk__json_begin_object(w);
  tnk__json_put_int(w, "id", id);
  tnk__json_put_text(w, "content", text);
  put_flags(w, flags, sizeof(flags) / sizeof(*flags));
  tnk__json_end(w);
}

static void put_byte_level(tnk__json_writer_t *w, const char *key) {
  static const flag_t flags[] = {
      {"add_prefix_space", 0}, {"trim_offsets", 1}, {"use_regex", 0}};

  tnk__json_put_object(w, key);
  tnk__json_put_text(w, "type", "ByteLevel");
  put_flags(w, flags, sizeof(flags) / sizeof(*flags));
  tnk__json_end(w);
}

static void put_model(tnk__json_writer_t *w) {
  static const char *const absent[] = {"dropout", "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix"};

  tnk__json_put_object(w, "model");
  tnk__json_put_text(w, "type", "BPE");
  for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
    tnk__json_put_text(w, absent[i], NULL);
  tnk__json_put_bool(w, "fuse_unk", 0);
  tnk__json_put_bool(w, "byte_fallback", 0);
  tnk__json_put_object(w, "vocab");
  for (unsigned byte = 0; byte < 256; byte++)
    put_byte(w, byte);
  tnk__json_end(w);
  tnk__json_put_array(w, "merges");
  tnk__json_end(w);
  tnk__json_end(w);
}

static void put_tokenizer(tnk__json_writer_t *w) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "version", "1.0");
  tnk__json_put_text(w, "truncation", NULL);
  tnk__json_put_text(w, "padding", NULL);
  tnk__json_put_array(w, "added_tokens");
  put_special(w, TNK__LM_BOS, TNK__LM_BOS_TEXT);
  put_special(w, TNK__LM_EOS, TNK__LM_EOS_TEXT);
  tnk__json_end(w);
  tnk__json_put_text(w, "normalizer", NULL);
  put_byte_level(w, "pre_tokenizer");
  tnk__json_put_text(w, "post_processor", NULL);
  put_byte_level(w, "decoder");
  put_model(w);
  tnk__json_end(w);
}

static void put_config(tnk__json_writer_t *w) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "tokenizer_class", "PreTrainedTokenizerFast");
  tnk__json_put_text(w, "bos_token", TNK__LM_BOS_TEXT);
  tnk__json_put_text(w, "eos_token", TNK__LM_EOS_TEXT);
  tnk__json_put_text(w, "pad_token", TNK__LM_EOS_TEXT);
  tnk__json_put_bool(w, "clean_up_tokenization_spaces", 0);
  tnk__json_put_int(w, "model_max_length", TNK__LM_MAX_CONTEXT);
  tnk__json_end(w);
}

static int write_one(const char *dir, const char *name,
                     void (*put)(tnk__json_writer_t *w),
                     const tnk_allocator_t *alloc, tnk__lm_why_t *why) {
  tnk__json_writer_t w;
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, alloc, (size_t)1 << 20);
  tnk__json_writer_init(&w, &buf);
  put(&w);
  err = tnk__json_finish(&w);
  if (err == TNK_OK)
    err = tnk__lm_file_write(dir, name, &buf, why);
  tnk__buf_deinit(&buf);
  return err;
}

int tnk__lm_tokenizer_write(const char *dir, const tnk_allocator_t *alloc,
                            tnk__lm_why_t *why) {
  int err = write_one(dir, "tokenizer.json", put_tokenizer, alloc, why);

  return err == TNK_OK
             ? write_one(dir, "tokenizer_config.json", put_config, alloc, why)
             : err;
}
