/* SPDX-License-Identifier: MIT */
/* Custom losses of the caller that run on the service. The service checks the
 * computation of their graphs; this file checks only the form. */
#include <string.h>

#include "lib/wire/data/check.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/data/data.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum { MAX_ARGUMENTS = 16, MAX_NAME = 64, MAX_GRAPH = 1024 * 1024 };

static const char first_name[] = "logprobs";

/* ---- Arguments ---- */

static int is_argument_name(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
  static const char all[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
  const size_t n = strlen(name);

  return n > 0 && n <= MAX_NAME && strchr(letters, name[0]) != NULL &&
         strspn(name, all) == n;
}

static int check_argument(const tnk__where_t *where,
                          const tnk_loss_argument_t *argument) {
  if (argument->reserved != 0)
    return tnk__refuse(where, "it has a reserved member set");
  if (argument->name == NULL || !is_argument_name(argument->name))
    return tnk__refuse(where,
                       "its name must be 1 to 64 lowercase letters, digits "
                       "and underscores, and must not begin with a digit");
  if (where->index == 0 && strcmp(argument->name, first_name) != 0)
    return tnk__refuse(where, "the first one must be \"%s\"", first_name);
  if (argument->n_dims > 2)
    return tnk__refuse(where, "\"%s\" has %u dimensions, at most 2",
                       argument->name, (unsigned)argument->n_dims);
  return TNK_OK;
}

static int check_all_arguments(const tnk_loss_options_t *options, char *text,
                               size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = TNK_OK;

  if (options->arguments == NULL || options->n_arguments == 0)
    return tnk__refuse(&where, "arguments is missing");
  if (options->n_arguments > MAX_ARGUMENTS)
    return tnk__refuse(&where, "there are %zu arguments, at most %d",
                       options->n_arguments, MAX_ARGUMENTS);
  where.kind = "argument";
  for (size_t i = 0; i < options->n_arguments && err == TNK_OK; i++) {
    where.index = i;
    err = check_argument(&where, &options->arguments[i]);
    for (size_t j = 0; j < i && err == TNK_OK; j++)
      if (strcmp(options->arguments[j].name, options->arguments[i].name) == 0)
        err = tnk__refuse(&where, "\"%s\" is given twice",
                          options->arguments[i].name);
  }
  return err;
}

/* ---- The graph ---- */

static int check_node(const tnk__where_t *where, const json_t *node) {
  static const char *const texts[] = {"op", "name", "target"};

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    const char *value = tnk__json_str(node, texts[i]);

    if (value == NULL || value[0] == '\0')
      return tnk__refuse(where, "it has no text under \"%s\"", texts[i]);
  }
  if (tnk__json_arr(node, "args") == NULL)
    return tnk__refuse(where, "it has no array under \"args\"");
  if (tnk__json_obj(node, "kwargs") == NULL)
    return tnk__refuse(where, "it has no object under \"kwargs\"");
  return TNK_OK;
}

/* Placeholders are the arguments in their order, and the output comes last. *n
 * counts the placeholders so far. */
static int check_place(const tnk__where_t *where, const json_t *node,
                       const tnk_loss_options_t *options, int is_last,
                       size_t *n) {
  const char *op = tnk__json_str(node, "op");
  const char *target = tnk__json_str(node, "target");

  if (is_last != (strcmp(op, "output") == 0))
    return tnk__refuse(where, is_last ? "it is the last one and no output"
                                      : "it is an output and not the last one");
  if (is_last && *n < options->n_arguments)
    return tnk__refuse(where, "there is no placeholder for \"%s\"",
                       options->arguments[*n].name);
  if (strcmp(op, "placeholder") != 0)
    return TNK_OK;
  if (*n == options->n_arguments)
    return tnk__refuse(where, "there is no argument for its \"%.64s\"", target);
  if (strcmp(target, options->arguments[*n].name) != 0)
    return tnk__refuse(where, "it stands for \"%.64s\", expected \"%s\"",
                       target, options->arguments[*n].name);
  ++*n;
  return TNK_OK;
}

static int check_nodes(const json_t *graph, const tnk_loss_options_t *options,
                       char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  const json_t *nodes = tnk__json_arr(graph, "nodes");
  const size_t n = json_array_size(nodes);
  size_t n_placeholders = 0;
  int64_t format = 0;
  int err = TNK_OK;

  if (tnk__json_get_int(graph, "format", 1, 1, &format) != TNK__JSON_FOUND)
    return tnk__refuse(&where, "the graph has no \"format\" of 1");
  if (n == 0)
    return tnk__refuse(&where, "the graph has no nodes");
  where.kind = "graph node";
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    const json_t *node = json_array_get(nodes, i);

    where.index = i;
    err = check_node(&where, node);
    if (err == TNK_OK)
      err = check_place(&where, node, options, i + 1 == n, &n_placeholders);
  }
  return err;
}

int tnk__check_new_loss(const tnk_loss_options_t *options, char *text,
                        size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  json_t *graph;
  int err = tnk__check_text("name", options->name, text, size);

  if (err == TNK_OK)
    err = check_all_arguments(options, text, size);
  if (err == TNK_OK)
    err = tnk__check_text("graph", options->graph, text, size);
  if (err != TNK_OK)
    return err;
  if (strlen(options->graph) > MAX_GRAPH)
    return tnk__refuse(&where, "the graph has %zu bytes, at most %d",
                       strlen(options->graph), MAX_GRAPH);
  err = tnk__json_parse_object(&graph, options->graph, strlen(options->graph));
  if (err == TNK_ENOMEM)
    return err;
  if (err != TNK_OK)
    return tnk__refuse(&where, "the graph is not an object in JSON");
  err = check_nodes(graph, options, text, size);
  json_decref(graph);
  return err;
}

/* ---- Data for it ---- */

/* Log-probabilities belong to the targets and have the same shape. */
static int check_has(const tnk__where_t *where, const tnk_datum_t *datum,
                     const tnk_loss_argument_t *argument) {
  const int is_first = strcmp(argument->name, first_name) == 0;
  const char *name = is_first ? "target_tokens" : argument->name;
  const unsigned expected = argument->n_dims == 2 ? 2 : 1;
  const size_t at = tnk__datum_find(datum, name);
  tnk_tensor_t tensor;
  unsigned n_dims;

  if (at == SIZE_MAX)
    return tnk__refuse(where, "the loss needs \"%s\"", name);
  tensor = tnk__datum_input_at(datum, at).tensor;
  n_dims = tensor.n_dims == 0 ? 1 : (unsigned)tensor.n_dims;
  if (n_dims != expected)
    return tnk__refuse(where, "\"%s\" has %u dimension%s, the loss reads %u",
                       name, n_dims, n_dims == 1 ? "" : "s", expected);
  return TNK_OK;
}

int tnk__check_arguments(const tnk_datum_t *data, size_t n,
                         const tnk_loss_argument_t *arguments,
                         size_t n_arguments, char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size, .kind = "datum"};
  int err = TNK_OK;

  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    where.index = i;
    for (size_t a = 0; a < n_arguments && err == TNK_OK; a++)
      err = check_has(&where, &data[i], &arguments[a]);
  }
  return err;
}
