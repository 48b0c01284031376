/*
 * evaluate.c - a set of formulas: its slots by name, and the quantities of one launch.
 */
#include "profile/formula.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "profile/formula/impl.h"

/* ---- slots ---- */

static size_t hash_at(const struct rfl_formulas *f, const char *name, size_t len)
{
	uint64_t h = rfl_hash64(0, name, len);

	return (size_t)(h ^ h >> 32) & (f->table_size - 1);
}

static int find_slot(const struct rfl_formulas *f, const char *metric, size_t len)
{
	if (f->table_size == 0)
		return -1;
	for (size_t at = hash_at(f, metric, len); f->table[at] != 0;
	     at = (at + 1) & (f->table_size - 1)) {
		const struct rfl_formula_slot *slot = &f->slots[f->table[at] - 1];

		if (strncmp(slot->name, metric, len) == 0 && slot->name[len] == '\0')
			return (int)(f->table[at] - 1);
	}
	return -1;
}

int rfl_formulas_slot(const struct rfl_formulas *f, const char *metric, size_t len)
{
	int slot = find_slot(f, metric, len);

	for (size_t i = 0; i < f->naliases && slot < 0; i++) {
		const struct rfl_formula_alias *a = &f->aliases[i];
		size_t from = strlen(a->from);
		char name[RFL_WORD_MAX + 1];
		int n;

		if (len < from || memcmp(metric, a->from, from) != 0)
			continue;
		n = snprintf(name, sizeof(name), "%s%.*s", a->to, (int)(len - from), metric + from);
		if (n > 0 && (size_t)n < sizeof(name))
			slot = find_slot(f, name, (size_t)n);
	}
	return slot;
}

static void table_put(struct rfl_formulas *f, size_t slot)
{
	const char *name = f->slots[slot].name;
	size_t at = hash_at(f, name, strlen(name));

	while (f->table[at] != 0)
		at = (at + 1) & (f->table_size - 1);
	f->table[at] = (uint32_t)slot + 1;
}

/* Keep the table at most half full. */
static bool table_grow(struct rfl_formulas *f)
{
	size_t size = f->table_size ? f->table_size * 2 : 64;
	uint32_t *table;

	if (f->nslots * 2 < f->table_size)
		return true;
	table = rfl_alloc_array(size, sizeof(*table));
	if (!table)
		return false;
	free(f->table);
	f->table = table;
	f->table_size = size;
	for (size_t i = 0; i < f->nslots; i++)
		table_put(f, i);
	return true;
}

size_t rfl_formulas__slot_add(struct rfl_formulas *f, const char *name, size_t len,
			      const char *unit, bool is_report)
{
	int have = find_slot(f, name, len);
	struct rfl_formula_slot *slots;
	size_t cap = f->slots_cap ? f->slots_cap * 2 : 64;

	if (have >= 0)
		return (size_t)have;
	if (f->nslots == RFL_SLOTS_MAX)
		return RFL_SLOTS_MAX;
	if (f->nslots == f->slots_cap) {
		slots = realloc(f->slots, cap * sizeof(*slots));
		if (!slots)
			return SIZE_MAX;
		f->slots = slots;
		f->slots_cap = cap;
	}
	if (!table_grow(f))
		return SIZE_MAX;
	f->slots[f->nslots] = (struct rfl_formula_slot){
		.name = rfl_arena_printf(f->arena, "%.*s", (int)len, name),
		.unit = unit,
		.is_report = is_report,
	};
	if (!f->slots[f->nslots].name)
		return SIZE_MAX;
	table_put(f, f->nslots);
	return f->nslots++;
}

size_t rfl_formulas_slots(const struct rfl_formulas *f)
{
	return f->nslots;
}

const char *rfl_formulas_slot_name(const struct rfl_formulas *f, size_t slot)
{
	assert(slot < f->nslots);
	return f->slots[slot].name;
}

bool rfl_formulas_slot_is_report(const struct rfl_formulas *f, size_t slot)
{
	assert(slot < f->nslots);
	return f->slots[slot].is_report;
}

const char *rfl_formulas_slot_unit(const struct rfl_formulas *f, size_t slot)
{
	assert(slot < f->nslots);
	return f->slots[slot].unit;
}

/* ---- what a set is made of ---- */

const char *rfl_formulas_family(const struct rfl_formulas *f)
{
	return f->family;
}

const char *rfl_formulas_command(const struct rfl_formulas *f)
{
	return f->command;
}

const char *rfl_formulas_chip_at(const struct rfl_formulas *f, size_t i)
{
	return i < f->nchips ? f->chips[i] : NULL;
}

const struct rfl_trap *rfl_formulas_traps(const struct rfl_formulas *f, size_t *n)
{
	*n = f->ntraps;
	return f->traps;
}

size_t rfl_formula_ways(const struct rfl_formulas *f, enum rfl_quantity q)
{
	return f->quantities[q].nways;
}

static const struct rfl_formula_way *way_at(const struct rfl_formulas *f, enum rfl_quantity q,
					    size_t way)
{
	assert(way < f->quantities[q].nways);
	return &f->quantities[q].ways[way];
}

const struct rfl_term *rfl_formula_way(const struct rfl_formulas *f, enum rfl_quantity q,
				       size_t way, size_t *nterms)
{
	const struct rfl_formula_way *w = way_at(f, q, way);

	*nterms = w->nterms;
	return f->terms + w->first;
}

int rfl_formula_subtracted(const struct rfl_formulas *f, enum rfl_quantity q, double *weight)
{
	const struct rfl_formula_less *less = &f->quantities[q].less;

	if (!less->reason)
		return -1;
	if (weight)
		*weight = less->weight;
	return (int)less->slot;
}

const char *rfl_formula_impossible(const struct rfl_formulas *f, enum rfl_quantity q)
{
	return f->quantities[q].impossible;
}

const char *rfl_formula_caveat(const struct rfl_formulas *f, enum rfl_quantity q, size_t way)
{
	return way_at(f, q, way)->caveat;
}

enum rfl_way_kind rfl_formula_way_kind(const struct rfl_formulas *f, enum rfl_quantity q,
				       size_t way)
{
	return way_at(f, q, way)->kind;
}

/* ---- values ---- */

static bool term_is_present(const struct rfl_term *t, const uint64_t *present, const int *way)
{
	return rfl_slot_is_present(present, t->slot) &&
	       (t->per_slot < 0 || rfl_slot_is_present(present, (size_t)t->per_slot)) &&
	       (t->over_slot < 0 || rfl_slot_is_present(present, (size_t)t->over_slot)) &&
	       (t->per_quantity < 0 || way[t->per_quantity] != -1);
}

static int choose_way(const struct rfl_formulas *f, const struct rfl_formula_quantity *quantity,
		      const uint64_t *present, const int *way)
{
	for (size_t w = 0; w < quantity->nways; w++) {
		const struct rfl_term *t = f->terms + quantity->ways[w].first;
		size_t n = quantity->ways[w].nterms, i = 0;

		while (i < n && term_is_present(&t[i], present, way))
			i++;
		if (i == n)
			return (int)w;
	}
	return -1;
}

/* Is it found by a way whose result is whole? */
static bool is_whole(const struct rfl_formulas *f, enum rfl_quantity q, int way)
{
	return way >= 0 && f->quantities[q].ways[way].kind == RFL_WAY_FULL;
}

/* dram_bytes as the sum of what was read and written: where nothing else is there, and rather than
 * a bound or an estimate where both are whole. */
static bool is_sum_of_directions(const struct rfl_formulas *f, const int *way)
{
	const int read = way[RFL_QUANTITY_DRAM_READ], write = way[RFL_QUANTITY_DRAM_WRITE];

	if (way[RFL_QUANTITY_DRAM] == -1)
		return read != -1 && write != -1;
	return !is_whole(f, RFL_QUANTITY_DRAM, way[RFL_QUANTITY_DRAM]) &&
	       is_whole(f, RFL_QUANTITY_DRAM_READ, read) &&
	       is_whole(f, RFL_QUANTITY_DRAM_WRITE, write);
}

void rfl_formulas__choose(const struct rfl_formulas *f, const uint64_t *present,
			  int way[RFL_QUANTITY_COUNT])
{
	bool flops = false;

	for (int q = 0; q < RFL_QUANTITY_COUNT; q++) {
		way[q] = choose_way(f, &f->quantities[q], present, way);
		if (way[q] != -1 && rfl_quantity_is_flops((enum rfl_quantity)q))
			flops = true;
		if (q == RFL_QUANTITY_FLOPS && way[q] == -1 && flops)
			way[q] = RFL_FORMULA_SUM;
		if (q == RFL_QUANTITY_DRAM && is_sum_of_directions(f, way))
			way[q] = RFL_FORMULA_SUM;
	}
}

static double way_value(const struct rfl_formulas *f, const struct rfl_formula_way *way,
			const double *slots, const double *found)
{
	const struct rfl_term *t = f->terms + way->first;
	double sum = 0;

	for (size_t i = 0; i < way->nterms; i++, t++) {
		double x = t->weight * slots[t->slot];

		if (t->per_slot >= 0)
			x *= slots[t->per_slot];
		if (t->per_quantity >= 0)
			x *= found[t->per_quantity];
		if (t->over_slot >= 0)
			x /= slots[t->over_slot];
		sum += x;
	}
	return sum;
}

/* The sum of the parts of flops.total that are known. */
static double known_flops(const double *found)
{
	double sum = 0;
	bool any = false;

	for (int q = 0; q < RFL_QUANTITY_FLOPS; q++) {
		if (!rfl_quantity_is_flops((enum rfl_quantity)q) || isnan(found[q]))
			continue;
		sum += found[q];
		any = true;
	}
	return any ? sum : NAN;
}

static double quantity_value(const struct rfl_formulas *f, enum rfl_quantity q, int way,
			     const double *slots, const double *found)
{
	const struct rfl_formula_quantity *quantity = &f->quantities[q];
	double value;

	if (way == -1)
		return NAN;
	if (way == RFL_FORMULA_SUM)
		return q == RFL_QUANTITY_FLOPS
			       ? known_flops(found)
			       : found[RFL_QUANTITY_DRAM_READ] + found[RFL_QUANTITY_DRAM_WRITE];
	value = way_value(f, &quantity->ways[way], slots, found);
	if (quantity->less.reason && !isnan(slots[quantity->less.slot]))
		value -= quantity->less.weight * slots[quantity->less.slot];
	/* 0 / 0, and a count below zero, are no counts. */
	return isfinite(value) && value >= 0 ? value : NAN;
}

void rfl_formulas__apply(const struct rfl_formulas *f, const double *slots,
			 const int way[RFL_QUANTITY_COUNT], double ret[RFL_QUANTITY_COUNT])
{
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		ret[q] = quantity_value(f, (enum rfl_quantity)q, way[q], slots, ret);
}

void rfl_formulas_eval(const struct rfl_formulas *f, const double *slots,
		       double ret[RFL_QUANTITY_COUNT], int way[RFL_QUANTITY_COUNT])
{
	uint64_t present[RFL_SLOT_WORDS] = { 0 };
	int chosen[RFL_QUANTITY_COUNT];

	for (size_t i = 0; i < f->nslots; i++)
		if (!isnan(slots[i]))
			present[i / 64] |= (uint64_t)1 << (i % 64);
	rfl_formulas__choose(f, present, chosen);
	rfl_formulas__apply(f, slots, chosen, ret);
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		if (isnan(ret[q]))
			chosen[q] = -1;
	if (way)
		memcpy(way, chosen, sizeof(chosen));
}

void rfl_formulas_free(struct rfl_formulas *f)
{
	if (!f)
		return;
	for (int q = 0; q < RFL_QUANTITY_COUNT; q++)
		free(f->quantities[q].ways);
	free(f->terms);
	free(f->traps);
	free(f->aliases);
	free(f->chips);
	free(f->table);
	free(f->slots);
	rfl_arena_free(f->arena);
	free(f);
}
