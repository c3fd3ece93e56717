/* SPDX-License-Identifier: MIT */
/* seal.c - seals records with the key of this user. */
#include "trust/seal.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

struct seal trust_seal(const unsigned char key[KEY_SIZE], const char *kind, const void *head,
		       size_t head_len, const void *data, size_t len)
{
	crypto_generichash_state state;
	struct seal s;

	(void)!sodium_init(); /* a second call does nothing; hashing works even if it fails */
	assert(*kind && *kind != 'K' && kind[strlen(kind) - 1] == '\n'); /* L1 */
	crypto_generichash_init(&state, key, KEY_SIZE, SEAL_SIZE);
	crypto_generichash_update(&state, (const unsigned char *)kind, strlen(kind));
	crypto_generichash_update(&state, head, head_len);
	if (len)
		crypto_generichash_update(&state, data, len);
	crypto_generichash_final(&state, s.bytes, SEAL_SIZE);
	sodium_memzero(&state, sizeof(state));
	return s;
}
