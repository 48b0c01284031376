/* The kernels' CPU twins: the loss, its scale, updates. */
#include <omp.h>

#include "runner/planned/host.h"
#include "tests/unit/kernels_rig.h"

/* ---- loss ---- */

struct logits {
	int type;
	int64_t rows, classes;
	void *values;
	int64_t *labels;
};

/* Half of the labels are the largest; of two equals only the first counts. */
static struct logits logits_of(int type, int64_t rows, int64_t classes)
{
	struct logits l = { type, rows, classes, some(type, rows * classes, 1, 10, 8), NULL };

	l.labels = kept(room((size_t)rows * sizeof(*l.labels)));
	for (int64_t r = 0; r < rows; r++) {
		put(type, l.values, r * classes + r % classes, 20);
		put(type, l.values, r * classes + (r + r % 2) % classes, 20);
		l.labels[r] = (r % 4 < 2 ? r + r % 2 : r * 7) % classes;
	}
	return l;
}

/* The loss of a row in float64, and the softmax of a class. */
static double loss_of(const struct logits *l, int64_t row, int64_t class, double *softmax)
{
	double sum = 0;

	for (int64_t c = 0; c < l->classes; c++)
		sum += exp(get(l->type, l->values, row * l->classes + c));
	*softmax = exp(get(l->type, l->values, row * l->classes + class)) / sum;
	return log(sum) - get(l->type, l->values, row * l->classes + l->labels[row]);
}

static bool is_correct(const struct logits *l, int64_t row)
{
	int64_t best = 0;

	for (int64_t c = 1; c < l->classes; c++)
		if (get(l->type, l->values, row * l->classes + c) >
		    get(l->type, l->values, row * l->classes + best))
			best = c;
	return best == l->labels[row];
}

static void loss_case(int type, int64_t rows, int64_t classes)
{
	const struct logits l = logits_of(type, rows, classes);
	const struct rfl_kernel_state shared = { .scale = 128 };
	void *const gradient = empty(type, rows * classes);
	float *const losses = floats(rows), *const alone = floats(rows);
	uint8_t *const correct = kept(room((size_t)rows));
	struct rfl_k_loss k = { .n = rows,
				.type = type,
				.classes = classes,
				.logits = l.values,
				.labels = l.labels,
				.weight = 0.25,
				.state = &shared,
				.gradient = gradient,
				.losses = losses,
				.correct = correct };

	RUN(loss, k);
	for (int64_t r = 0; r < rows; r++) {
		assert_int_equal(correct[r], is_correct(&l, r));
		for (int64_t c = r % 3; c < classes; c += 1 + classes / 3) {
			const double factor = 0.25 * 128 / (double)rows;
			double softmax;
			const double loss = loss_of(&l, r, c, &softmax);

			check_near(RFL_VALUE_F32, losses, r, loss, 1);
			check_near(type, gradient, r * classes + c,
				   factor * (softmax - (c == l.labels[r])), factor / 2);
		}
	}
	k.gradient = NULL;
	k.losses = alone;
	RUN(loss, k);
	check_same(RFL_VALUE_F32, alone, losses, rows);
	free_kept();
}

static void losses_match(void **state)
{
	static const int64_t classes[] = { 1, 2, 10, 1000 };

	(void)state;
	for (int type = 0; type < TYPES; type++)
		for (size_t i = 0; i < RFL_ARRAY_LEN(classes); i++) {
			loss_case(type, 1, classes[i]);
			loss_case(type, 37, classes[i]);
		}
}

/* Two losses of a pass, in two passes, since the score was read. */
static void totals_add_up(void **state)
{
	enum { ROWS = 11 };
	const float *const losses = some(RFL_VALUE_F32, ROWS, 1, 2, 1);
	uint8_t correct[ROWS] = { 1, 0, 1, 1 };
	struct rfl_kernel_state shared = { .loss = 55 };
	struct rfl_k_totals k = {
		.n = 1, .rows = ROWS, .losses = losses, .correct = correct, .state = &shared
	};
	double mean = 0;

	(void)state;
	for (int r = 0; r < ROWS; r++)
		mean += (double)losses[r] / ROWS;
	for (int pass = 1; pass <= 2; pass++) {
		k.first = 1;
		k.last = 0;
		k.weight = 0.5;
		RUN(totals, k);
		assert_close(shared.loss, mean / 2, 1e-14);
		k.first = 0;
		k.last = 1;
		k.weight = 2;
		RUN(totals, k);
		assert_close(shared.loss, 2.5 * mean, 1e-14);
		assert_close(shared.score_loss, 2.5 * mean * ROWS * pass, 1e-14);
		assert_int_equal(shared.score_rows, ROWS * pass);
		assert_int_equal(shared.score_correct, 3 * pass);
	}
	free_kept();
}

/* ---- decisions ---- */

/* Partial sums of squares of x, folded to three. */
static const double *squares_of(float *x, int64_t n)
{
	enum { CHUNKS = 13, FOLDED = 3 };
	double *const partials = kept(room(CHUNKS * sizeof(*partials)));
	double *const folded = kept(room(FOLDED * sizeof(*folded)));

	RUN(squares, { .n = CHUNKS, .size = n, .x = x, .partials = partials });
	RUN(fold_squares, { .n = FOLDED, .size = CHUNKS, .from = partials, .to = folded });
	for (int c = 0; c < CHUNKS; c++) {
		double want = 0;

		for (int64_t i = c; i < n; i += CHUNKS)
			want += (double)x[i] * (double)x[i];
		assert_close(partials[c], want, 1e-14);
	}
	return folded;
}

static void squares_are_summed(void **state)
{
	static const int64_t sizes[] = { 0, 1, 13, 1003 };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(sizes); i++) {
		float *const x = some(RFL_VALUE_F32, sizes[i], 1, 0, 1e25); /* x^2 is no float32 */
		const double *const folded = squares_of(x, sizes[i]);

		assert_close(folded[0] + folded[1] + folded[2], rfl_host_sum_squares(x, sizes[i]),
			     1e-13);
		free_kept();
	}
}

static struct rfl_k_decide decision(struct rfl_kernel_state *state, const double *partials)
{
	return (struct rfl_k_decide){ .n = 1,
				      .chunks = partials ? 3 : 0,
				      .partials = partials,
				      .beta1 = 0.9,
				      .beta2 = 0.999,
				      .state = state };
}

static void gradients_are_clipped(void **state)
{
	const double partials[] = { 9, 4, 3 }; /* a norm of 4 */
	struct rfl_kernel_state shared = { .scale = 1 };
	struct rfl_k_decide k = decision(&shared, partials);

	(void)state;
	RUN(decide, k);
	assert_true(shared.factor == 1);
	k.grad_clip = 2;
	RUN(decide, k);
	assert_close((double)shared.factor, 2 / (4 + 1e-6), 1e-7);
	k.grad_clip = 4; /* as torch, whose norm is larger by 1e-6 */
	RUN(decide, k);
	assert_close((double)shared.factor, 4 / (4 + 1e-6), 1e-7);
	k.grad_clip = 5;
	RUN(decide, k);
	assert_true(shared.factor == 1);
	/* The norm before the loss was scaled. */
	shared.scale = 8;
	k.scaling = 1;
	RUN(decide, k);
	assert_true(shared.factor == 0.125f);
	k.grad_clip = 0.25;
	RUN(decide, k);
	assert_close((double)shared.factor, 0.25 / (0.5 + 1e-6) / 8, 1e-7);
	/* Without scaling, nothing is skipped. */
	k = decision(&shared, (const double[]){ 1, INFINITY, 1 });
	RUN(decide, k);
	assert_int_equal(shared.skip, 0);
	assert_int_equal(shared.skipped, 0);
	assert_int_equal(shared.attempts, 7);
}

static void corrections_are_adams(void **state)
{
	struct rfl_kernel_state shared = { .scale = 1, .attempts = 5, .skipped = 2 };

	(void)state;
	RUN(decide, decision(&shared, NULL));
	assert_int_equal(shared.attempts, 6);
	assert_int_equal(shared.skip, 0);
	assert_true(shared.factor == 1);
	assert_close((double)shared.correction1, 1 - pow(0.9, 4), 1e-7);
	assert_close((double)shared.correction2, 1 - pow(0.999, 4), 1e-7);
}

/* As torch.cuda.amp.GradScaler: 2000 updates in a row double the scale, and one that is skipped
 * halves it. */
static void the_scale_of_the_loss_changes(void **state)
{
	static const double bad[][3] = { { 1, INFINITY, 1 }, { 1, 1, NAN }, { -INFINITY, 1, 1 } };
	const double good[3] = { 1, 2, 3 };
	struct rfl_kernel_state shared = { .scale = 65536 };
	struct rfl_k_decide k = decision(&shared, good);

	(void)state;
	k.scaling = 1;
	for (int i = 0; i < 3; i++) {
		k.partials = bad[i];
		RUN(decide, k);
		assert_int_equal(shared.skip, 1);
		assert_int_equal(shared.skipped, i + 1);
		assert_true(shared.scale == 32768 / (float)(1 << i));
	}
	k.partials = good;
	for (int i = 0; i < 1999; i++)
		RUN(decide, k);
	assert_int_equal(shared.skip, 0);
	assert_true(shared.scale == 8192 && shared.factor == 1.0f / 8192);
	assert_close((double)shared.correction1, 1 - pow(0.9, 1999), 1e-7);
	k.partials = bad[0];
	RUN(decide, k);
	k.partials = good;
	for (int i = 0; i < 1999; i++)
		RUN(decide, k);
	assert_true(shared.scale == 4096);
	RUN(decide, k);
	/* The gradients of this update had the smaller scale. */
	assert_true(shared.scale == 8192 && shared.factor == 1.0f / 4096 && shared.good == 0);
	assert_int_equal(shared.attempts, 3 + 1999 + 1 + 2000);
	assert_int_equal(shared.skipped, 4);
}

/* ---- updates ---- */

enum rule { SGD, SGD_MOMENTUM, ADAM, ADAMW, RULES };

static void step_of(enum rule rule, int type, const struct rfl_host_update *h,
		    const struct rfl_kernel_state *shared, void *copy)
{
	if (rule == SGD || rule == SGD_MOMENTUM)
		RUN(sgd, { .n = h->n,
			   .type = type,
			   .lr = h->lr,
			   .weight_decay = h->weight_decay,
			   .momentum = h->momentum,
			   .state = shared,
			   .g = h->g,
			   .p = h->p,
			   .mean = h->mean,
			   .copy = copy });
	else
		RUN(adam, { .n = h->n,
			    .type = type,
			    .lr = h->lr,
			    .weight_decay = h->weight_decay,
			    .beta1 = h->beta1,
			    .beta2 = h->beta2,
			    .rest1 = h->rest1,
			    .rest2 = h->rest2,
			    .eps = h->eps,
			    .decoupled = h->decoupled,
			    .state = shared,
			    .g = h->g,
			    .p = h->p,
			    .mean = h->mean,
			    .square = h->square,
			    .copy = copy });
}

/* Two steps, one of which is skipped, of a range that begins within an array. */
static void update_case(enum rule rule, int type, int64_t n)
{
	enum { START = 16 };
	const int64_t all = n + START;
	float *const p = some(RFL_VALUE_F32, all, 1, 0, 1), *const want =
								    again(RFL_VALUE_F32, p, all);
	void *const copy = empty(type, all);
	struct rfl_kernel_state shared = { .factor = 0.5f };
	struct rfl_host_update h = {
		.n = n,
		.p = p + START,
		.mean = rule == SGD ? NULL : (float *)some(RFL_VALUE_F32, n, 2, 0, 1),
		.square = some(RFL_VALUE_F32, n, 3, 2, 1),
		.g = some(RFL_VALUE_F32, n, 4, 0, 3),
		.gradient_scale = 0.5f,
		.lr = 0.1f,
		.weight_decay = 0.01f,
		.momentum = 0.9f,
		.beta1 = 0.9f,
		.beta2 = 0.999f,
		.rest1 = 0.1f,
		.rest2 = 0.001f,
		.eps = 1e-3f,
		.decoupled = rule == ADAMW,
	};
	float *const old_mean = rule == SGD ? NULL : again(RFL_VALUE_F32, h.mean, n);
	float *const old_square = again(RFL_VALUE_F32, h.square, n);

	h.correction1 = shared.correction1 = 0.19f;
	h.correction2 = shared.correction2 = 0.002f;
	shared.skip = 1;
	step_of(rule, type, &h, &shared, (char *)copy + START * size_of(type));
	check_same(RFL_VALUE_F32, p, want, all);
	shared.skip = 0;
	step_of(rule, type, &h, &shared, n % 2 ? (char *)copy + START * size_of(type) : NULL);
	{
		struct rfl_host_update w = h;

		w.p = want + START;
		w.mean = old_mean;
		w.square = old_square;
		if (rule == SGD || rule == SGD_MOMENTUM)
			rfl_host_sgd(&w);
		else
			rfl_host_adam(&w);
	}
	check_same(RFL_VALUE_F32, p, want, all);
	if (h.mean)
		check_same(RFL_VALUE_F32, h.mean, old_mean, n);
	check_same(RFL_VALUE_F32, h.square, old_square, n);
	for (int64_t i = 0; n % 2 && i < n; i++)
		assert_true(get(type, copy, START + i) ==
			    rfl_ieee_round(format_of(type), (double)p[START + i]));
	free_kept();
}

static void updates_match(void **state)
{
	static const int64_t lengths[] = { 0, 1, 3, 4, 64, 1003 };

	(void)state;
	omp_set_num_threads(1);
	for (int rule = 0; rule < RULES; rule++)
		for (int type = 0; type < TYPES; type++)
			for (size_t i = 0; i < RFL_ARRAY_LEN(lengths); i++)
				update_case((enum rule)rule, type, lengths[i]);
}

static void kernels_are_found_by_name(void **state)
{
	(void)state;
#define FOUND(kernel)                                                     \
	assert_int_equal(rfl_twin_find("rfl_k_" #kernel)->argument_bytes, \
			 sizeof(struct rfl_k_##kernel));
	RFL_KERNELS(FOUND)
	assert_null(rfl_twin_find("rfl_k_"));
	assert_null(rfl_twin_find("add_floats"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_match),
		cmocka_unit_test(totals_add_up),
		cmocka_unit_test(squares_are_summed),
		cmocka_unit_test(gradients_are_clipped),
		cmocka_unit_test(corrections_are_adams),
		cmocka_unit_test(the_scale_of_the_loss_changes),
		cmocka_unit_test(updates_match),
		cmocka_unit_test(kernels_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
