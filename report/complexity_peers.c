/*
 * complexity_peers.c - what other counters say of the networks, beside our own count.
 */
#include "report/complexity_impl.h"

#include <math.h>

static const struct rfl_column columns[] = {
	{ .key = "model", .title = "Model", .kind = RFL_COLUMN_TEXT },
	{ .key = "context", .title = "Context", .kind = RFL_COLUMN_INT },
	{ .key = "tool", .title = "Tool", .kind = RFL_COLUMN_TEXT },
	{ .key = "version", .title = "Version", .kind = RFL_COLUMN_TEXT },
	{ .key = "prints", .title = "It says", .kind = RFL_COLUMN_TEXT },
	{ .key = "unit", .title = "It means", .kind = RFL_COLUMN_TEXT },
	{ .key = "total", .title = "Total", .kind = RFL_COLUMN_INT },
	{ .key = "core", .title = "Core count", .kind = RFL_COLUMN_INT },
	{ .key = "ratio", .title = "Ratio", .kind = RFL_COLUMN_REAL, .digits = 5 },
};

enum { CONTEXT_COLUMN = 1 };

/* The context is left out where no network has one. */
static struct rfl_table *new_table(bool context)
{
	struct rfl_column kept[RFL_ARRAY_LEN(columns)];
	size_t n = 0;

	for (size_t i = 0; i < RFL_ARRAY_LEN(columns); i++)
		if (context || i != CONTEXT_COLUMN)
			kept[n++] = columns[i];
	return rfl_table_new(kept, n);
}

int64_t rfl_summary_core(const struct rfl_summary *s, const struct rfl_peer *peer)
{
	int64_t flops = rfl_count_forward_flops(&s->one_forward);

	return peer->is_flops ? flops : flops / 2;
}

enum rfl_rc rfl_summary_peer(struct rfl_summary *s, const struct rfl_peer *peer, int64_t *total,
			     struct rfl_err *why, struct rfl_err *err)
{
	enum rfl_rc rc;

	rfl_err_clear(why);
	rc = s->counted ? RFL_OK : rfl_summary_at(s, 1, err);
	if (rc != RFL_OK)
		return rc;
	rc = rfl_peer_total(peer, s->net, total, why);
	if (rc == RFL_OK || rc == RFL_EUNAVAILABLE)
		return RFL_OK;
	return rfl_fail(err, rc, why->native, "%s", why->msg);
}

static enum rfl_rc add_row(struct rfl_table *t, struct rfl_summary *s, const struct rfl_peer *peer,
			   bool context, struct rfl_err *err)
{
	int64_t total = 0, core;
	struct rfl_err why = RFL_ERR_INIT;
	enum rfl_rc rc = rfl_summary_peer(s, peer, &total, &why, err);

	if (rc != RFL_OK)
		return rc;
	core = rfl_summary_core(s, peer);
	rfl_table_text(t, s->name);
	if (context && s->context_length)
		rfl_table_int(t, s->context_length);
	else if (context)
		rfl_table_null(t);
	rfl_table_text(t, peer->name);
	rfl_table_text(t, peer->version);
	rfl_table_text(t, peer->prints);
	rfl_table_text(t, peer->is_flops ? "FLOPs" : "MACs");
	if (why.rc == RFL_OK)
		rfl_table_int(t, total);
	else
		rfl_table_null(t);
	rfl_table_int(t, core);
	rfl_table_real(t, why.rc == RFL_OK && core > 0 ? (double)total / (double)core : NAN);
	if (why.rc != RFL_OK)
		rfl_table_note(t, "%s, %s: %s.", s->name, peer->name, why.msg);
	return RFL_OK;
}

static void note_peer(struct rfl_table *t, const struct rfl_peer *peer)
{
	rfl_table_note(t, "%s %s: %s.%s%s%s", peer->name, peer->version, peer->rule,
		       peer->wrong ? " Known errors: " : "", peer->wrong ? peer->wrong : "",
		       peer->wrong ? "." : "");
}

enum rfl_rc rfl_summary_peers_table(struct rfl_summary *const *summaries, size_t n,
				    const struct rfl_summary_options *options,
				    enum rfl_format format, struct rfl_buf *out,
				    struct rfl_err *err)
{
	bool context = rfl_summary_any_context(summaries, n);
	struct rfl_table *t = new_table(context);
	enum rfl_rc rc = RFL_OK;

	if (!t)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	if (rfl_summary_for_people(format))
		rfl_buf_puts(out, "What other counters say of one forward pass of one sample\n\n");
	for (size_t i = 0; i < n && rc == RFL_OK; i++)
		for (size_t k = 0; k < options->npeers && rc == RFL_OK; k++)
			rc = add_row(t, summaries[i], options->peers[k], context, err);
	rfl_table_note(t, "Core count: multiply-adds of convolutions and matrix products, in the "
			  "unit that the tool means; FLOPs = 2 x MACs.");
	for (size_t k = 0; k < options->npeers; k++)
		note_peer(t, options->peers[k]);
	if (rc == RFL_OK)
		rc = rfl_table_render(t, format, out, err);
	rfl_table_free(t);
	return rc;
}

enum rfl_rc rfl_summary_peers_json(struct rfl_summary *s, const struct rfl_summary_options *options,
				   json_t *list, struct rfl_err *err)
{
	for (size_t i = 0; i < options->npeers; i++) {
		const struct rfl_peer *peer = options->peers[i];
		struct rfl_err why = RFL_ERR_INIT;
		int64_t total = 0;
		enum rfl_rc rc = rfl_summary_peer(s, peer, &total, &why, err);
		json_t *known;

		if (rc != RFL_OK)
			return rc;
		known = why.rc == RFL_OK ? json_integer((json_int_t)total) : json_null();
		if (json_array_append_new(
			    list, json_pack("{s:s, s:s, s:s, s:b, s:o, s:I, s:s?, s:s, s:s?}",
					    "tool", peer->name, "version", peer->version, "prints",
					    peer->prints, "is_flops", peer->is_flops, "total",
					    known, "core", (json_int_t)rfl_summary_core(s, peer),
					    "reason", why.rc == RFL_OK ? NULL : why.msg, "rule",
					    peer->rule, "wrong", peer->wrong)) != 0)
			return rfl_fail(err, RFL_ENOMEM, 0, "%s: out of memory", s->name);
	}
	return RFL_OK;
}
