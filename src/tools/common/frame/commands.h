/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_FRAME_COMMANDS_H
#define TNK_TOOLS_COMMON_FRAME_COMMANDS_H
#include "tools/common/frame/command.h"

/* The commands of `tnk`. Each is defined in a folder of src/tools/tnk, and
 * main.c has their table. Those marked with a T need tokenizers. */

/* rest */
extern const cli_command_t cli_run;
extern const cli_command_t cli_checkpoint;
extern const cli_command_t cli_session;
extern const cli_command_t cli_sampler;
extern const cli_command_t cli_model;
extern const cli_command_t cli_billing;
extern const cli_command_t cli_audit;
/* account */
extern const cli_command_t cli_auth;
extern const cli_command_t cli_whoami;
extern const cli_command_t cli_ping;
/* sample */
extern const cli_command_t cli_sample; /* T */
extern const cli_command_t cli_chat;
/* train */
extern const cli_command_t cli_train; /* T */
extern const cli_command_t cli_rl;    /* T */
/* report */
extern const cli_command_t cli_plot;
extern const cli_command_t cli_run_report;
/* serve */
extern const cli_command_t cli_local;
extern const cli_command_t cli_gateway; /* T */
/* keys */
extern const cli_command_t cli_gateway_keys; /* T; below `gateway` */
/* text */
extern const cli_command_t cli_lint;
extern const cli_command_t cli_chat_data;  /* T */
extern const cli_command_t cli_tokenize;   /* T */
extern const cli_command_t cli_detokenize; /* T */
extern const cli_command_t cli_top;
/* src/tools/conform */
extern const cli_command_t cli_conform;
/* src/tools/common/frame */
extern const cli_command_t cli_help;
extern const cli_command_t cli_completion;

#endif
