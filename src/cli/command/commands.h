/* commands: the table of subcommands, and the functions that its rows name. */
#pragma once
#include "cli/terminal/cli.h"

extern const struct command commands[]; /* terminated by a row without a name */
/* Returns the command by its name or by an alias ("cancel" is rm); NULL: there is none. */
const struct command *command_find(struct str name);
/* Returns the command that is probably meant by this word; NULL: none is similar. */
const char *command_meant(struct str word);
/* Prints that the command does not exist, and which one may be meant. Returns CLI_USAGE. */
int command_unknown(const char *word);

/* Every command returns its exit code. Most have a file of their own, NAME.c in the part that they belong to;
 * hold and similar commands share jobs/act.c. */
int cmd_agents(struct cli *cli, const struct options *o);
int cmd_info(struct cli *cli, const struct options *o);
int cmd_report(struct cli *cli, const struct options *o);
int cmd_stats(struct cli *cli, const struct options *o);
int cmd_reserve(struct cli *cli, const struct options *o);
int cmd_bank(struct cli *cli, const struct options *o);
int cmd_nodes(struct cli *cli, const struct options *o);
int cmd_backup(struct cli *cli, const struct options *o);
int cmd_restore(struct cli *cli, const struct options *o);
int cmd_config(struct cli *cli, const struct options *o);
int cmd_server(struct cli *cli, const struct options *o);
/* Runs `droverd --check-config` for this file in place of this program; NULL: the instance's own file.
 * Returns an exit code if that fails. */
int program_check_config(struct cli *cli, const char *file);
/* Has droverd check the settings of the folder. Returns 0: they are right, or there is no droverd; -EINVAL
 * with err, the first line that it says. */
int program_checks_settings(const char *dir, struct err *err);
int cmd_doctor(struct cli *cli, const struct options *o);
int cmd_limits(struct cli *cli, const struct options *o);
int cmd_quote(struct cli *cli, const struct options *o);
int cmd_priority(struct cli *cli, const struct options *o);
int cmd_shares(struct cli *cli, const struct options *o);
int cmd_sim(struct cli *cli, const struct options *o);
int cmd_stores(struct cli *cli, const struct options *o);
int cmd_classad(struct cli *cli, const struct options *o);
int cmd_completion(struct cli *cli, const struct options *o);
int cmd_edit(struct cli *cli, const struct options *o);
int cmd_glidein(struct cli *cli, const struct options *o);
int cmd_get(struct cli *cli, const struct options *o);
int cmd_help(struct cli *cli, const struct options *o);
int cmd_history(struct cli *cli, const struct options *o);
int cmd_catalog(struct cli *cli, const struct options *o);
int cmd_checkpoint(struct cli *cli, const struct options *o);
int cmd_signal(struct cli *cli, const struct options *o);
int cmd_hold(struct cli *cli, const struct options *o);
int cmd_log(struct cli *cli, const struct options *o);
int cmd_path(struct cli *cli, const struct options *o);
int cmd_prio(struct cli *cli, const struct options *o);
int cmd_program(struct cli *cli, const struct options *o); /* for server and agent */
int cmd_queue(struct cli *cli, const struct options *o);
int cmd_release(struct cli *cli, const struct options *o);
int cmd_requeue(struct cli *cli, const struct options *o);
int cmd_resubmit(struct cli *cli, const struct options *o);
int cmd_rm(struct cli *cli, const struct options *o);
int cmd_suspend(struct cli *cli, const struct options *o);
int cmd_resume(struct cli *cli, const struct options *o);
int cmd_vacate(struct cli *cli, const struct options *o);
int cmd_run(struct cli *cli, const struct options *o);
int cmd_show(struct cli *cli, const struct options *o);
int cmd_submit(struct cli *cli, const struct options *o);
int cmd_source(struct cli *cli, const struct options *o);
int cmd_credential(struct cli *cli, const struct options *o);
int cmd_dag(struct cli *cli, const struct options *o);
int cmd_chirp(struct cli *cli, const struct options *o);
int cmd_exec(struct cli *cli, const struct options *o);
int cmd_shell(struct cli *cli, const struct options *o);
int cmd_tail(struct cli *cli, const struct options *o);
int cmd_token(struct cli *cli, const struct options *o);
int cmd_top(struct cli *cli, const struct options *o);
int cmd_transfer(struct cli *cli, const struct options *o);
int cmd_up(struct cli *cli, const struct options *o);
int cmd_version(struct cli *cli, const struct options *o);
int cmd_wait(struct cli *cli, const struct options *o);
int cmd_why(struct cli *cli, const struct options *o);
