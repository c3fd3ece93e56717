/* SPDX-License-Identifier: MIT */
/*
 * dmlog_import.c - reads a dm-log-writes log, whose format is in dmlog_format.h.
 *
 * The kernel logs a request once it is complete, so each entry becomes a request and, right after
 * it, its completion. A flush without data is EV_FLUSH, with data EV_PREFLUSH.
 */
#include "core/dmlog.h"

#include <errno.h>
#include <inttypes.h>

#include "base/number.h"
#include "core/bytes.h"
#include "core/dmlog_format.h"
#include "core/source.h"

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

struct importer {
	struct source *src;
	struct trace *t;
	uint32_t sector;     /* bytes */
	uint64_t entry;	     /* number of the current entry */
	uint64_t entry_at;   /* where the entry begins */
	unsigned char *head; /* the sector of the entry */
	struct strbuf data;  /* the data after the sector */
	struct strbuf parts; /* the parts of a long mark so far */
	bool in_parts;
	bool zero; /* the next entry must be a discard, and means EV_ZERO */
};

/* "LOG: entry 5 at byte 4096: ..." */
#define bad_entry(im, err, ...)                                                                    \
	(err_set((err), -EINVAL, __VA_ARGS__),                                                     \
	 err_context((err), "%s: entry %" PRIu64 " at byte %" PRIu64, (im)->src->name,             \
		     (im)->entry, (im)->entry_at),                                                 \
	 -EINVAL)

static int read_super(struct importer *im, uint64_t *n_entries, struct err *err)
{
	unsigned char s[LOG_SUPER];
	const char *name = im->src->name;
	ssize_t n = source_read(im->src, s, sizeof(s), err);

	if (n < 0)
		return (int)n;
	if (n < 8 || get_le64(s) != LOG_MAGIC)
		return err_set(err, -EINVAL,
			       "%s is not a dm-log-writes log: no magic number at byte 0", name);
	if (n < LOG_SUPER)
		return err_set(err, -EINVAL, "%s: the log ends within its superblock", name);
	if (get_le64(s + 8) != LOG_VERSION)
		return err_set(err, -EINVAL,
			       "%s is a dm-log-writes log of version %" PRIu64
			       ", which is not supported; this program reads version %d",
			       name, get_le64(s + 8), LOG_VERSION);
	*n_entries = get_le64(s + 16);
	im->sector = get_le32(s + 24);
	if (im->sector < LOG_SECTOR_MIN || im->sector > LOG_SECTOR_MAX ||
	    (im->sector & (im->sector - 1)))
		return err_set(err, -EINVAL,
			       "%s: superblock at byte 24: a sector size of %" PRIu32
			       " bytes is not a power of two from %d to %d",
			       name, im->sector, LOG_SECTOR_MIN, LOG_SECTOR_MAX);
	im->head = xmalloc(im->sector);
	n = source_read(im->src, im->head, im->sector - LOG_SUPER, err);
	return n < 0 ? (int)n : 0;
}

/* Parses a number at `s`. Returns the text after it and a space, or NULL if there is no number. */
static const char *take_number(const char *s, uint64_t *out)
{
	char digits[24];
	size_t n = strspn(s, "0123456789");

	if (!n || n >= sizeof(digits) || (s[n] && s[n] != ' ') || (n > 1 && s[0] == '0'))
		return NULL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	if (number_parse(digits, out))
		return NULL;
	return s[n] ? s + n + 1 : s + n;
}

/* Returns the arguments of the mark "outage:WORD ...", or NULL for another mark. */
static const char *mark_args(const char *mark, const char *word)
{
	size_t prefix = strlen(LOG_MARK_PREFIX), n = strlen(word);

	if (!starts_with(mark, LOG_MARK_PREFIX) || strncmp(mark + prefix, word, n) != 0)
		return NULL;
	return mark[prefix + n] == ' ' ? mark + prefix + n + 1 : NULL;
}

static bool import_device(struct importer *im, const char *args)
{
	struct trace_info info = im->t->info;
	uint64_t sector;

	args = take_number(args, &info.size);
	if (args)
		args = take_number(args, &sector);
	if (!args || sector > TRACE_SECTOR_MAX || strlen(args) >= sizeof(info.target))
		return false;
	info.sector_size = (uint32_t)sector;
	memset(info.target, 0, sizeof(info.target));
	memcpy(info.target, args, strlen(args));
	if (trace_check_info(&info, NULL))
		return false;
	im->t->info = info;
	return true;
}

/* Parses the number of an operation; `rest`, if not NULL, gets the text after it. */
static bool take_op(const char *args, uint64_t *op, const char **rest)
{
	const char *after = take_number(args, op);

	if (rest)
		*rest = after;
	return after && *op < TRACE_OP_MAX && (rest || !*after);
}

static bool import_end(struct importer *im, const char *args)
{
	uint64_t op, value;
	const char *rest;

	if (!take_op(args, &op, &rest) || rest == args + strlen(args))
		return false;
	bool negative = rest[0] == '-';
	const char *after = take_number(rest + negative, &value);
	if (!after || *after || after[-1] == ' ' || value > INT32_MAX || (negative && !value))
		return false;
	trace_op_end(im->t, op, negative ? -(int)value : (int)value);
	return true;
}

static bool add_text(struct importer *im, enum event_kind kind, uint64_t ref, const char *text,
		     size_t len)
{
	trace_append(im->t, &(struct event){ .kind = kind,
					     .ref = ref,
					     .len = len,
					     .data = (const unsigned char *)text });
	return true;
}

/* True if the mark was one that we write ourselves. */
static bool import_our_mark(struct importer *im, const char *mark, size_t len)
{
	const char *args, *rest;
	uint64_t op;
	bool plain = strlen(mark) == len; /* no NUL hides what comes after it */

	if ((args = mark_args(mark, "begin")) && take_op(args, &op, &rest) && rest[-1] == ' ') {
		return add_text(im, EV_OP_BEGIN, op, rest, len - (size_t)(rest - mark));
	}
	if ((args = mark_args(mark, "end")))
		return plain && import_end(im, args);
	if ((args = mark_args(mark, "persist")) && plain && take_op(args, &op, NULL) &&
	    mark[len - 1] != ' ') {
		trace_persist(im->t, op);
		return true;
	}
	if ((args = mark_args(mark, "text")))
		return add_text(im, EV_TEXT, 0, args, len - (size_t)(args - mark));
	if (im->entry == 0 && (args = mark_args(mark, "device")))
		return plain && import_device(im, args);
	return false;
}

static void import_whole_mark(struct importer *im, const char *mark, size_t len)
{
	if (!import_our_mark(im, mark, len))
		add_text(im, EV_TEXT, 0, mark, len);
}

static int import_mark(struct importer *im, struct err *err)
{
	uint64_t len = get_le64(im->head + 24);
	const char *args;

	if (len > im->sector - LOG_ENTRY)
		return bad_entry(im, err,
				 "a mark of %" PRIu64 " bytes does not fit into its sector", len);
	if (get_le64(im->head + 8))
		return bad_entry(im, err, "a mark with data");
	auto_free char *mark = xmemdupz(im->head + LOG_ENTRY, len);
	bool last = (args = mark_args(mark, "last")) != NULL;
	if (last || (args = mark_args(mark, "part"))) {
		if (im->parts.len + len > EVENT_DATA_MAX)
			return bad_entry(im, err, "a mark of more than %d bytes", EVENT_DATA_MAX);
		strbuf_add(&im->parts, args, len - (size_t)(args - mark));
		im->in_parts = !last;
		if (last) {
			import_whole_mark(im, im->parts.buf, im->parts.len);
			strbuf_clear(&im->parts);
		}
		return 0;
	}
	if (im->in_parts)
		return bad_entry(im, err, "the mark before it has no last part");
	im->zero = len == strlen("outage:zero") && streq(mark, "outage:zero");
	if (!im->zero)
		import_whole_mark(im, mark, len);
	return 0;
}

/* Reads the data of a write. */
static int import_data(struct importer *im, uint64_t len, struct err *err)
{
	strbuf_clear(&im->data);
	ssize_t n = source_read(im->src, strbuf_grow(&im->data, len), len, err);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n < len)
		return bad_entry(im, err,
				 "its %" PRIu64 " bytes of data go past the end of the log", len);
	im->data.len = len;
	return 0;
}

/* Gives the kind, range and flags of a request; its data in the log is still unread. */
static int parse_request(struct importer *im, bool zero, struct event *ev, struct err *err)
{
	uint64_t sector = get_le64(im->head), n = get_le64(im->head + 8);
	uint64_t flags = get_le64(im->head + 16);
	uint64_t limit = (UINT64_C(1) << EVENT_ADDR_BITS) / im->sector;

	if (sector >= limit || n >= limit)
		return bad_entry(im, err,
				 "sector %" PRIu64 " and %" PRIu64 " more are beyond any device",
				 sector, n);
	if (flags & LOG_DISCARD)
		ev->kind = zero ? EV_ZERO : EV_DISCARD;
	else
		ev->kind = n ? EV_WRITE : EV_FLUSH;
	if (!n && ev->kind != EV_FLUSH)
		return bad_entry(im, err, "a discard of no sectors");
	if (ev->kind == EV_FLUSH && !(flags & LOG_FLUSH))
		return bad_entry(im, err, "neither a write nor a flush nor a discard nor a mark");
	if (ev->kind == EV_WRITE && n * im->sector > EVENT_DATA_MAX)
		return bad_entry(im, err, "a write of %" PRIu64 " bytes is larger than %d",
				 n * im->sector, EVENT_DATA_MAX);
	if (ev->kind != EV_FLUSH) {
		ev->addr = sector * im->sector;
		ev->len = n * im->sector;
	}
	ev->flags = (flags & LOG_FLUSH && ev->kind != EV_FLUSH ? EV_PREFLUSH : 0) |
		    (flags & LOG_FUA ? EV_FUA : 0) | (flags & LOG_METADATA ? EV_META : 0);
	return 0;
}

static int import_request(struct importer *im, struct err *err)
{
	struct event ev = { 0 };
	bool zero = im->zero;

	im->zero = false;
	if (im->in_parts)
		return bad_entry(im, err, "the mark before it has no last part");
	int rc = parse_request(im, zero, &ev, err);
	if (!rc && ev.kind == EV_WRITE) {
		rc = import_data(im, ev.len, err);
		ev.data = (const unsigned char *)im->data.buf;
	}
	if (rc)
		return rc;
	trace_complete(im->t, trace_append(im->t, &ev), 0);
	return 0;
}

static int import_entry(struct importer *im, uint64_t n_entries, struct err *err)
{
	im->entry_at = im->src->pos;
	ssize_t n = source_read(im->src, im->head, im->sector, err);
	if (n < 0)
		return (int)n;
	if ((size_t)n < im->sector)
		return bad_entry(im, err, "the log ends here, and should have %" PRIu64 " entries",
				 n_entries);
	uint64_t flags = get_le64(im->head + 16);
	if (flags & ~(uint64_t)LOG_FLAGS_ALL)
		return bad_entry(im, err, "flags 0x%" PRIx64 " are not known", flags);
	if (im->zero && (flags & (LOG_DISCARD | LOG_MARK)) != LOG_DISCARD)
		return bad_entry(im, err,
				 "should be the discard that the mark before it announces");
	if (flags & LOG_MARK)
		return import_mark(im, err);
	return import_request(im, err);
}

static void importer_release(struct importer *im)
{
	free(im->head);
	strbuf_release(&im->data);
	strbuf_release(&im->parts);
}

/* Imports the log; takes ownership of the source. */
static int import(struct source *from, struct trace *out, struct err *err)
{
	auto_source src = *from;
	auto_trace t;
	auto_call(importer_release) struct importer im = { .src = &src, .t = &t };
	uint64_t n_entries = 0;

	trace_init(&t);
	int rc = read_super(&im, &n_entries, err);
	if (rc)
		return rc;
	assert(im.head);
	t.info.sector_size = im.sector;
	memcpy(t.info.target, "dm-log-writes", sizeof("dm-log-writes"));
	for (; !rc && im.entry < n_entries; im.entry++)
		rc = import_entry(&im, n_entries, err);
	im.entry_at = src.pos;
	if (!rc && (im.in_parts || im.zero))
		rc = bad_entry(&im, err, "the log ends where a mark announces more");
	if (!rc && trace_validate(&t, err))
		rc = err_context(err, "%s", src.name);
	if (rc)
		return rc;
	*out = t;
	t = (struct trace){ 0 };
	return 0;
}

int dmlog_import(const char *path, struct trace *out, struct err *err)
{
	struct source src;
	int rc = source_open(path, &src, err);

	return rc ? rc : import(&src, out, err);
}

int dmlog_import_bytes(const void *data, size_t len, struct trace *out, struct err *err)
{
	struct source src;

	source_open_bytes(data, len, &src);
	return import(&src, out, err);
}
