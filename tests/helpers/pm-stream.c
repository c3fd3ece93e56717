/* SPDX-License-Identifier: MIT */
/*
 * pm-stream.c - a stream as a trace: pm-stream STREAM BASE AFTER TRACE
 * Fails if what it says does not lead from one content of the memory to the other.
 */
#include "base/io.h"
#include "core/trace_file.h"
#include "record/pm_stream.h"

static int convert(char **argv, struct err *err)
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
	return rc ? rc : trace_save(argv[4], &t, err);
}

int main(int argc, char **argv)
{
	struct err err = ERR_INIT;

	if (argc != 5)
		return 2;
	if (!convert(argv, &err))
		return 0;
	fprintf(stderr, "pm-stream: %s\n", err.msg);
	return 1;
}
