/* random.c - Philox4x32-10, and a Feistel network based on it for random orders without tables. */
#include "data/random.h"

void rfl_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
	uint32_t k0 = key[0], k1 = key[1];
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53 * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57 * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

void rfl_random_init(struct rfl_random *r, uint64_t seed, uint32_t epoch, uint64_t sample)
{
	*r = (struct rfl_random){
		.key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
		.counter = { 0, epoch, (uint32_t)sample, (uint32_t)(sample >> 32) },
		.used = 4,
	};
}

uint32_t rfl_random_u32(struct rfl_random *r)
{
	if (r->used == 4) {
		rfl_philox(r->key, r->counter, r->out);
		r->counter[0]++;
		r->used = 0;
	}
	return r->out[r->used++];
}

double rfl_random_between(struct rfl_random *r, double low, double high)
{
	const uint64_t first = rfl_random_u32(r), bits = first << 32 | rfl_random_u32(r);

	return low + (high - low) * ((double)(bits >> 11) * 0x1p-53);
}

/* Lemire's method: return a product's high word; try again if its low word would cause bias. */
uint32_t rfl_random_below(struct rfl_random *r, uint32_t n)
{
	uint32_t refuse = (uint32_t)(-n) % n;
	uint64_t product;

	do {
		product = (uint64_t)rfl_random_u32(r) * n;
	} while ((uint32_t)product < refuse);
	return (uint32_t)(product >> 32);
}

static uint64_t feistel(const uint32_t key[2], uint32_t epoch, int half_bits, uint64_t x)
{
	uint64_t mask = ((uint64_t)1 << half_bits) - 1;
	uint64_t left = x >> half_bits, right = x & mask;

	for (uint32_t round = 0; round < 4; round++) {
		uint32_t counter[4] = { (uint32_t)right, epoch, round, UINT32_MAX };
		uint32_t out[4];
		uint64_t next;

		rfl_philox(key, counter, out);
		next = left ^ (out[0] & mask);
		left = right;
		right = next;
	}
	return left << half_bits | right;
}

uint64_t rfl_random_permute(uint64_t seed, uint32_t epoch, uint64_t n, uint64_t i)
{
	const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
	int half_bits = 1;

	while (half_bits < 31 && (uint64_t)1 << (2 * half_bits) < n)
		half_bits++;
	do { /* repeat until i is in range: fewer than four steps on average */
		i = feistel(key, epoch, half_bits, i);
	} while (i >= n);
	return i;
}
