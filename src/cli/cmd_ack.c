/* SPDX-License-Identifier: MIT */
/* cmd_ack.c - outage ack: an acknowledgement, from a shell that outage app runs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "forget/forget_record.h"

static int acknowledge(const struct strbuf *line)
{
	const char *path = getenv(FORGET_RECORD_ACK);

	if (!path)
		return cli_failf("no run listens: " FORGET_RECORD_ACK
				 " is not set; use it in the run of 'outage app'");
	/* One write, so that those of several processes do not mix. */
	if (line->len > PIPE_BUF)
		return cli_failf("an acknowledgement has at most %d bytes", PIPE_BUF - 1);
	auto_fd fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return cli_failf("cannot open %s: %s; is the run over?", path, strerror(errno));
	fcntl(fd, F_SETFL, 0);
	if (write(fd, line->buf, line->len) != (ssize_t)line->len)
		return cli_failf("cannot write to %s: %s", path, strerror(errno));
	return EXIT_OK;
}

static const struct opt options[] = { { OPT_ARGUMENT, .arg = "TEXT...",
					.help = "the words; -- before one that begins with -" },
				      OPT_END };

static int run(void *unused, struct args *args)
{
	auto_strbuf line = STRBUF_INIT;

	(void)unused;
	if (!args->n)
		return cli_usage(&cmd_ack, "say what is acknowledged");
	for (int i = 0; i < args->n; i++) {
		if (i)
			strbuf_addch(&line, ' ');
		strbuf_add_flat(&line, args->v[i]);
	}
	strbuf_addch(&line, '\n');
	return acknowledge(&line);
}

const struct command cmd_ack = {
	.name = "ack",
	.summary = "acknowledges something, in the run of outage app",
	.usage = "TEXT...",
	.about = "To be used in the run of 'outage app': says that what TEXT names is done and "
		 "must survive from now on. A line on the run's standard output does the same.",
	.status = "0 it was acknowledged, 2 it could not be",
	.example = "outage app --run './put k v && outage ack k' --check ./check -- data",
	.options = options,
	.order = OPT_NOWHERE,
	.run = run,
};
