/* SPDX-License-Identifier: MIT */
/* forget_call.h - the frame of every request, its handlers, and its record in the trace. */
#ifndef FORGET_FORGET_CALL_H
#define FORGET_FORGET_CALL_H

#include "forget/forget_mount.h"

struct call {
	struct forget *f;
	fuse_req_t req;
	struct posix_event ev;
	struct node *node, *node2;
	struct inject_action act;
	bool inside;  /* holds the gate */
	bool tracing; /* holds the trace lock */
	bool watched;
	uint64_t start_ns, epoch;
	char *from, *to;
	struct told_list told;
};

/* The operation; `node` is the object or the directory of `name`. */
struct call_what {
	enum posix_op op;
	struct node *node, *node2;
	const char *name, *name2;
	uint64_t offset, len;
	uint32_t arg, flags;
	const void *payload;
	size_t payload_len;
};

/* Returns 0 to go on, inside the gate; or the answer. call_end() must follow in both cases. */
int call_begin_what(struct call *c, fuse_req_t req, const struct call_what *w) must_check;
#define call_begin(c, req, ...) call_begin_what(c, req, &(struct call_what){ __VA_ARGS__ })
/* Leaves the gate. Returns the answer: `rc`, or the error of a crashed mount. */
int64_t call_end(struct call *c, int64_t rc) must_check;
/*
 * True if anything was lost or rolled back since call_begin(): the kernel may have been told to
 * forget before it gets this answer, and must not keep the answer.
 */
static inline bool call_is_late(const struct call *c)
{
	return atomic_load(&c->f->epoch) != c->epoch;
}
/* Tells the kernel what to forget, after the answer. */
void call_done(struct call *c);
/* Ends a call, answers it, and tells the kernel. */
void call_reply(struct call *c, int64_t rc);

/* ---- forget_trace.c ---- */

int forget_trace_open(struct forget *f, struct err *err) must_check;
int forget_trace_close(struct forget *f, struct err *err) must_check;
/* True if the call belongs into the trace. */
bool forget_trace_wants(const struct call *c);
/* Adds a call to the trace; with the trace lock. */
void forget_trace_call(struct call *c);
/* Adds a note to the trace. Takes the trace lock. */
void forget_trace_note(struct forget *f, const char *fmt, ...) printf_like(2, 3);
/* Writes the gathered events to the file. Takes the trace lock. */
void forget_trace_hand_over(struct forget *f);
/* Marks a new node: the event of its creation will have its path. */
void forget_trace_made(struct forget *f, struct node *n);

/* ---- the credentials of a thread: forget_caller.c ---- */

/*
 * From here to forget_caller_leave(), this thread makes files in ROOT that belong to this user and
 * group, with this mask. Only the owner changes, not the rights of the server.
 */
void forget_caller_enter(uid_t uid, gid_t gid, mode_t mask);
void forget_caller_leave(void);

/* ---- requests ---- */

void forget_on_access(fuse_req_t req, fuse_ino_t ino, int mask);
void forget_on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set,
		       struct fuse_file_info *fi);
void forget_on_statfs(fuse_req_t req, fuse_ino_t ino);
void forget_on_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void forget_on_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void forget_on_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
			size_t len, int flags);
void forget_on_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
void forget_on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void forget_on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *v);
void forget_on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void forget_on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void forget_on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void forget_on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void forget_on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *fi);
void forget_on_readlink(fuse_req_t req, fuse_ino_t ino);
void forget_on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void forget_on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
		      const char *new_name, unsigned flags);
void forget_on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi);
void forget_on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			   struct fuse_file_info *fi);
void forget_on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void forget_on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi);
void forget_on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
		     struct fuse_file_info *fi);
void forget_on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
			 struct fuse_file_info *fi);
void forget_on_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
		     struct fuse_file_info *fi);
void forget_on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void forget_on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* How long the kernel may keep an entry: all changes come through us, and it is told of losses. */
#define FORGET_KEEP_S 86400.0
/* Makes the answer to lookup, creation and readdirplus. The kernel's count grows by one. */
int forget_entry(struct forget *f, struct node *n, struct fuse_entry_param *e) must_check;
/* Removes set-id bits, as a write or a truncation does; `setid` are those there may be. */
void forget_attr_drop_setid(struct call *c, struct node *n, unsigned setid);
/* True if the kernel need not report the closing of a descriptor. */
bool forget_data_noflush(struct forget *f, const struct fuse_file_info *fi);
/* Closes open directories: after a crash no request does it. */
void forget_dir_release_all(struct forget *f);

#endif
