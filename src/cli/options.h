/* SPDX-License-Identifier: MIT */
/*
 * options.h - the options of a command, as one table. Parsing, --help, the completion of three
 * shells and the options part of the manual page are made from it: an option is one entry here
 * and the place that uses it.
 *
 *	#define AT(member) OPT_AT(struct gen, member)
 *	static const struct opt options[] = {
 *		{ OPT_SECTION, .help = "Which workloads" },
 *		{ OPT_TEXT, "bounds", 'b', "SET", AT(bounds), .help = "a named set" },
 *		{ OPT_COUNT, "limit", 'n', "N", AT(limit), .help = "at most N" },
 *		OPT_END
 *	};
 *
 * A table is in the order in which people read it. Shared tables are in groups.h. This file and
 * options*.c know nothing of any command, and do not print.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "base/words.h"

enum opt_kind {
	OPT_LAST,	      /* ends the table */
	OPT_SECTION,	      /* `help` is the title of what follows */
	OPT_ARGUMENT,	      /* no option: explains an argument, and how it is completed */
	OPT_GROUP,	      /* the table `group`, for the struct at `at` */
	OPT_FLAG,	      /* true, or 1 */
	OPT_OFF,	      /* false, or 0 */
	OPT_TEXT,	      /* const char *, which lives as long as the struct args */
	OPT_COPY,	      /* char *, which its struct owns */
	OPT_PROSE = OPT_COPY, /* as records call it */
	OPT_LINES,	      /* const char *: a line for each time the option is given */
	OPT_LIST,	      /* vec_of(const char *): one for each time */
	OPT_NUMBER,	      /* plain; this and the following are numbers of 4 or 8 bytes */
	OPT_COUNT,	      /* with units of ten */
	OPT_SIZE,	      /* with units of two */
	OPT_DURATION,	      /* in nanoseconds, divided by `unit` */
	OPT_CHOICE,	      /* the place of the value among `words`; also a bool */
	OPT_SET,  /* "a,c": bit 0 for the first of `words`, and so on; each at most once */
	OPT_CALL, /* `call` makes something of it */
};

/* How a value is completed, if not by its words. */
enum opt_hint { HINT_NONE, HINT_FILE, HINT_DIR, HINT_MOUNT };

/* The members that an entry begins with are in the order in which it reads well. */
struct opt { /* NOLINT(clang-analyzer-optin.performance.Padding) */
	enum opt_kind kind;
	const char *name; /* NULL: it has a letter only */
	char letter;
	const char *arg; /* the name of its value; NULL: it takes none; "[N]": it may have one */
	size_t at;	 /* OPT_AT() says where the value goes */
	size_t width;
	const char *help;		  /* no more than a few words; no full stop at the end */
	const char *otherwise;		  /* the default, which is parsed like a value */
	const char *words;		  /* the values that there are, with a blank between them */
	void (*list)(struct strbuf *out); /* the same, where a table of another room has them */
	bool strict;			  /* a text must be one of them */
	bool rare;			  /* only --help all tells it, or all of the group */
	enum opt_hint hint;
	uint64_t least, most; /* for a number; most 0: no bound */
	uint64_t unit;	      /* for a duration; 0 is 1 */
	/* Makes the value another text before it is stored: an absolute path, for one. */
	int (*normal)(const char *arg, char **out, struct err *err);
	/* `at` is where OPT_AT() points; `arg` is NULL if there is no value. */
	int (*call)(void *at, const char *arg, struct err *err);

	/* OPT_GROUP: */
	const struct opt *group;
	/* Of all names, or NULL: letters are left out then, and `help` is told once for all. */
	const char *prefix;
	/* Takes the values in place of the members; `at` is that of the group. */
	int (*take)(void *at, const struct opt *o, const char *arg, struct err *err);
	/* Where the struct is; NULL: at `at`. `into` is the command's struct. */
	void *(*where)(void *into, struct err *err);
};

#define OPT_END                                                                                    \
	{                                                                                          \
		.kind = OPT_LAST                                                                   \
	}
#define OPT_AT(type, member) .at = offsetof(type, member), .width = sizeof(((type *)0)->member)

/* Whether it is something that can be given. */
static inline bool opt_is_option(const struct opt *o)
{
	return o->kind > OPT_GROUP;
}

/* One entry after another, with those of groups; sections of groups with a prefix are left out. */
struct opt_iter {
	const struct opt *o;	 /* this one */
	const struct opt *group; /* the one it is in, or NULL */
	const struct opt *next, *after;
};
#define OPT_ITER(table)                                                                            \
	{                                                                                          \
		.next = (table)                                                                    \
	}
bool opt_next(struct opt_iter *it);
/* "--ref-size", or "-o" where there is no name. */
void opt_print_name(const struct opt_iter *it, struct strbuf *out);
/* The values that there are, with a blank between them. */
void opt_print_words(const struct opt *o, struct strbuf *out);
/* Prints the choices for people: "walk, depth or breadth". */
void opt_print_choices(const struct opt *o, struct strbuf *out);
/* The help; where another table has the values, and no others may be, with them. */
void opt_print_help(const struct opt *o, struct strbuf *out);

/* The arguments of a command line besides its options. */
struct args {
	int n;
	char **v; /* ends with NULL */
	struct vec_of(const struct opt *) given;
	struct words owned;
	struct vec_of(char *) rest; /* the storage of `v` */
	bool help, help_all;	    /* asked for; nothing else counts then */
};

void args_release(struct args *a);
/* Whether the option of that name was given. */
bool args_given(const struct args *a, const char *name);

/* Which arguments may be options. */
enum opt_order {
	OPT_ANYWHERE, /* all, up to -- */
	OPT_BEFORE,   /* all before the first that is none */
	OPT_NOWHERE,  /* none but a --help that comes first: the rest is text */
};

/* Fills the defaults into the command's struct, and then what `argv` says, argv[0] left out. */
int opt_parse(const struct opt *table, enum opt_order order, void *into, int argc, char **argv,
	      struct args *out, struct err *err) must_check;

/* For `normal`: what is there, as an absolute path. */
int opt_existing_path(const char *arg, char **out, struct err *err) must_check;

/*
 * Adds the lines of `text`, wrapped at the width of a screen, but for those that begin with a
 * blank. The first one goes on at `at`; what is wrapped begins at `column`.
 */
void opt_wrap(struct strbuf *out, size_t at, const char *text, size_t column);
/* Adds what --help says of a table. Returns how many rare options were left out. */
unsigned opt_help(const struct opt *table, bool all, struct strbuf *out);

#endif
