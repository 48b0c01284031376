/*
 * facts.c - rows against each other by what they say of how they were run.
 */
#include "ledger/facts.h"

#include <string.h>

#include "base/compiler.h"
#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#define TITLED(n, t, r)                                                                   \
	{                                                                                 \
		.name = #n, .title = t, .column = RFL_LEDGER_AT_##n, .role = RFL_FACT_##r \
	}
#define FACT(n, r) TITLED(n, #n, r)

const struct rfl_fact rfl_facts[] = {
	TITLED(env, "Env", WAY),
	TITLED(model, "Model", WORK),
	TITLED(precision, "Precision", WORK),
	TITLED(batch, "Batch", WORK),
	TITLED(mode, "Mode", WORK),
	TITLED(layout, "Layout", WORK),
	FACT(micro_batch, WORK),
	FACT(accum, WORK),
	FACT(img_size, WORK),
	FACT(context_length, WORK),
	FACT(vocab, WORK),
	FACT(classes, WORK),
	FACT(optimizer, WORK),
	FACT(data_mode, WORK),
	FACT(augment, WORK),
	FACT(world_size, WORK),
	FACT(backend, WAY),
	FACT(engine, WAY),
	FACT(engine_id, WAY),
	FACT(engine_version, WAY),
	FACT(device_name, WAY),
	FACT(threads, WAY),
	FACT(workers, WAY),
	FACT(prefetch, WAY),
	FACT(pin_memory, WAY),
	FACT(autocast, WAY),
	FACT(optimizer_kernels, WAY),
	FACT(deterministic, WAY),
	FACT(cudnn_benchmark, WAY),
	FACT(cuda_graph, WAY),
	FACT(sync_each_step, WAY),
	FACT(warmup, WAY),
	FACT(iters, WAY),
	FACT(interconnect, WAY),
	FACT(cuda_runtime, NOTE),
	FACT(cuda_driver, NOTE),
	FACT(cudnn_version, NOTE),
	FACT(host, NOTE),
	FACT(kernel, NOTE),
	FACT(version, NOTE),
};
const size_t rfl_nfacts = RFL_ARRAY_LEN(rfl_facts);
_Static_assert(RFL_ARRAY_LEN(rfl_facts) <= RFL_FACTS_MAX, "room for every fact");

/* Where a fact is in a row. */
static const struct rfl_field *field_of(const struct rfl_fact *f)
{
	return &rfl_ledger_fields[f->column];
}

bool rfl_fact_known(const struct rfl_fact *f, const struct rfl_ledger_row *row)
{
	return rfl_field_known(field_of(f), row);
}

bool rfl_fact_same(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		   const struct rfl_ledger_row *b)
{
	return rfl_field_same(field_of(f), a, b);
}

bool rfl_fact_agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		    const struct rfl_ledger_row *b)
{
	return rfl_fact_same(f, a, b) || !rfl_fact_known(f, a) || !rfl_fact_known(f, b);
}

static bool has_hash(const struct rfl_ledger_row *row)
{
	return row->config_hash && row->config_hash[0];
}

bool rfl_facts_repeats(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b)
{
	if (has_hash(a) != has_hash(b) || !rfl_text_same(a->env, b->env) ||
	    (has_hash(a) && !rfl_text_same(a->config_hash, b->config_hash)))
		return false;
	for (size_t i = 0; i < rfl_nfacts; i++)
		if (rfl_facts[i].role != RFL_FACT_NOTE && !rfl_fact_same(&rfl_facts[i], a, b))
			return false;
	return true;
}

uint64_t rfl_facts_hash(const struct rfl_ledger_row *row)
{
	uint64_t h = 0;

	if (has_hash(row))
		return rfl_hash64(0, row->config_hash, strlen(row->config_hash));
	for (size_t i = 0; i < rfl_nfacts; i++) {
		const struct rfl_field *f = field_of(&rfl_facts[i]);
		const char *text;

		if (rfl_facts[i].role == RFL_FACT_NOTE)
			continue;
		if (f->kind == RFL_FIELD_INT) {
			h = rfl_hash64(h, rfl_field_int_at(f, row), sizeof(int64_t));
			continue;
		}
		text = *rfl_field_text_at(f, row) ? *rfl_field_text_at(f, row) : "";
		h = rfl_hash64(h, text, strlen(text) + 1);
	}
	return h;
}

void rfl_facts_apart_add(struct rfl_facts_apart *a, const struct rfl_ledger_row *row)
{
	const bool ok = rfl_text_same(row->status, "ok");

	for (size_t i = 0; i < rfl_nfacts; i++) {
		if (!ok && !rfl_fact_known(&rfl_facts[i], row))
			continue;
		if (!a->first[i])
			a->first[i] = row;
		else if (!rfl_fact_same(&rfl_facts[i], a->first[i], row))
			a->differs[i] = true;
	}
}

bool rfl_facts_apart_told(const struct rfl_facts_apart *a, size_t i)
{
	const struct rfl_fact *f = &rfl_facts[i];

	return a->differs[i] && f->role != RFL_FACT_NOTE && f->column != RFL_LEDGER_AT_env &&
	       f->column != RFL_LEDGER_AT_batch && f->column != RFL_LEDGER_AT_micro_batch;
}

void rfl_facts_apart_put(const struct rfl_facts_apart *a, const struct rfl_ledger_row *row,
			 struct rfl_buf *out)
{
	char number[RFL_NUM_MAX];
	const char *before = "";

	for (size_t i = 0; i < rfl_nfacts; i++) {
		if (!rfl_facts_apart_told(a, i) || !rfl_fact_known(&rfl_facts[i], row))
			continue;
		rfl_buf_printf(
			out, "%s%s %s", before, rfl_facts[i].name,
			rfl_field_write(&rfl_ledger_fields[rfl_facts[i].column], row, number));
		before = ", ";
	}
}

bool rfl_facts_agree(enum rfl_fact_role last, const struct rfl_ledger_row *a,
		     const struct rfl_ledger_row *b)
{
	for (size_t i = 0; i < rfl_nfacts; i++)
		if (rfl_facts[i].role <= last && !rfl_fact_agree(&rfl_facts[i], a, b))
			return false;
	return true;
}
