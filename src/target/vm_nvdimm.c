/* SPDX-License-Identifier: MIT */
/*
 * vm_nvdimm.c - persistent memory as an NVDIMM, which firmware describes (NFIT), unlike a declared
 * range of e820.
 *
 * A kernel maps the pages of an NVDIMM, which DAX needs, only if a block at its start says so;
 * ndctl(1) calls that fsdax mode, and has the kernel write the block. We write the block before the
 * machine starts, so no setup in the machine is needed. The file system begins behind, at
 * NVDIMM_HEAD; the bytes before it are the same in all crash states.
 *
 * The block, little-endian, at byte 4096 (drivers/nvdimm/pfn.h has it as struct nd_pfn_sb):
 *
 *	 0  "NVDIMM_PFN_INFO", and a zero
 *	16  the name of this block, 16 bytes; and 16 more for what it lies in, which has none
 *	52  version: two numbers of 2 bytes
 *	56  the start of the data, 8 bytes; and the number of pages, 8 bytes
 *	72  mode, 4 bytes: 1, the kernel's notes on pages are in other memory
 *	76  the bytes left out at the start and at the end, 4 bytes each: 0
 *	84  alignment, size of a page, 4 bytes each; size of a note on a page, 2 bytes
 *   4088  a checksum of all other bytes, 8 bytes
 */
#include "core/bytes.h"
#include "target/vm_impl.h"

enum {
	BLOCK_AT = 4096,
	BLOCK_SIZE = 4096,
	CHECKSUM_AT = 4088,
	PAGE = 4096,
	NOTE = 64,
	MODE_OTHER_MEMORY = 1,
	VERSION_MAJOR = 1,
	VERSION_MINOR = 4,
};

/* Fletcher's checksum of words of 4 bytes: the sum, and the sum of sums in the upper half. */
static uint64_t checksum(const unsigned char *block)
{
	uint32_t sum = 0;
	uint64_t sums = 0;

	for (size_t i = 0; i < BLOCK_SIZE; i += 4) {
		sum += get_le32(block + i);
		sums += sum;
	}
	return sums << 32 | sum;
}

void vm_nvdimm_head(struct image *img)
{
	unsigned char block[BLOCK_SIZE] = "NVDIMM_PFN_INFO";

	assert(img->size > NVDIMM_HEAD);
	memcpy(block + 16, "memory of a test", 16);
	put_le32(block + 52, VERSION_MAJOR | VERSION_MINOR << 16);
	put_le64(block + 56, NVDIMM_HEAD);
	put_le64(block + 64, (img->size - NVDIMM_HEAD) / PAGE);
	put_le32(block + 72, MODE_OTHER_MEMORY);
	put_le32(block + 84, NVDIMM_HEAD);
	put_le32(block + 88, PAGE);
	put_le32(block + 92, NOTE);
	put_le64(block + CHECKSUM_AT, checksum(block));
	image_write(img, BLOCK_AT, block, sizeof(block));
}
