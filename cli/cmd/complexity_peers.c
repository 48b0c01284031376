/*
 * complexity_peers.c - --as of roofline complexity: the counters that were named.
 */
#include "cli/cmd/complexity.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static size_t count_peers(void)
{
	size_t n = 0;

	while (rfl_peer_at(n))
		n++;
	return n;
}

static void add_once(struct rfl_complexity_report *r, const struct rfl_peer *peer)
{
	for (size_t i = 0; i < r->options.npeers; i++)
		if (r->peers[i] == peer)
			return;
	r->peers[r->options.npeers++] = peer;
}

enum rfl_rc rfl_complexity_find_peers(struct rfl_complexity_report *r, struct rfl_err *err)
{
	const struct rfl_opt_list *names = &r->args->peers;
	size_t all = count_peers();

	if (!names->n)
		return RFL_OK;
	r->peers = rfl_alloc_array(all, sizeof(*r->peers));
	if (!r->peers)
		return rfl_fail(err, RFL_ENOMEM, 0, "out of memory");
	r->options.peers = r->peers;
	for (size_t i = 0; i < names->n; i++) {
		const struct rfl_peer *peer = NULL;
		struct rfl_err why = RFL_ERR_INIT;

		if (strcmp(names->items[i], "all") == 0) {
			for (size_t k = 0; k < all; k++)
				add_once(r, rfl_peer_at(k));
			continue;
		}
		if (rfl_peer_find(names->items[i], &peer, &why) != RFL_OK)
			return rfl_fail(err, RFL_EUSAGE, 0, "--as: %s", why.msg);
		add_once(r, peer);
	}
	return RFL_OK;
}
