/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/lua/native/native.h"

const char *const optimizer_names[] = {"adamw", "dimuon", "raw", NULL};

/* ---- Errors ---- */

void put_text(lua_State *L, const char *name, const char *text) {
  if (text == NULL)
    return;
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

void put_number(lua_State *L, const char *name, double number) {
  lua_pushnumber(L, (lua_Number)number);
  lua_setfield(L, -2, name);
}

void put_whole(lua_State *L, const char *name, int64_t number) {
  lua_pushinteger(L, (lua_Integer)number);
  lua_setfield(L, -2, name);
}

static void set_details(lua_State *L, const tnk_error_t *error) {
  static const char *const ran[] = {"unknown", "no", "yes", "partly"};
  static const char *const categories[] = {"unknown", "server", "user"};

  if (error->http_status != 0)
    put_whole(L, "status", error->http_status);
  if (error->cause != 0)
    put_whole(L, "cause", error->cause);
  if (error->retry_after_ms != 0)
    put_whole(L, "retry_after_ms", (int64_t)error->retry_after_ms);
  if ((unsigned)error->category < COUNT(categories))
    put_text(L, "category", categories[error->category]);
  if ((unsigned)error->ran < COUNT(ran))
    put_text(L, "ran", ran[error->ran]);
  put_whole(L, "attempts", error->n_attempts);
  put_text(L, "request_id", error->request_id);
  put_text(L, "server_message", error->message);
}

void push_error(lua_State *L, int code, const char *text,
                const tnk_error_t *details) {
  lua_newtable(L);
  put_text(L, "code", tnk_err_name(code));
  put_text(L, "text",
           text != NULL && text[0] != '\0' ? text : tnk_strerror(code));
  if (details != NULL)
    set_details(L, details);
  luaL_getmetatable(L, "tnk.error");
  lua_setmetatable(L, -2);
}

_Noreturn void raise_error(lua_State *L, int code, const char *format, ...) {
  va_list args;

  va_start(args, format);
  const char *text = lua_pushvfstring(L, format, args);
  va_end(args);
  push_error(L, code, text, NULL);
  lua_error(L);
  /* It does not return, which its declaration does not say. */
  abort();
}

_Noreturn void fail(lua_State *L, where_t where, const char *format, ...) {
  va_list args;

  va_start(args, format);
  const char *text = lua_pushvfstring(L, format, args);
  va_end(args);
  if (where.datum > 0)
    raise_error(L, TNK_EINVAL, "datum %d: %s: %s", (int)where.datum - 1,
                where.what, text);
  raise_error(L, TNK_EINVAL, "%s: %s", where.what, text);
}

/* ---- Memory ---- */

void call_setup(lua_State *L) {
  lua_settop(L, MAX_ARGS);
  luaL_checkstack(L, 64, "call");
  lua_newtable(L);
}

void *scratch(lua_State *L, size_t n, size_t size) {
  if (n > SIZE_MAX / 2 / size)
    raise_error(L, TNK_ENOMEM, "out of memory");
  /* An empty list is not an absent one. */
  size_t n_bytes = n > 0 ? n * size : 1;
  void *memory = lua_newuserdata(L, n_bytes);
  memset(memory, 0, n_bytes);
  lua_rawseti(L, ANCHOR, (int)lua_rawlen(L, ANCHOR) + 1);
  return memory;
}

/* ---- Values ---- */

void push_member(lua_State *L, int index, const char *name) {
  if (index < 0)
    index = lua_gettop(L) + index + 1;
  lua_pushstring(L, name);
  lua_rawget(L, index);
}

size_t arg_list(lua_State *L, int index, where_t where, const char *expected) {
  if (!lua_istable(L, index))
    fail(L, where, "expected %s, got %s", expected, luaL_typename(L, index));
  return lua_rawlen(L, index);
}

int64_t arg_whole(lua_State *L, int index, where_t where, double low,
                  double high) {
  if (lua_type(L, index) != LUA_TNUMBER)
    fail(L, where, "expected a whole number, got %s", luaL_typename(L, index));
#if LUA_VERSION_NUM >= 503
  if (lua_isinteger(L, index)) {
    lua_Integer whole = lua_tointeger(L, index);
    if ((double)whole < low || (double)whole > high)
      fail(L, where, "%f is out of range", (lua_Number)whole);
    return whole;
  }
#endif
  double number = lua_tonumber(L, index);
  if (number != floor(number) || isinf(number))
    fail(L, where, "expected a whole number, got %f", (lua_Number)number);
  /* 2^63 is a double, but does not fit into an int64_t. */
  if (number < low || number > high || number >= 9223372036854775808.0)
    fail(L, where, "%f is out of range", (lua_Number)number);
  return (int64_t)number;
}

const char *arg_text(lua_State *L, int index, where_t where) {
  size_t n = 0;

  if (lua_isnil(L, index))
    return NULL;
  /* A number would become a string that no table keeps. */
  if (lua_type(L, index) != LUA_TSTRING)
    fail(L, where, "expected a string, got %s", luaL_typename(L, index));
  const char *text = lua_tolstring(L, index, &n);
  if (strlen(text) != n)
    fail(L, where, "expected a string without zero bytes");
  return text;
}

const int32_t *arg_ids(lua_State *L, int index, where_t where, size_t *n) {
  if (lua_type(L, index) == LUA_TSTRING)
    fail(L, where,
         "expected a table of token ids, got string; encode text "
         "with a tokenizer or tnk.bytes()");
  *n = arg_list(L, index, where, "a table of token ids");
  int32_t *ids = scratch(L, *n, sizeof(*ids));
  for (size_t i = 0; i < *n; i++) {
    lua_rawgeti(L, index, (int)i + 1);
    double id = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : NAN;
    if (!(id >= INT32_MIN && id <= INT32_MAX && id == floor(id)))
      fail(L, where, "value [%d] is no token id", (int)i + 1);
    ids[i] = (int32_t)id;
    lua_pop(L, 1);
  }
  return ids;
}

static void read_texts(lua_State *L, where_t where, const char *const **out,
                       size_t *n) {
  /* One string is a list of one. */
  int is_list = lua_type(L, -1) != LUA_TSTRING;

  *n = is_list ? arg_list(L, -1, where, "a table of strings") : 1;
  const char **texts = scratch(L, *n, sizeof(*texts));
  for (size_t i = 0; i < *n; i++) {
    if (is_list)
      lua_rawgeti(L, -1, (int)i + 1);
    else
      lua_pushvalue(L, -1);
    texts[i] = arg_text(L, -1, where);
    lua_pop(L, 1);
  }
  *out = texts;
}

static void read_pairs(lua_State *L, where_t where, const tnk_pair_t **out,
                       size_t *n) {
  size_t n_pairs = 0;

  arg_list(L, -1, where, "a table of names and strings");
  for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
    n_pairs++;
  tnk_pair_t *pairs = scratch(L, n_pairs, sizeof(*pairs));
  *n = 0;
  for (lua_pushnil(L); *n < n_pairs && lua_next(L, -2) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      fail(L, where, "expected a table of names and strings");
    pairs[*n].name = arg_text(L, -2, where);
    pairs[*n].value = arg_text(L, -1, where);
    (*n)++;
  }
  *out = pairs;
}

static uint32_t read_chosen(lua_State *L, where_t where,
                            const char *const *names) {
  const char *name = arg_text(L, -1, where);

  for (uint32_t i = 0; names[i] != NULL; i++)
    if (strcmp(names[i], name) == 0)
      return i;
  for (size_t i = 0; names[i] != NULL; i++) {
    lua_pushfstring(L, i == 0 ? "\"%s\"" : ", \"%s\"", names[i]);
    if (i > 0)
      lua_concat(L, 2);
  }
  fail(L, where, "\"%s\" is none of %s", name, lua_tostring(L, -1));
}

/* The value on top of the stack, into its member. */
static void read_field(lua_State *L, const char *what, const field_t *field,
                       char *to) {
  const char *text = lua_pushfstring(L, "%s: option \"%s\"", what, field->name);
  where_t where = {text, 0};

  lua_insert(L, -2);
  to += field->offset;
  switch (field->type) {
  case FIELD_TEXT:
    *(const char **)to = arg_text(L, -1, where);
    break;
  case FIELD_TEXTS:
    read_texts(L, where, (const char *const **)to,
               (size_t *)(to + sizeof(void *)));
    break;
  case FIELD_PAIRS:
    read_pairs(L, where, (const tnk_pair_t **)to,
               (size_t *)(to + sizeof(void *)));
    break;
  case FIELD_I32S:
    *(const int32_t **)to =
        arg_ids(L, lua_gettop(L), where, (size_t *)(to + sizeof(void *)));
    break;
  case FIELD_CHOICE:
    if (!lua_isboolean(L, -1))
      fail(L, where, "expected a boolean, got %s", luaL_typename(L, -1));
    *(tnk_choice_t *)to = lua_toboolean(L, -1) ? TNK_YES : TNK_NO;
    break;
  case FIELD_U32:
    *(uint32_t *)to = (uint32_t)arg_whole(L, -1, where, 0, UINT32_MAX);
    break;
  case FIELD_I32:
    *(int32_t *)to = (int32_t)arg_whole(L, -1, where, INT32_MIN, INT32_MAX);
    break;
  case FIELD_U64:
    *(uint64_t *)to = (uint64_t)arg_whole(L, -1, where, 0, 1e19);
    break;
  case FIELD_I64:
    *(int64_t *)to = arg_whole(L, -1, where, -1e19, 1e19);
    break;
  case FIELD_DOUBLE:
    if (lua_type(L, -1) != LUA_TNUMBER)
      fail(L, where, "expected a number, got %s", luaL_typename(L, -1));
    *(double *)to = lua_tonumber(L, -1);
    break;
  case FIELD_ENUM:
    *(uint32_t *)to = read_chosen(L, where, field->names);
    break;
  }
  lua_pop(L, 2);
}

static int is_known(const char *name, const target_t *target,
                    const char *const *others) {
  for (; target != NULL; target = target->next)
    for (size_t i = 0; i < target->n_fields; i++)
      if (strcmp(target->fields[i].name, name) == 0)
        return 1;
  for (size_t i = 0; others != NULL && others[i] != NULL; i++)
    if (strcmp(others[i], name) == 0)
      return 1;
  return 0;
}

void arg_options(lua_State *L, int index, const char *what,
                 const target_t *target, const char *const *others) {
  where_t where = {what, 0};

  if (lua_isnoneornil(L, index))
    return;
  arg_list(L, index, where, "a table of options");
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      fail(L, where, "options have names, got a key of type %s",
           luaL_typename(L, -2));
    if (!is_known(lua_tostring(L, -2), target, others))
      fail(L, where, "unknown option \"%s\"", lua_tostring(L, -2));
  }
  for (; target != NULL; target = target->next)
    for (size_t i = 0; i < target->n_fields; i++) {
      push_member(L, index, target->fields[i].name);
      if (lua_isnil(L, -1))
        lua_pop(L, 1);
      else
        read_field(L, what, &target->fields[i], target->out);
    }
}
