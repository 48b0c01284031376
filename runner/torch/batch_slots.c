/*
 * batch_slots.c - which batches a device holds a copy of.
 */
#include "runner/torch/batch_slots.h"

/* Micro-batches of one batch have its number and a memory each. */
static bool is_same(const struct rfl_batch *a, const struct rfl_batch *b)
{
	return a->id == b->id && a->n == b->n && a->kind == b->kind && a->layout == b->layout &&
	       a->images == b->images && a->labels == b->labels;
}

int rfl_batch_slots_find(const struct rfl_batch_slots *s, const struct rfl_batch *batch)
{
	for (int i = 0; i < RFL_BATCH_SLOTS; i++)
		if (s->slot[i].used && is_same(&s->slot[i].batch, batch))
			return i;
	return -1;
}

int rfl_batch_slots_take(struct rfl_batch_slots *s, const struct rfl_batch *batch, bool awaited)
{
	int best = -1;

	for (int i = 0; i < RFL_BATCH_SLOTS; i++) {
		const struct rfl_batch_slot *slot = &s->slot[i];

		if (!slot->used) {
			best = i;
			break;
		}
		if (!slot->awaited && (best < 0 || slot->turn < s->slot[best].turn))
			best = i;
	}
	if (best >= 0)
		s->slot[best] = (struct rfl_batch_slot){
			.used = true,
			.awaited = awaited,
			.batch = *batch,
			.turn = ++s->turn,
		};
	return best;
}

bool rfl_batch_slots_use(struct rfl_batch_slots *s, int slot)
{
	struct rfl_batch_slot *it = &s->slot[slot];

	it->awaited = false;
	it->turn = ++s->turn;
	it->used = it->batch.id != 0;
	return it->used;
}

void rfl_batch_slots_drop(struct rfl_batch_slots *s, int slot)
{
	s->slot[slot].used = s->slot[slot].awaited = false;
}
