/*
 * inventory_models.c - the models that the program knows.
 */
#include "cli/inventory_impl.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "complexity/count.h"
#include "complexity/zoo.h"

/* "3x224x224, 1000 classes", "128 tokens, vocabulary 10000; also S": what a sample is, and other
 * names. */
static void write_detail(const struct rfl_zoo_model *m, struct rfl_buf *out)
{
	long long channels = m->channels ? m->channels : 3, size = m->image_size;

	if (m->context_length)
		rfl_buf_printf(out, "%lld tokens, vocabulary %lld", (long long)m->context_length,
			       (long long)m->classes);
	else
		rfl_buf_printf(out, "%lldx%lldx%lld, %lld classes", channels, size, size,
			       (long long)m->classes);
	for (const char *const *alias = m->aliases; alias && *alias; alias++)
		rfl_buf_printf(out, "%s %s", alias == m->aliases ? "; also" : ",", *alias);
}

static enum rfl_rc count(const struct rfl_zoo_model *m, struct rfl_item *item, struct rfl_err *err)
{
	const struct rfl_count_options one = { .batch = 1 };
	struct rfl_count *c = NULL;
	struct rfl_net *net = NULL;
	enum rfl_rc rc = rfl_zoo_build(m->name, NULL, &net, err);

	if (rc == RFL_OK)
		rc = rfl_count_net(net, &one, &c, err);
	if (rc == RFL_OK) {
		item->params = c->params;
		item->forward_flops = 2 * c->total.macs[RFL_PASS_FORWARD];
	}
	rfl_count_free(c);
	rfl_net_free(net);
	return rc;
}

enum rfl_rc rfl_collect_models(struct rfl_cli *cli, struct rfl_inventory *inv, struct rfl_err *err)
{
	const struct rfl_zoo_model *m;
	enum rfl_rc rc = RFL_OK;
	struct rfl_buf detail;

	(void)cli;
	rfl_buf_init(&detail, 0);
	for (size_t i = 0; rc == RFL_OK && (m = rfl_zoo_at(i)); i++) {
		struct rfl_item item = {
			.registry = "models",
			.name = m->name,
			.summary = m->summary,
		};

		rfl_buf_reset(&detail);
		write_detail(m, &detail);
		rc = rfl_buf_check(&detail, "list of models", err);
		if (rc == RFL_OK)
			rc = count(m, &item, err);
		if (rc != RFL_OK)
			break;
		item.detail = rfl_arena_strdup(inv->arena, rfl_buf_str(&detail));
		rc = item.detail ? rfl_inventory_add(inv, &item, err)
				 : rfl_fail(err, RFL_ENOMEM, 0, "list of models: out of memory");
	}
	rfl_buf_fini(&detail);
	return rc;
}
