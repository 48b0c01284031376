/* Topology of a synthetic machine and of this one; limits from directories made for the test. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getcpu, sched_setaffinity */
#endif
#include "tests/unit/rfl_test.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "machine/gpu.h"
#include "machine/machine.h"
#include "machine/machine_parts.h"
#include "tests/unit/file_rig.h"

static struct rfl_machine *blank(void)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_machine *m = rfl_arena_array(arena, 1, sizeof(*m));

	assert_non_null(m);
	m->arena = arena;
	return m;
}

/* Two sockets of two cores, two threads each: 0-3 are the first threads, 4-7 their siblings. */
static void reads_two_sockets(void **state)
{
	static const struct {
		int os_index, core, rank, node;
	} expected[] = { { 0, 0, 0, 0 }, { 1, 1, 0, 0 }, { 2, 2, 0, 1 }, { 3, 3, 0, 1 },
			 { 4, 0, 1, 0 }, { 5, 1, 1, 0 }, { 6, 2, 1, 1 }, { 7, 3, 1, 1 } };
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	setenv("HWLOC_SYNTHETIC",
	       "pack:2 [numa(memory=1GB)] l3:1(size=33554432) core:2 l1:1(size=49152) "
	       "pu:2(indexes=0,4,1,5,2,6,3,7)",
	       1);
	assert_ok(rfl_machine_new(&m, &err), &err);
	unsetenv("HWLOC_SYNTHETIC");
	assert_int_equal(m->packages, 2);
	assert_int_equal(m->cores, 4);
	assert_int_equal(m->hw_threads, 8);
	assert_int_equal(m->smt, RFL_YES);
	assert_int_equal(m->numa_nodes, 2);

	assert_int_equal(m->ncaches, 2);
	assert_int_equal(rfl_machine_cache(m, 1)->size_bytes, 48 << 10);
	assert_int_equal(rfl_machine_cache(m, 1)->count, 4);
	assert_int_equal(rfl_machine_cache(m, 1)->sharers, 2);
	assert_int_equal(rfl_machine_cache(m, 1)->line_bytes, 64);
	assert_int_equal(rfl_machine_cache(m, 3)->count, 2);
	assert_int_equal(rfl_machine_cache(m, 3)->sharers, 4);
	assert_null(rfl_machine_cache(m, 2));
	assert_int_equal(rfl_machine_llc_bytes(m), 64 << 20);

	/* one thread of every core first, then siblings */
	assert_int_equal(m->ncpus, RFL_ARRAY_LEN(expected));
	assert_int_equal(m->usable_cores, 4);
	for (size_t i = 0; i < RFL_ARRAY_LEN(expected); i++) {
		assert_int_equal(m->cpus[i].os_index, expected[i].os_index);
		assert_int_equal(m->cpus[i].core, expected[i].core);
		assert_int_equal(m->cpus[i].smt_rank, expected[i].rank);
		assert_int_equal(m->cpus[i].numa_node, expected[i].node);
		assert_int_equal(m->cpus[i].package, expected[i].node);
	}
	rfl_machine_free(m);
}

static void limits(const char *root, double quota, int64_t available, int64_t limit)
{
	struct rfl_machine *m = blank();

	rfl_machine__limits(m, root);
	assert_close(m->cpu_quota, quota, 1e-12);
	assert_int_equal(m->memory_bytes, (int64_t)8 << 30);
	assert_int_equal(m->memory_available_bytes, available);
	assert_int_equal(m->memory_limit_bytes, limit);
	rfl_machine_free(m);
}

static void reads_limits_of_control_groups(void **state)
{
	const char *root = *state;

	put(root, "/proc/meminfo",
	    "MemTotal:        8388608 kB\nMemFree: 1 kB\n"
	    "MemAvailable:    4194304 kB\n");
	limits(root, NAN, (int64_t)4 << 30, 0);

	/* version 2: the tightest group on the way up counts */
	put(root, "/proc/self/cgroup", "0::/a/b\n");
	put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	put(root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
	limits(root, NAN, (int64_t)4 << 30, 0);
	put(root, "/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
	put(root, "/sys/fs/cgroup/a/memory.max", "1073741824\n");
	put(root, "/sys/fs/cgroup/a/memory.current", "73741824\n");
	put(root, "/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
	limits(root, 1.5, 1000000000, 1 << 30);
	/* pages of files are given up when their room is needed; of tmpfs and of a locked file not
	 */
	put(root, "/sys/fs/cgroup/a/memory.stat",
	    "anon 3741824\nfile 70000000\nshmem 10000000\ninactive_anon 1\nactive_anon 2\n"
	    "inactive_file 40000000\nactive_file 20000000\nunevictable 3\n");
	limits(root, 1.5, 1060000000, 1 << 30);
	put(root, "/sys/fs/cgroup/a/memory.stat", "file 1\n");
	put(root, "/sys/fs/cgroup/a/memory.current", "1073741824\n"); /* full, which is known */
	limits(root, 1.5, 1, 1 << 30);

	/* version 1 */
	put(root, "/proc/self/cgroup", "5:memory:/x\n4:cpuacct,cpu:/y\n3:pids:/\n");
	put(root, "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
	put(root, "/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "5\n");
	put(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "-1\n");
	put(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000\n");
	limits(root, NAN, (int64_t)4 << 30, 0);
	put(root, "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000000\n");
	put(root, "/sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "50000\n");
	limits(root, 0.5, 1999999995, 2000000000);
	put(root, "/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "2000000000\n");
	put(root, "/sys/fs/cgroup/memory/x/memory.stat",
	    "inactive_file 7\nactive_file 7\nhierarchical_memory_limit 2000000000\n"
	    "total_cache 500000000\ntotal_inactive_file 300000000\ntotal_active_file 100000000\n");
	limits(root, 0.5, 400000000, 2000000000);
}

static void a_quota_limits_the_threads(void **state)
{
	struct rfl_machine m = { .usable_cores = 8, .cpu_quota = NAN };

	(void)state;
	assert_int_equal(rfl_machine_threads(&m), 8);
	m.cpu_quota = 1.5;
	assert_int_equal(rfl_machine_threads(&m), 2);
	m.cpu_quota = 0.2;
	assert_int_equal(rfl_machine_threads(&m), 1);
	m.cpu_quota = 64;
	assert_int_equal(rfl_machine_threads(&m), 8);
}

/* As Intel's manual and AMD's lay out a sub-leaf. */
static void reads_cpuid_of_caches(void **state)
{
	const struct rfl_cpuid l1 = { { 1 | 1 << 5 | 1 << 14, 63 | 11u << 22, 63, 0 } };
	const struct rfl_cpuid code = { { 2 | 1 << 5, 63 | 7u << 22, 63, 0 } };
	const struct rfl_cpuid l3 = { { 3 | 3 << 5 | 15 << 14, 63 | 15u << 22, 32767, 0 } };
	const struct rfl_cpuid end = { { 0, 0, 0, 0 } };
	struct rfl_cache c;

	(void)state;
	assert_true(rfl_machine__cpuid_cache(&l1, &c));
	assert_int_equal(c.level, 1);
	assert_int_equal(c.size_bytes, 48 << 10);
	assert_int_equal(c.line_bytes, 64);
	assert_int_equal(c.sharers, 2);
	assert_true(rfl_machine__cpuid_cache(&code, &c));
	assert_int_equal(c.level, 0);
	assert_true(rfl_machine__cpuid_cache(&l3, &c));
	assert_int_equal(c.level, 3);
	assert_int_equal(c.size_bytes, 32 << 20);
	assert_int_equal(c.sharers, 16);
	assert_false(rfl_machine__cpuid_cache(&end, &c));
}

/* Sizes by cpuid are those that the system shows, where both are known. */
static void cpuid_agrees_with_the_system(void **state)
{
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_ok(rfl_machine_new(&m, &err), &err);

	const struct rfl_machine shown = *m;

	rfl_machine__caches_cpuid(m);
	for (size_t i = 0; i < m->ncaches; i++) {
		const struct rfl_cache *c = rfl_machine_cache(&shown, m->caches[i].level);

		assert_true(m->caches[i].count >= 1 && m->caches[i].sharers >= 1);
		assert_true(i == 0 || m->caches[i].level > m->caches[i - 1].level);
		if (c)
			assert_int_equal(m->caches[i].size_bytes, c->size_bytes);
	}
	const bool none = m->ncaches == 0;

	rfl_machine_free(m);
	if (none)
		skip();
}

/* An affinity mask limits what we may use, not what the machine has. */
static void affinity_limits_the_usable_threads(void **state)
{
	struct rfl_machine *all = NULL, *one = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	cpu_set_t before, only;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_ok(rfl_machine_new(&all, &err), &err);
	assert_int_equal(all->ncpus, CPU_COUNT(&before));
	assert_true(all->usable_cores >= 1 && all->usable_cores <= all->cores);
	assert_true(all->hw_threads >= (int)all->ncpus);
	assert_true(all->memory_bytes > 0);
	assert_true(all->memory_available_bytes > 0);
	assert_non_null(all->kernel);
	assert_non_null(all->architecture);

	const struct rfl_cpu last = all->cpus[all->ncpus - 1];

	CPU_ZERO(&only);
	CPU_SET((size_t)last.os_index, &only);
	assert_int_equal(sched_setaffinity(0, sizeof(only), &only), 0);
	assert_ok(rfl_machine_new(&one, &err), &err);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(one->ncpus, 1);
	assert_int_equal(one->usable_cores, 1);
	assert_int_equal(one->cpus[0].os_index, last.os_index);
	assert_int_equal(one->cpus[0].core, last.core);
	assert_int_equal(one->cores, all->cores);
	assert_int_equal(one->hw_threads, all->hw_threads);
	assert_int_equal(one->ncaches, all->ncaches);
	rfl_machine_free(all);
	rfl_machine_free(one);
}

/* Flags of /proc/cpuinfo with other names than this program's are left out. */
static void instruction_sets_match_the_kernel(void **state)
{
	static const char *const names[] = {
		"sse2",        "sse4_2",   "avx",      "f16c",     "fma",         "avx2",
		"avx512f",     "avx512dq", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
		"avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8"
	};
	const uint64_t isa = rfl_isa_detect();
	struct rfl_buf text;
	struct rfl_err err = RFL_ERR_INIT;
	const char *flags;

	(void)state;
#ifndef __x86_64__
	skip(); /* under qemu-user, the file describes the host */
#endif
	rfl_buf_init(&text, 0);
	assert_ok(rfl_file_read("/proc/cpuinfo", &text, &err), &err);
	flags = strstr(rfl_buf_str(&text), "\nflags");
	assert_non_null(flags);
	char *line = strndup(flags + 1, strcspn(flags + 1, "\n") + 1);

	assert_non_null(line);
	line[strlen(line) - 1] = ' ';
	for (size_t i = 0; rfl_isa_name(i); i++) {
		char word[32];

		for (size_t j = 0; j < RFL_ARRAY_LEN(names); j++) {
			if (strcmp(rfl_isa_name(i), names[j]) != 0)
				continue;
			snprintf(word, sizeof(word), " %s ", names[j]);
			if (((isa >> i) & 1) != (strstr(line, word) != NULL))
				print_error("%s\n", names[j]);
			assert_int_equal((isa >> i) & 1, strstr(line, word) != NULL);
		}
	}
	free(line);
	rfl_buf_fini(&text);
}

static void *pin_to(void *arg)
{
	struct rfl_cpu *cpu = arg;

	if (rfl_pin_thread(cpu->os_index, NULL) == RFL_OK)
		cpu->smt_rank = sched_getcpu();
	return NULL;
}

static void pins_a_thread(void **state)
{
	struct rfl_machine *m = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	pthread_t thread;

	(void)state;
	assert_ok(rfl_machine_new(&m, &err), &err);
	for (size_t i = 0; i < m->ncpus; i++) {
		struct rfl_cpu cpu = { .os_index = m->cpus[i].os_index, .smt_rank = -1 };

		assert_int_equal(pthread_create(&thread, NULL, pin_to, &cpu), 0);
		pthread_join(thread, NULL);
		assert_int_equal(cpu.smt_rank, cpu.os_index);
	}
	rfl_machine_free(m);
	assert_int_equal(rfl_pin_thread(-1, &err), RFL_EINVAL);
	rfl_err_clear(&err);
	assert_int_equal(rfl_pin_thread(8000, &err), RFL_EUNAVAILABLE);
	assert_says(&err, "cpu 8000");
}

/* With a driver there are names, without one there is a reason. */
static void gpus_or_a_reason(void **state)
{
	struct rfl_gpus *g = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	const enum rfl_rc rc = rfl_gpus_new(&g, &err);

	(void)state;
	if (rc == RFL_OK) {
		assert_true(g->n >= 1);
		assert_true(g->gpus[0].name[0] != '\0');
	} else {
		assert_int_equal(rc, RFL_EUNAVAILABLE);
		assert_null(g);
		assert_true(strlen(err.msg) > 10);
	}
	rfl_gpus_free(g);
}

#define IN_TMP(test) cmocka_unit_test_setup_teardown(test, tmpdir_make, tmpdir_remove)

static void kills_for_lack_of_memory_are_counted(void **state)
{
	assert_int_equal(rfl_machine_oom_kills(*state), -1);
	put(*state, "/proc/vmstat", "nr_free_pages 7\npgfault 9\n");
	assert_int_equal(rfl_machine_oom_kills(*state), -1);
	put(*state, "/proc/vmstat", "nr_free_pages 7\noom_kill 12\ndrop_pagecache 0\n");
	assert_int_equal(rfl_machine_oom_kills(*state), 12);
	assert_true(rfl_machine_oom_kills("") >= -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_two_sockets),
		cmocka_unit_test(affinity_limits_the_usable_threads),
		IN_TMP(reads_limits_of_control_groups),
		IN_TMP(kills_for_lack_of_memory_are_counted),
		cmocka_unit_test(a_quota_limits_the_threads),
		cmocka_unit_test(reads_cpuid_of_caches),
		cmocka_unit_test(cpuid_agrees_with_the_system),
		cmocka_unit_test(instruction_sets_match_the_kernel),
		cmocka_unit_test(pins_a_thread),
		cmocka_unit_test(gpus_or_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
