/* SPDX-License-Identifier: MIT */
/* tnk model list, tnk sampler info, tnk audit. */
#include <inttypes.h>
#include <string.h>

#include "lib/wire/format/time_text.h"
#include "tnk/rest.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/rest/record.h"

/* ---- Models ---- */

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Returns whether `name` contains `part`, ignoring the case of ASCII letters.
 */
static int has_part(const char *name, const char *part) {
  for (; *name != '\0' || *part == '\0'; name++) {
    size_t n = 0;

    while (part[n] != '\0' && lower(name[n]) == lower(part[n]))
      n++;
    if (part[n] == '\0')
      return 1;
  }
  return 0;
}

static tnk_promise_t *ask_models(tnk_service_t *service, const cli_t *cli) {
  (void)cli;
  return tnk_service_capabilities(service);
}

static void put_choice(cli_json_t *json, const char *key, tnk_choice_t choice) {
  if (choice == TNK_DEFAULT)
    tnk__json_put_text(&json->w, key, NULL);
  else
    tnk__json_put_bool(&json->w, key, choice == TNK_YES);
}

static const char *choice_text(tnk_choice_t choice) {
  return choice == TNK_YES ? "Yes" : choice == TNK_NO ? "No" : "N/A";
}

static void put_model(cli_json_t *json, cli_table_t *table,
                      const tnk_model_t *model) {
  int64_t length = model->max_context_length;

  if (json == NULL) {
    cli_table_add_or(table, model->name, "N/A");
    if (length > 0)
      cli_table_add(table, "%" PRId64, length);
    else
      cli_table_add(table, "N/A");
    cli_table_add(table, "%s", choice_text(model->trainable));
    cli_table_add(table, "%s", choice_text(model->sampleable));
    return;
  }
  tnk__json_begin_object(&json->w);
  tnk__json_put_text(&json->w, "model_name", model->name);
  cli_json_put_number(json, "max_context_length", length, length > 0);
  put_choice(json, "trainable", model->trainable);
  put_choice(json, "sampleable", model->sampleable);
  tnk__json_end(&json->w);
}

/* Add the selected models to the table or the JSON document, whichever is not
 * NULL. Returns their number. */
static size_t put_models(cli_json_t *json, cli_table_t *table,
                         const tnk_capabilities_t *offer, const char *part) {
  size_t n = 0;

  for (size_t i = 0; i < tnk_capabilities_count(offer); i++) {
    const tnk_model_t *model = tnk_capabilities_model(offer, i);

    if (!has_part(model->name != NULL ? model->name : "", part))
      continue;
    put_model(json, table, model);
    n++;
  }
  return n;
}

static int show_models(const cli_t *cli, const tnk_promise_t *promise) {
  static const char *const headers[] = {"Model", "Max Context", "Trainable",
                                        "Sampleable"};
  const tnk_capabilities_t *offer = tnk_promise_capabilities(promise);
  const char *part = cli->n_words > 0 ? cli->words[0] : "";
  cli_table_t *table = NULL;
  cli_json_t json;
  size_t n;

  if (cli->json) {
    cli_json_begin(&json);
    tnk__json_put_array(&json.w, "models");
    n = put_models(&json, NULL, offer, part);
    tnk__json_end(&json.w);
  } else {
    table = cli_table_new(headers, 4);
    n = put_models(NULL, table, offer, part);
  }
  if (n > 0 || part[0] == '\0')
    return cli->json ? cli_json_end(&json, cli) : cli_table_end(table, cli);
  if (cli->json)
    cli_json_drop(&json);
  cli_table_free(table);
  return cli_fail(cli, CLI_EXIT_NOT_FOUND,
                  "no model has \"%s\" in its name; tnk model list shows all",
                  part);
}

static const cli_command_t model_list = {
    .name = "list",
    .brief = "list the models that the service offers",
    .about = "List the models that the service offers: all, or those whose "
             "names contain SUBSTRING in upper or lower case.",
    .words = "[SUBSTRING]",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_once,
    .begin = ask_models,
    .show = show_models,
};

static const cli_command_t *const model_commands[] = {&model_list, NULL};

const cli_command_t cli_model = {
    .name = "model",
    .brief = "models of the service",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = model_commands,
};

/* ---- Samplers ---- */

static tnk_promise_t *ask_sampler(tnk_service_t *service, const cli_t *cli) {
  return tnk_rest_get_sampler(service, cli->words[0]);
}

static int show_sampler(const cli_t *cli, const tnk_promise_t *promise) {
  const tnk_sampler_t *sampler = tnk_page_sampler(tnk_promise_page(promise), 0);
  cli_table_t *table;

  if (cli->json)
    return cli_print_record(cli, &tnk__shape_sampler, sampler);
  table = cli_table_new(NULL, 2);
  cli_table_add_row(table, "Sampler ID", sampler->id);
  cli_table_add_row(table, "Base Model", sampler->base_model);
  cli_table_add(table, "Model Path");
  cli_table_add_or(table, sampler->model_path, "None");
  return cli_table_end(table, cli);
}

static const cli_command_t sampler_info = {
    .name = "info",
    .brief = "show the weights of a sampler",
    .words = "SAMPLER_ID",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_once,
    .begin = ask_sampler,
    .show = show_sampler,
};

static const cli_command_t *const sampler_commands[] = {&sampler_info, NULL};

const cli_command_t cli_sampler = {
    .name = "sampler",
    .brief = "samplers of the service",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = sampler_commands,
};

/* ---- Audit log ---- */

static struct {
  int type;
  const char *day;
} args;

static const char *const types[] = {"all",   "checkpoints",   "projects",
                                    "teams", "organizations", NULL};

static tnk_promise_t *ask_audit(tnk_service_t *service, const cli_t *cli) {
  (void)cli;
  return tnk_rest_get_audit_log(
      service, args.type > 0 ? types[args.type] : NULL, args.day);
}

static int show_audit(const cli_t *cli, const tnk_promise_t *promise) {
  static const char *const headers[] = {"Time", "Event", "Details"};
  const tnk_page_t *page = tnk_promise_page(promise);
  char time[TNK__TIME_TEXT];
  cli_table_t *table;
  cli_json_t json;

  if (cli->json) {
    cli_json_begin(&json);
    tnk__json_put_array(&json.w, "entries");
    for (size_t i = 0; i < tnk_page_count(page); i++)
      cli_put_record(&json, &tnk__shape_audit_entry,
                     tnk_page_audit_entry(page, i));
    tnk__json_end(&json.w);
    return cli_json_end(&json, cli);
  }
  if (tnk_page_count(page) == 0) {
    cli_note(cli, "No entries.");
    return CLI_EXIT_OK;
  }
  table = cli_table_new(headers, 3);
  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_audit_entry_t *entry = tnk_page_audit_entry(page, i);

    tnk__time_write(time, entry->time_us);
    cli_table_add(table, "%s", time);
    cli_table_add(table, "%s", entry->event);
    cli_table_add_or(
        table, entry->details != NULL ? entry->details : entry->tinker_path,
        "");
  }
  return cli_table_end(table, cli);
}

static const cli_option_t audit_options[] = {
    {.name = "day",
     .value = "DATE",
     .text = &args.day,
     .help = "The day, UTC, such as 2026-01-31 (today)."},
    {.name = "event-type",
     .value = "TYPE",
     .choice = &args.type,
     .choices = types,
     .help = "all (default), checkpoints, projects, teams or organizations."},
    {.name = NULL}};

const cli_command_t cli_audit = {
    .name = "audit",
    .brief = "show the audit log of a day, for administrators",
    .options = audit_options,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = cli_ask_once,
    .begin = ask_audit,
    .show = show_audit,
};
