/* SPDX-License-Identifier: MIT */
/*
 * sync_watch.h - watches sync(2) and syncfs(2) of an application, which a FUSE server does not get.
 *
 * A seccomp filter makes the kernel ask us before one of these two calls, which is then done as
 * usual. The watch needs the right to set a filter without giving up other rights: root has it, and
 * a user in a user namespace of its own.
 */
#ifndef FORGET_SYNC_WATCH_H
#define FORGET_SYNC_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

/* In the child, right before it becomes the application; the parent gets failures. */
void sync_watch_send(int socket);
/* Called in the parent: returns the descriptor of the questions; or -errno if the watch failed. */
int sync_watch_receive(int socket);

/*
 * Answers one question, if there is one. `synced` is called before the call is done, if the call
 * concerns the file system of device `dev`. False if no process is left that could ask.
 */
bool sync_watch_answer(int fd, dev_t dev, void (*synced)(void *ctx, pid_t pid), void *ctx);

#endif
