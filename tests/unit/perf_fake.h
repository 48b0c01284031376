/*
 * perf_fake.h - a machine for tests of the perf source: its files from tests/data/profile/sysfs,
 * its CPU by name, and a kernel whose counters count by a clock that only the test moves.
 */
#ifndef RFL_TESTS_PERF_FAKE_H
#define RFL_TESTS_PERF_FAKE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"
#include "machine/isa.h"
#include "profile/perf/impl.h"
#include "tests/unit/rfl_test.h"

#define FAKE_FDS 4096

/* What the kernel does with events of one code; the first row that matches is taken. */
struct fake_rule {
	uint32_t type;
	uint64_t config;
	bool any;             /* type and config do not matter */
	double rate;          /* counts per second in each thread, or in each socket */
	double share;         /* of the time on a counter; 0 stands for all of it */
	bool never;           /* on a counter */
	int never_from;       /* tids from this on never are; 0: none */
	int error;            /* of open */
	int error_from;       /* tids below this open without error */
	bool user_only_works; /* the error is only for events that count the kernel */
	bool read_fails;
};

struct fake_fd {
	bool open, disabled, waits; /* waits: for its leader */
	int tid, cpu, leader;
	double enabled_s, on_since;
	struct fake_rule rule;
	struct perf_event_attr attr;
};

struct fake_kernel {
	struct rfl_perf_sys sys;
	const struct fake_rule *rules;
	size_t nrules;
	double now_s;
	double read_cost_s; /* that each read takes */
	int threads[16];
	size_t nthreads;
	struct fake_fd fds[FAKE_FDS];
	int nfds, open_now, open_max, opened;
	int limit;    /* of open files; 0: none */
	int late_tid; /* a thread that appears once the others were listed; 0: none */
	bool control_fails;
};

static inline struct fake_rule fake_rule_of(const struct fake_kernel *k,
					    const struct perf_event_attr *attr)
{
	for (size_t i = 0; i < k->nrules; i++)
		if (k->rules[i].any ||
		    (k->rules[i].type == attr->type && k->rules[i].config == attr->config))
			return k->rules[i];
	return (struct fake_rule){ .rate = 1000 };
}

static inline int fake_open(void *ctx, const struct perf_event_attr *attr, int tid, int cpu,
			    int group)
{
	struct fake_kernel *k = ctx;
	const struct fake_rule rule = fake_rule_of(k, attr);

	assert_int_equal(attr->size, sizeof(*attr));
	assert_true((cpu < 0) == (tid >= 0));
	assert_true(group < 0 || (group < k->nfds && k->fds[group].open));
	if (rule.error && tid >= rule.error_from &&
	    !(rule.user_only_works && attr->exclude_kernel)) {
		errno = rule.error;
		return -1;
	}
	if (k->limit > 0 && k->open_now >= k->limit) {
		errno = EMFILE;
		return -1;
	}
	assert_true(k->nfds < FAKE_FDS);
	k->fds[k->nfds] = (struct fake_fd){ .open = true,
					    .disabled = attr->disabled || group >= 0,
					    .tid = tid,
					    .cpu = cpu,
					    .leader = group,
					    .rule = rule,
					    .attr = *attr };
	k->opened++;
	k->open_now++;
	if (k->open_now > k->open_max)
		k->open_max = k->open_now;
	return k->nfds++;
}

static inline double fake_enabled(const struct fake_kernel *k, const struct fake_fd *f)
{
	return f->enabled_s + (f->disabled ? 0 : k->now_s - f->on_since);
}

static inline int fake_control(void *ctx, int fd, unsigned long request)
{
	struct fake_kernel *k = ctx;

	assert_true(k->fds[fd].open && k->fds[fd].leader < 0);
	if (k->control_fails) {
		errno = EIO;
		return -1;
	}
	for (int i = 0; i < k->nfds; i++) {
		struct fake_fd *f = &k->fds[i];
		const bool off = request == PERF_EVENT_IOC_DISABLE;

		if (!f->open || (i != fd && f->leader != fd) || f->disabled == off)
			continue;
		f->enabled_s = fake_enabled(k, f);
		f->on_since = k->now_s;
		f->disabled = off;
	}
	return 0;
}

static inline int fake_read(void *ctx, int fd, struct rfl_perf_reading *ret)
{
	struct fake_kernel *k = ctx;
	const struct fake_fd *f = &k->fds[fd];
	const double enabled = fake_enabled(k, f);
	const bool is_never =
		f->rule.never || (f->rule.never_from > 0 && f->tid >= f->rule.never_from);
	const double running = is_never ? 0 : enabled * (f->rule.share > 0 ? f->rule.share : 1);

	assert_true(f->open);
	k->now_s += k->read_cost_s;
	if (f->rule.read_fails) {
		errno = ENODATA;
		return -1;
	}
	*ret = (struct rfl_perf_reading){ .value = (uint64_t)(f->rule.rate * running + 0.5),
					  .enabled_ns = (uint64_t)(enabled * 1e9 + 0.5),
					  .running_ns = (uint64_t)(running * 1e9 + 0.5) };
	return 0;
}

static inline void fake_close(void *ctx, int fd)
{
	struct fake_kernel *k = ctx;

	assert_true(k->fds[fd].open);
	k->fds[fd].open = false;
	k->open_now--;
}

static inline size_t fake_threads(void *ctx, int *tids, size_t max)
{
	struct fake_kernel *k = ctx;
	const size_t n = k->nthreads;

	for (size_t i = 0; i < n && i < max; i++)
		tids[i] = k->threads[i];
	if (k->late_tid)
		k->threads[k->nthreads++] = k->late_tid;
	k->late_tid = 0;
	return n;
}

static inline double fake_now(void *ctx)
{
	return ((const struct fake_kernel *)ctx)->now_s;
}

static inline void fake_rest(void *ctx, double seconds)
{
	((struct fake_kernel *)ctx)->now_s += seconds;
}

/* Lay the files of tests/data/profile/sysfs/<tree>.tree into a directory: "path content" a line. */
static inline void fake_files(const char *root, const char *tree)
{
	char rel[256], path[1024];
	struct rfl_err err = RFL_ERR_INIT;
	struct rfl_buf text;

	(void)snprintf(rel, sizeof(rel), "profile/sysfs/%s.tree", tree);
	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read(data_path(rel), &text, &err), &err);
	for (const char *line = rfl_buf_str(&text); *line; line = strchr(line, '\n') + 1) {
		const size_t name = strcspn(line, " "), len = strcspn(line, "\n");

		assert_true(name < len);
		(void)snprintf(path, sizeof(path), "%s/%.*s", root, (int)name, line);
		assert_ok(rfl_file_mkdirs_for(path, &err), &err);
		assert_ok(rfl_file_write(path, line + name + 1, len - name, &err), &err);
	}
	rfl_buf_fini(&text);
}

struct fake_machine {
	const char *tree, *vendor;
	int family, model, counters;
	uint64_t isa;
	bool guest;
};

#define FAKE_AVX512 (RFL_ISA_BIT(AVX2) | RFL_ISA_BIT(AVX512F))
#define FAKE_SPR \
	(FAKE_AVX512 | RFL_ISA_BIT(AVX512_FP16) | RFL_ISA_BIT(AMX_TILE) | RFL_ISA_BIT(AMX_BF16))

static const struct fake_machine fake_icelake = { "guest", "GenuineIntel", 6,   0x6a,
						  8,       FAKE_AVX512,    true };
static const struct fake_machine fake_spr = { "intel-server", "GenuineIntel", 6, 0x8f, 8,
					      FAKE_SPR,       false };
static const struct fake_machine fake_spr_unnamed = {
	"intel-server-unnamed", "GenuineIntel", 6, 0x8f, 8, FAKE_SPR, false
};
static const struct fake_machine fake_granite = {
	"intel-server-schedulers", "GenuineIntel", 6, 0xad, 8, FAKE_SPR, false
};
static const struct fake_machine fake_skylake = { "intel-client",    "GenuineIntel", 6, 0x5e, 4,
						  RFL_ISA_BIT(AVX2), false };
static const struct fake_machine fake_alder = { "intel-hybrid",    "GenuineIntel", 6, 0x97, 8,
						RFL_ISA_BIT(AVX2), false };
static const struct fake_machine fake_zen3 = { "amd-zen3", "AuthenticAMD",    0x19, 0x01,
					       6,          RFL_ISA_BIT(AVX2), false };
static const struct fake_machine fake_zen4 = { "amd-zen4-old-kernel", "AuthenticAMD", 0x19, 0x11, 6,
					       FAKE_AVX512,           false };
static const struct fake_machine fake_zen5 = { "amd-zen5", "AuthenticAMD", 0x1a, 0x02,
					       6,          FAKE_AVX512,    false };
static const struct fake_machine fake_zen6 = { "amd-zen5", "AuthenticAMD", 0x1a, 0x50,
					       6,          FAKE_AVX512,    false };
static const struct fake_machine fake_grace = { "grace", "0x41",           0,    0xd4f,
						0,       RFL_ISA_BIT(SVE), false };

/* A machine in a directory of its own below the test's. `kernel` and `env` are the caller's. */
static inline void fake_machine_init(const char *folder, const struct fake_machine *m,
				     struct fake_kernel *kernel, struct rfl_perf_env *env)
{
	static char roots[16][512];
	static size_t next;
	char *root = roots[next++ % RFL_ARRAY_LEN(roots)];

	(void)snprintf(root, sizeof(roots[0]), "%s/%s", folder, m->tree);
	fake_files(root, m->tree);
	*kernel = (struct fake_kernel){ .threads = { 100 }, .nthreads = 1 };
	kernel->sys = (struct rfl_perf_sys){ .open = fake_open,
					     .control = fake_control,
					     .read = fake_read,
					     .close = fake_close,
					     .threads = fake_threads,
					     .now_s = fake_now,
					     .rest = fake_rest,
					     .ctx = kernel,
					     .root = root };
	*env = (struct rfl_perf_env){
		.sys = &kernel->sys,
		.id = { .family = m->family, .model = m->model, .counters = m->counters },
		.isa = m->isa,
		.guest = m->guest
	};
	(void)snprintf(env->id.vendor, sizeof(env->id.vendor), "%s", m->vendor);
}

/* The item of a metric; fails the test when the plan has none. */
static inline struct rfl_perf_item *fake_item(struct rfl_perf_plan *plan, const char *metric)
{
	for (size_t i = 0; i < plan->n; i++)
		if (strcmp(plan->items[i].event.name, metric) == 0)
			return &plan->items[i];
	fail_msg("the plan has no %s", metric);
	return NULL;
}

#endif
