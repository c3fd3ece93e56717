/* SPDX-License-Identifier: MIT */
/*
 * uml_impl.h - what targets in a guest have in common, whoever runs its kernel: only how the guest
 * is started differs.
 */
#ifndef TARGET_UML_IMPL_H
#define TARGET_UML_IMPL_H

#include "target/host.h"
#include "target/uml_guest.h"

struct uml {
	const struct host_fs *fs;
	struct guest guest;
	int (*start)(struct target *t, struct err *err); /* the guest; it does not run */
	char *kernel, *modules;
	int root;			 /* the archive */
	const struct workload *workload; /* whose operations are performed, or NULL */
	const struct tree *walked;	 /* what the agent has walked last, or NULL */
	bool begun;			 /* the agent knows the workload */
};

/* NULL: there is none of that name. */
const struct host_fs *uml_fs_find(const char *name);
/* One of the processors that we may use, another for each worker; -1: any. */
int uml_choose_cpu(unsigned worker);

/* The functions of struct target_ops, for targets whose `own` begins with a struct uml. */
int uml_mkfs(struct target *t, struct image *out, struct err *err) must_check;
int uml_recover(struct target *t, struct strbuf *said, struct err *err) must_check;
int uml_mount(struct target *t, struct strbuf *said, struct err *err) must_check;
int uml_umount(struct target *t, bool clean, struct err *err) must_check;
int uml_fsck(struct target *t, struct strbuf *said, struct err *err) must_check;
void uml_close(struct target *t);
extern const struct target_far uml_far;

#endif
