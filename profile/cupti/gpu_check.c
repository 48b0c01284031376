/* gpu_check.c - checks the conditions for counting on a GPU one by one. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "profile/cupti/impl.h"

const char *const rfl_gpu_check_state_names[] = { "ok", "failed", "skipped", NULL };

struct checker {
	struct rfl_gpu_check *check;
	const struct rfl_gpu_check_request *request;
	const char *precision;
	struct rfl_cuda *cuda;
	struct rfl_cupti *lib;
	struct rfl_cupti_target target;
};

/* Append a row. @param text  the finding if OK, otherwise the reason */
static struct rfl_gpu_check_row *put(struct rfl_gpu_check *c, const char *what,
				     enum rfl_gpu_check_state state, const char *text)
{
	struct rfl_gpu_check_row *r = &c->rows[c->n < RFL_ARRAY_LEN(c->rows) ? c->n++ : c->n - 1];
	const bool ok = state == RFL_GPU_CHECK_OK;

	*r = (struct rfl_gpu_check_row){
		.what = what,
		.state = state,
		.detail = ok ? text : NULL,
		.reason = ok ? NULL : text,
		.rc = state == RFL_GPU_CHECK_FAILED ? RFL_EUNAVAILABLE : RFL_OK,
	};
	return r;
}

static void ok(struct rfl_gpu_check *c, const char *what, const char *detail)
{
	put(c, what, RFL_GPU_CHECK_OK, detail);
}

static void skip(struct rfl_gpu_check *c, const char *what, const char *reason)
{
	put(c, what, RFL_GPU_CHECK_SKIPPED, reason);
}

static struct rfl_gpu_check_row *fail(struct rfl_gpu_check *c, const char *what,
				      const struct rfl_err *err)
{
	return put(c, what, RFL_GPU_CHECK_FAILED, rfl_arena_strdup(c->arena, err->msg));
}

static void check_libraries(struct checker *l)
{
	struct rfl_gpu_check *c = l->check;
	struct rfl_cupti_places places = l->request->places;
	struct rfl_err no_device = RFL_ERR_INIT, no_cupti = RFL_ERR_INIT;
	const char *const *chips = NULL;
	bool no_driver = false;
	size_t n = 0;

	if (rfl_cuda_open(l->request->device, &no_driver, &l->cuda, &no_device) == RFL_OK) {
		places.driver_major = l->cuda->version / 1000;
		ok(c, "driver",
		   rfl_arena_printf(c->arena, "for CUDA %d.%d", l->cuda->version / 1000,
				    l->cuda->version % 1000 / 10));
		ok(c, "device",
		   rfl_arena_printf(c->arena, "%d: %s, compute capability %d.%d",
				    l->request->device, l->cuda->name, l->cuda->capability / 10,
				    l->cuda->capability % 10));
	} else if (no_driver) {
		fail(c, "driver", &no_device);
		skip(c, "device", "not checked: the driver is unavailable");
	} else {
		ok(c, "driver", "works");
		fail(c, "device", &no_device);
	}
	if (rfl_cupti_open(&places, &l->lib, &no_cupti) == RFL_OK &&
	    rfl_cupti_chips(l->lib, &chips, &n, &no_cupti) == RFL_OK) {
		ok(c, "CUPTI",
		   rfl_arena_printf(c->arena, "%s, version %u, supports %zu chips", l->lib->path,
				    (unsigned)l->lib->version, n));
		return;
	}
	fail(c, "CUPTI", &no_cupti);
	rfl_cupti_close(l->lib);
	l->lib = NULL;
}

/* The conditions that the target checks. */
static const struct {
	const char *what, *holds;
} gates[] = {
	[RFL_CUPTI_GATE_START] = { "profiler", "CUPTI works with this driver" },
	[RFL_CUPTI_GATE_CHIP] = { "chip", NULL },
	[RFL_CUPTI_GATE_SUPPORT] = { "support",
				     "the device and its configuration support counting" },
	[RFL_CUPTI_GATE_PERMISSION] = { "permission", NULL },
};

static const char *const permissions[] = {
	[RFL_COUNTERS_UNKNOWN] = "counters may be read",
	[RFL_COUNTERS_ALL] = "counters may be read; the driver allows all users",
	[RFL_COUNTERS_ADMIN] =
		"counters may be read; the driver allows only administrators, and you are one",
};

static void check_target(struct checker *l)
{
	struct rfl_gpu_check *c = l->check;
	enum rfl_counter_access access = rfl_cuda_counter_access(l->request->params_path);
	const bool asked = l->cuda && l->lib;
	struct rfl_err err = RFL_ERR_INIT;

	if (asked)
		(void)!rfl_cupti_target_init(&l->target, l->lib, l->cuda, access, &err);
	for (size_t i = 0; i < RFL_ARRAY_LEN(gates); i++)
		if (!asked)
			skip(c, gates[i].what,
			     l->lib ? "not checked: the GPU is unavailable"
				    : "not checked: CUPTI is unavailable");
		else if (i == (size_t)l->target.gate)
			fail(c, gates[i].what, &err);
		else if (i > (size_t)l->target.gate)
			skip(c, gates[i].what, "not checked: an earlier check failed");
		else if (i == RFL_CUPTI_GATE_CHIP)
			ok(c, gates[i].what, rfl_arena_strdup(c->arena, l->target.chip));
		else if (i == RFL_CUPTI_GATE_SUPPORT && l->target.limited)
			ok(c, gates[i].what, "the device supports only some metrics");
		else
			ok(c, gates[i].what, gates[i].holds ? gates[i].holds : permissions[access]);
}

static void check_sessions(struct checker *l)
{
	struct rfl_gpu_check *c = l->check;
	RFL_AUTOPTR(cupti_plan) plan = NULL;
	struct rfl_err err = RFL_ERR_INIT;
	size_t first = c->n;
	bool some = false;

	if (rfl_cupti_plan_new(l->lib, l->target.chip, l->target.availability,
			       RFL_SET_CORE | RFL_SET_FLOPS | RFL_SET_LINKS, l->precision, &plan,
			       &err) != RFL_OK) {
		fail(c, "counters", &err);
		return;
	}
	for (const struct rfl_cupti_planned *s = plan->sessions; s < plan->sessions + plan->n;
	     s++) {
		const char *what = rfl_arena_printf(c->arena, "counters %s", s->name);
		RFL_AUTO(buf) text = { 0 };

		rfl_cupti_planned_text(s, &text);
		if (s->why.rc != RFL_OK)
			fail(c, what, &s->why);
		else if (s->metrics.n == 0)
			skip(c, what, "the chip has none of these counters");
		else
			ok(c, what, rfl_arena_strdup(c->arena, rfl_buf_str(&text)));
		some |= s->why.rc == RFL_OK && s->metrics.n > 0;
	}
	for (size_t i = first; i < c->n && some; i++)
		c->rows[i].rc = RFL_EFAILED; /* ignored unless the row is a failure */
}

static void check_selftest(struct checker *l)
{
	const char *permission = gates[RFL_CUPTI_GATE_PERMISSION].what;
	struct rfl_gpu_check *c = l->check;
	struct rfl_selftest t = { .n = 0 };
	struct rfl_err err = RFL_ERR_INIT;

	if (rfl_selftest_run(l->cuda, &l->target, l->precision, RFL_SET_CORE, &t, &err) == RFL_OK)
		(void)!rfl_selftest_run(l->cuda, &l->target, l->precision, RFL_SET_FLOPS, &t, &err);
	for (const struct rfl_selftest_row *r = t.rows; r < t.rows + t.n; r++) {
		const char *what = rfl_arena_printf(c->arena, "self-test %s",
						    rfl_quantity_info(r->quantity)->name);
		const bool ecc = rfl_selftest_is_ecc(&t, r);
		const double ratio = rfl_selftest_ratio(r);

		if (isnan(ratio)) {
			skip(c, what, rfl_arena_strdup(c->arena, r->reason));
			continue;
		}
		struct rfl_gpu_check_row *out =
			put(c, what, RFL_GPU_CHECK_OK,
			    rfl_arena_printf(c->arena, "%.4f of the known value of %s%s", ratio,
					     r->work, ecc ? " (including ECC check bits)" : ""));
		if (fabs(ratio - 1) > RFL_SELFTEST_TOLERANCE && !ecc) {
			out->state = RFL_GPU_CHECK_FAILED;
			out->reason =
				"the counter is off by more than 2 %: end other programs on the "
				"GPU, because they are counted too, or set RFL_CUPTI_PATH to the "
				"directory of another CUPTI, and check again";
			out->rc = RFL_EFAILED;
		}
	}
	if (err.rc == RFL_OK)
		return;
	if (err.native != RFL_CUPTI_INSUFFICIENT_PRIVILEGES &&
	    err.native != RFL_CUPTI_VIRTUALIZED_PRIVILEGES) {
		fail(c, "self-test", &err)->rc =
			err.rc == RFL_EFAILED ? RFL_EFAILED : RFL_EUNAVAILABLE;
		return;
	}
	/* some systems deny permission only when counting begins: fail the permission row */
	for (size_t i = 0; i < c->n; i++) {
		const size_t n = c->n;

		if (strcmp(c->rows[i].what, permission) != 0)
			continue;
		c->n = i;
		fail(c, permission, &err);
		c->n = n;
	}
	skip(c, "self-test", "not checked: an earlier check failed");
}

struct rfl_gpu_check *rfl_gpu_check_new(const struct rfl_gpu_check_request *request)
{
	struct rfl_arena *arena = rfl_arena_new();
	struct rfl_gpu_check *c = rfl_arena_array(arena, 1, sizeof(*c));
	struct checker l = { .check = c,
			     .request = request,
			     .precision = request->precision ? request->precision : "fp32" };

	c->arena = arena;
	check_libraries(&l);
	check_target(&l);
	const bool open = l.target.gate == RFL_CUPTI_GATE_OPEN;
	if (open)
		check_sessions(&l);
	else
		skip(c, "counters", "not checked: an earlier check failed");
	if (request->self_test && open)
		check_selftest(&l);
	else if (request->self_test)
		skip(c, "self-test", "not checked: an earlier check failed");
	rfl_cupti_target_fini(&l.target);
	rfl_cupti_close(l.lib);
	rfl_cuda_close(l.cuda);
	return c;
}

void rfl_gpu_check_free(struct rfl_gpu_check *c)
{
	if (c)
		rfl_arena_free(c->arena);
}
