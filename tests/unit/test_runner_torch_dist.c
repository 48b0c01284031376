/*
 * Several processes that train together: two ranks with half a batch each go the way of one process
 * with the whole batch. The network has no batch norm, whose statistics are each process's own.
 */
#define _GNU_SOURCE /* memfd_create() */
#include "tests/unit/torch_rig.h"

#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/num.h"
#include "base/proc.h"

enum { RANKS = 2, STEPS = 4, HALF = 4, WHOLE = RANKS * HALF, PIXELS = 3 * SIDE * SIDE };

static float all_images[WHOLE * PIXELS];
static int64_t all_labels[WHOLE];

/* Two convolutions and two linear layers: eight tensors of different sizes. */
static struct rfl_net *plain_net(void)
{
	struct rfl_net_builder *b = rfl_net_builder_new("plain", "test");
	struct rfl_net *ret = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	int x;

	assert_non_null(b);
	x = rfl_net_input(b, 3, SIDE, SIDE);
	x = rfl_conv2d(b, x, "conv1", 8, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_relu(b, x, "relu1", RFL_OUT_OF_PLACE);
	x = rfl_conv2d(b, x, "conv2", 16, .kernel = 3, .pad = 1, .bias = true);
	x = rfl_max_pool(b, x, "pool", .kernel = 2);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "fc1", 32, true);
	x = rfl_relu(b, x, "relu2", RFL_OUT_OF_PLACE);
	x = rfl_linear(b, x, "fc2", CLASSES, true);
	assert_ok(rfl_net_finish(b, x, &ret, &err), &err);
	return ret;
}

/* What a process ends with. */
struct outcome {
	double losses[STEPS];
	uint64_t params; /* a fingerprint of all bits */
};

static struct rfl_engine *open_plain_net(const struct rfl_net *n, enum rfl_layout layout)
{
	struct rfl_engine_config config = config_of(layout);
	struct rfl_engine *e = NULL;
	struct rfl_err err = RFL_ERR_INIT;

	config.max_batch = WHOLE;
	config.threads = 1;
	config.optimizer.lr = 0.05;
	assert_ok(ops->open(n, &config, &e, &err), &err);
	assert_ok(rfl_fill_engine(ops, e, n, 1, &err), &err);
	assert_ok(ops->set_mode(e, RFL_ENGINE_TRAIN, &err), &err);
	return e;
}

/* `micro` batches per step; gradients are exchanged with the last of them. */
static void train(struct rfl_engine *e, int64_t first, int64_t n, int micro, struct outcome *ret)
{
	struct rfl_err err = RFL_ERR_INIT;

	for (int step = 0; step < STEPS; step++) {
		assert_ok(ops->zero_grad(e, &err), &err);
		ret->losses[step] = 0;
		for (int m = 0; m < micro; m++) {
			const int64_t at = first + m * (n / micro);
			const struct rfl_batch batch = {
				.n = n / micro,
				.images = all_images + at * PIXELS,
				.labels = all_labels + at,
			};
			const struct rfl_backward how = { 1.0 / micro, m == micro - 1 };
			double loss;

			assert_ok(ops->forward(e, &batch, &err), &err);
			assert_ok(ops->loss(e, &loss, &err), &err);
			assert_ok(ops->backward(e, &how, &err), &err);
			ret->losses[step] += loss / micro;
		}
		assert_ok(ops->step(e, &err), &err);
	}
}

static uint64_t fingerprint(struct rfl_engine *e, const struct rfl_net *n)
{
	struct rfl_err err = RFL_ERR_INIT;
	uint64_t h = 0;

	for (int i = 0; i < n->nparams; i++) {
		const size_t bytes = (size_t)n->params[i].numel * sizeof(float);
		float *values = malloc(bytes);

		assert_non_null(values);
		assert_ok(ops->get_param(e, i, values, n->params[i].numel, &err), &err);
		h = rfl_hash64(h, values, bytes);
		free(values);
	}
	return h;
}

/* ---- a rank, as a process of its own ---- */

static int number_of(const char *variable)
{
	struct rfl_err err = RFL_ERR_INIT;
	int64_t value = 0;

	assert_ok(rfl_num_parse_int(getenv(variable), variable, &value, &err), &err);
	return (int)value;
}

static void be_rank(void **state)
{
	struct rfl_world world = {
		.rank = number_of("RFL_TEST_RANK"),
		.size = RANKS,
		.local_rank = number_of("RFL_TEST_RANK"),
		.port = number_of("RFL_TEST_PORT"),
		.timeout_s = 60,
		.bucket_bytes = number_of("RFL_TEST_BUCKET"),
		.interconnect = "auto",
	};
	const int micro = number_of("RFL_TEST_MICRO");
	struct rfl_net *n = plain_net();
	struct rfl_engine *e = open_plain_net(n, RFL_LAYOUT_NCHW);
	struct rfl_err err = RFL_ERR_INIT;
	double mine[2] = { world.rank, 10.0 * world.rank + 1 }, all[2 * RANKS] = { 0 };
	struct outcome got;

	(void)state;
	(void)snprintf(world.address, sizeof(world.address), "%s",
		       world.port ? "127.0.0.1" : getenv("RFL_TEST_FILE"));
	assert_ok(ops->join(e, &world, &err), &err);
	assert_int_equal(ops->join(e, &world, &err), RFL_EINVAL);
	train(e, world.rank * HALF, HALF, micro, &got);
	assert_ok(ops->gather(e, mine, 2, all, &err), &err);
	for (int r = 0; r < RANKS; r++) {
		assert_true(all[2 * r] == r);
		assert_true(all[2 * r + 1] == 10.0 * r + 1);
	}
	got.params = fingerprint(e, n);
	printf("outcome %016llx", (unsigned long long)got.params);
	for (int i = 0; i < STEPS; i++)
		printf(" %.17g", got.losses[i]);
	printf("\n");
	ops->close(e);
	rfl_net_free(n);
}

/* ---- both of them, from here ---- */

struct rank {
	pthread_t thread;
	char env[6][64];
	struct rfl_proc_result result;
	struct rfl_err err;
	enum rfl_rc rc;
	char *self;
};

static void *run_rank(void *arg)
{
	struct rank *r = arg;
	const char *const argv[] = { r->self, "torch_dist", NULL };
	const char *const env[] = { r->env[0], r->env[1], r->env[2], r->env[3], r->env[4], NULL };
	const struct rfl_proc_spec spec = {
		.argv = argv,
		.env = env,
		.capture_stdout = true,
		.timeout_s = 120,
	};

	r->rc = rfl_proc_run(&spec, &r->result, &r->err);
	return NULL;
}

static int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static void read_outcome(struct rank *r, struct outcome *ret)
{
	const char *line;
	unsigned long long params;
	char *at;
	int used = 0;

	assert_ok(r->rc, &r->err);
	line = strstr(rfl_buf_str(&r->result.out), "outcome ");
	if (!r->result.exited || r->result.exit_code != 0 || !line)
		fail_msg("a rank failed: %s", rfl_buf_str(&r->result.out));
	assert_int_equal(sscanf(line, "outcome %llx%n", &params, &used), 1);
	ret->params = params;
	at = (char *)(uintptr_t)line + used;
	for (int i = 0; i < STEPS; i++)
		ret->losses[i] = strtod(at, &at);
}

/* @param file  where the processes meet; NULL: at a port */
static void run_ranks(int bucket, int micro, const char *file, struct outcome got[RANKS])
{
	struct rank ranks[RANKS] = { 0 };
	struct rfl_err err = RFL_ERR_INIT;
	const int port = file ? 0 : free_port();
	char *self = rfl_proc_self(&err);

	assert_non_null(self);
	for (int i = 0; i < RANKS; i++) {
		ranks[i].self = self;
		(void)snprintf(ranks[i].env[0], 64, "RFL_TEST_RANK=%d", i);
		(void)snprintf(ranks[i].env[1], 64, "RFL_TEST_PORT=%d", port);
		(void)snprintf(ranks[i].env[2], 64, "RFL_TEST_BUCKET=%d", bucket);
		(void)snprintf(ranks[i].env[3], 64, "RFL_TEST_MICRO=%d", micro);
		(void)snprintf(ranks[i].env[4], 64, "RFL_TEST_FILE=%s", file ? file : "");
		assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
	}
	for (int i = 0; i < RANKS; i++)
		pthread_join(ranks[i].thread, NULL);
	for (int i = 0; i < RANKS; i++) {
		read_outcome(&ranks[i], &got[i]);
		rfl_proc_result_fini(&ranks[i].result);
	}
	free(self);
}

static void two_ranks_are_one_with_the_whole_batch(void **state)
{
	/* one bucket for everything, one per tensor, and some in between; micro-batches */
	static const struct {
		int bucket, micro;
	} cases[] = { { 1 << 20, 1 }, { 1, 1 }, { 4096, 2 } };
	struct rfl_net *n = plain_net();
	struct rfl_engine *e = open_plain_net(n, RFL_LAYOUT_NCHW);
	struct outcome alone, got[RANKS];
	const int fd = memfd_create("world", MFD_CLOEXEC);
	char file[64];

	(void)state;
	assert_true(fd >= 0);
	(void)snprintf(file, sizeof(file), "/proc/%ld/fd/%d", (long)getpid(), fd);
	train(e, 0, WHOLE, 1, &alone);
	assert_true(alone.losses[0] - alone.losses[STEPS - 1] > 1e-3); /* it learns */
	for (size_t i = 0; i < RFL_ARRAY_LEN(cases); i++) {
		run_ranks(cases[i].bucket, cases[i].micro, i == 0 ? file : NULL, got);
		/* averaged gradients are the same bits everywhere */
		assert_true(got[0].params == got[1].params);
		/* each rank sees its own half of the data */
		assert_true(fabs(got[0].losses[0] - got[1].losses[0]) > 1e-6);
		for (int s = 0; s < STEPS; s++) {
			const double mean = (got[0].losses[s] + got[1].losses[s]) / RANKS;

			assert_close(mean, alone.losses[s], 1e-5);
		}
	}
	close(fd);
	ops->close(e);
	rfl_net_free(n);
}

static void one_process_needs_nobody(void **state)
{
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;
	const double mine = 3.5;
	double all = 0;

	(void)state;
	assert_ok(ops->gather(e, &mine, 1, &all, &err), &err);
	assert_true(all == mine);
	ops->close(e);
}

static void those_who_do_not_come_are_not_waited_for(void **state)
{
	struct rfl_world world = {
		.rank = 1, /* rank 0 is not reachable */
		.size = 2,
		.address = "127.0.0.1",
		.port = free_port(),
		.timeout_s = 1,
		.bucket_bytes = 1 << 20,
		.interconnect = "gloo",
	};
	struct rfl_engine *e = open_plain();
	struct rfl_err err = RFL_ERR_INIT;

	(void)state;
	assert_int_equal(ops->join(e, &world, &err), RFL_ETIMEOUT);
	assert_non_null(strstr(err.msg, "rank 1 of 2: not all processes joined at 127.0.0.1"));
	assert_non_null(strstr(err.msg, "rank 0 is not reachable"));
	world.rank = 0; /* the others are not */
	world.size = 3;
	rfl_err_clear(&err);
	assert_int_equal(ops->join(e, &world, &err), RFL_ETIMEOUT);
	assert_non_null(strstr(err.msg, "missing: rank 1, 2"));
	world.rank = 1;
	world.size = 2;
	rfl_err_clear(&err);
	world.interconnect = "nccl";
	rfl_err_clear(&err);
	assert_int_equal(ops->join(e, &world, &err), RFL_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "--interconnect gloo"));
	world.rank = 2;
	rfl_err_clear(&err);
	assert_int_equal(ops->join(e, &world, &err), RFL_EINVAL);
	ops->close(e);
}

/* A stranger connects to rank 0's port, sends a byte, and stays connected: libtorch 1.13 then answers
 * no one else, and does not end its thread. */
static void *be_stranger(void *arg)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(*(const uint16_t *)arg) };
	int fd = -1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 20000; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			break;
		close(fd);
		(void)nanosleep(&pause, NULL);
	}
	(void)!write(fd, "\1", 1);
	return (void *)(intptr_t)fd;
}

static void the_limit_holds_whoever_is_connected(void **state)
{
	const uint16_t port = (uint16_t)free_port();
	const struct rfl_world world = {
		.rank = 0,
		.size = 2,
		.address = "127.0.0.1",
		.port = port,
		.timeout_s = 2,
		.bucket_bytes = 1 << 20,
		.interconnect = "gloo",
	};
	struct rfl_engine *e = open_plain();
	const double start = rfl_clock_s();
	struct rfl_err err = RFL_ERR_INIT;
	pthread_t stranger;
	void *fd;

	(void)state;
	assert_int_equal(pthread_create(&stranger, NULL, be_stranger, (void *)(uintptr_t)&port), 0);
	assert_int_equal(ops->join(e, &world, &err), RFL_ETIMEOUT);
	assert_true(rfl_clock_s() - start < 10);
	pthread_join(stranger, &fd);
	ops->close(e); /* and the process must end, with the connection open */
}

int main(void)
{
	const struct CMUnitTest rank[] = { cmocka_unit_test(be_rank) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_needs_nobody),
		cmocka_unit_test(two_ranks_are_one_with_the_whole_batch),
		cmocka_unit_test(those_who_do_not_come_are_not_waited_for),
		cmocka_unit_test(the_limit_holds_whoever_is_connected),
	};
	const struct rfl_shape shape = { .ndim = 3, .dim = { 3, SIDE, SIDE } };

	if (rfl_fill_images(&shape, 0, WHOLE, RFL_LAYOUT_NCHW, 1, all_images, NULL) != RFL_OK)
		return 1;
	rfl_fill_labels(0, WHOLE, CLASSES, all_labels);
	if (getenv("RFL_TEST_RANK"))
		return run_with_torch(rank, 1);
	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
