/* SPDX-License-Identifier: MIT */
/* Methods of texts in Python that return a text. */
#include "chat/jinja/lex/chars.h"
#include "chat/jinja/text.h"
#include "tnk/error.h"

#define METHOD(name)                                                           \
  static tnk__value_t name(tnk__run_t *run, tnk__value_t self,                 \
                           const tnk__value_t *v, const tnk__args_t *args)

static tnk__value_t strip_ends(tnk__run_t *run, tnk__value_t self,
                               tnk__value_t chars, int ends) {
  if (tnk__is_given(chars) && chars.kind != TNK__VALUE_NONE &&
      chars.kind != TNK__VALUE_TEXT)
    return tnk__bad_type(run, "characters to strip must be a text", chars);
  return tnk__text_strip(run, self, chars, ends);
}

METHOD(strip) {
  (void)args;
  return strip_ends(run, self, v[0], TNK__STRIP_LEFT | TNK__STRIP_RIGHT);
}

METHOD(lstrip) {
  (void)args;
  return strip_ends(run, self, v[0], TNK__STRIP_LEFT);
}

METHOD(rstrip) {
  (void)args;
  return strip_ends(run, self, v[0], TNK__STRIP_RIGHT);
}

METHOD(lower) {
  (void)v, (void)args;
  return tnk__text_lower(run, self);
}

METHOD(upper) {
  (void)v, (void)args;
  return tnk__text_upper(run, self);
}

METHOD(title) {
  (void)v, (void)args;
  return tnk__text_title(run, self);
}

METHOD(capitalize) {
  (void)v, (void)args;
  return tnk__text_capitalize(run, self);
}

METHOD(swapcase) {
  (void)v, (void)args;
  return tnk__text_swapcase(run, self);
}

METHOD(replace) {
  tnk__value_t from;
  tnk__value_t to;
  int64_t most;

  (void)args;
  if (!tnk__arg_text(run, v[0], NULL, &from) ||
      !tnk__arg_text(run, v[1], NULL, &to) ||
      !tnk__arg_whole(run, v[2], -1, &most))
    return tnk__value_undefined();
  if (self.is_markup)
    to = tnk__escape(run, to);
  return tnk__text_replace(run, self, from, to, most);
}

METHOD(join) {
  (void)args;
  return tnk__text_join(run, self, v[0], 0);
}

METHOD(format) {
  (void)v;
  return tnk__text_format(run, self, args);
}

static tnk__value_t pad(tnk__run_t *run, tnk__value_t self,
                        const tnk__value_t *v, char where) {
  tnk__value_t fill;
  int64_t width;

  if (!tnk__arg_whole(run, v[0], 0, &width) ||
      !tnk__arg_text(run, v[1], " ", &fill))
    return tnk__value_undefined();
  return tnk__text_pad(run, self, width, fill, where);
}

METHOD(center) {
  (void)args;
  return pad(run, self, v, '^');
}

METHOD(ljust) {
  (void)args;
  return pad(run, self, v, '<');
}

METHOD(rjust) {
  (void)args;
  return pad(run, self, v, '>');
}

METHOD(zfill) {
  const int has_sign =
      self.n_text > 0 && (*self.as.text == '+' || *self.as.text == '-');
  tnk__value_t rest = tnk__text_part(self, (size_t)has_sign, self.n_text);
  int64_t width;

  (void)args;
  if (!tnk__arg_whole(run, v[0], 0, &width))
    return tnk__value_undefined();
  if (width <= 0)
    return self;
  rest =
      tnk__text_pad(run, rest, width - has_sign, tnk__value_text("0", 1), '>');
  if (!has_sign || run->err != TNK_OK)
    return rest;
  return tnk__add_texts(run, tnk__text_part(self, 0, 1), rest);
}

static tnk__value_t remove_end(tnk__run_t *run, tnk__value_t self,
                               tnk__value_t part, int is_front) {
  tnk__value_t end;

  if (!tnk__arg_text(run, part, NULL, &part) || part.n_text > self.n_text ||
      !tnk__charge(run, TNK__COST_COPY, part.n_text))
    return self;
  end = is_front ? tnk__text_part(self, 0, part.n_text)
                 : tnk__text_part(self, self.n_text - part.n_text, self.n_text);
  if (part.n_text == 0 || !tnk__value_equal(end, part))
    return self;
  return is_front ? tnk__text_part(self, part.n_text, self.n_text)
                  : tnk__text_part(self, 0, self.n_text - part.n_text);
}

METHOD(removeprefix) {
  (void)args;
  return remove_end(run, self, v[0], 1);
}

METHOD(removesuffix) {
  (void)args;
  return remove_end(run, self, v[0], 0);
}

const tnk__builtin_t tnk__methods_text[] = {
    {"capitalize", "/", 0, capitalize},
    {"center", "/width fillchar", 1, center},
    {"format", NULL, 0, format},
    {"join", "/iterable", 1, join},
    {"ljust", "/width fillchar", 1, ljust},
    {"lower", "/", 0, lower},
    {"lstrip", "/chars", 0, lstrip},
    {"removeprefix", "/prefix", 1, removeprefix},
    {"removesuffix", "/suffix", 1, removesuffix},
    {"replace", "/old new count", 2, replace},
    {"rjust", "/width fillchar", 1, rjust},
    {"rstrip", "/chars", 0, rstrip},
    {"strip", "/chars", 0, strip},
    {"swapcase", "/", 0, swapcase},
    {"title", "/", 0, title},
    {"upper", "/", 0, upper},
    {"zfill", "/width", 1, zfill},
    {NULL, NULL, 0, NULL},
};
