/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "bindings/lua/native/native.h"

static const char *const formats[] = {"", "png", "jpeg", NULL};

/* ---- Inputs ---- */

/* The bytes of a member, if it is there. */
static int read_bytes(lua_State *L, int index, where_t where, const char *name,
                      tnk_chunk_t *out) {
  push_member(L, index, name);
  int is_there = !lua_isnil(L, -1);
  if (is_there && lua_type(L, -1) != LUA_TSTRING)
    fail(L, where, "\"%s\": expected a string, got %s", name,
         luaL_typename(L, -1));
  if (is_there)
    out->bytes = lua_tolstring(L, -1, &out->n_bytes);
  lua_pop(L, 1);
  return is_there;
}

/* The chunk on top of the stack. */
static void read_chunk(lua_State *L, where_t where, tnk_chunk_t *out) {
  static const field_t fields[] = {
      FIELD(tnk_chunk_t, location, FIELD_TEXT),
      FIELD_CHOSEN(tnk_chunk_t, format, formats),
      FIELD(tnk_chunk_t, expected_tokens, FIELD_I32),
  };
  static const char *const others[] = {"tokens", "image", "dmel", NULL};
  const target_t target = {fields, COUNT(fields), out, NULL};
  int index = lua_gettop(L);

  arg_options(L, index, where.what, &target, others);
  push_member(L, index, "tokens");
  if (!lua_isnil(L, -1)) {
    out->tokens = arg_ids(L, lua_gettop(L), where, &out->n_tokens);
    lua_pop(L, 1);
    return;
  }
  lua_pop(L, 1);
  if (read_bytes(L, index, where, "image", out))
    out->kind = TNK_CHUNK_IMAGE;
  else if (read_bytes(L, index, where, "dmel", out))
    out->kind = TNK_CHUNK_DMEL;
  else if (out->location != NULL)
    out->kind = TNK_CHUNK_IMAGE_POINTER;
  else
    fail(L, where, "a chunk needs tokens, image, dmel or location");
}

void arg_input(lua_State *L, int index, where_t where, tnk_model_input_t *out) {
  int has_chunks = 0;

  if (lua_istable(L, index)) {
    lua_rawgeti(L, index, 1);
    has_chunks = lua_istable(L, -1);
    lua_pop(L, 1);
  }
  if (!has_chunks) {
    out->tokens = arg_ids(L, index, where, &out->n_tokens);
    return;
  }
  size_t n = arg_list(L, index, where, "a table of chunks");
  tnk_chunk_t *chunks = scratch(L, n, sizeof(*chunks));
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, index, (int)i + 1);
    arg_list(L, -1, where, "a table of chunks");
    read_chunk(L, where, &chunks[i]);
    lua_pop(L, 1);
  }
  out->chunks = chunks;
  out->n_chunks = n;
}

/* ---- Datums ---- */

/* The values of a tensor, from the list on top of the stack. */
static void read_values(lua_State *L, where_t where, tnk_tensor_t *out) {
  int is_whole = strcmp(where.what, "target_tokens") == 0;
  int index = lua_gettop(L);

  out->n_values = arg_list(L, index, where, "a table of numbers");
  out->dtype = is_whole ? TNK_I64 : TNK_F64;
  int64_t *wholes =
      is_whole ? scratch(L, out->n_values, sizeof(*wholes)) : NULL;
  double *numbers =
      is_whole ? NULL : scratch(L, out->n_values, sizeof(*numbers));
  for (size_t i = 0; i < out->n_values; i++) {
    lua_rawgeti(L, index, (int)i + 1);
    if (lua_type(L, -1) != LUA_TNUMBER)
      fail(L, where, "value [%d]: expected a number, got %s", (int)i + 1,
           luaL_typename(L, -1));
    if (is_whole)
      wholes[i] = arg_whole(L, -1, where, -1e19, 1e19);
    else
      numbers[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  out->data = is_whole ? (const void *)wholes : (const void *)numbers;
}

/* A list of numbers, or {data = numbers, shape = numbers}. */
static void read_tensor(lua_State *L, where_t where, tnk_loss_input_t *out) {
  out->name = where.what;
  arg_list(L, -1, where, "a table of numbers");
  push_member(L, -1, "data");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    read_values(L, where, &out->tensor);
    return;
  }
  read_values(L, where, &out->tensor);
  lua_pop(L, 1);
  push_member(L, -1, "shape");
  if (!lua_isnil(L, -1)) {
    size_t n = arg_list(L, -1, where, "a table as shape");
    if (n > TNK_MAX_DIMS)
      fail(L, where, "a tensor has at most %d dimensions", TNK_MAX_DIMS);
    for (size_t i = 0; i < n; i++) {
      lua_rawgeti(L, -1, (int)i + 1);
      out->tensor.shape[i] = arg_whole(L, -1, where, 0, 1e15);
      lua_pop(L, 1);
    }
    out->tensor.n_dims = (uint32_t)n;
  }
  lua_pop(L, 1);
}

/* Read `targets` and `weights`, which are short names for inputs of the
 * loss. */
static void read_short(lua_State *L, int index, size_t datum, tnk_datum_t *out,
                       tnk_loss_input_t *inputs) {
  static const char *const names[][2] = {{"targets", "target_tokens"},
                                         {"weights", "weights"}};

  for (size_t i = 0; i < COUNT(names); i++) {
    push_member(L, index, names[i][0]);
    if (!lua_isnil(L, -1)) {
      where_t where = {names[i][1], datum};
      read_tensor(L, where, &inputs[out->n_loss_inputs++]);
    }
    lua_pop(L, 1);
  }
}

static void check_names(lua_State *L, int index, size_t datum) {
  static const char *const names[] = {"input", "targets", "weights",
                                      "loss_inputs", NULL};
  where_t where = {"names", datum};

  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    int is_known = 0;
    for (size_t i = 0; names[i] != NULL && lua_type(L, -2) == LUA_TSTRING; i++)
      is_known |= strcmp(names[i], lua_tostring(L, -2)) == 0;
    if (is_known)
      continue;
    if (lua_type(L, -2) != LUA_TSTRING)
      fail(L, where, "unknown key of type %s", luaL_typename(L, -2));
    fail(L, where, "unknown key \"%s\"", lua_tostring(L, -2));
  }
}

/* The datum on top of the stack. */
static void read_datum(lua_State *L, size_t datum, tnk_datum_t *out) {
  int index = lua_gettop(L);
  size_t n = 2;
  where_t where = {"input", datum};

  if (!lua_istable(L, index))
    raise_error(L, TNK_EINVAL, "datum %d: expected a table, got %s",
                (int)datum - 1, luaL_typename(L, index));
  check_names(L, index, datum);
  push_member(L, index, "input");
  arg_input(L, lua_gettop(L), where, &out->input);
  lua_pop(L, 1);
  push_member(L, index, "loss_inputs");
  int named = lua_gettop(L);
  where.what = "loss_inputs";
  if (!lua_isnil(L, named)) {
    arg_list(L, named, where, "a table of names and tables");
    for (lua_pushnil(L); lua_next(L, named) != 0; lua_pop(L, 1))
      n++;
  }
  tnk_loss_input_t *inputs = scratch(L, n, sizeof(*inputs));
  read_short(L, index, datum, out, inputs);
  if (!lua_isnil(L, named))
    for (lua_pushnil(L); out->n_loss_inputs < n && lua_next(L, named) != 0;
         lua_pop(L, 1)) {
      where_t entry = {"loss_inputs", datum};
      if (lua_type(L, -2) != LUA_TSTRING)
        fail(L, entry, "expected a table of names and tables");
      entry.what = arg_text(L, -2, entry);
      read_tensor(L, entry, &inputs[out->n_loss_inputs++]);
    }
  lua_pop(L, 1);
  out->loss_inputs = inputs;
}

const tnk_datum_t *arg_data(lua_State *L, int index, size_t *n) {
  where_t where = {"data", 0};

  *n = arg_list(L, index, where, "a table of datums");
  tnk_datum_t *data = scratch(L, *n, sizeof(*data));
  luaL_checkstack(L, 32, "data");
  for (size_t i = 0; i < *n; i++) {
    lua_rawgeti(L, index, (int)i + 1);
    read_datum(L, i + 1, &data[i]);
    lua_pop(L, 1);
  }
  return data;
}

void arg_settings(lua_State *L, int index, tnk_pass_options_t *out) {
  where_t where = {"settings", 0};
  size_t n = 0;

  if (lua_isnil(L, index))
    return;
  arg_list(L, index, where, "a table of names and numbers");
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1))
    n++;
  tnk_loss_setting_t *list = scratch(L, n, sizeof(*list));
  for (lua_pushnil(L); out->n_settings < n && lua_next(L, index) != 0;
       lua_pop(L, 1)) {
    tnk_loss_setting_t *setting = &list[out->n_settings++];
    if (lua_type(L, -2) != LUA_TSTRING)
      fail(L, where, "expected a table of names and numbers");
    setting->name = arg_text(L, -2, where);
    where_t entry = {setting->name, 0};
    if (lua_type(L, -1) == LUA_TNUMBER)
      setting->number = lua_tonumber(L, -1);
    else
      setting->text = arg_text(L, -1, entry);
  }
  out->settings = list;
}
