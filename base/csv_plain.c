/*
 * csv_plain.c - the commas of a line without quotes, 64 bytes at a time.
 */
#include "base/csv_parts.h"

#include <stdint.h>
#include <string.h>

/* The commas of the next eight bytes: bit k is that of byte k, whatever the order of bytes here. */
static uint64_t commas_of_8(const char *at)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t word;

	memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	word ^= UINT64_C(0x2c2c2c2c2c2c2c2c);            /* a comma is 0 now */
	word = ~(((word & low) + low) | word | low);     /* the highest bit of each that is */
	return (word * UINT64_C(0x2040810204081)) >> 56; /* and those bits side by side */
}

static uint64_t commas_of_64(const char *at)
{
	uint64_t commas = 0;

	for (unsigned i = 0; i < 64; i += 8)
		commas |= commas_of_8(at + i) << i;
	return commas;
}

size_t rfl_csv__cut_at_commas(char *text, size_t len, size_t *fields, size_t most)
{
	size_t n = 1, at = 0;

	fields[0] = 0;
	for (; len - at >= 64; at += 64)
		for (uint64_t commas = commas_of_64(text + at); commas && n < most;
		     commas &= commas - 1) {
			size_t comma = at + (size_t)__builtin_ctzll(commas);

			text[comma] = '\0';
			fields[n++] = comma + 1;
		}
	for (; at < len; at++)
		if (text[at] == ',' && n < most) {
			text[at] = '\0';
			fields[n++] = at + 1;
		}
	return n;
}
