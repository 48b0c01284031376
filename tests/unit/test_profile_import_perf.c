/* perf stat in its three forms. Values are scaled by perf already; locales; hybrid CPUs. */
#include "tests/unit/summary_rig.h"

static void reads_the_samples(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "perf", "perfstat_s1_x_csv_multiplexed.csv");
	assert_total(c, TASK_CLOCK, 28.79462);
	assert_total(c, INSTRUCTIONS, 319218186844); /* as it stands: not scaled again */
	assert_total(c, CYCLES, 121617078441);
	assert_int_equal(c->total[RFL_QUANTITY_CYCLES].validity, RFL_VALID_SCALED);
	assert_total(c, TIME, 28.79462 / 0.996);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, RFL_VALID_ESTIMATE);
	assert_unknown(c, FLOPS);

	c = rig_file(&rig, "perf", "perfstat_s2_armv8_notcounted.txt");
	assert_string_equal(c->ranges[0].name, "build/tests");
	assert_total(c, TIME, 2.382450831);
	assert_total(c, TASK_CLOCK, 2.082958624);
	assert_total(c, INSTRUCTIONS, 10522826144);
	assert_total(c, CYCLES, 7910463871);
	assert_int_equal(c->total[RFL_QUANTITY_CYCLES].validity, RFL_VALID);
	rig_fini(&rig);
}

/* What perf 6.1 wrote on a virtual machine without counters. */
static void reads_perf_6_1(void **state)
{
	static const struct {
		const char *file;
		double task_clock_s, time_s;
	} cases[] = {
		{ "perf61_text.txt", 0.77e-3, 0.055554011 },
		{ "perf61_x.csv", 0.89e-3, 0.89e-3 / 0.016 },
		{ "perf61_j.json", 0.823322e-3, 0.823322e-3 / 0.015969 },
		{ "perf61_x_repeated.csv", 0.68e-3, 0.68e-3 / 0.030 },
		{ "perf61_x_intervals.csv", 0.78e-3 + 0.04e-3, 0.048429045 },
		{ "perf61_text_intervals.txt", 0.82e-3 + 0.05e-3, 0.059537799 },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c = rig_file(&rig, "perf", cases[i].file);
		const struct rfl_metric *m = metric_of(c, 0, "cycles");

		assert_total(c, TASK_CLOCK, cases[i].task_clock_s);
		assert_close(c->total[RFL_QUANTITY_TIME].value, cases[i].time_s, 1e-12);
		assert_int_equal(m->validity, RFL_VALID_UNAVAILABLE);
		assert_string_equal(m->reason, "perf: <not supported> by this CPU or virtual "
					       "machine");
		assert_unknown(c, CYCLES);
		assert_unknown(c, INSTRUCTIONS);
	}
	rig_fini(&rig);
}

#define STATS "\n Performance counter stats for './a':\n\n"

/* The same counts in five locales. */
static void reads_locales(void **state)
{
	static const char *const texts[] = {
		STATS "          1101.01 msec task-clock   #    0.996 CPUs utilized\n"
		      "        1234567      cycles\n"
		      "            512      instructions\n"
		      "       1.500000000 seconds time elapsed\n",
		STATS "         1,101.01 msec task-clock   #    0.996 CPUs utilized\n"
		      "      1,234,567      cycles\n"
		      "            512      instructions\n"
		      "       1.500000000 seconds time elapsed\n",
		STATS "         1.101,01 msec task-clock   #    0,996 CPUs utilized\n"
		      "      1.234.567      cycles              (88,71%)\n"
		      "            512      instructions\n"
		      "       1,500000000 seconds time elapsed\n",
		STATS "  1\xe2\x80\xaf"
		      "101,01 msec task-clock   #    0,996 CPUs utilized\n"
		      "  1\xe2\x80\xaf"
		      "234\xe2\x80\xaf"
		      "567      cycles\n"
		      "            512      instructions\n"
		      "       1,500000000 seconds time elapsed\n",
		STATS "  1'101.01 msec task-clock   #    0.996 CPUs utilized\n"
		      "  1'234'567      cycles\n"
		      "            512      instructions\n"
		      "       1.500000000 seconds time elapsed\n",
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const struct rfl_capture *c = rig_read(&rig, "perf", texts[i]);

		assert_total(c, TASK_CLOCK, 1.10101);
		assert_total(c, CYCLES, 1234567);
		assert_total(c, INSTRUCTIONS, 512);
		assert_total(c, TIME, 1.5);
		assert_int_equal(c->total[RFL_QUANTITY_CYCLES].validity,
				 i == 2 ? RFL_VALID_SCALED : RFL_VALID);
	}
	/* perf 3 names no unit, and has shares in brackets. */
	assert_total(rig_read(&rig, "perf",
			      STATS "   3.111213 task-clock         #    0.845 CPUs utilized\n"
				    "  2,519,437 cycles             #    0.810 GHz      [42.29%]\n"
				    "   0.003682 seconds time elapsed\n"),
		     TASK_CLOCK, 3.111213e-3);
	assert_unknown(rig.captures.captures[0], CYCLES);
	/* Groups of India. */
	assert_total(rig_read(&rig, "perf",
			      STATS "   18,40,26,24,823      cycles\n"
				    "       1.5 seconds time elapsed\n"),
		     CYCLES, 18402624823);
	/* A count is whole: its only sign parts groups, whatever else the file shows. */
	assert_total(rig_read(&rig, "perf", STATS "   1.234      cycles\n"), CYCLES, 1234);
	assert_total(rig_read(&rig, "perf", STATS "   1,234      cycles\n"), CYCLES, 1234);
	rig_fini(&rig);
}

/* FLOPs by the width of instructions, bytes by CAS: 1 + 2x4 + 3x8 + 4x16 and 2 MiB. */
static void counts_flops_and_bytes(void **state)
{
	static const char text[] = STATS "  1      fp_arith_inst_retired.scalar_single:u\n"
					 "  2      fp_arith_inst_retired.128b_packed_single:u\n"
					 "  3      fp_arith_inst_retired.256b_packed_single:u\n"
					 "  4      fp_arith_inst_retired.512b_packed_single:u\n"
					 "  1.00 MiB  uncore_imc_0/cas_count_read/\n"
					 "  0.50 MiB  uncore_imc_1/cas_count_read/\n"
					 "  0.50 MiB  uncore_imc_1/cas_count_write/\n"
					 "       1.500000000 seconds time elapsed\n";
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "perf", text);
	assert_total(c, FLOPS_FP32, 97);
	assert_total(c, DRAM_READ, 1.5 * 1048576);
	assert_total(c, DRAM, 2.0 * 1048576);
	assert_close(rfl_amounts_ai(c->total), 97 / 2097152.0, 1e-15);
	assert_string_equal(c->notes[0], "events with ':u' were counted in user mode only");
	/* AMD's one count of all precisions. */
	c = rig_read(&rig, "perf", "1000,,fp_ret_sse_avx_ops.all,9,100.00,,\n");
	assert_total(c, FLOPS, 1000);
	rig_fini(&rig);
}

/* perf scales the count of a kind of core as if the process had been on it all the time. Where the
 * shares are parts of one time, that is taken back: 0.1437 x 87896447 + 0.8563 x 98171964 in the
 * first case. Shares of several threads are of times of their own. */
static void adds_up_hybrid_cores(void **state)
{
	static const struct {
		const char *text;
		double instructions;
		enum rfl_validity validity;
	} cases[] = {
		{ STATS "  87,896,447  cpu_atom/instructions/  (14.37%)\n"
			"  98,171,964  cpu_core/instructions/  (85.63%)\n",
		  96695372, RFL_VALID_SCALED },
		/* multiplexed as well, one thread: (32.5 M x 0.5 + 100 M x 40) / 40.5 x 100 */
		{ STATS "  32,500,000  cpu_atom/instructions/  (0.50%)\n"
			"  100,000,000  cpu_core/instructions/  (59.50%)\n"
			"  100.00 msec task-clock  #  0.998 CPUs utilized\n",
		  99437500, RFL_VALID_SCALED },
		{ STATS "  500  cpu_atom/instructions/  (58.73%)\n"
			"  700  cpu_core/instructions/  (57.96%)\n",
		  1200, RFL_VALID_SCALED },
		{ STATS "  500  cpu_atom/instructions/\n  700  cpu_core/instructions/\n", 1200,
		  RFL_VALID },
		{ STATS "  <not counted>  cpu_atom/instructions/  (0.00%)\n"
			"  700  cpu_core/instructions/\n",
		  700, RFL_VALID },
		/* CPUs are there all the time */
		{ "\n Performance counter stats for 'system wide':\n\n"
		  "  500  cpu_atom/instructions/  (60.00%)\n"
		  "  700  cpu_core/instructions/  (40.00%)\n",
		  NAN, RFL_VALID_UNAVAILABLE },
		{ "\n Performance counter stats for 'system wide':\n\n"
		  "  500  cpu_atom/instructions/  (50.00%)\n"
		  "  700  cpu_core/instructions/  (50.00%)\n",
		  1200, RFL_VALID_SCALED },
		/* one thread, or two and multiplexed? */
		{ STATS "  500  cpu_atom/instructions/  (40.00%)\n"
			"  700  cpu_core/instructions/  (40.00%)\n"
			"  100.00 msec task-clock  #  1.99 CPUs utilized\n",
		  NAN, RFL_VALID_UNAVAILABLE },
		{ "CPU0,700,,cpu_core/instructions/,1,90.00,,\n"
		  "CPU16,500,,cpu_atom/instructions/,1,10.00,,\n",
		  NAN, RFL_VALID_UNAVAILABLE },
		/* two intervals: 0.2 x 50 + 0.8 x 100, and 100 */
		{ "     1.000000000,50,,cpu_atom/instructions/,1,20.00,,\n"
		  "     1.000000000,100,,cpu_core/instructions/,1,80.00,,\n"
		  "     2.000000000,<not counted>,,cpu_atom/instructions/,0,0.00,,\n"
		  "     2.000000000,100,,cpu_core/instructions/,1,100.00,,\n",
		  190, RFL_VALID_SCALED },
		/* one kind alone: 0.8 x 1000 are sure */
		{ STATS "  1,000  cpu_core/instructions/  (80.00%)\n", 800, RFL_VALID_PARTIAL },
		{ STATS "  1,000  armv8_pmuv3_0/instructions/  (80.00%)\n", 1000,
		  RFL_VALID_SCALED },
		/* user and kernel mode of one kind are halves of a count */
		{ STATS "  500  cpu_core/instructions/u  (45.00%)\n"
			"  700  cpu_core/instructions/k  (55.00%)\n",
		  NAN, RFL_VALID_UNAVAILABLE },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c = rig_read(&rig, "perf", cases[i].text);

		assert_close(c->total[RFL_QUANTITY_INSTRUCTIONS].value, cases[i].instructions,
			     1e-15);
		assert_int_equal(metric_of(c, 0, "instructions")->validity, cases[i].validity);
	}
	assert_string_equal(rig.warned, "");
	rig_fini(&rig);
}

/* One event in several groups is one count; user and kernel mode are halves of one. */
static void counts_an_event_once(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "perf",
		     "1000,,cycles,1,100.00,,\n500,,instructions,1,100.00,,\n"
		     "1001,,cycles,1,100.00,,\n1002,,cpu/cycles/,1,100.00,,\n");
	assert_total(c, CYCLES, 1000);
	assert_string_equal(c->notes[0], "perf repeated an event: the first count is used");
	c = rig_read(&rig, "perf", "300,,cycles:u,1,100.00,,\n700,,cycles:k,1,100.00,,\n");
	assert_total(c, CYCLES, 1000);
	c = rig_read(&rig, "perf", "300,,cycles:u,1,100.00,,\n1000,,cycles,1,100.00,,\n");
	assert_total(c, CYCLES, 1000);
	rig_fini(&rig);
}

/* Two events that differ only at the end of long names are two events. */
static void keeps_long_events_apart(void **state)
{
	char text[1024], body[301];
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	memset(body, 'e', sizeof(body) - 1);
	body[sizeof(body) - 1] = '\0';
	(void)snprintf(text, sizeof(text),
		       "7,,cpu/%s_a/,1,100.00,,\n8,,cpu/%s_b/,1,100.00,,\n9,,cycles,1,100.00,,\n",
		       body, body);
	rig_init(&rig);
	c = rig_read(&rig, "perf", text);
	assert_total(c, CYCLES, 9);
	for (size_t i = 0; i < c->nnotes; i++)
		assert_null(strstr(c->notes[i], "repeated"));
	rig_fini(&rig);
}

/* 0.04 msec may be 0.035 or 0.045. */
static void tells_what_was_rounded(void **state)
{
	static const char text[] = "0.04,msec,task-clock,1,100.00,,\n7,,cycles,1,100.00,,\n";
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "perf", text);
	assert_total(c, TASK_CLOCK, 0.04e-3);
	assert_int_equal(metric_of(c, 0, "task-clock")->validity, RFL_VALID_ESTIMATE);
	assert_metric(c, 0, "cycles", 7);
	rig.options.strict = true;
	rig_refuses(&rig, text,
		    ":1: task-clock is rounded; run perf stat with -j, or leave out --strict");
	rig_fini(&rig);
}

/* perf's advice, and output of other programs, after the elapsed time. */
static void passes_what_follows(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "perf",
		     "step 1 of 2 done\n" STATS "   7      cycles\n"
		     "             TopdownL1 (cpu_core)  #     12.5 %  tma_retiring\n"
		     "       1.500000000 seconds time elapsed\n"
		     "       1.000000000 seconds user\n"
		     "       0.500000000 seconds sys\n\n\n"
		     "Some events weren't counted. Try disabling the NMI watchdog:\n"
		     "\techo 0 > /proc/sys/kernel/nmi_watchdog\n"
		     "took 5 s in all\n"
		     "\n Performance counter stats for './b':\n\n"
		     "   8      cycles\n");
	assert_int_equal(c->nranges, 2);
	assert_total(c, CYCLES, 15);
	assert_metric(c, 0, "system_time", 0.5);
	rig_fini(&rig);
}

static void refuses_small_shares(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;
	const struct rfl_metric *m;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "perf",
		     "1000,,cycles,99,32.50,,\n500,,instructions,9,50.00,,\n"
		     "<not counted>,,cache-misses,0,0.00,,\n");
	m = metric_of(c, 0, "cycles");
	assert_true(isnan(m->value));
	assert_string_equal(m->reason, "counted during 32.5 % of the time, too short to scale; "
				       "count fewer events at once");
	assert_unknown(c, CYCLES);
	assert_total(c, INSTRUCTIONS, 500);
	assert_int_equal(c->total[RFL_QUANTITY_INSTRUCTIONS].validity, RFL_VALID_SCALED);
	assert_string_equal(metric_of(c, 0, "cache-misses")->reason,
			    "perf: <not counted>: never scheduled; count fewer events at once");
	rig_fini(&rig);
}

/* perf -a: 224 CPUs for a second, in three forms; of -x and -j the time is what follows from
 * the clock and 'CPUs utilized'. */
static void a_clock_of_processors_is_no_processor_time(void **state)
{
	static const struct {
		const char *text;
		double time_s;
		enum rfl_validity validity;
	} cases[] = {
		{ "\n Performance counter stats for 'system wide':\n\n"
		  "  225,904.82 msec cpu-clock     #  224.457 CPUs utilized\n"
		  "  48,433,482      cycles        #    0.000 GHz\n\n"
		  "  1.006450000 seconds time elapsed\n",
		  1.00645, RFL_VALID },
		{ "225851.20,msec,cpu-clock,225850700108,100.00,224.431,CPUs utilized\n"
		  "52288305,,cycles,225850188531,100.00,0.000,GHz\n"
		  ",225849327050,100.00,,,,TopdownL1\n"
		  ",,,,,70.1,%  tma_backend_bound\n",
		  225.8512 / 224.431, RFL_VALID_ESTIMATE },
		{ "{\"counter-value\" : \"225904.823297\", \"unit\" : \"msec\", \"event\" : "
		  "\"cpu-clock\", \"event-runtime\" : 225904323425, \"pcnt-running\" : 100.00, "
		  "\"metric-value\" : \"224.456872\", \"metric-unit\" : \"CPUs utilized\"}\n"
		  "{\"event-runtime\" : 225902840555, \"pcnt-running\" : 100.00, \"metricgroup\" : "
		  "\"TopdownL1\"}\n",
		  225.904823297 / 224.456872, RFL_VALID_ESTIMATE },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c = rig_read(&rig, "perf", cases[i].text);

		assert_close(c->total[RFL_QUANTITY_TIME].value, cases[i].time_s, 1e-15);
		assert_int_equal(c->total[RFL_QUANTITY_TIME].validity, cases[i].validity);
		assert_unknown(c, TASK_CLOCK);
		assert_non_null(strstr(c->total[RFL_QUANTITY_TASK_CLOCK].reason,
				       "may be the time of all CPUs"));
	}
	/* of a process it is what the process took */
	assert_total(rig_read(&rig, "perf", STATS "  28,794.62 msec cpu-clock\n"), TASK_CLOCK,
		     28.79462);
	rig_fini(&rig);
}

/* The event that names its cache first, then the one of all misses; the remark says which. */
static void says_which_misses_it_took(void **state)
{
	static const struct {
		const char *text;
		double misses;
		const char *reason;
	} cases[] = {
		{ "33,,cache-misses,1,100.00,,\n10,,LLC-load-misses,1,100.00,,\n", 33,
		  "perf's cache-misses: last-level cache misses on Intel, L2 misses on AMD, L1 "
		  "misses on Arm" },
		{ "10,,LLC-load-misses,1,100.00,,\n", 10, "perf's LLC-load-misses: loads only" },
		{ "33,,cache-misses,1,75.00,,\n", 33,
		  "counted during 75 % of the time, scaled by perf; perf's cache-misses: "
		  "last-level cache misses on Intel, L2 misses on AMD, L1 misses on Arm" },
		{ "33,,cache-misses,1,100.00,,\n34,,longest_lat_cache.miss,1,100.00,,\n", 34,
		  NULL },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		const struct rfl_capture *c = rig_read(&rig, "perf", cases[i].text);
		const char *reason = c->total[RFL_QUANTITY_CACHE_MISSES].reason;

		assert_total(c, CACHE_MISSES, cases[i].misses);
		assert_string_equal(reason ? reason : "", cases[i].reason ? cases[i].reason : "");
	}
	rig_fini(&rig);
}

/* Of two processes one was counted too seldom: the total is that of the other, scaled as it is. */
static void a_total_of_one_process_is_a_bound(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "perf",
		     STATS "   3,849,533      cycles        (29.45%)\n"
			   "       0.5 seconds time elapsed\n\n"
			   " Performance counter stats for './b':\n\n"
			   "   4,218,515      cycles        (55.90%)\n"
			   "       1.0 seconds time elapsed\n");
	assert_total(c, CYCLES, 4218515);
	assert_int_equal(c->total[RFL_QUANTITY_CYCLES].launches, 1);
	assert_int_equal(c->total[RFL_QUANTITY_CYCLES].validity, RFL_VALID_PARTIAL);
	assert_string_equal(c->total[RFL_QUANTITY_CYCLES].reason,
			    "counted during 55.9 % of the time, scaled by perf; a lower bound: "
			    "known for 1 of 2 ranges; for others: counted during 29.45 % of the "
			    "time, too short to scale; count fewer events at once");
	assert_total(c, TIME, 1.5);
	assert_int_equal(c->total[RFL_QUANTITY_TIME].launches, 2);
	rig_fini(&rig);
}

/* Separators, places, scatters, decimal commas where they do no harm. */
static void reads_forms_of_x(void **state)
{
	static const char *const texts[] = {
		"1281.90,msec,task-clock,1,100.00,0.9,CPUs utilized\n7,,cycles,1,100.00,,\n",
		"1281,90;msec;task-clock;1;100,00;0,9;CPUs utilized\n7;;cycles;1;100,00;;\n",
		"1281.90\tmsec\ttask-clock\t1\t100.00\n7\t\tcycles\t1\t100.00\n",
		"1281.90|msec|task-clock|1|100.00\n"
		"7||cycles|1|100.00\n",
		"CPU0,1000.90,msec,task-clock,1,100.00,,\nCPU1,281.00,msec,task-clock,1,100.00,,\n"
		"CPU0,7,,cycles,1,100.00,,\n",
		"S0,2,1281.90,msec,task-clock,1,100.00,,\nS0,2,7,,cycles,1,100.00,,\n",
		"1281.90,msec,task-clock,3.00%,1,100.00,,\n7,,cycles,1,100.00,4.00%,,\n",
		"1281900000,ns,task-clock,1,100.00,,\n7,,cpu-cycles:u,1,100.00,,\n",
		"1281.90,msec,task-clock,1,100.00,,\n,648266,100.00,,,,TopdownL1 (cpu_atom)\n"
		",648266,100.00,,,24.0,%  tma_frontend_bound\n,,,,,87.9,%  tma_retiring\n"
		"7,,cycles,1,100.00,,\n",
		"     1.000000000,281.90,msec,task-clock,1,100.00,,\n"
		"     1.000000000,3,,cycles,1,100.00,,\n"
		"     2.000000000,1000.00,msec,task-clock,1,100.00,,\n"
		"     2.000000000,4,,cycles,1,100.00,,\n",
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(texts); i++) {
		const struct rfl_capture *c = rig_read(&rig, "perf", texts[i]);

		assert_close(c->total[RFL_QUANTITY_TASK_CLOCK].value, 1.2819, 1e-15);
		assert_total(c, CYCLES, 7);
		assert_close(c->total[RFL_QUANTITY_TIME].value,
			     i < 2    ? 1.2819 / 0.9
			     : i == 9 ? 2.0
				      : (double)NAN,
			     1e-15);
	}
	rig_fini(&rig);
}

static void refuses_what_is_broken(void **state)
{
	static const char fix[] = ":1: decimal commas in fields separated by commas; run perf with "
				  "LC_ALL=C, -x ';' or -j";
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "1281,90,msec,task-clock,1281900000,100,00,0,996,CPUs utilized\n", fix },
		{ "5,,cycles,1,100.00,,\n319218186844,,instructions:u,24680525338,85,00,2,62,"
		  "insn\n",
		  ":2: decimal commas in fields separated by commas; run perf with LC_ALL=C, -x "
		  "';' or -j" },
		{ "5,,cycles,1,100.00,,\n7,,instr",
		  ":2: '7,,instr': the file is cut off in this row" },
		{ "5,,cycles,1,100.00,,\nabc,,cycles,1,100.00,,\n",
		  ":2: 'abc,,cycles,1,100.00,,' is not a row of perf stat -x; expected value, "
		  "unit, event, run time and percentage, separated by ','" },
		{ "{\"counter-value\" : \"1.0\", \"event\" : \"cycles\", \"pcnt-running\" : "
		  "85,00}\n",
		  ":1: decimal commas are not valid JSON; run perf with LC_ALL=C" },
		{ "{\"counter-value\" : \"1.0\", \"event\" : \"cyc",
		  ":1: '{\"counter-value\" : \"1.0\", \"event\" : \"cyc' is not a JSON object of "
		  "perf: the file is cut off" },
		{ "{\"counter-value\" : \"x\", \"unit\" : \"\", \"event\" : \"cycles\"}\n",
		  ":1: column 'counter-value': 'x' is not a number" },
		{ STATS "   12,34.5 msec task-clock\n",
		  ":4: '12,34.5' is not a number with a decimal point" },
		{ "-5,,cycles,1,100.00,,\n", ":1: cycles is below 0" },
		{ STATS "   12 furlongs cycles\n",
		  ":4: column 'unit': 'furlongs' of cycles is not a known unit" },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		rig_refuses(&rig, cases[i].text, cases[i].message);
	rig.options.keep_going = true;
	assert_int_equal(rig_read(&rig, "perf", cases[2].text)->rows_left_out, 1);
	assert_int_equal(rig_read(&rig, "perf", cases[3].text)->rows_left_out, 1);
	rig.options.from = "perf";
	rig_refuses(&rig, "hello\n",
		    ": no events; expected the output of perf stat, with or without -x or -j");
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_samples),
		cmocka_unit_test(reads_perf_6_1),
		cmocka_unit_test(reads_locales),
		cmocka_unit_test(counts_flops_and_bytes),
		cmocka_unit_test(adds_up_hybrid_cores),
		cmocka_unit_test(counts_an_event_once),
		cmocka_unit_test(keeps_long_events_apart),
		cmocka_unit_test(passes_what_follows),
		cmocka_unit_test(tells_what_was_rounded),
		cmocka_unit_test(refuses_small_shares),
		cmocka_unit_test(reads_forms_of_x),
		cmocka_unit_test(refuses_what_is_broken),
		cmocka_unit_test(a_total_of_one_process_is_a_bound),
		cmocka_unit_test(a_clock_of_processors_is_no_processor_time),
		cmocka_unit_test(says_which_misses_it_took),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
