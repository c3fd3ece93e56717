/* SPDX-License-Identifier: MIT */
/*
 * selftest.S - a program whose trace is known: outage runs it in the emulator before each run, and
 * compares (src/record/pm_selftest.c has what must come). It maps the file that its argument names, and
 * makes each kind of store, flush, fence and mark, with registers that have just been changed and
 * in all forms of addresses. With a second argument it maps what is 4 GiB further on, which is where
 * the persistent memory of a virtual machine is in /dev/mem. It exits with 0, or with 1 if it cannot map the file.
 *
 * A processor that lacks clwb gets clflushopt for it, and one that lacks that, too, clflush for both.
 * The latter is told by the second number of the first mark. What flushes has no branch in it: where
 * there is one, all registers are in memory.
 */
	.set MARK, 0x6f757467
	.set BEGIN, 1
	.set END, 2
	.set TEXT, 3
	.set SELF, 4

	.macro mark kind
	nopl	MARK+\kind(%rax,%rax,8)
	.endm

	# with addresses that were not in memory a moment ago
	.macro flushes clwb, clflushopt
	mov	%rbx, %rax
	add	$5, %rax
	\clwb	(%rax)
	mov	%rbx, %r13
	sub	$0x1000, %r13
	\clflushopt 0x1040(%r13)
	lea	0x20(%rbx), %rdx
	mov	$0x18, %esi
	clflush	(%rdx,%rsi,4)
	lea	-0x7fffff00(%rbx), %r12
	mov	$0x10, %r9d
	\clwb	0x7fffff40(%r12,%r9,8)
	.endm

	.set HAS_CLFLUSHOPT, 1 << 23	# cpuid 7, ebx
	.set HAS_CLWB, 1 << 24

	.text
	.globl	_start
_start:
	xor	%eax, %eax
	cpuid
	xor	%r15d, %r15d		# what there is to flush with
	cmp	$7, %eax
	jb	1f
	mov	$7, %eax
	xor	%ecx, %ecx
	cpuid
	mov	%ebx, %r15d
	and	$HAS_CLFLUSHOPT | HAS_CLWB, %r15d
1:
	mov	16(%rsp), %rdi		# argv[1]
	mov	$2, %eax		# open(path, O_RDWR)
	mov	$2, %esi
	xor	%edx, %edx
	syscall
	test	%eax, %eax
	js	fail
	mov	%eax, %r8d		# mmap(NULL, 8192, READ|WRITE, SHARED, fd, 0)
	mov	$9, %eax
	xor	%edi, %edi
	mov	$8192, %esi
	mov	$3, %edx
	mov	$1, %r10d
	xor	%r9d, %r9d
	cmpq	$2, (%rsp)		# a second argument: not 0, but 4 GiB
	jbe	1f
	mov	$1, %r9d
	shl	$32, %r9
1:	syscall
	cmp	$-4096, %rax
	ja	fail
	mov	%rax, %rbx		# the region

	# two numbers, one of them computed just before
	mov	$0x1122334455667788, %rdi
	test	%r15d, %r15d
	setz	%sil
	movzbl	%sil, %esi
	add	$40, %esi
	add	$2, %esi
	mark	SELF

	# stores of every size; loads and stores elsewhere between them
	mov	$1, %edi
	mark	BEGIN
	movb	$0x11, (%rbx)
	push	%rbx
	movw	$0x2222, 2(%rbx)
	mov	(%rbx), %rcx
	movl	$0x33333333, 4(%rbx)
	movabs	$0x4444444444444444, %rcx
	mov	%rcx, 8(%rbx)
	pop	%rbx
	movq	%rcx, %xmm0
	punpcklqdq %xmm0, %xmm0
	movups	%xmm0, 16(%rbx)

	test	$HAS_CLWB, %r15d
	jz	1f
	flushes	clwb, clflushopt
	jmp	3f
1:	test	$HAS_CLFLUSHOPT, %r15d
	jz	2f
	flushes	clflushopt, clflushopt
	jmp	3f
2:	flushes	clflush, clflush
3:
	sfence
	mfence
	mov	$1, %edi
	mark	END

	# non-temporal stores
	mov	$2, %edi
	mark	BEGIN
	mov	$0x5555555555555555, %rcx
	movnti	%rcx, 0x100(%rbx)
	movnti	%ecx, 0x108(%rbx)
	movq	%rcx, %mm0
	movntq	%mm0, 0x110(%rbx)
	movntps	%xmm0, 0x120(%rbx)
	movntdq	%xmm0, 0x130(%rbx)
	emms
	pcmpeqb	%xmm1, %xmm1
	lea	0x140(%rbx), %rdi
	maskmovdqu %xmm1, %xmm0
	sfence

	# what acts as a fence, and is a store as well; and what others do by functions
	movq	$7, 0x200(%rbx)
	lock incq 0x200(%rbx)
	mov	$9, %ecx
	xchg	%rcx, 0x208(%rbx)
	lea	0x210(%rbx), %rdi
	mov	%rbx, %rsi
	mov	$2, %ecx
	rep movsq
	mov	$3, %eax
	xor	%edx, %edx
	xor	%ecx, %ecx
	mov	%eax, %ebp
	xor	%eax, %eax
	mov	%rbx, %r14
	mov	%rbp, %rbx
	lock cmpxchg16b 0x220(%r14)
	mov	%r14, %rbx
	fld1
	fstpt	0x230(%rbx)
	fld1
	fstpl	0x240(%rbx)

	# over the end of a line, and of a page
	movabs	$0x6666666666666666, %rcx
	mov	%rcx, 0xffc(%rbx)
	lea	text(%rip), %rdi
	mov	(%rdi), %rcx		# in a machine, what nobody has touched is not there yet
	mov	$8, %esi
	mark	TEXT
	mov	$2, %edi
	mark	END

	xor	%edi, %edi
	jmp	leave
fail:
	mov	$1, %edi
leave:
	mov	$231, %eax		# exit_group
	syscall

	.section .rodata
text:
	.ascii	"selftest"
	.section .note.GNU-stack, "", @progbits
