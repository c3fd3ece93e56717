/* SPDX-License-Identifier: MIT */
/*
 * texts.h - parts of exported files that are always the same; each *.text has them in their own
 * language.
 */
#ifndef REPORT_TEXTS_H
#define REPORT_TEXTS_H

/* ---- script.text ---- */

/* judge STATUS WORDS, which reports on one problem, and finish, which ends the script. */
extern const char shell_judge[];
/* Functions about the working directory: listing, facts PATH, is WHAT PATH VALUE, ... */
extern const char shell_functions[];
/* use: does the same as check/usable.h, and calls `listen`. */
extern const char shell_use[];
/* follow_log and listen; forget_warnings, and a call of it. */
extern const char shell_listening[], shell_warned_once[];

extern const char reproduce_head[], reproduce_unmount[], reproduce_fails[];
extern const char script_new_disk[], script_await_server[];
/* tree_is_as_found, which some commands of script_condition() use. */
extern const char script_whole_tree[];
extern const char workload_head[], workload_live[];
extern const char app_export_head[], app_export_acked[], app_export_shown[], pm_export_head[];
extern const char xfstest_head[], xfstest_facts[], xfstest_functions[], xfstest_promised[];

/* ---- program.text ---- */

extern const char program_head[], program_say[], program_looking[];
extern const char program_file[], program_made[], program_content[], program_write[],
	program_mmap[], program_msync[], program_on_file[], program_rename[], program_read[],
	program_copy[], program_clone[], program_remove[], program_sync[], program_drop[],
	program_times[];

/* ---- style.text ---- */

extern const char style_run[], style_rows[], style_graph[];

#endif
