/* What `time` of GNU, BSD, macOS and shells prints, as it is and as it may be broken. */
#include "tests/unit/summary_rig.h"

static void reads_gnu_samples(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "time", "timev_s1_spaces.txt");
	assert_string_equal(c->label, "timev_s1_spaces");
	assert_int_equal(c->nranges, 1);
	assert_int_equal(c->ranges[0].kind, RFL_RANGE_PROCESS);
	assert_string_equal(c->ranges[0].name, "sha256sum stable-diffusion-v1.5-unet.tar");
	assert_total(c, TIME, 51.40);
	assert_total(c, TASK_CLOCK, 36.01 + 2.06);
	assert_metric(c, 0, "max_rss", 1966080); /* 1920 KiB */
	assert_metric(c, 0, "voluntary_switches", 21563);
	assert_unknown(c, FLOPS);
	assert_unknown(c, DRAM);
	assert_non_null(c->total[RFL_QUANTITY_FLOPS].reason);
	assert_non_null(c->total[RFL_QUANTITY_DRAM].reason);

	c = rig_file(&rig, "time", "timev_s2_cabal.txt");
	assert_total(c, TIME, 13 * 60 + 19.30);
	assert_metric(c, 0, "major-faults", 588);
	assert_metric(c, 0, "minor-faults", 115742);
	assert_metric(c, 0, "max_rss", 186496 * 1024.0);
	rig_fini(&rig);
}

static void reads_macos_samples(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_file(&rig, "time", "timel_s1_macos.txt");
	assert_total(c, TIME, 24.36);
	assert_total(c, INSTRUCTIONS, 242953331230);
	assert_total(c, CYCLES, 74930184152);
	assert_metric(c, 0, "max_rss", 1589248);
	assert_metric(c, 0, "peak_memory_footprint", 1410048);

	c = rig_file(&rig, "time", "timel_s2_macos_signals.txt"); /* after the program's output */
	assert_total(c, TIME, 0.89);
	assert_metric(c, 0, "max_rss", 299446272);
	rig_fini(&rig);
}

static void reads_durations(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} cases[] = {
		{ "real\t0m1.234s\nuser\t0m0.500s\nsys\t0m0.100s\n", 1.234 },
		{ "\nreal 2.50\nuser 1.00\nsys 0.25\n", 2.5 },
		{ "real\t1m18,010s\nuser\t0m0,500s\nsys\t0m0,100s\n", 78.01 },
		{ "\t1m18.01s real\t\t22.79s user\t\t0.83s sys\n", 78.01 },
		{ "\t1h3.00s real\t\t22.79s user\t\t0.83s sys\n", 3603 },
		{ "\t2d1h1m3.00s real\t\t22.79s user\t\t0.83s sys\n", 2 * 86400 + 3663 },
		{ "real\t0m 15.06s\nuser\t0m 0.46s\nsys\t0m 5.89s\n", 15.06 }, /* busybox */
		{ "real\t1h 2m 03s\nuser\t0m 0.46s\nsys\t0m 5.89s\n", 3723 },
		{ "\tCommand being timed: \"a\"\n"
		  "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0m 15.06s\n",
		  15.06 },
		{ "real 2.50\nuser 1.00\nsys 0.25\nuser logged out\nsys ok\n", 2.5 },
		{ "0.01user 0.02system 1:02:03elapsed 95%CPU (0avgtext+0avgdata "
		  "1920maxresident)k\n0inputs+0outputs (0major+132minor)pagefaults 0swaps\n",
		  3723 },
	};
	struct summary_rig rig;

	(void)state;
	rig_init(&rig);
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++)
		assert_total(rig_read(&rig, "time", cases[i].text), TIME, cases[i].seconds);
	assert_metric(rig.captures.captures[0], 0, "max_rss", 1920 * 1024.0);
	assert_metric(rig.captures.captures[0], 0, "minor-faults", 132);
	rig_fini(&rig);
}

/* The log of a run of this program: its window is not the time of the process. */
static void keeps_the_window_apart(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "time",
		     "MEASURED_SEC=2.500000 IMGS_PER_SEC=25.60 BATCH=64 ARCH=resnet50 "
		     "BACKEND=cpu\n"
		     "\tCommand being timed: \"roofline run\"\n"
		     "\tUser time (seconds): 9.00\n"
		     "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:10.00\n"
		     "\tMaximum resident set size (kbytes): 1024\n"
		     "\tExit status: 0\n");
	assert_total(c, TIME, 10);
	assert_metric(c, 0, "measured_window", 2.5);
	assert_int_equal(c->nnotes, 2); /* the other is of the memory */
	assert_string_equal(c->notes[0],
			    "time_s covers the whole process; its measured window is 2.5 s");
	rig_fini(&rig);
}

/* Several blocks of one file are ranges of one capture. */
static void reads_several_blocks(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "time",
		     "Command exited with non-zero status 1\n"
		     "\tCommand being timed: \"a\"\n"
		     "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:01.50\n"
		     "\tExit status: 1\n"
		     "\tCommand being timed: \"b\"\n"
		     "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:02.00\n");
	assert_int_equal(c->nranges, 2);
	assert_total(c, TIME, 3.5);
	assert_string_equal(c->notes[0], "Command exited with non-zero status 1");
	rig_fini(&rig);
}

/* BSD writes KiB where macOS writes bytes. */
static void reads_zsh(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "time",
		     "epoch 1: 3 user 4 system total\n"
		     "python train.py --epochs 1  62.79s user 0.83s system 97% cpu 1:04.36 total\n"
		     "0.01s user 0.02s system 95% cpu 0.040 total\n");
	assert_int_equal(c->nranges, 2);
	assert_string_equal(c->ranges[0].name, "python train.py --epochs 1");
	assert_string_equal(c->ranges[1].name, "process");
	assert_close(c->ranges[0].amount[RFL_QUANTITY_TIME].value, 64.36, 1e-15);
	assert_close(c->ranges[0].amount[RFL_QUANTITY_TASK_CLOCK].value, 63.62, 1e-15);
	assert_close(c->ranges[1].amount[RFL_QUANTITY_TIME].value, 0.04, 1e-15);
	rig_fini(&rig);
}

static void tells_bsd_from_macos(void **state)
{
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	c = rig_read(&rig, "time",
		     "        0.89 real         0.82 user         0.20 sys\n"
		     "      1924  maximum resident set size\n");
	assert_metric(c, 0, "max_rss", 1924 * 1024.0);
	assert_int_equal(c->nnotes, 2);
	c = rig_read(&rig, "time",
		     "        0.89 real         0.82 user         0.20 sys\n"
		     "      1589248  maximum resident set size\n");
	assert_metric(c, 0, "max_rss", 1589248);
	assert_int_equal(c->nnotes, 1);
	/* time -l -p */
	c = rig_read(&rig, "time",
		     "real 3.67\nuser 1.00\nsys 0.25\n"
		     "          2925461504  maximum resident set size\n"
		     "       2435814934281  instructions retired\n"
		     "       1387001725171  cycles elapsed\n");
	assert_metric(c, 0, "max_rss", 2925461504);
	assert_total(c, INSTRUCTIONS, 2435814934281);
	assert_total(c, CYCLES, 1387001725171);
	rig_fini(&rig);
}

static void refuses_what_is_broken(void **state)
{
	static const char bad[] = "\tCommand being timed: \"a\"\n"
				  "\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:0x.50\n"
				  "\tMaximum resident set size (kbytes): 1024\n";
	struct summary_rig rig;
	const struct rfl_capture *c;

	(void)state;
	rig_init(&rig);
	rig_refuses(&rig, bad, ":2: column 'duration_time': '0:0x.50' is not a duration");
	rig.options.keep_going = true;
	c = rig_read(&rig, "time", bad);
	assert_int_equal(c->rows_left_out, 1);
	assert_string_equal(rig.warned,
			    "file:2: column 'duration_time': '0:0x.50' is not a duration\n");
	assert_unknown(c, TIME);
	assert_metric(c, 0, "max_rss", 1048576);
	rig.options.keep_going = false;
	rig.options.strict = true;
	rig_refuses(&rig, "real 0.02\nuser 0.00\nsys 0.00\n",
		    ":1: column 'duration_time': 0.02 is rounded; leave out --strict");
	rig.options.strict = false;
	c = rig_read(&rig, "time", "real 0.02\nuser 0.00\nsys 0.00\n");
	assert_int_equal(metric_of(c, 0, "duration_time")->validity, RFL_VALID_ESTIMATE);
	rig.options.from = "time";
	rig_refuses(&rig, "hello\n",
		    ": no times; expected the output of 'time -v' (GNU), 'time -l' (BSD, macOS) or "
		    "a shell's 'time'");
	rig_refuses(&rig, "real 2.50\nuser 1.00\nsys 0.25\nuser 2.00\n",
		    ":4: column 'user_time': '2.00' is a second value in this block");
	rig_refuses(&rig,
		    "\tCommand being timed: \"a\"\n\tMaximum resident set size (kbytes): 1e308\n",
		    ":2: column 'max_rss': '1e308' is not a count");
	/* A file that ends in a number may have lost digits. */
	(void)rig_read(&rig, "time", "real 2.50\nuser 1.00\nsys 0.2");
	assert_string_equal(rig.warned,
			    "file:3: the last line has no newline: its value may be cut off\n");
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_gnu_samples),      cmocka_unit_test(reads_macos_samples),
		cmocka_unit_test(reads_durations),        cmocka_unit_test(keeps_the_window_apart),
		cmocka_unit_test(reads_several_blocks),   cmocka_unit_test(tells_bsd_from_macos),
		cmocka_unit_test(refuses_what_is_broken), cmocka_unit_test(reads_zsh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
