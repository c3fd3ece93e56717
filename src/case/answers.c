/* SPDX-License-Identifier: MIT */
/* answers.c - keeps what was answered in a run, and finds it when the run goes on. */
#include "case/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/log.h"

#define ANSWERS_MAX ((uint64_t)1 << 30) /* in all */
enum { ANSWER_MAX = 64 << 20 };
#define SLURP_MAX (ANSWERS_MAX + ANSWER_MAX)
static const char first_line[] = "outage-answers 2 " OUTAGE_VERSION "\n";

struct known_answer {
	struct hash128 question;
	uint64_t at, len; /* of the answer */
};

/* All processes of a run share this. */
struct answers_shared {
	uint64_t size;
	bool full; /* nothing may be added: it is too large, or could not be written (A1) */
};

struct answers {
	int fd;
	unsigned char key[KEY_SIZE];
	struct vec_of(struct known_answer) known; /* sorted */
	struct answers_shared *shared;
};

static struct seal seal_of(const struct answers *a, const struct answers_head *head,
			   const void *answer)
{
	return trust_seal(a->key, first_line, head, offsetof(struct answers_head, seal), answer,
			  head->len);
}

static int compare(const void *a, const void *b)
{
	const struct known_answer *x = a, *y = b;

	return memcmp(&x->question, &y->question, sizeof(x->question));
}

/* 1: there is such a text; 0: the file ends before. */
static int read_text(const struct answers *a, uint64_t at, uint64_t len, struct strbuf *out)
{
	strbuf_clear(out);
	char *to = strbuf_grow(out, len + 1);
	ssize_t got = io_pread_full(a->fd, to, len, (off_t)at);

	if (got < 0)
		return (int)got;
	to[got] = '\0';
	out->len = (size_t)got;
	return out->len == len;
}

/* 1: there is a whole record at `at`, which becomes the place of the next one; 0: none (A2). */
static int read_one(struct answers *a, uint64_t *at, struct strbuf *text)
{
	struct answers_head head;
	uint64_t from = *at + sizeof(head);
	ssize_t got = io_pread_full(a->fd, &head, sizeof(head), (off_t)*at);

	if (got != sizeof(head) || head.len > ANSWER_MAX)
		return got < 0 ? (int)got : 0;
	int rc = read_text(a, from, head.len, text);
	if (rc < 1)
		return rc;
	struct seal want = seal_of(a, &head, text->buf);
	if (memcmp(&want, &head.seal, sizeof(want)) != 0)
		return 0;
	vec_push(&a->known, (struct known_answer){ head.question, from, head.len });
	*at = from + head.len;
	return 1;
}

/* A file of another version may mean something else. */
static bool is_ours(const struct answers *a)
{
	char line[sizeof(first_line)] = "";
	const ssize_t len = sizeof(first_line) - 1;

	return io_pread_full(a->fd, line, (size_t)len, 0) == len && streq(line, first_line);
}

static int begin_anew(const struct answers *a, struct err *err)
{
	if (ftruncate(a->fd, 0))
		return err_set(err, -errno, "cannot begin the file anew: %m");
	int rc = io_pwrite_full(a->fd, first_line, strlen(first_line), 0);
	return rc ? err_set(err, rc, "cannot begin the file anew: %s", strerror(-rc)) : 0;
}

static int read_all(struct answers *a, struct err *err)
{
	uint64_t at = sizeof(first_line) - 1;
	auto_strbuf text = STRBUF_INIT;
	int rc;

	while ((rc = read_one(a, &at, &text)) > 0)
		;
	if (rc)
		return err_set(err, rc, "cannot read the file: %s", strerror(-rc));
	vec_sort(&a->known, compare);
	a->shared->size = at;
	return ftruncate(a->fd, (off_t)at) ? err_set(err, -errno, "cannot cut the file: %m") : 0;
}

/* A3. A lock of the process: what it forks does not hold it. */
static int lock(const struct answers *a, struct err *err)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(a->fd, F_SETLK, &whole) == 0)
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, -EBUSY, "another process goes on with this run");
	return err_set(err, -errno, "cannot lock the file: %m");
}

static int open_locked(struct answers *a, const char *run, struct err *err)
{
	util_close(a->fd);
	a->fd = below_open(run, CASE_ANSWERS, O_RDWR, err);
	return a->fd < 0 ? a->fd : lock(a, err);
}

/* Whether the file has other names, or another owner: it may be more than answers of this run. */
static bool is_shared(const struct answers *a)
{
	struct stat st;

	return fstat(a->fd, &st) || st.st_nlink != 1 || st.st_uid != geteuid();
}

/* Puts a file of its own, with the same answers, in the place of one that is shared. */
static int part(struct answers *a, const char *run, struct err *err)
{
	auto_strbuf text = STRBUF_INIT;
	int rc = is_ours(a) ? io_slurp_file(run, CASE_ANSWERS, SLURP_MAX, &text, err) : 0;

	return rc ? rc : io_write_file(run, CASE_ANSWERS, strbuf_str(&text), text.len, 0, err);
}

static int open_file(struct answers *a, const char *run, struct err *err)
{
	int rc = 0;

	if (!below_exists(run, CASE_ANSWERS))
		rc = io_write_file(run, CASE_ANSWERS, first_line, strlen(first_line), 0, err);
	if (!rc)
		rc = open_locked(a, run, err);
	if (!rc && is_shared(a)) {
		rc = part(a, run, err);
		if (!rc)
			rc = open_locked(a, run, err);
	}
	if (!rc && !is_ours(a))
		rc = begin_anew(a, err);
	if (!rc && fcntl(a->fd, F_SETFL, O_APPEND) < 0)
		rc = err_set(err, -errno, "cannot append to the file: %m");
	return rc ? rc : read_all(a, err);
}

int answers_open(const char *run, struct answers **out, struct err *err)
{
	struct answers *a = xcalloc(1, sizeof(*a));
	void *shared = mmap(NULL, sizeof(*a->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct err none = ERR_INIT;

	a->fd = -1;
	a->shared = shared;
	int rc = shared == MAP_FAILED ? err_set(err, -errno, "cannot share memory: %m") : 0;
	if (!rc && key_load(a->key, &none))
		a->shared->full = true; /* so whose answers they are cannot be told */
	else if (!rc)
		rc = open_file(a, run, err);
	if (!rc) {
		*out = a;
		return 0;
	}
	answers_close(a);
	return err_context(err, "%s/" CASE_ANSWERS, run);
}

void answers_close(struct answers *a)
{
	if (!a)
		return;
	if (a->shared != MAP_FAILED)
		munmap(a->shared, sizeof(*a->shared));
	if (a->fd >= 0)
		util_close(a->fd);
	vec_release(&a->known);
	explicit_bzero(a->key, sizeof(a->key));
	free(a);
}

bool answers_find(const struct answers *a, struct hash128 question, struct strbuf *out)
{
	struct known_answer key = { .question = question };
	const struct known_answer *k =
		a && a->known.n ? bsearch(&key, a->known.v, a->known.n, sizeof(key), compare)
				: NULL;

	return k && read_text(a, k->at, k->len, out) > 0;
}

void answers_add(struct answers *a, struct hash128 question, const void *answer, size_t len)
{
	struct answers_head head;
	auto_strbuf text = STRBUF_INIT;

	if (!a || len > ANSWER_MAX || __atomic_load_n(&a->shared->full, __ATOMIC_RELAXED))
		return;
	memset(&head, 0, sizeof(head)); /* with what is between its members */
	head.question = question;
	head.len = len;
	head.seal = seal_of(a, &head, answer);
	strbuf_add(&text, &head, sizeof(head));
	strbuf_add(&text, answer, len);
	bool fits = __atomic_add_fetch(&a->shared->size, text.len, __ATOMIC_RELAXED) <= ANSWERS_MAX;
	if (fits && write(a->fd, text.buf, text.len) == (ssize_t)text.len) /* A1 */
		return;
	if (!__atomic_exchange_n(&a->shared->full, true, __ATOMIC_RELAXED))
		log_debug("no more answers are kept");
}
