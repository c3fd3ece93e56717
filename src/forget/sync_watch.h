/* SPDX-License-Identifier: MIT */
/*
 * sync_watch.h - sync(2) and syncfs(2) of an application, which no FUSE server is told of.
 *
 * A seccomp filter makes the kernel ask us before it does one of these two calls, and nothing else
 * changes: the call is then done as it was meant. The watch needs the right to set a filter without
 * giving up others, which root has, and so does a user in a user namespace of its own.
 */
#ifndef FORGET_SYNC_WATCH_H
#define FORGET_SYNC_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

/* In the child, right before it becomes the application; failures are told to the parent. */
void sync_watch_send(int socket);
/* In the parent: where questions come from; or -errno if it could not be set up. */
int sync_watch_receive(int socket);

/*
 * Answers one question, if there is one. `synced` is called before the call is done, if it concerns
 * the file system of device `dev`. False if there is no process left that could ask.
 */
bool sync_watch_answer(int fd, dev_t dev, void (*synced)(void *ctx, pid_t pid), void *ctx);

#endif
