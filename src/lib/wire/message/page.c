/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/page.h"

#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/base/utf8.h"

/*
 * This file does not parse HTML. It looks for a title, or takes the text
 * outside of tags. The result is only for people, so a wrong cut is harmless.
 */

enum {
  MAX_SCAN = 16 * 1024, /* bytes of a body */
  MAX_WORDS = 160,      /* bytes of a title */
  MAX_NAME = 64,        /* bytes of a program's name */
  MAX_CAUSE = 40,
  MAX_TARGET = 256, /* bytes of a redirect's target */
  MAX_ENTITY = 12
};

/* A part of a text, not terminated. */
typedef struct {
  const char *at;
  size_t n;
} slice_t;

/* Collected words, with one blank between two of them. */
typedef struct {
  char data[MAX_WORDS + 1];
  size_t n;
  int wants_blank;
  int is_full;
} words_t;

static int is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f';
}

/* ---- Characters ---- */

/* Characters that have an effect instead of a glyph: controls, invisible signs,
 * and changes of the writing direction. */
static int is_invisible(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad ||
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff;
}

static void put(words_t *words, uint32_t c) {
  uint8_t text[4];
  size_t n;

  if (is_invisible(c) || c == ' ') {
    words->wants_blank = words->n > 0;
    return;
  }
  n = tnk__utf8_put(text, c);
  if (words->is_full || words->n + n + 1 > MAX_WORDS) {
    words->is_full = 1;
    return;
  }
  if (words->wants_blank)
    words->data[words->n++] = ' ';
  words->wants_blank = 0;
  memcpy(words->data + words->n, text, n);
  words->n += n;
  words->data[words->n] = '\0';
}

/* Decode the first character, well-formed or not. Returns its size in bytes. */
static size_t decode(uint32_t *out, slice_t text) {
  const uint8_t *s = (const uint8_t *)text.at;
  const size_t n = tnk__utf8_char(text.at, text.n);

  *out = '?';
  if (n == 0)
    return 1;
  if (n == 1) {
    *out = s[0];
    return 1;
  }
  *out = s[0] & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++)
    *out = *out << 6 | (s[i] & 0x3fu);
  return n;
}

/* Read "#65" or "#x41". */
static int read_number(uint32_t *out, slice_t name) {
  const int is_hex = name.n > 1 && (name.at[1] | 0x20) == 'x';
  uint32_t value = 0;

  for (size_t i = is_hex ? 2 : 1; i < name.n; i++) {
    const char c = name.at[i];
    const char low = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
      value = value * (is_hex ? 16 : 10) + (uint32_t)(c - '0');
    else if (is_hex && low >= 'a' && low <= 'f')
      value = value * 16 + (uint32_t)(low - 'a' + 10);
    else
      return 0;
    if (value > 0x10ffff)
      value = 0x110000; /* out of range, and stays so */
  }
  *out = value;
  return name.n > (is_hex ? 2 : 1);
}

/* Read an entity at the front. Returns its length, or 0 if it is unknown. */
static size_t read_entity(uint32_t *out, slice_t text) {
  static const struct {
    const char *name;
    uint32_t c;
  } known[] = {{"amp", '&'},   {"lt", '<'},       {"gt", '>'},
               {"quot", '"'},  {"apos", '\''},    {"nbsp", ' '},
               {"copy", 0xa9}, {"rsquo", 0x2019}, {"mdash", 0x2014}};
  const size_t most = text.n < MAX_ENTITY ? text.n : MAX_ENTITY;
  const char *end = memchr(text.at, ';', most);
  slice_t name;

  if (end == NULL)
    return 0;
  name = (slice_t){text.at + 1, (size_t)(end - text.at) - 1};
  if (name.n > 0 && name.at[0] == '#')
    return read_number(out, name) ? name.n + 2 : 0;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (name.n == strlen(known[i].name) &&
        strncmp(name.at, known[i].name, name.n) == 0) {
      *out = known[i].c;
      return name.n + 2;
    }
  }
  return 0;
}

static void put_text(words_t *words, slice_t text) {
  while (text.n > 0) {
    uint32_t c = 0;
    size_t n = text.at[0] == '&' ? read_entity(&c, text) : 0;
    if (n == 0)
      n = decode(&c, text);
    put(words, c);
    text.at += n;
    text.n -= n;
  }
}

/* ---- Pages ---- */

static slice_t skip(slice_t text, size_t n) {
  return (slice_t){text.at + n, text.n - n};
}

static int begins(slice_t text, const char *prefix) {
  const size_t n = strlen(prefix);

  return text.n >= n && strncasecmp(text.at, prefix, n) == 0;
}

/* The position of `what`, ignoring case; text.n if it is absent. */
static size_t find(slice_t text, const char *what) {
  size_t i = 0;

  while (i < text.n && !begins(skip(text, i), what))
    i++;
  return i;
}

static size_t find_char(slice_t text, char c) {
  const char *at = text.n > 0 ? memchr(text.at, c, text.n) : NULL;

  return at != NULL ? (size_t)(at - text.at) : text.n;
}

/* The front of a body, without a byte order mark and blanks. */
static slice_t front_of(const tnk__page_t *page) {
  slice_t text = {(const char *)page->body,
                  page->body_len < MAX_SCAN ? page->body_len : MAX_SCAN};

  if (page->body == NULL)
    return (slice_t){"", 0};
  if (begins(text, "\xef\xbb\xbf"))
    text = skip(text, 3);
  while (text.n > 0 && is_blank(text.at[0]))
    text = skip(text, 1);
  return text;
}

int tnk__page_is(const tnk__page_t *page) {
  const slice_t text = front_of(page);

  if (text.n > 0)
    return text.at[0] == '<';
  return page->type != NULL && find((slice_t){page->type, strlen(page->type)},
                                    "html") < strlen(page->type);
}

/* Read the text between <name ...> and the next tag. */
static void read_element(words_t *out, slice_t page, const char *name) {
  slice_t text = skip(page, find(page, name));

  text = skip(text, find_char(text, '>'));
  if (text.n == 0)
    return;
  text = skip(text, 1);
  put_text(out, (slice_t){text.at, find_char(text, '<')});
}

/* Skip the tag at the front, and content that it hides. */
static slice_t pass_tag(slice_t text) {
  static const char *const hidden[][2] = {
      {"<!--", "-->"}, {"<script", "</script"}, {"<style", "</style"}};

  for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
    if (begins(text, hidden[i][0]))
      text = skip(text, find(text, hidden[i][1]));
  text = skip(text, find_char(text, '>'));
  return text.n > 0 ? skip(text, 1) : text;
}

/* Read all visible text. */
static void read_visible(words_t *out, slice_t text) {
  while (text.n > 0 && !out->is_full) {
    const size_t n = find_char(text, '<');
    put_text(out, (slice_t){text.at, n});
    put(out, ' ');
    text = pass_tag(skip(text, n));
  }
}

static void read_page(words_t *out, const tnk__page_t *page) {
  const slice_t text = front_of(page);

  *out = (words_t){.n = 0};
  read_element(out, text, "<title");
  if (out->n == 0)
    read_visible(out, text);
}

/* ---- Names of programs ---- */

/* Append at most `max` bytes of a header, visible characters only. */
static void put_name(tnk__text_t *out, slice_t name, size_t max) {
  if (name.n > max)
    name.n = max;
  for (size_t i = 0; i < name.n; i++)
    tnk__text_printf(out, "%c",
                     name.at[i] >= ' ' && name.at[i] <= '~' ? name.at[i] : '?');
}

/* The last entry of a Via header, which is the nearest to this machine. Its
 * comment in parentheses names the program; otherwise the host is used. */
static slice_t nearest(const char *via) {
  const char *comma = strrchr(via, ',');
  const char *open = strrchr(via, '(');
  const char *close = strrchr(via, ')');
  const char *at = comma != NULL ? comma + 1 : via;

  if (open != NULL && close > open + 1 && open > at)
    return (slice_t){open + 1, (size_t)(close - open) - 1};
  at += strspn(at, " \t");
  at += strcspn(at, " \t"); /* skip the protocol */
  at += strspn(at, " \t");
  return (slice_t){at, strcspn(at, " \t")};
}

static slice_t name_of(const tnk__page_t *page) {
  slice_t name = {"", 0};

  if (page->server != NULL)
    name = (slice_t){page->server, strlen(page->server)};
  if (name.n == 0 && page->via != NULL)
    name = nearest(page->via);
  return name;
}

/* ---- Explanations ---- */

/* Returns whether the page says that TLS is required, which the base URL does
 * not use. */
static int wants_tls(const tnk__page_t *page) {
  const slice_t text = front_of(page);

  return page->status == 400 && strncmp(page->base_url, "http://", 7) == 0 &&
         (find(text, "https") < text.n || find(text, "ssl-enabled") < text.n);
}

static void put_advice(tnk__text_t *out, const tnk__page_t *page) {
  if (page->status == 404 || page->status == 405)
    tnk__text_printf(out, "; is %.200s the right base URL?", page->base_url);
  else if (wants_tls(page))
    tnk__text_printf(out, "; begin TINKER_BASE_URL with https://");
}

static void put_cause(tnk__text_t *out, const tnk__page_t *page) {
  if (page->cause == NULL || page->cause[0] == '\0')
    return;
  tnk__text_printf(out, " (");
  put_name(out, (slice_t){page->cause, strcspn(page->cause, " ")}, MAX_CAUSE);
  tnk__text_printf(out, ")");
}

static void explain_page(tnk__text_t *out, const tnk__page_t *page) {
  const slice_t name = name_of(page);
  words_t words;

  read_page(&words, page);
  if (words.n > 0) {
    tnk__text_printf(out, "not the service but ");
    put_name(out, name.n > 0 ? name : (slice_t){"a page", 6}, MAX_NAME);
    tnk__text_printf(out, " says \"%s%s\"", words.data,
                     words.is_full ? "..." : "");
  } else {
    tnk__text_printf(out, "a page");
    if (name.n > 0)
      tnk__text_printf(out, " of ");
    put_name(out, name, MAX_NAME);
    tnk__text_printf(out, ", not an answer of the service");
  }
  put_cause(out, page);
  put_advice(out, page);
}

static void explain_too_large(tnk__text_t *out, const tnk__page_t *page) {
  const slice_t name = name_of(page);

  if (page->sent_len >= 1000 * 1000)
    tnk__text_printf(out, "a body of %.1f MB", (double)page->sent_len / 1e6);
  else if (page->sent_len >= 1000)
    tnk__text_printf(out, "a body of %.1f kB", (double)page->sent_len / 1e3);
  else
    tnk__text_printf(out, "a body of %zu bytes", page->sent_len);
  tnk__text_printf(out, " is too large for ");
  if (name.n > 0)
    put_name(out, name, MAX_NAME);
  else
    tnk__text_printf(out, "what is before the service");
}

/* ---- Redirections ---- */

/* Append "https://host/path" without a user, a query and a fragment. */
static void put_url(tnk__text_t *out, const char *scheme, slice_t rest) {
  const char *path = rest.at;
  size_t n_host = 0;

  while (n_host < rest.n && strchr("/?#", path[n_host]) == NULL)
    n_host++;
  for (size_t i = n_host; i > 0; i--) {
    if (rest.at[i - 1] == '@') {
      rest = skip(rest, i);
      break;
    }
  }
  tnk__text_printf(out, "%s", scheme);
  put_name(out, rest, MAX_TARGET);
}

/* Parse a Location. Returns its scheme, and the text after it in *rest. NULL:
 * another page of the same server. */
static const char *target_of(const tnk__page_t *page, slice_t *rest) {
  static const char *const schemes[] = {"https://", "http://"};
  const slice_t text = {page->location, strcspn(page->location, "?#")};

  for (size_t i = 0; i < 2; i++) {
    if (begins(text, schemes[i])) {
      *rest = skip(text, strlen(schemes[i]));
      return schemes[i];
    }
  }
  if (begins(text, "//")) {
    *rest = skip(text, 2);
    return schemes[strncmp(page->base_url, "https", 5) == 0 ? 0 : 1];
  }
  *rest = text;
  return NULL;
}

/* Remove the call's path from the end. */
static int cut_path(slice_t *url, const char *path) {
  const size_t n = find(*url, path);

  if (n == 0 || n == url->n)
    return 0;
  url->n = n;
  return 1;
}

/* A path may end in another URL, which may contain a user. */
static slice_t without_url(slice_t path) {
  return (slice_t){path.at, find(path, "://")};
}

static void explain_redirect(tnk__text_t *out, const tnk__page_t *page) {
  slice_t rest;
  const char *scheme = target_of(page, &rest);
  int is_base;
  size_t at;

  tnk__text_printf(out, "redirects to ");
  if (scheme == NULL) {
    /* Text that does not begin with a slash may be a URL of any kind. */
    if (rest.n > 0 && rest.at[0] == '/')
      put_name(out, without_url(rest), MAX_TARGET);
    else
      tnk__text_printf(out, "another page");
    tnk__text_printf(out, "; is %.200s the right base URL?", page->base_url);
    return;
  }
  is_base = cut_path(&rest, page->path);
  at = out->len;
  put_url(out, scheme, without_url(rest));
  if (is_base && strcmp(out->data + at, page->base_url) == 0)
    tnk__text_printf(out, ", where the answer came from");
  else if (is_base)
    tnk__text_printf(out, "; set TINKER_BASE_URL to that");
  else
    tnk__text_printf(out,
                     ", which is no call of the service; is %.200s the "
                     "right base URL?",
                     page->base_url);
}

/* ---- The whole text ---- */

static int is_redirect(const tnk__page_t *page) {
  return page->status / 100 == 3 && page->location != NULL &&
         page->location[0] != '\0';
}

/* Describe the response without any of its text. */
static void explain_hushed(tnk__text_t *out, const tnk__page_t *page) {
  tnk__text_printf(out,
                   "the answer is of proxy %s, or of something behind it that "
                   "is not the service",
                   page->confidant);
  if (page->status == 401 || page->status == 407)
    tnk__text_printf(out, "; the user and password for the proxy may be wrong");
}

int tnk__page_explain(const tnk__page_t *page, char *text, size_t size) {
  const int is_page = tnk__page_is(page);
  tnk__text_t out;

  tnk__text_init(&out, text, size);
  if (!is_page && !is_redirect(page) &&
      (page->body_len > 0 || page->status / 100 < 4))
    return 0;
  if (page->confidant != NULL) {
    if (is_page || is_redirect(page))
      explain_hushed(&out, page);
  } else if (is_redirect(page)) {
    explain_redirect(&out, page);
  } else if (page->status == 413) {
    explain_too_large(&out, page);
  } else if (is_page) {
    explain_page(&out, page);
  } else if (name_of(page).n > 0) {
    tnk__text_printf(&out, "without words, from ");
    put_name(&out, name_of(page), MAX_NAME);
  }
  return out.len > 0;
}
