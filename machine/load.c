/* load.c - reads /proc/stat and the counters of RAPL, and times additions that wait for each other.
 */
#include "machine/load.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "machine/machine_parts.h"

/* The lines of 8192 CPUs, which are the first of the file. */
#define STAT_SIZE (1 << 20)

#define RAPL "/sys/class/powercap/intel-rapl:%zu/"

void rfl_energy_begin(const char *root, struct rfl_energy *e)
{
	*e = (struct rfl_energy){ .n = 0 };
	rfl_energy_add(root, e);
	e->used_j = e->n > 0 ? 0 : (double)NAN;
}

void rfl_energy_add(const char *root, struct rfl_energy *e)
{
	const size_t known = e->n;
	int64_t now, range;
	char name[32];

	e->at_s = rfl_clock_s();
	e->n = 0;
	for (size_t i = 0; e->n < RFL_ARRAY_LEN(e->last_uj) &&
			   rfl_machine__slurp(root, name, sizeof(name), RAPL "name", i);
	     i++) {
		int64_t *last = &e->last_uj[e->n];

		if (strncmp(name, "package", 7) != 0) /* psys contains the packages */
			continue;
		if (!rfl_machine__slurp_int(root, &now, RAPL "energy_uj", i) ||
		    !rfl_machine__slurp_int(root, &range, RAPL "max_energy_range_uj", i))
			break;
		e->used_j +=
			((double)now - (double)*last + (now < *last ? (double)range : 0)) * 1e-6;
		*last = now;
		e->n++;
	}
	if (e->n != known)
		e->used_j = NAN;
}

double rfl_load_tick_s(void)
{
	const long hz = sysconf(_SC_CLK_TCK);

	return hz > 0 ? 1.0 / (double)hz : 0.01;
}

bool rfl_load_read(const char *root, const int *cpus, size_t n, struct rfl_load *ret)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
	const double tick_s = rfl_load_tick_s();
	char *text = rfl_alloc_array(STAT_SIZE, 1);
	struct timespec own;
	bool total = false;

	*ret = (struct rfl_load){ .at_s = rfl_clock_s() };
	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
		ret->own_s = (double)own.tv_sec + 1e-9 * (double)own.tv_nsec;
	if (!rfl_machine__slurp(root, text, STAT_SIZE, "/proc/stat"))
		text[0] = '\0';
	for (const char *line = text; strncmp(line, "cpu", 3) == 0; line++) {
		unsigned long long t[FIELDS] = { 0 };
		int cpu = -1;
		const char *at = line + 3 + strspn(line + 3, "0123456789");

		(void)sscanf(line, "cpu%d", &cpu);
		if (line[3] == ' ' && sscanf(at, "%llu %llu %llu %llu %llu %llu %llu %llu",
					     &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT],
					     &t[IRQ], &t[SOFTIRQ], &t[STEAL]) == FIELDS) {
			total = true;
			ret->busy_s = tick_s *
				      (double)(t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ]);
		}
		ret->hw_threads += line[3] != ' ';
		for (size_t i = 0; i < n && line[3] != ' '; i++)
			if (cpus[i] == cpu &&
			    sscanf(at, "%*u %*u %*u %*u %*u %*u %*u %llu", &t[STEAL]) == 1)
				ret->steal_s += tick_s * (double)t[STEAL];
		line = strchr(line, '\n');
		if (!line)
			break;
	}
	free(text);
	if (!total)
		ret->busy_s = ret->steal_s = (double)NAN;
	return total;
}

double rfl_load_others(const struct rfl_load *from, const struct rfl_load *to)
{
	const double all_s = (to->at_s - from->at_s) * to->hw_threads;
	const double others_s = to->busy_s - from->busy_s - (to->own_s - from->own_s) -
				rfl_load_tick_s() * to->hw_threads;

	return all_s > 0 ? (others_s < 0 ? 0 : others_s) / all_s : (double)NAN;
}

/* One addition takes one cycle and waits for the one before it. Both operands are registers,
 * because some CPUs execute additions of constants without waiting. */
#if defined(__x86_64__)
#define ADD "add %1, %0\n\t"
#elif defined(__aarch64__)
#define ADD "add %0, %0, %1\n\t"
#endif

double rfl_core_clock_hz(void)
{
#ifdef ADD
#define ADD10  ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
#define ADD100 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10 ADD10
	enum { TRIES = 5, ROUNDS = 40, ADDS = 1000 };
	double least = INFINITY; /* an interruption can only lengthen a try */
	uint64_t x = 0;
	const uint64_t one = 1;

	for (int i = 0; i < TRIES; i++) {
		const double start = rfl_clock_s();

		for (int k = 0; k < ROUNDS; k++)
			__asm__ volatile(ADD100 ADD100 ADD100 ADD100 ADD100 ADD100 ADD100 ADD100
						 ADD100 ADD100
					 : "+r"(x)
					 : "r"(one)
					 : "cc");
		least = fmin(least, rfl_clock_s() - start);
	}
	return ROUNDS * ADDS / least;
#else
	return NAN;
#endif
}
