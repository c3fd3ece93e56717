/* SPDX-License-Identifier: MIT */
/*
 * pm-stream.c - a stream as a trace: pm-stream STREAM BASE AFTER TRACE [FILE CHECK]
 * Fails if what it says does not lead from one content of the memory to the other. With a check,
 * each crash state is put into FILE, and how many the command refuses is printed.
 */
#include "base/io.h"
#include "core/crash.h"
#include "core/model_pm.h"
#include "core/trace_file.h"
#include "record/pm_stream.h"

static int check_states(const struct trace *t, const struct image *base, const char *file,
			const char *command, struct err *err)
{
	struct model_pm_opts model = { .granularity = PM_ATOMIC, .join_min = 256 };
	struct crash_opts o = CRASH_OPTS_INIT;
	struct crash_points points = { 0 };
	auto_crash_state s = CRASH_STATE_INIT;
	auto_crash e = NULL;
	uint64_t n = 0, bad = 0;

	crash_points_pm(t, &points);
	o.model = &model_pm;
	o.model_ctx = &model;
	o.base = base;
	o.points = points.v;
	o.n_points = points.n;
	o.layers = CRASH_WITH_WHOLE;
	o.budget = 300;
	int rc = crash_new(t, &o, &e, err);
	while (!rc && crash_next(e, &s)) {
		rc = image_save_file(&s.image, file, err);
		n++;
		bad += !rc && system(command) != 0;
	}
	crash_points_release(&points);
	if (!rc)
		printf("%llu of %llu\n", (unsigned long long)bad, (unsigned long long)n);
	return rc;
}

static int convert(int argc, char **argv, struct err *err)
{
	auto_image stream = IMAGE_INIT, base = IMAGE_INIT, after = IMAGE_INIT;
	auto_trace t;
	int rc;

	trace_init(&t);
	rc = image_load_file(argv[1], &stream, err);
	if (!rc)
		rc = image_load_file(argv[2], &base, err);
	if (!rc)
		rc = image_load_file(argv[3], &after, err);
	if (rc)
		return rc;
	auto_free unsigned char *data = xmalloc(stream.size + 1);

	image_read(&stream, 0, data, stream.size);
	rc = pm_stream_read(data, stream.size, &t, NULL, err);
	if (!rc)
		rc = pm_replay_check(&t, &base, &after, err);
	if (!rc)
		rc = trace_save(argv[4], &t, err);
	if (!rc && argc == 7)
		rc = check_states(&t, &base, argv[5], argv[6], err);
	return rc;
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;

	if (argc != 5 && argc != 7)
		return 2;
	if (!convert(argc, argv, &err))
		return 0;
	fprintf(stderr, "pm-stream: %s\n", err.msg);
	return 1;
}
