/* SPDX-License-Identifier: MIT */
/* tree_impl.h - declarations that only the files of this room share. */
#ifndef TREE_TREE_IMPL_H
#define TREE_TREE_IMPL_H

#include "tree/tree.h"

/* The fields that count (enum tree_field) under the options. */
unsigned tree_opts_fields(const struct tree_opts *opts);

/* True if a field of an entry is compared: it is known, and counts. */
bool tree_has_attrs(const struct tree_entry *e);
bool tree_has_size(const struct tree_entry *e, unsigned fields);
bool tree_has_nlink(const struct tree_entry *e, unsigned fields);
bool tree_has_blocks(const struct tree_entry *e, unsigned fields);
bool tree_has_rdev(const struct tree_entry *e);
bool tree_has_content(const struct tree_entry *e); /* a file whose hash is known */
bool tree_has_target(const struct tree_entry *e);
bool tree_has_xattrs(const struct tree_entry *e);

/* Pushes an entry whose pointers are in the tree's arena already. */
void tree_push(struct tree *t, const struct tree_entry *e);
/* True if `size` more bytes of content may be kept, which are then counted. */
bool tree_keep(struct tree *t, const struct tree_opts *opts, uint64_t size);

const char *tree_type_word(enum tree_type type); /* "file" */
const char *tree_step_word(enum tree_step step); /* "open" */

/* quote.c: bytes as text */

/* Prints a name as one word: bytes that are not graphic ASCII, and '\', as \xNN. */
void quote_name(struct strbuf *out, const char *name);
/*
 * Prints bytes as "text", with long runs of one byte as 4096*"a", joined by '+'. If that takes more
 * than `max` characters, adds nothing and returns false.
 */
bool quote_bytes(struct strbuf *out, const void *data, size_t len, size_t max);
/* Prints bytes for a sentence: cut with "..." after about `max` characters. */
void quote_brief(struct strbuf *out, const void *data, size_t len, size_t max);

/*
 * Both move *p past the text that they read and never past `end`; they return 0 or -EINVAL.
 * tree_unquote_bytes stops with -EFBIG rather than add more than `limit` bytes.
 */
int tree_unquote_name(const char **p, const char *end, struct strbuf *out) must_check;
int tree_unquote_bytes(const char **p, const char *end, size_t limit, struct strbuf *out)
	must_check;

#endif
