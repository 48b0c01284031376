/* Every allocation on the way from ledger and captures to points fails once. */
#include "tests/unit/alloc_failure.h"
#include "tests/unit/counters_fixture.h"

static struct fixture *f;

static enum rfl_rc merge_all(struct rfl_err *err)
{
	struct rfl_points *pts = NULL;
	struct rfl_merge_report report;
	enum rfl_rc rc = rfl_merge(&f->in, &f->options, &pts, &report, err);

	assert_int_equal(rc == RFL_OK, pts != NULL);
	rfl_points_free(pts);
	rfl_buf_fini(&report.notes);
	return rc;
}

/* Timed and profiled runs; captures with FLOPs and bytes, with bytes that do not fit, and of no
 * run. */
static void points_with_counters(void **state)
{
	const struct alloc_operation op = { "points with counters", merge_all, 50 };
	const struct alloc_operation kernels = { "points of kernels", merge_all, 50 };
	const struct alloc_operation layers = { "points of layers", merge_all, 50 };
	struct captures *c;
	struct rfl_capture *capture;

	f = fixture_new();
	c = captures_new(f);
	for (size_t i = 0; i < 2; i++) {
		add_gpu_run(f, NULL, i ? "b" : "a", "fp32", i ? 8 : 4, 100);
		set(&f->rows[i].model, "mnist_cnn");
		f->rows[i].img_size = 28;
		f->rows[i].classes = 10;
	}
	use_peaks(f, state, GPU_PEAKS);
	capture = add_capture(c, "lab_gpu_mnist_cnn_fp32_bs4_prof");
	capture->steps = 1;
	add_kernel(c, "conv", 1, 1);
	know(add_kernel(c, "copy", 1, 1)->amount, RFL_QUANTITY_FLOPS, 0);
	give_bytes(capture, 2e7);
	give_flops(capture, RFL_QUANTITY_FLOPS_FP32, 2e8);
	capture = add_capture(c, "lab_gpu_mnist_cnn_fp32_bs8_prof");
	capture->steps = 1;
	give_bytes(capture, 1e12);
	add_capture(c, "lab_gpu_mnist_cnn_fp32");
	add_capture(c, "tuesday");
	assert_ok(make_runs(f), &f->err);
	assert_each_allocation_fails(&op);
	f->options.by = RFL_BY_KERNEL;
	assert_each_allocation_fails(&kernels);
	c->range[0][0].kind = RFL_RANGE_LAYER;
	c->range[0][0].name = "fwd/0";
	f->options.by = RFL_BY_LAYER;
	assert_each_allocation_fails(&layers);
	fixture_free(f);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(points_with_counters),
	};

	watch_allocations();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
