/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tnk/bindings.h"
#include "tnk/version.h"
#include "tools/common/frame/commands.h"
#include "tools/common/frame/frame.h"
#include "tools/tnk/out/json.h"

/* ---- tnk version ---- */

static int print_version(cli_t *cli) {
  const char *http2 = tnk_http2_version();
  cli_json_t json;

  if (!cli->json) {
    printf("tnk %s (%s%s)\n", TNK_VERSION_STRING,
           http2 != NULL ? "HTTP/2 with nghttp2 " : "without HTTP/2",
           http2 != NULL ? http2 : "");
    return CLI_EXIT_OK;
  }
  cli_json_begin(&json);
  tnk__json_put_text(&json.w, "version", TNK_VERSION_STRING);
  tnk__json_put_text(&json.w, "nghttp2", http2);
  return cli_json_end(&json, cli);
}

static const cli_command_t version = {
    .name = "version",
    .brief = "print the version",
    .has = CLI_HAS_JSON,
    .run = print_version,
};

/* ---- All ---- */

static int has_version;

static int run_root(cli_t *cli) {
  /* Without --version the line names no action, which is an error and not a
   * request for help. */
  return has_version ? print_version(cli) : cli_ask_for_more(cli);
}

static const cli_option_t options[] = {
    {.name = "version", .flag = &has_version, .help = "As tnk version."},
    {.name = NULL}};

/* Related commands are adjacent in the help: records of a service, keys,
 * models, local servers, data, programs, the command itself. */
static const cli_command_t *const commands[] = {
    &cli_run,        &cli_checkpoint, &cli_session,    &cli_sampler,
    &cli_model,      &cli_billing,    &cli_audit,

    &cli_auth,       &cli_whoami,     &cli_ping,

#ifdef CLI_TOKENIZERS
    &cli_train,      &cli_rl,         &cli_sample,
#endif
    &cli_plot,       &cli_run_report, &cli_chat,       &cli_local,
#ifdef CLI_TOKENIZERS
    &cli_gateway,
#endif
    &cli_conform,

    &cli_lint,
#ifdef CLI_TOKENIZERS
    &cli_chat_data,  &cli_tokenize,   &cli_detokenize,
#endif
    &cli_top,

    &cli_completion, &version,        &cli_help,       NULL};

static const cli_item_t variables[] = {
    {"TINKER_API_KEY", "API key. Default: the key in the credentials file."},
    {"TINKER_CREDENTIAL_CMD", "Command that prints a credential."},
    {"TINKER_BASE_URL", "URL of the service. Default: the hosted service."},
    {"TINKER_PROJECT_ID", "Default project."},
    {"SSL_CERT_FILE", "File of trusted certificates."},
    {"TNK_CERT_FILE", "And TNK_KEY_FILE: the client certificate."},
    {"TNK_HTTP_VERSION", "HTTP version: auto, 1.1, 2 or 2-prior-knowledge."},
    {"https_proxy", "And http_proxy, all_proxy, no_proxy: the proxy."},
    {"HF_TOKEN", "And HF_HOME, HF_ENDPOINT: the model hub."},
    {"OTEL_EXPORTER_OTLP_ENDPOINT",
     "And other variables OTEL_*: where tnk gateway exports traces and "
     "metrics."},
    {"NO_COLOR", "And FORCE_COLOR: never or always use colors."},
    {NULL, NULL}};

static const cli_section_t sections[] = {{"Environment", NULL, variables},
                                         {NULL, NULL, NULL}};

static const cli_command_t root = {
    .name = "tnk",
    .brief = "train and sample with Tinker",
    .about = "Train and sample with a Tinker service, manage what it stores, "
             "run a local server, and check data. For details: tnk COMMAND "
             "--help, or tnk help COMMAND.",
    .options = options,
    .sections = sections,
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .run = run_root,
    .commands = commands,
};

/* If a standard descriptor is closed, the next opened file would get its number
 * and our output. libuv also aborts if it gets such a descriptor. */
static int fill_standard_files(void) {
  int fd;

  do
    fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd < 0)
    return -1;
  close(fd);
  return 0;
}

int main(int argc, char **argv) {
  if (fill_standard_files() != 0)
    return CLI_EXIT_FAILED;
  return cli_main(&root, argc, argv);
}
