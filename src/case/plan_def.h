/* SPDX-License-Identifier: MIT */
/*
 * plan_def.h - tables of the options that must be the same when a run goes on: test_options.def and
 * others. An entry is an option of a command, a member of the plan of its runs, and a line in
 * RUN/run:
 *
 *	PLAN_OPTION(member, KIND, name, arg, LEADS, (both), (record), help, ...)
 *
 *	KIND	of the option, OPT_KIND of cli/options.h; of the line, RECORD_KIND of record.h
 *	LEADS	what its value leads to, in a record that a stranger made: TRUST_LEADS of trust.h
 *	both	members that both structs have: words, least, most
 *	record	more members of struct record_field
 *	help, ...	as struct opt has them, and more of its members
 *
 * PLAN_OPTION_AS(key, KIND, member, OPTION_KIND, name, ...) is an option whose line has another key
 * or kind, and PLAN_NOTED(member, KIND, key, LEADS, ...) a line that no option sets.
 * PLAN_SHORT(name, help, ...) is a flag that sets another option. For --help alone there are
 * PLAN_SECTION(title) and PLAN_ARGUMENT(arg, ...). RUN/run has the order of the table.
 *
 * A file defines PLAN_AS before it includes a table, which undefines that at its end:
 *
 *	MEMBER	the members of the plan
 *	FIELD	its fields, each by the includer's macro FIELD(key, leads, KIND, member, ...)
 *	ENTRY	the options (cli/groups.h)
 */
#ifndef CASE_PLAN_DEF_H
#define CASE_PLAN_DEF_H

#define PLAN_OPTION(member, kind, name, ...)                                                       \
	PLAN_OPTION_AS(name, kind, member, kind, name, __VA_ARGS__)
#define PLAN_OPTION_AS(...)	      PLAN_CALL(PLAN_AS, OPTION, (__VA_ARGS__))
#define PLAN_NOTED(...)		      PLAN_CALL(PLAN_AS, NOTED, (__VA_ARGS__))
#define PLAN_SHORT(...)		      PLAN_CALL(PLAN_AS, SHORT, (__VA_ARGS__))
#define PLAN_SECTION(...)	      PLAN_CALL(PLAN_AS, SECTION, (__VA_ARGS__))
#define PLAN_ARGUMENT(...)	      PLAN_CALL(PLAN_AS, ARGUMENT, (__VA_ARGS__))
#define PLAN_CALL(as, what, args)     PLAN_CALL_NOW(as, what, args)
#define PLAN_CALL_NOW(as, what, args) PLAN_##as##_##what args
#define PLAN_REST(...)		      , ##__VA_ARGS__

#define PLAN_TYPE_TEXT				   char *
#define PLAN_TYPE_PROSE				   char *
#define PLAN_TYPE_LIST				   struct words
#define PLAN_TYPE_NUMBER			   uint64_t
#define PLAN_TYPE_COUNT				   uint64_t
#define PLAN_TYPE_SIZE				   uint64_t
#define PLAN_TYPE_CHOICE			   uint64_t
#define PLAN_TYPE_SET				   uint64_t
#define PLAN_TYPE_FLAG				   bool
#define PLAN_MEMBER_OPTION(key, kind, member, ...) PLAN_TYPE_##kind member;
#define PLAN_MEMBER_NOTED(member, kind, ...)	   PLAN_TYPE_##kind member;
#define PLAN_MEMBER_SHORT(...)
#define PLAN_MEMBER_SECTION(...)
#define PLAN_MEMBER_ARGUMENT(...)

#define PLAN_FIELD_OPTION(key, kind, member, opt, name, arg, leads, both, record, ...)             \
	FIELD(key, TRUST_##leads, kind, member, .option = name PLAN_REST both PLAN_REST record),
#define PLAN_FIELD_NOTED(member, kind, key, leads, ...)                                            \
	FIELD(key, TRUST_##leads, kind, member, ##__VA_ARGS__),
#define PLAN_FIELD_SHORT(...)
#define PLAN_FIELD_SECTION(...)
#define PLAN_FIELD_ARGUMENT(...)

#endif
