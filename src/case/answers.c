/* SPDX-License-Identifier: MIT */
/* answers.c - keeps what was answered in a run, and finds it when the run goes on. */
#include "case/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/below.h"
#include "base/io.h"
#include "base/log.h"

enum { ANSWER_MAX = 64 << 20 };
static const char first_line[] = "outage-answers " OUTAGE_VERSION "\n";

struct known_answer {
	struct hash128 question;
	uint64_t at, len; /* of the answer */
};

struct answers {
	int fd;
	struct vec_of(struct known_answer) known; /* sorted */
	uint64_t *used;				  /* how many of them, by all processes */
};

static uint64_t hash_of(const struct answers_head *head, const void *answer)
{
	struct answers_head h = { .question = head->question, .len = head->len };

	h.hash = hash64(answer, head->len);
	return hash64(&h, sizeof(h));
}

static int compare(const void *a, const void *b)
{
	const struct known_answer *x = a, *y = b;

	return memcmp(&x->question, &y->question, sizeof(x->question));
}

static bool read_text(const struct answers *a, uint64_t at, uint64_t len, struct strbuf *out)
{
	strbuf_clear(out);
	char *to = strbuf_grow(out, len + 1);

	if (io_pread_full(a->fd, to, len, (off_t)at) != (ssize_t)len)
		return false;
	to[len] = '\0';
	out->len = len;
	return true;
}

/* True if there is a whole record at `at`, which becomes the place of the next one (A2). */
static bool read_one(struct answers *a, uint64_t *at, struct strbuf *text)
{
	struct answers_head head;
	uint64_t from = *at + sizeof(head);

	if (io_pread_full(a->fd, &head, sizeof(head), (off_t)*at) != sizeof(head) ||
	    head.len > ANSWER_MAX)
		return false;
	if (!read_text(a, from, head.len, text) || head.hash != hash_of(&head, text->buf))
		return false;
	vec_push(&a->known, (struct known_answer){ head.question, from, head.len });
	*at = from + head.len;
	return true;
}

/* A file of another version may mean something else. */
static bool is_ours(const struct answers *a)
{
	char line[sizeof(first_line)] = "";
	const ssize_t len = sizeof(first_line) - 1;

	return io_pread_full(a->fd, line, (size_t)len, 0) == len && streq(line, first_line);
}

static int read_all(struct answers *a, struct err *err)
{
	uint64_t at = sizeof(first_line) - 1;
	auto_strbuf text = STRBUF_INIT;

	while (read_one(a, &at, &text))
		;
	if (a->known.n)
		qsort(a->known.v, a->known.n, sizeof(*a->known.v), compare);
	return ftruncate(a->fd, (off_t)at) ? err_set(err, -errno, "cannot cut the file: %m") : 0;
}

static int open_file(struct answers *a, const char *run, struct err *err)
{
	int rc = 0;

	if (!below_exists(run, CASE_ANSWERS))
		rc = io_write_file(run, CASE_ANSWERS, first_line, strlen(first_line), 0, err);
	if (rc)
		return rc;
	a->fd = below_open(run, CASE_ANSWERS, O_RDWR, err);
	if (a->fd < 0)
		return a->fd;
	if (!is_ours(a) &&
	    (ftruncate(a->fd, 0) || io_write_full(a->fd, first_line, strlen(first_line))))
		return err_set(err, -errno, "cannot begin the file anew: %m");
	if (fcntl(a->fd, F_SETFL, O_APPEND) < 0)
		return err_set(err, -errno, "cannot append to the file: %m");
	return read_all(a, err);
}

int answers_open(const char *run, struct answers **out, struct err *err)
{
	struct answers *a = xcalloc(1, sizeof(*a));
	void *shared = mmap(NULL, sizeof(*a->used), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	a->fd = -1;
	a->used = shared;
	int rc = shared == MAP_FAILED ? err_set(err, -errno, "cannot share memory: %m")
				      : open_file(a, run, err);
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
	if (a->used != MAP_FAILED)
		munmap(a->used, sizeof(*a->used));
	if (a->fd >= 0)
		util_close(a->fd);
	vec_release(&a->known);
	free(a);
}

bool answers_find(struct answers *a, struct hash128 question, struct strbuf *out)
{
	struct known_answer key = { .question = question };
	const struct known_answer *k =
		a && a->known.n ? bsearch(&key, a->known.v, a->known.n, sizeof(key), compare)
				: NULL;

	if (!k)
		return false;
	if (!read_text(a, k->at, k->len, out))
		return false;
	__atomic_fetch_add(a->used, 1, __ATOMIC_RELAXED);
	return true;
}

void answers_add(struct answers *a, struct hash128 question, const void *answer, size_t len)
{
	struct answers_head head = { .question = question, .len = len };
	auto_strbuf text = STRBUF_INIT;

	if (!a || len > ANSWER_MAX)
		return;
	head.hash = hash_of(&head, answer);
	strbuf_add(&text, &head, sizeof(head));
	strbuf_add(&text, answer, len);
	if (write(a->fd, text.buf, text.len) != (ssize_t)text.len) /* A1 */
		log_debug("an answer could not be kept: %m");
}

bool answers_caught_up(const struct answers *a)
{
	return __atomic_load_n(a->used, __ATOMIC_RELAXED) >= a->known.n;
}
