/*
 * ops_expect.h - the cost of one operation beside numbers that were worked out by hand, pass by
 * pass.
 */
#ifndef RFL_TESTS_OPS_EXPECT_H
#define RFL_TESTS_OPS_EXPECT_H

#include "complexity/count.h"
#include "tests/unit/ops_rig.h"

/* One pass of one operation. */
struct expected {
	enum rfl_pass pass;
	int64_t macs;
	struct rfl_elementwise e;
	struct rfl_traffic unfused, fused;
};

#define READ_WRITE(r, w)                              \
	{                                             \
		.read_bytes = (r), .write_bytes = (w) \
	}

static inline struct rfl_count *count_of(const struct rfl_net *net,
					 struct rfl_count_options options)
{
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_count *count = NULL;

	options.batch = BATCH;
	assert_ok(rfl_count_net(net, &options, &count, &err), &err);
	return count;
}

static inline void expect(const char *what, enum rfl_pass pass, const char *field, int64_t is,
			  int64_t should)
{
	static const char *const passes[] = { "forward", "dgrad", "wgrad", "recompute" };

	if (is != should)
		fail_msg("%s, %s: %s is %lld, not %lld", what, passes[pass], field, (long long)is,
			 (long long)should);
}

static inline void expect_pass(const char *what, const struct rfl_cost *cost,
			       const struct expected *should)
{
	enum rfl_pass pass = should->pass;
	const struct rfl_elementwise *e = &cost->elementwise[pass];
	const struct rfl_traffic *u = &cost->traffic[RFL_FUSION_UNFUSED][pass];
	const struct rfl_traffic *f = &cost->traffic[RFL_FUSION_FUSED][pass];

	expect(what, pass, "macs", cost->macs[pass], should->macs);
	expect(what, pass, "add", e->add, should->e.add);
	expect(what, pass, "mul", e->mul, should->e.mul);
	expect(what, pass, "compare", e->compare, should->e.compare);
	expect(what, pass, "special", e->special, should->e.special);
	expect(what, pass, "unfused read", u->read_bytes, should->unfused.read_bytes);
	expect(what, pass, "unfused write", u->write_bytes, should->unfused.write_bytes);
	expect(what, pass, "fused read", f->read_bytes, should->fused.read_bytes);
	expect(what, pass, "fused write", f->write_bytes, should->fused.write_bytes);
}

/* Passes that are not listed must be empty. */
static inline void expect_cost(const char *what, const struct rfl_cost *cost,
			       const struct expected *should, size_t n)
{
	bool listed[RFL_PASS_COUNT] = { false };

	for (size_t i = 0; i < n; i++) {
		expect_pass(what, cost, &should[i]);
		listed[should[i].pass] = true;
	}
	for (int pass = 0; pass < RFL_PASS_COUNT; pass++)
		if (!listed[pass])
			expect_pass(what, cost, &(struct expected){ .pass = (enum rfl_pass)pass });
}

#define EXPECTED(...)                             \
	(const struct expected[]){ __VA_ARGS__ }, \
		RFL_ARRAY_LEN(((const struct expected[]){ __VA_ARGS__ }))

#define CHECK(what, cost, ...) expect_cost((what), (cost), EXPECTED(__VA_ARGS__))

static inline void check_net(const char *what, struct rfl_net *take_net, int node,
			     struct rfl_count_options options, const struct expected *should,
			     size_t n)
{
	struct rfl_count *count;

	options.training = true;
	count = count_of(take_net, options);
	expect_cost(what, &count->nodes[node], should, n);
	rfl_count_free(count);
	rfl_net_free(take_net);
}

static inline void check_case(const char *name, const struct expected *should, size_t n)
{
	int node;
	struct rfl_net *net = rig_case(name, &node);

	check_net(name, net, node, (struct rfl_count_options){ 0 }, should, n);
}

#define CASE(name, ...) check_case((name), EXPECTED(__VA_ARGS__))

#endif
