/*
 * doctor_counters.c - what `roofline doctor` says of counters: of the processor, of GPUs, and of
 * the level that the kernel allows. Nothing of the main job needs them.
 */
#include <string.h>

#include "base/alloc.h"
#include "cli/cmd/doctor_checks.h"
#include "cli/inventory.h"
#include "profile/perf.h"

#define PARANOID_OWN  2 /* up to here a process may count itself */
#define PARANOID_NONE 99

#define TEXT(d, ...) rfl_doctor_text(rfl_arena_printf((d)->arena, __VA_ARGS__))

static const char *counted(struct rfl_doctor *d, const struct rfl_perf_status *s)
{
	if (s->hardware == 0)
		return TEXT(d, "CPU: only what the kernel counts (task clock, page faults): %s",
			    s->no_hardware);
	if (s->flops == 0 && s->dram == 0)
		return TEXT(d,
			    "CPU: %zu hardware events of %s, without FLOPs: %s; and without DRAM "
			    "bytes: %s",
			    s->hardware, s->processor, s->no_flops, s->no_dram);
	if (s->flops == 0 || s->dram == 0)
		return TEXT(d, "CPU: %zu hardware events of %s, without %s: %s", s->hardware,
			    s->processor, s->flops == 0 ? "FLOPs" : "DRAM bytes",
			    s->flops == 0 ? s->no_flops : s->no_dram);
	return TEXT(d, "CPU: %zu hardware events of %s, FLOPs and DRAM bytes among them",
		    s->hardware, s->processor);
}

static void check_processor_counters(struct rfl_doctor *d)
{
	struct rfl_perf_status s;
	struct rfl_err err = RFL_ERR_INIT;
	const bool any = rfl_perf_look(&s, &err) == RFL_OK;
	const bool all = any && s.flops > 0 && s.dram > 0;

	rfl_doctor_add(d, (struct rfl_doctor_check){
				  .name = "counters",
				  .verdict = !any || s.hardware == 0 ? RFL_DOCTOR_NO
					     : all                   ? RFL_DOCTOR_OK
								     : RFL_DOCTOR_WARN,
				  .finding = any ? counted(d, &s) : TEXT(d, "CPU: %s", err.msg),
				  .advice = all ? NULL
						: "not needed: FLOPs and bytes are counted "
						  "analytically",
			  });
	if (!any || s.paranoid == PARANOID_NONE)
		return;
	rfl_doctor_add(
		d, (struct rfl_doctor_check){
			   .name = "paranoid",
			   .verdict = s.paranoid > PARANOID_OWN ? RFL_DOCTOR_WARN : RFL_DOCTOR_OK,
			   .finding = TEXT(d,
					   "kernel.perf_event_paranoid is %d: who is not "
					   "root may count %s",
					   s.paranoid,
					   s.paranoid > PARANOID_OWN ? "nothing"
					   : s.paranoid == PARANOID_OWN
						   ? "his own processes in user mode"
					   : s.paranoid == 1 ? "his own processes"
							     : "whole processors"),
			   .advice = s.paranoid > PARANOID_OWN
					     ? "sudo sysctl kernel.perf_event_paranoid=2"
					     : NULL,
		   });
}

static void check_gpu_counters(const struct rfl_inventory *inv, struct rfl_doctor *d)
{
	for (size_t i = 0; i < inv->n; i++) {
		const struct rfl_item *item = &inv->items[i];

		if (strcmp(item->registry, "sources") != 0 || strcmp(item->name, "cupti") != 0)
			continue;
		rfl_doctor_add(d, (struct rfl_doctor_check){
					  .name = "counters",
					  .verdict = item->ok ? RFL_DOCTOR_OK : RFL_DOCTOR_NO,
					  .finding = TEXT(d, "GPU: %s",
							  item->ok ? "CUPTI can count here"
								   : item->reason),
					  .advice = item->ok ? NULL
							     : "every condition, one by one: "
							       "roofline counters check",
				  });
	}
}

void rfl_doctor_check_counters(const struct rfl_inventory *inv, struct rfl_doctor *d)
{
	check_processor_counters(d);
	check_gpu_counters(inv, d);
}
