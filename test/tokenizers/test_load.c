/* SPDX-License-Identifier: MIT */
#include "tokenizers/small.h"

/* Files that are read, files that are refused, and what they say. */

static int load_text(const char *text, tnk_tokenizer_error_t *error) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_t *tok;
  int err =
      tnk_tokenizer_load_memory(&tok, text, strlen(text), &options, error);

  CHECK_INT(error->code, err);
  CHECK((tok == NULL) == (err < 0));
  tnk_tokenizer_unref(tok);
  return err;
}

/* A copy of a text with one piece of it replaced. */
static char *replace(const char *text, const char *from, const char *to) {
  size_t n = strlen(text), n_from = strlen(from), n_to = strlen(to), before;
  char *changed =
      test_allocator()->malloc(n + n_to + 1, test_allocator()->user);
  const char *at = strstr(text, from);

  if (at == NULL)
    test_fail(__FILE__, __LINE__, "the file has no %s", from);
  before = (size_t)(at - text);
  memcpy(changed, text, before);
  memcpy(changed + before, to, n_to);
  memcpy(changed + before + n_to, at + n_from, n - before - n_from + 1);
  return changed;
}

/* The file of a shape with one piece of it replaced. */
static int load_changed(const char *shape, const char *from, const char *to,
                        tnk_tokenizer_error_t *error) {
  char name[64], *changed;
  size_t n;
  int err;

  (void)snprintf(name, sizeof(name), "%s.json", shape);
  changed = replace(small_read(name, &n), from, to);
  err = load_text(changed, error);
  test_allocator()->free(changed, test_allocator()->user);
  return err;
}

TEST(features_that_are_lacking_are_refused_by_name) {
  static const struct {
    const char *from, *to, *said;
  } cases[] = {
      {"\"type\": \"NFC\"", "\"type\": \"NFKD\"", "normalizer NFKD"},
      {"\"type\": \"NFC\"",
       "\"type\": \"Replace\", \"pattern\": {\"Regex\": \"a\"}, "
       "\"content\": \"b\"",
       "normalizer Replace without a String"},
      {"\"type\": \"BPE\"", "\"type\": \"Unigram\"", "model.type Unigram"},
      {"\"dropout\": null", "\"dropout\": 0.1", "model.dropout"},
      {"\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"",
       "model.end_of_word_suffix"},
      {"\\\\p{N}| ?", "\\\\p{N}+| ?", "pre_tokenizer.pretokenizers[0].pattern"},
      {"\"Isolated\"", "\"MergedWithNext\"", "Split with this behavior"},
      {"\"type\": \"Split\"", "\"type\": \"Digits\"", "pre_tokenizer Digits"},
      {"\"add_prefix_space\": false", "\"add_prefix_space\": true",
       "add_prefix_space"},
      {"\"pattern\": {\n\"Regex\"",
       "\"pattern\": {\"String\": \"a\"}, \"x\": {\"Regex\"",
       "Split with a String pattern"},
      {"\"dropout\": null", "\"\\u0064ropout\": 0.1", "model.dropout"},
      {"\"normalizer\": {",
       "\"\\u006eormalizer\": {\"type\": \"NFD\"}, \"x\": {", "normalizer NFD"},
      {"\"version\": \"1.0\"", "\"version\": \"1.1\"", "version 1.1"},
      {"\"content\": \"<|im_end|>\"", "\"content\": \"<think>\"", "twice"},
      {"\"content\": \"n\\u1e17\"", "\"content\": \"ne\\u0304\"", "normalizer"},
      {"\"type\": \"TemplateProcessing\",\n\"single\": [",
       "\"type\": \"TemplateProcessing\",\n\"single\": [],\n\"x\": [",
       "post_processor without the text"},
      {"\"truncation\": null", "\"truncation\": {\"max_length\": 5}",
       "truncation"},
      {"\"id\": 1161,", "\"id\": 1170,", "numbers 1161"},
      {"\"TemplateProcessing\"", "\"RobertaProcessing\"",
       "post_processor RobertaProcessing"},
      {"\"\\u00ff\": 255,", "", "0xFF"},
  };
  tnk_tokenizer_error_t error;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int err = load_changed("qwen2", cases[i].from, cases[i].to, &error);

    if (err != TNK_EUNSUPPORTED || strstr(error.text, cases[i].said) == NULL)
      test_fail(__FILE__, __LINE__, "%s: %d, %s", cases[i].to, err, error.text);
  }
}

TEST(features_that_files_with_bytes_lack_are_refused_by_name) {
  static const struct {
    const char *from, *to, *said;
  } cases[] = {
      {"\"byte_fallback\": true", "\"byte_fallback\": false",
       "without byte_fallback"},
      {"\"<0xFF>\": 258,", "", "0xFF"},
      {"\"ignore_merges\": false", "\"ignore_merges\": true",
       "model.ignore_merges"},
      {"\"type\": \"Fuse\"", "\"type\": \"Metaspace\"", "decoder Metaspace"},
      {"\"stop\": 0", "\"stop\": 1", "decoder Strip"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": "
       "\"a\"}, \"behavior\": \"MergedWithPrevious\", \"invert\": false}",
       "Split at a text"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Metaspace\"}",
       "pre_tokenizer Metaspace with a replacement"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"ab\"}",
       "pre_tokenizer Metaspace with a replacement"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": "
       "\"\xf0\x9f\x98\x80\"}",
       "pre_tokenizer Metaspace with a replacement"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", "
       "\"prepend_scheme\": \"second\"}",
       "prepend_scheme second"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", "
       "\"prepend_scheme\": null}",
       "pre_tokenizer"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", "
       "\"add_prefix_space\": false}",
       "Metaspace without add_prefix_space"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": "
       "[{\"type\": \"Metaspace\", \"replacement\": \"_\"}, {\"type\": "
       "\"Digits\"}]}",
       "pre_tokenizer Digits"},
      {"\"pre_tokenizer\": null",
       "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
       "false}",
       "0x00"},
      {"\"merges\": [", "\"merges\": [[\"<0x41>\", \"a\"],", "merges"},
  };
  tnk_tokenizer_error_t error;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int err = load_changed("llama2", cases[i].from, cases[i].to, &error);

    if (err >= 0 || strstr(error.text, cases[i].said) == NULL)
      test_fail(__FILE__, __LINE__, "%s: %d, %s", cases[i].to, err, error.text);
  }
  CHECK_INT(load_changed("gpt2", "\"type\": \"ByteLevel\"",
                         "\"type\": \"Digits\"", &error),
            TNK_EUNSUPPORTED);
}

/* A file like those of newer Llama 2 tokenizers, with two pieces replaced. */
static int load_metaspace(const char *from, const char *to, const char *from2,
                          const char *to2, tnk_tokenizer_error_t *error) {
  size_t n;
  char *once = replace(small_read("metaspace_first.json", &n), from, to);
  char *twice = replace(once, from2, to2);
  int err = load_text(twice, error);

  test_allocator()->free(once, test_allocator()->user);
  test_allocator()->free(twice, test_allocator()->user);
  return err;
}

TEST(metaspace_is_refused_where_its_result_is_not_known) {
  tnk_tokenizer_error_t error;

  /* Where a text begins is not known behind a normalizer. */
  CHECK_INT(load_metaspace("\"normalized\": false", "\"normalized\": true",
                           "\"normalizer\": null",
                           "\"normalizer\": {\"type\": \"NFKC\"}", &error),
            TNK_EUNSUPPORTED);
  CHECK(strstr(error.text, "prepend_scheme first, a normalizer") != NULL);
  CHECK_INT(load_metaspace("\"normalized\": false", "\"normalized\": true",
                           "\"split\": false", "\"split\": null", &error),
            TNK_OK);
  /* Its decoder does not know the alphabet of bytes. */
  CHECK_INT(load_changed("gpt2", "\"decoder\": {",
                         "\"decoder\": {\"type\": \"Metaspace\", "
                         "\"replacement\": \"_\"}, \"x\": {",
                         &error),
            TNK_EUNSUPPORTED);
  CHECK(strstr(error.text, "for pieces of bytes") != NULL);
}

/* A model may come before what says how to read it. */
TEST(the_model_may_come_first) {
  tnk_tokenizer_t *tok = small_load("llama2"), *other;
  tnk_tokenizer_options_t options = small_options();
  size_t n;
  char *text = small_read("llama2.json", &n);
  const char *model = strstr(text, "\"model\": {");
  char *swapped = test_allocator()->malloc(n + 2, test_allocator()->user);
  tnk_tokens_t *tokens, *expected = small_encode(tok, " Word 123 \xe4", 10, 0);
  const int32_t *ids;
  size_t n_ids;

  /* The model is the last member: "{" model "," the rest "}". */
  CHECK(model != NULL);
  n = (size_t)snprintf(swapped, n + 2, "{%.*s,%.*s}",
                       (int)(strrchr(text, '}') - model), model,
                       (int)(model - text) - 2 - 1, text + 1);
  swapped[n] = '\0';
  CHECK_INT(tnk_tokenizer_load_memory(&other, swapped, n, &options, NULL),
            TNK_OK);
  tokens = small_encode(other, " Word 123 \xe4", 10, 0);
  ids = tnk_tokens_ids(expected, &n_ids);
  small_check_ids(tokens, ids, n_ids);
  tnk_tokens_free(tokens);
  tnk_tokens_free(expected);
  tnk_tokenizer_unref(tok);
  tnk_tokenizer_unref(other);
  test_allocator()->free(swapped, test_allocator()->user);
}

TEST(malformed_files_are_refused_with_the_place) {
  static const struct {
    const char *from, *to, *said;
  } cases[] = {
      {"\"model\": {", "\"model\": [", "model"},
      {"\"!\": 33,", "\"!\": 34,", "model.vocab"},
      {"\"!\": 33,", "\"!\": -33,", "model.vocab"},
      {"\"!\": 33,", "\"\\ud800\": 33,", "model.vocab"},
      {"\"ids\": [\n1160\n]", "\"ids\": [\n99999\n]", "post_processor"},
      {"\"special\": true", "\"special\": 1", "added_tokens"},
      {"\"special\": true", "\"no\": true", "added_tokens"},
      {"\"merges\": [", "\"no\": [", "no merges"},
      {"\"merges\": [", "\"merges\": [], \"merges\": [", "twice"},
      {"\"merges\": [", "\"vocab\": {}, \"merges\": [", "it is there twice"},
      {"\"type\": \"BPE\"", "\"type\": \"BPE\\u0000\"", "model.type"},
      {"\\\\s+(?!\\\\S)|\\\\s+\"", "\\\\s+(?!\\\\S)|\\\\s+\\u0000x\"",
       "pre_tokenizer"},
      {"\"content\": \"<think>\"", "\"no\": \"<think>\"", "added_tokens"},
      {"\"version\"", "\"decoder\": null, \"version\"", "decoder"},
  };
  tnk_tokenizer_error_t error;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int err = load_changed("qwen2", cases[i].from, cases[i].to, &error);

    if ((err != TNK_EPROTO && err != TNK_EUNSUPPORTED) ||
        strstr(error.text, cases[i].said) == NULL)
      test_fail(__FILE__, __LINE__, "%s: %d, %s", cases[i].to, err, error.text);
  }
  CHECK_INT(load_text("", &error), TNK_EPROTO);
  CHECK(strstr(error.text, "empty") != NULL);
  CHECK_INT(load_text("\xef\xbb\xbf{}", &error), TNK_EPROTO);
  CHECK(strstr(error.text, "tokenizer.json") != NULL);
  CHECK_INT(load_text("{", &error), TNK_EPROTO);
  CHECK_INT(load_text("{}", &error), TNK_EPROTO);
  CHECK_INT(load_text("{\"model\":{\"vocab\":{},\"merges\":[]}} x", &error),
            TNK_EPROTO);
  CHECK_INT(load_text("{\"model\":{\"vocab\":{},\"merges\":[]}}", &error),
            TNK_EUNSUPPORTED);
  CHECK_INT(load_text("{\"a\":\"\xff\"}", &error), TNK_EPROTO);
  CHECK_INT(error.offset, 6);
}

/* With an added token of the model behind a gap, versions of the reference
 * number the next one differently. */
TEST(added_tokens_behind_a_gap_are_refused) {
  static const char one_more[] =
      "\"added_tokens\": [{\"id\": 5000, \"content\": \"!\", \"special\": "
      "true, "
      "\"normalized\": false, \"lstrip\": false, \"rstrip\": false, "
      "\"single_word\": false},";
  tnk_tokenizer_error_t error;
  size_t n;
  char *gap =
      replace(small_read("words.json", &n), "\"!\": 33,", "\"!\": 5000,");
  char *known = replace(gap, "\"added_tokens\": [", one_more);
  char *next = replace(known, "\"id\": 360,", "\"id\": 5001,");

  CHECK_INT(load_text(gap, &error), TNK_OK);
  CHECK_INT(load_text(next, &error), TNK_EUNSUPPORTED);
  CHECK(strstr(error.text, "gaps") != NULL);
  test_allocator()->free(gap, test_allocator()->user);
  test_allocator()->free(known, test_allocator()->user);
  test_allocator()->free(next, test_allocator()->user);
}

/* What is switched off in another way is off all the same. */
TEST(features_that_are_switched_off_are_no_trouble) {
  tnk_tokenizer_error_t error;

  CHECK_INT(
      load_changed("qwen2", "\"dropout\": null", "\"dropout\": 0.0", &error),
      TNK_OK);
  CHECK_INT(load_changed("qwen2", "\"ignore_merges\": false",
                         "\"ignore_merges\": null", &error),
            TNK_OK);
  CHECK_INT(load_changed("qwen2", "\"end_of_word_suffix\": null",
                         "\"end_of_word_suffix\": \"\"", &error),
            TNK_OK);
}

/* The end of a JSON array that begins at a place, behind its bracket. */
static const char *behind_array(const char *at) {
  int depth = 0, in_text = 0;

  do {
    if (in_text && *at == '\\')
      at++;
    else if (*at == '"')
      in_text = !in_text;
    else if (!in_text && (*at == '[' || *at == ']'))
      depth += *at == '[' ? 1 : -1;
    at++;
  } while (depth > 0);
  return at;
}

TEST(members_of_a_model_come_in_any_order) {
  static const char sample[] = "Hello world, it's 12345 <|im_start|>\n\n x";

  for (size_t i = 0; i < SMALL_SHAPES; i++) {
    tnk_tokenizer_options_t options = small_options();
    tnk_tokenizer_t *tok = small_load(small_shapes[i]), *swapped;
    char name[64], *changed;
    const char *text, *vocab, *merges, *behind;
    tnk_tokens_t *expected = small_encode(tok, sample, sizeof(sample) - 1, 0),
                 *tokens;
    const int32_t *ids;
    size_t n, n_ids;

    (void)snprintf(name, sizeof(name), "%s.json", small_shapes[i]);
    text = small_read(name, &n);
    vocab = strstr(text, "\"vocab\": {");
    merges = strstr(text, "\"merges\": [");
    CHECK(vocab != NULL && merges != NULL && vocab < merges);
    behind = behind_array(strchr(merges, '['));
    changed = test_allocator()->malloc(n + 64, test_allocator()->user);
    CHECK(snprintf(changed, n + 64, "%.*s%.*s,%.*s\"x\": 1%s",
                   (int)(vocab - text), text, (int)(behind - merges), merges,
                   (int)(merges - vocab), vocab, behind) > 0);
    CHECK_INT(tnk_tokenizer_load_memory(&swapped, changed, strlen(changed),
                                        &options, NULL),
              TNK_OK);
    tokens = small_encode(swapped, sample, sizeof(sample) - 1, 0);
    ids = tnk_tokens_ids(expected, &n_ids);
    small_check_ids(tokens, ids, n_ids);
    tnk_tokens_free(tokens);
    tnk_tokens_free(expected);
    tnk_tokenizer_unref(swapped);
    tnk_tokenizer_unref(tok);
    test_allocator()->free(changed, test_allocator()->user);
  }
}

TEST_LIMIT(every_cut_off_file_is_refused, 60) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_t *tok;
  size_t n;
  const char *text = small_read("tekken.json", &n);

  for (size_t i = 0; i + 2 < n; i += 1 + i % 61)
    CHECK(tnk_tokenizer_load_memory(&tok, text, i, &options, NULL) < 0);
}

/* The j-th allocation fails, for every j, and nothing is left behind. */
TEST_LIMIT(every_failed_allocation_is_reported, 120) {
  static const char sample[] =
      "Word e\xcc\x81 <think>\n \xe4\xb8\xad\xff <l>  123 <|im_end|>";
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_t *tok;
  int failed = 1;

  for (long j = 0; failed; j++) {
    int err;

    test_alloc_fail_at(j);
    err = tnk_tokenizer_load(&tok, TNK_TEST_DATA "/qwen2.json", &options, NULL);
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (err == TNK_OK && failed)
      tnk_tokenizer_unref(tok); /* giving memory back may fail */
    else if (failed)
      CHECK_INT(err, TNK_ENOMEM);
    CHECK(!failed || test_alloc_live() == 0);
  }
  failed = 1;
  for (long j = 0; failed; j++) {
    tnk_tokens_t *tokens;
    size_t n;
    int err;

    test_alloc_fail_at(j);
    tokens = tnk_tokens_new(test_allocator());
    err = tokens == NULL
              ? TNK_ENOMEM
              : tnk_tokenizer_encode(tok, tokens, sample, sizeof(sample) - 1,
                                     TNK_ENCODE_OFFSETS | TNK_ENCODE_LOSSY |
                                         TNK_ENCODE_ADD_SPECIAL,
                                     NULL);
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK_INT(err, failed ? TNK_ENOMEM : TNK_OK);
    (void)tnk_tokens_ids(tokens, &n);
    CHECK(failed ? n == 0 : n > 5);
    tnk_tokens_free(tokens);
  }
  tnk_tokenizer_unref(tok);
}

TEST(files_are_found) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;

  CHECK_INT(tnk_tokenizer_load(&tok, "/nonexistent/x", &options, &error),
            TNK_ENOTFOUND);
  CHECK(strstr(error.text, "/nonexistent/x") != NULL);
  CHECK_INT(tnk_tokenizer_load(&tok, "/", &options, &error), TNK_ENOTFOUND);
  CHECK_INT(tnk_tokenizer_load(&tok, "/dev/null", &options, &error),
            TNK_ENOTFOUND);
  CHECK_INT(tnk_tokenizer_load(&tok, NULL, &options, &error), TNK_EINVAL);
  options.size = 0;
  CHECK(tnk_tokenizer_load(&tok, TNK_TEST_DATA, &options, &error) < 0);
}

TEST(bos_and_eos_come_from_the_config) {
  static const char config[] =
      "{\"add_bos_token\": false, \"bos_token\": {\"content\": "
      "\"<|im_start|>\", \"lstrip\": false}, \"eos_token\": \"<|im_end|>\"}";
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  size_t n;
  const char *text = small_read("qwen2.json", &n);

  options.config = config;
  options.n_config = sizeof(config) - 1;
  CHECK_INT(tnk_tokenizer_load_memory(&tok, text, n, &options, &error), TNK_OK);
  CHECK_INT(tnk_tokenizer_bos(tok), tnk_tokenizer_id(tok, "<|im_start|>", 12));
  CHECK_INT(tnk_tokenizer_eos(tok), tnk_tokenizer_id(tok, "<|im_end|>", 10));
  tnk_tokenizer_unref(tok);
  options.n_config -= 1;
  CHECK_INT(tnk_tokenizer_load_memory(&tok, text, n, &options, &error),
            TNK_EPROTO);
  CHECK(strstr(error.text, "tokenizer_config.json") != NULL);
}

/* Vocabularies may have tokens that no merges give. A text that is one is not
 * that token, however often it was seen, unless the file says so. */
TEST(a_token_that_no_merges_give_is_no_piece) {
  static const char merge[] = "[\n\"a\",\n\"r\"\n],\n";
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  size_t n;
  char *text = replace(small_read("gpt2.json", &n), merge, "");

  for (int ignores = 0; ignores < 2; ignores++) {
    char *own = replace(text, "\"ignore_merges\": false",
                        ignores ? "\"ignore_merges\": true"
                                : "\"ignore_merges\": false");
    tnk_tokenizer_t *tok;

    CHECK_INT(
        tnk_tokenizer_load_memory(&tok, own, strlen(own), &options, &error),
        TNK_OK);
    for (int i = 0; i < 3; i++) {
      const int32_t parts[] = {tnk_tokenizer_id(tok, "a", 1),
                               tnk_tokenizer_id(tok, "r", 1)};
      const int32_t whole = tnk_tokenizer_id(tok, "ar", 2);
      tnk_tokens_t *tokens = small_encode(tok, "ar", 2, 0);

      CHECK(whole >= 0);
      small_check_ids(tokens, ignores ? &whole : parts, ignores ? 1 : 2);
      tnk_tokens_free(tokens);
    }
    test_allocator()->free(own, test_allocator()->user);
    tnk_tokenizer_unref(tok);
  }
  test_allocator()->free(text, test_allocator()->user);
}
