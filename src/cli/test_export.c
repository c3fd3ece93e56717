/* SPDX-License-Identifier: MIT */
/* test_export.c - a finding of outage test or outage explore, for people without this program. */
#include <errno.h>

#include "base/below.h"
#include "base/io.h"
#include "cli/test_findings.h"
#include "report/report.h"
#include "run/replay.h"
#include "guest/guest_files.h"

static int write_file(const char *dir, const char *name, const struct strbuf *text, mode_t mode,
		      struct err *err)
{
	return io_write_file(dir, name, strbuf_str(text), text->len, mode, err);
}

/* xfstests cuts the power with dm-flakey, below a file system of the kernel. */
static int export_test(const struct view *v, const char *dir, struct err *err)
{
	auto_strbuf text = STRBUF_INIT, golden = STRBUF_INIT;

	if (stored_case_live(&v->c)) {
		printf("generic-NNN is not written: nothing had crashed, and it looks at what a "
		       "crash leaves; workload.c shows it\n");
		return 0;
	}
	if (strncmp(v->c.target, "fuse", 4) == 0) {
		printf("generic-NNN is not written: xfstests cannot cut the power under a FUSE "
		       "server\n");
		return 0;
	}
	export_xfstest(v, &text, &golden);
	int rc = write_file(dir, "generic-NNN", &text, 0755, err);
	return rc ? rc : write_file(dir, "generic-NNN.out", &golden, 0644, err);
}

/* A finding that begins with a disk is worth nothing without it. */
static int export_start(const struct view *v, const char *dir, struct err *err)
{
	struct image img;
	int rc = stored_case_start(&v->c, &img, err);

	if (rc)
		return rc;
	rc = image_save_below(&img, dir, "start.img", false, err);
	image_release(&img);
	if (!rc)
		printf("it begins with the disk start.img: run workload.sh or workload.c where a "
		       "copy of it is mounted as %s;\ngeneric-NNN is not written, it would begin "
		       "with a new file system\n",
		       v->c.target);
	return rc;
}

/* The folders of a path below `dir`. */
static int make_folders(const char *dir, const char *path, struct err *err)
{
	int rc = 0;

	for (const char *slash = strchr(path + 1, '/'); slash && !rc;
	     slash = strchr(slash + 1, '/')) {
		auto_free char *part = xmemdupz(path + 1, (size_t)(slash - path) - 1);

		rc = below_make_dir(dir, part, err);
	}
	return rc;
}

/*
 * A case names files of this machine: one from a stranger could name any, to have it passed on. So
 * it must be this user's own, and know what they hold.
 */
static int read_files(const struct stored_case *c, struct guest_files *out, struct err *err)
{
	struct target_opts now = { .spec = c->target,
				   .guest_files = c->guest_files,
				   .guest_memory = c->guest_memory };

	if (!c->ours)
		return err_set(err, -EPERM,
			       "%s was not made by you on this machine, and names files of it: "
			       "look at its file case, then give --trust",
			       c->dir);
	if (!c->guest_files_hash)
		return err_set(err, -EINVAL, "%s/case does not tell what was in it", c->dir);
	int rc = target_files(&now, out, err);
	if (rc)
		return rc;
	auto_free char *hash = guest_files_hash(out);
	if (streq(hash, c->guest_files_hash))
		return 0;
	guest_files_release(out);
	return err_set(err, -ESTALE, "the files hold something else than what the guest was given");
}

/* Writes the files of the user's commands in the guest to a folder that is like its root. */
static int export_files(const struct view *v, const char *dir, struct err *err)
{
	auto_free char *root = xasprintf("%s/guest", dir);
	struct guest_files files = { 0 };
	struct err why = ERR_INIT;
	int rc = 0;

	if (!v->c.guest_files)
		return 0;
	if (read_files(&v->c, &files, &why)) {
		printf("guest/ is not written: %s; reproduce.sh tells what it needs there\n",
		       why.msg);
		return 0;
	}
	rc = below_make_dir(dir, "guest", err);
	for (size_t i = 0; !rc && i < files.n; i++) {
		const struct guest_file *f = &files.v[i];

		rc = make_folders(root, f->guest, err);
		if (!rc)
			rc = write_file(root, f->guest + 1, &f->text, f->mode, err);
	}
	guest_files_release(&files);
	return rc;
}

static const struct exporter {
	const char *file;
	mode_t mode;
	enum { ALWAYS, CRASHED } when;
	void (*write)(const struct view *v, struct strbuf *out);
} exporters[] = {
#define EXPORTER(...) { __VA_ARGS__ },
#include "report/exporters.def"
#undef EXPORTER
};

static int export_texts(const struct view *v, const char *dir, struct err *err)
{
	bool live = stored_case_live(&v->c);
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(exporters); i++) {
		const struct exporter *e = &exporters[i];
		auto_strbuf text = STRBUF_INIT;

		if (live && e->when == CRASHED)
			continue;
		e->write(v, &text);
		rc = write_file(dir, e->file, &text, e->mode, err);
	}
	return rc;
}

static int export_all(const struct view *v, const char *dir, struct err *err)
{
	/* Before any crash there is no disk to show: the workload alone does. */
	int rc = stored_case_live(&v->c) ? 0 : replay_save_image(&v->c, dir, "crash.img", err);

	if (!rc)
		rc = export_files(v, dir, err);
	if (!rc)
		rc = export_texts(v, dir, err);
	if (rc)
		return rc;
	return stored_case_has_start(&v->c) ? export_start(v, dir, err) : export_test(v, dir, err);
}

/* Nothing of it is run here: one that is not this user's own is written, and says so. */
int test_export(const struct export_request *r)
{
	struct view v;
	struct err err = ERR_INIT, strange = ERR_INIT;
	int rc = view_load(r->dir, false, &v, &err);

	if (rc)
		return cli_fail(&err);
	if (store_trust(&v.c, NULL, r->trust, &strange) || !v.c.ours)
		cli_tell_strange(r->dir);
	auto_free char *to = NULL;
	rc = below_make_named(r->output, &to, &err);
	if (!rc)
		rc = export_all(&v, to, &err);
	view_release(&v);
	return rc ? cli_fail(&err) : EXIT_OK;
}
