/*
 * What the torch engine says and does about devices, on a machine that may have no other than its
 * CPU: there uploads, events and copies are the same calls.
 */
#include <math.h>

#include "tests/unit/torch_rig.h"

/* A device that cannot be used says why, and what to do; nothing is opened. */
static void absent_devices_say_why(void **state)
{
	static const enum rfl_device devices[] = { RFL_DEVICE_CUDA, RFL_DEVICE_MPS };

	(void)state;
	for (size_t i = 0; i < RFL_ARRAY_LEN(devices); i++) {
		struct rfl_engine_config config = config_of(RFL_LAYOUT_NCHW);
		struct rfl_engine *e = NULL;
		struct rfl_err err = RFL_ERR_INIT;

		if (ops->probe(devices[i], &err) == RFL_OK)
			continue; /* a GPU is here: tests/gpu */
		assert_int_equal(err.rc, RFL_EUNAVAILABLE);
		assert_says(&err, "run on the CPU");
		rfl_err_clear(&err);
		config.device = devices[i];
		assert_int_equal(ops->open(net, &config, &e, &err), RFL_EUNAVAILABLE);
		assert_null(e);
	}
	assert_int_equal(ops->probe(RFL_DEVICE_CPU, NULL), RFL_OK);
}

static double loss_of(struct rfl_engine *e, const struct rfl_batch *batch)
{
	struct rfl_err err = RFL_ERR_INIT;
	double loss = (double)NAN;

	assert_ok(ops->forward(e, batch, &err), &err);
	assert_ok(ops->loss(e, &loss, &err), &err);
	return loss;
}

/* An upload changes nothing but when the copy is made. */
static void uploaded_batch_gives_the_same(void **state)
{
	struct rfl_engine *e = open_plain();
	struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;
	double plain;

	(void)state;
	assert_ok(ops->set_mode(e, RFL_ENGINE_EVAL, &err), &err);
	plain = loss_of(e, &batch);
	for (uint64_t id = 0; id < 2; id++) {
		batch.id = id;
		for (int i = 0; i < 2; i++) {
			assert_ok(ops->upload(e, &batch, &err), &err);
			assert_true(loss_of(e, &batch) == plain);
			assert_ok(ops->uploaded(e, &err), &err);
		}
	}
	ops->close(e);
}

/* Times between events are of what was asked for between them. */
static void events_tell_time(void **state)
{
	struct rfl_engine *e = open_plain();
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_err err = RFL_ERR_INIT;
	double all = (double)NAN, part = (double)NAN;

	(void)state;
	assert_ok(ops->reserve_events(e, 3, &err), &err);
	assert_ok(ops->record_event(e, 0, &err), &err);
	(void)loss_of(e, &batch);
	assert_ok(ops->record_event(e, 1, &err), &err);
	(void)loss_of(e, &batch);
	assert_ok(ops->record_event(e, 2, &err), &err);
	assert_ok(ops->sync(e, &err), &err);
	assert_ok(ops->elapsed(e, 0, 2, &all, &err), &err);
	assert_ok(ops->elapsed(e, 0, 1, &part, &err), &err);
	assert_true(part > 0 && part < all && all < 60);
	/* what was not reserved */
	assert_int_equal(ops->record_event(e, 3, NULL), RFL_EFAILED);
	assert_int_equal(ops->elapsed(e, -1, 0, &all, NULL), RFL_EFAILED);
	ops->close(e);
}

/* What a CPU has no use for is refused by name, and what it does not know is not invented. */
static void cpu_says_what_it_has_not(void **state)
{
	struct rfl_engine *e = open_plain();
	const struct rfl_batch batch = batch_of(BATCH);
	struct rfl_engine_device device;
	struct rfl_engine_memory memory;
	struct rfl_err err = RFL_ERR_INIT;
	void *pinned = NULL;

	(void)state;
	assert_int_equal(ops->host_alloc(e, 64, &pinned, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "page-locked memory: requires a CUDA device, but this is cpu");
	assert_null(pinned);
	ops->host_free(e, NULL);
	rfl_err_clear(&err);
	assert_int_equal(ops->capture(e, &batch, true, true, &err), RFL_EUNSUPPORTED);
	assert_says(&err, "recording requires a CUDA device");
	rfl_err_clear(&err);
	assert_int_equal(ops->capture(e, &batch, false, true, &err), RFL_EINVAL);
	rfl_err_clear(&err);
	assert_int_equal(ops->replay(e, &batch, &err), RFL_EINVAL);
	assert_says(&err, "recorded step");
	rfl_err_clear(&err);
	assert_ok(ops->reset_memory(e, &err), &err);
	assert_ok(ops->memory(e, &memory, &err), &err);
	assert_true(isnan(memory.allocated_peak) && isnan(memory.reserved_peak));
	assert_ok(ops->device_info(e, &device, &err), &err);
	assert_string_equal(device.name, "");
	assert_string_equal(device.pci_bus_id, "");
	assert_string_equal(device.cuda_runtime, "");
	assert_string_equal(device.cudnn, "");
	assert_true(device.memory_bytes == -1);
	ops->close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absent_devices_say_why),
		cmocka_unit_test(uploaded_batch_gives_the_same),
		cmocka_unit_test(events_tell_time),
		cmocka_unit_test(cpu_says_what_it_has_not),
	};

	return run_with_torch(tests, RFL_ARRAY_LEN(tests));
}
