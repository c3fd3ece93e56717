/* SPDX-License-Identifier: MIT */
/*
 * The forms of operations in ops.def name arguments that are there, and of the right kind. The
 * compiler cannot see that: they are text. Functions that choose a form are not read here.
 */
#include "tap.h"
#include "workload/op.h"

enum language { SHELL_FORM, XFSTESTS_FORM, PROGRAM_FORM };

struct form {
	enum op_id op;
	enum language language;
	const char *text; /* NULL: there is none, or a function chooses */
};

static const struct form forms[] = {
#define SHELL(text)		   text
#define SHELL_CALL(text)	   text
#define SHELL_BY(function)	   NULL
#define SHELL_NONE		   NULL
#define XFSTESTS(text, ...)	   text
#define XFSTESTS_BY(function, ...) NULL
#define XFSTESTS_NONE		   NULL
#define PROGRAM(parts, text)	   text
#define OP(name, help, args, is, weight, shell, xfstests, program)                                 \
	{ OP_ID(name), SHELL_FORM, shell }, { OP_ID(name), XFSTESTS_FORM, xfstests },              \
		{ OP_ID(name), PROGRAM_FORM, program },
#include "workload/ops.def"
};

static bool is_number(enum arg_kind kind)
{
	return kind == ARG_OFFSET || kind == ARG_LENGTH || kind == ARG_SIZE || kind == ARG_NUMBER ||
	       kind == ARG_FLAGS;
}

/* Whether this letter can say such an argument. */
static bool fits(enum language language, char letter, const struct arg_def *arg)
{
	enum arg_kind kind = arg->kind;

	if (letter == 'n')
		return is_number(kind);
	if (letter == 'm')
		return kind == ARG_MODE || kind == ARG_CHOICE;
	if (language == PROGRAM_FORM)
		return letter == 'F'   ? kind == ARG_FILE
		       : letter == 'P' ? kind == ARG_PATH || kind == ARG_TEXT || kind == ARG_XATTR
				       : strchr("wo", letter) && arg->words == op_write_words;
	return letter == 'p'   ? kind == ARG_PATH || kind == ARG_FILE
	       : letter == 't' ? kind == ARG_TEXT || kind == ARG_XATTR || kind == ARG_HANDLE
	       : letter == 'x' ? kind == ARG_TEXT
	       : letter == 'd' ? kind == ARG_NUMBER
			       : letter == 's' && arg->words == op_write_words;
}

/* The first "%LETTER[DIGIT]" that is wrong; NULL if there is none. */
static const char *first_wrong(const struct op_def *def, enum language language, const char *text)
{
	const char *alone = language == PROGRAM_FORM ? "hi" : "ib";

	for (const char *p = text; (p = strchr(p, '%')); p++) {
		if (p[1] && strchr(alone, p[1]))
			continue;
		if (!p[1] || p[2] < '0' || (size_t)(p[2] - '0') >= op_count_args(def) ||
		    !fits(language, p[1], &def->args[p[2] - '0']))
			return p;
	}
	return NULL;
}

int main(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *f = &forms[i];
		const char *wrong = f->text ? first_wrong(&op_table[f->op], f->language, f->text)
					    : NULL;

		n += f->text != NULL;
		ok(!wrong, "%s: the form %s", op_table[f->op].name, f->text ? f->text : "is none");
		if (wrong)
			printf("#   %.3s is no argument of that kind\n", wrong);
	}
	ok(n > 2 * OP_COUNT, "most have a form in each language");

	const struct op_def *mkdir = OP_DEF(mkdir);
	ok(!first_wrong(mkdir, SHELL_FORM, "mkdir -m %m1 %p0"), "a form that is right");
	ok(first_wrong(mkdir, SHELL_FORM, "mkdir %p2"), "an argument that is not there is seen");
	ok(first_wrong(mkdir, SHELL_FORM, "mkdir %n0"), "one of another kind is");
	ok(first_wrong(mkdir, SHELL_FORM, "mkdir %p"), "one without a number is");
	ok(first_wrong(mkdir, SHELL_FORM, "mkdir %P0"), "a letter of another language is");
	ok(first_wrong(mkdir, PROGRAM_FORM, "mkdir(%"), "a percent sign at the end is");
	return done_testing();
}
