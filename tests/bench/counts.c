/*
 * counts.c - how long the whole zoo takes to count: every model at ten batches, in inference and in
 * training, and the most expensive model on its own.
 *
 * Usage: bench_counts [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/num.h"
#include "complexity/count.h"
#include "complexity/zoo.h"

enum { BATCHES = 10 };

struct times {
	double build_s, first_s, sweep_s; /* networks; counts at the first batch; at the others */
	double slowest_s;                 /* building and counting the slowest model once */
	const char *slowest;
	int64_t models, nodes;
};

static enum rfl_rc sweep(const struct rfl_net *net, bool training, struct times *t,
			 struct rfl_err *err)
{
	const struct rfl_count_options options = {
		.batch = 1,
		.training = training,
		.optimizer = RFL_OPT_ADAMW,
	};
	struct rfl_count *count = NULL;
	double began = rfl_clock_s(), first;
	enum rfl_rc rc = rfl_count_net(net, &options, &count, err);

	first = rfl_clock_s();
	for (int i = 1; rc == RFL_OK && i < BATCHES; i++)
		rc = rfl_count_at(count, INT64_C(1) << i, err);
	t->first_s += first - began;
	t->sweep_s += rfl_clock_s() - first;
	rfl_count_free(count);
	return rc;
}

static enum rfl_rc model(const char *name, struct times *t, struct rfl_err *err)
{
	struct rfl_net *net = NULL;
	double began = rfl_clock_s(), built, before, once;
	enum rfl_rc rc = rfl_zoo_build(name, NULL, &net, err);

	if (rc != RFL_OK)
		return rc;
	built = rfl_clock_s() - began;
	t->build_s += built;
	t->models++;
	t->nodes += net->nnodes;
	before = t->first_s;
	rc = sweep(net, false, t, err);
	once = built + t->first_s - before;
	if (once > t->slowest_s) {
		t->slowest_s = once;
		t->slowest = name;
	}
	if (rc == RFL_OK)
		rc = sweep(net, true, t, err);
	rfl_net_free(net);
	return rc;
}

static enum rfl_rc round_of_zoo(struct times *t, struct rfl_err *err)
{
	const struct rfl_zoo_model *m;
	enum rfl_rc rc = RFL_OK;

	for (size_t i = 0; rc == RFL_OK && (m = rfl_zoo_at(i)); i++)
		rc = model(m->name, t, err);
	return rc;
}

static double total_s(const struct times *t)
{
	return t->build_s + t->first_s + t->sweep_s;
}

int main(int argc, char **argv)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct times best = { 0 };
	int64_t rounds = 20;

	if (argc > 1 && rfl_num_parse_int(argv[1], "ROUNDS", &rounds, &err) != RFL_OK) {
		(void)fprintf(stderr, "%s\n", err.msg);
		return 2;
	}
	for (int64_t i = 0; i < rounds; i++) {
		struct times t = { 0 };

		if (round_of_zoo(&t, &err) != RFL_OK) {
			(void)fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		if (i == 0 || total_s(&t) < total_s(&best))
			best = t;
	}
	printf("%lld models, %lld nodes, %d batches, inference and training; best of %lld rounds\n",
	       (long long)best.models, (long long)best.nodes, BATCHES, (long long)rounds);
	printf("build the networks      %8.2f ms\n", 1e3 * best.build_s);
	printf("count the first batch   %8.2f ms, %.0f ns per node\n", 1e3 * best.first_s,
	       1e9 * best.first_s / (2.0 * (double)best.nodes));
	printf("count the other batches %8.2f ms, %.0f ns per node\n", 1e3 * best.sweep_s,
	       1e9 * best.sweep_s / (2.0 * (BATCHES - 1) * (double)best.nodes));
	printf("all                     %8.2f ms\n", 1e3 * total_s(&best));
	printf("slowest model           %8.2f ms, %s: built and counted once\n",
	       1e3 * best.slowest_s, best.slowest);
	return 0;
}
