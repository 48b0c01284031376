/*
 * facts.h - the ledger columns that describe a configuration. They determine which runs are repeats
 * of each other and which can be compared.
 */
#ifndef RFL_LEDGER_FACTS_H
#define RFL_LEDGER_FACTS_H

#include "base/text.h"
#include "ledger/ledger.h"

/** What a fact, a field that describes a run, identifies. A burst is a run that is not a training
 * run to accuracy. */
enum rfl_identity {
	/** It is only listed if it differs. */
	RFL_IDENTITY_NEITHER = 0,
	/** How the work is done. Runs that differ in it are comparable, but not repeats. */
	RFL_IDENTITY_SPEED = 1,
	/** The numbers, not the work: bursts that differ in it are repeats, training runs not. */
	RFL_IDENTITY_TRAINING = 2,
	/** The work. Runs that differ in it are not comparable. */
	RFL_IDENTITY_BOTH = 3,
	/** One of the repeats of a training run. Another one cannot continue it. */
	RFL_IDENTITY_REPEAT = 4,
};

/* clang-format off */
/* X(column, identity, follows): `follows` names the fields with which it may change when
 * configurations are compared by one of them. The options that set the columns are in
 * runner/run/facts.inc; test_cli_identity compares the two.
 *
 * A data set is identified by its digest, also in a directory of another name, but different names
 * are never averaged. A training of 5 epochs is the beginning of one of 10, so their number is no
 * part of its identity, as the number of steps is not part of the work of a burst. */
#define RFL_CONFIG_FACTS(X) \
	X(env, SPEED, "") X(model, BOTH, "") X(precision, BOTH, "") X(batch, BOTH, "") \
	X(mode, BOTH, "") X(layout, BOTH, "") X(micro_batch, BOTH, "batch accum world_size") \
	X(accum, BOTH, "micro_batch") X(img_size, BOTH, "model") X(context_length, BOTH, "model") \
	X(vocab, BOTH, "model") X(classes, BOTH, "model") X(net_digest, BOTH, "model") \
	X(optimizer, BOTH, "") X(attention, BOTH, "") X(grad_clip, BOTH, "") \
	X(past, BOTH, "") X(weights, BOTH, "") \
	X(data_mode, BOTH, "") X(data_name, SPEED, "data_mode data_samples data_digest") \
	X(data_samples, BOTH, "data_mode data_name data_digest") \
	X(data_digest, BOTH, "data_mode data_name data_samples") X(augment, BOTH, "data_mode") \
	X(rotation, BOTH, "data_mode augment") X(world_size, BOTH, "") X(backend, SPEED, "") \
	X(engine, SPEED, "") X(engine_id, SPEED, "engine engine_version") \
	X(engine_version, SPEED, "engine engine_id") X(device_name, SPEED, "") \
	X(threads, SPEED, "") X(workers, SPEED, "data_mode") \
	X(prefetch, SPEED, "data_mode workers") X(pin_memory, SPEED, "data_mode") \
	X(autocast, SPEED, "precision") X(optimizer_kernels, SPEED, "optimizer engine") \
	X(deterministic, SPEED, "") X(cudnn_benchmark, SPEED, "") X(cuda_graph, SPEED, "") \
	X(sync_each_step, SPEED, "") X(warmup, SPEED, "") X(iters, SPEED, "") X(epochs, SPEED, "") \
	X(interconnect, SPEED, "world_size") X(bucket_bytes, SPEED, "world_size") \
	X(lr, TRAINING, "") X(lr_step, TRAINING, "") X(lr_gamma, TRAINING, "lr_step") \
	X(momentum, TRAINING, "optimizer") X(weight_decay, TRAINING, "optimizer") \
	X(beta1, TRAINING, "optimizer") X(beta2, TRAINING, "optimizer") \
	X(eps, TRAINING, "optimizer")
#define RFL_NOTED_FACTS(X) \
	X(seed, REPEAT, "") X(cuda_runtime, NEITHER, "") X(cuda_driver, NEITHER, "") \
	X(cudnn_version, NEITHER, "") X(host, NEITHER, "") X(kernel, NEITHER, "") \
	X(version, NEITHER, "")
/* clang-format on */

struct rfl_fact {
	const char *name; /**< column name */
	enum rfl_ledger_at column;
	enum rfl_identity identity;
	const char *follows; /**< names of the fields from which it follows, separated by blanks */
};

/** The fields, beginning with those that name a configuration. */
extern const struct rfl_fact rfl_facts[];
extern const size_t rfl_nfacts;

/** The names of the fields that identify a configuration, in the same order, NULL-terminated, for
 * an option. */
extern const char *const rfl_fact_names[];

/** The index of the field in a column, or rfl_nfacts. */
size_t rfl_fact_find(enum rfl_ledger_at column);

bool rfl_fact_known(const struct rfl_fact *f, const struct rfl_ledger_row *row);

/** The first of model, precision, batch and env that is unknown. NULL: none. */
const char *rfl_facts_lack(const struct rfl_ledger_row *row);

/** Return true if the field is equal in both rows or unknown in both. */
bool rfl_fact_same(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		   const struct rfl_ledger_row *b);

/** Return true if the field is equal in both rows or unknown in at least one. */
bool rfl_fact_agree(const struct rfl_fact *f, const struct rfl_ledger_row *a,
		    const struct rfl_ledger_row *b);

/** Return true if the field follows from the one in column `by`, and may differ when configurations
 * are compared by that. */
bool rfl_fact_follows(const struct rfl_fact *f, enum rfl_ledger_at by);

/** The bits of enum rfl_identity by which a row is compared: a training run to accuracy by BOTH. */
unsigned rfl_facts_identity(const struct rfl_ledger_row *row);

/** Return true if the fields with any of these bits of enum rfl_identity agree. */
bool rfl_facts_agree(const struct rfl_ledger_row *a, const struct rfl_ledger_row *b,
		     unsigned identity);

/** Return true if two rows are repeats: the same work done in the same way and, for training runs,
 * with the same settings. An equal config_hash is required but not sufficient: it covers the
 * requested options, whereas the machines of one environment may differ in devices or threads. */
bool rfl_facts_repeats(const void *a, const void *b);

/** Return true if two rows are repeats whose losses may be averaged: bursts, too, must have the
 * settings of a training run in common. */
bool rfl_facts_repeat_losses(const void *a, const void *b);

/** Hash the fields of a row; repeats have equal hashes. This function and the two above can be used
 * with struct rfl_row_index. */
uint64_t rfl_facts_hash(const void *row);

/** An upper limit for the number of fields. */
#define RFL_FACTS_MAX 64

/** The fields that identify rows and differ between them. A zeroed struct has no rows. */
struct rfl_facts_apart {
	bool losses; /**< input: as for rfl_facts_repeat_losses() */
	const struct rfl_ledger_row
		*first[RFL_FACTS_MAX]; /**< first known row for each field; borrowed */
	bool differs[RFL_FACTS_MAX];
};

/** Add a row, which is borrowed. A field that is unknown in a failed run is not a difference. */
void rfl_facts_apart_add(struct rfl_facts_apart *a, const struct rfl_ledger_row *row);

/** Return true if field i should be listed next to environment and batch, which are always shown.
 * micro_batch is not listed: it follows from batch and accum. */
bool rfl_facts_apart_told(const struct rfl_facts_apart *a, size_t i);

/** Append the listed fields that are known in a row, such as "optimizer adamw, workers 8". Append
 * nothing if no field differs. */
void rfl_facts_apart_put(const struct rfl_facts_apart *a, const struct rfl_ledger_row *row,
			 struct rfl_buf *out);

#define RFL_FACT_NAME_MAX 40
/** Append a field in words: "8 workers" for workers and 8. */
void rfl_fact_say(const char *name, const char *value, struct rfl_buf *out);

/** Take the first field of a text such as "workers 8, layout nhwc". The key is "" if it is not a
 * ledger column. @return false: there is none left */
bool rfl_variant_next(const char **rest, char key[RFL_FACT_NAME_MAX], struct rfl_span *value);

/** Append such a text in words. NULL: nothing. */
void rfl_variant_say(const char *variant, struct rfl_buf *out);

#endif
