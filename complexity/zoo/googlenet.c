/*
 * googlenet.c - GoogLeNet (Szegedy et al., "Going Deeper with Convolutions", CVPR 2015), as
 * torchvision writes it: with batch norm, and with 3x3 convolutions where the paper has 5x5.
 *
 * googlenet is the network that is published with weights, without auxiliary heads; googlenet_aux
 * is what is trained, with the two heads of torchvision's default constructor.
 */
#include "complexity/zoo/blocks.h"

struct googlenet {
	bool heads; /* auxiliary ones */
};

/* Table 1 of the paper: a line is a module, or the pooling between two of them. */
static const struct inception {
	const char *name;
	int64_t window;                                   /* of a pooling; 0: a module */
	int64_t one, reduce3, three, reduce5, five, pool; /* channels of the branches */
} modules[] = {
	{ "inception3a", 0, 64, 96, 128, 16, 32, 32 },
	{ "inception3b", 0, 128, 128, 192, 32, 96, 64 },
	{ .name = "maxpool3", .window = 3 },
	{ "inception4a", 0, 192, 96, 208, 16, 48, 64 },
	{ "inception4b", 0, 160, 112, 224, 24, 64, 64 },
	{ "inception4c", 0, 128, 128, 256, 24, 64, 64 },
	{ "inception4d", 0, 112, 144, 288, 32, 64, 64 },
	{ "inception4e", 0, 256, 160, 320, 32, 128, 128 },
	{ .name = "maxpool4", .window = 2 },
	{ "inception5a", 0, 256, 160, 320, 32, 128, 128 },
	{ "inception5b", 0, 384, 192, 384, 48, 128, 128 },
};

/* Lines of the table in front of which the auxiliary heads branch off. */
enum { HEAD1 = 4, HEAD2 = 7, MAX_NODES = 256 };

static int inception(struct rfl_net_builder *b, int x, const struct inception *m)
{
	int branch[4];

	rfl_net_enter_block(b, "%s", m->name);
	branch[0] = rfl_zoo_basic(b, x, "branch1", m->one, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, x, "branch2.0", m->reduce3, .kernel = 1);
	branch[1] = rfl_zoo_basic(b, branch[1], "branch2.1", m->three, .kernel = 3, .pad = 1);
	branch[2] = rfl_zoo_basic(b, x, "branch3.0", m->reduce5, .kernel = 1);
	branch[2] = rfl_zoo_basic(b, branch[2], "branch3.1", m->five, .kernel = 3, .pad = 1);
	branch[3] = rfl_max_pool(b, x, "branch4.0", .kernel = 3, .stride = 1, .pad = 1,
				 .ceil_mode = true);
	branch[3] = rfl_zoo_basic(b, branch[3], "branch4.1", m->pool, .kernel = 1);
	x = rfl_concat(b, branch, 4, 0);
	rfl_net_leave(b);
	return x;
}

/* Returns the head's last node; nothing reads it. */
static int auxiliary(struct rfl_net_builder *b, int x, const char *name, int64_t classes)
{
	rfl_net_enter(b, "%s", name);
	b->in_auxiliary = true;
	x = rfl_adaptive_avg_pool(b, x, NULL, 4, 4);
	x = rfl_zoo_basic(b, x, "conv", 128, .kernel = 1);
	x = rfl_flatten(b, x);
	x = rfl_linear(b, x, "fc1", 1024, true);
	x = rfl_relu(b, x, NULL, RFL_INPLACE);
	x = rfl_dropout(b, x, "dropout", 0.7);
	x = rfl_linear(b, x, "fc2", classes, true);
	b->in_auxiliary = false;
	rfl_net_leave(b);
	return x;
}

static int inceptions(struct rfl_net_builder *b, int x, size_t first, size_t end)
{
	for (const struct inception *m = modules + first; m < modules + end; m++)
		x = m->window ? rfl_max_pool(b, x, m->name, .kernel = m->window, .stride = 2,
					     .ceil_mode = true)
			      : inception(b, x, m);
	return x;
}

static int build(struct rfl_net_builder *b, int x, const struct rfl_zoo_sizes *sizes)
{
	const struct googlenet *g = sizes->config;
	int head[2], end[2], order[MAX_NODES], n = 0;

	b->eps = 0.001;
	x = rfl_zoo_basic(b, x, "conv1", 64, .kernel = 7, .stride = 2, .pad = 3);
	x = rfl_max_pool(b, x, "maxpool1", .kernel = 3, .stride = 2, .ceil_mode = true);
	x = rfl_zoo_basic(b, x, "conv2", 64, .kernel = 1);
	x = rfl_zoo_basic(b, x, "conv3", 192, .kernel = 3, .pad = 1);
	x = rfl_max_pool(b, x, "maxpool2", .kernel = 3, .stride = 2, .ceil_mode = true);
	x = head[0] = inceptions(b, x, 0, HEAD1);
	end[0] = g->heads ? auxiliary(b, x, "aux1", sizes->classes) : x;
	x = head[1] = inceptions(b, x, HEAD1, HEAD2);
	end[1] = g->heads ? auxiliary(b, x, "aux2", sizes->classes) : x;
	x = inceptions(b, x, HEAD2, RFL_ARRAY_LEN(modules));
	if (g->heads) {
		/* They run in the middle of the network and stand last in the state_dict. */
		const int from[] = { end[0], end[1], head[0], head[1] };
		const int to[] = { head[1], x, end[0], end[1] };

		for (int i = 0; i < 4; i++)
			for (int node = from[i] + 1; node <= to[i] && n < MAX_NODES; node++)
				order[n++] = node;
		rfl_net_state_dict_order(b, order, n);
	}
	x = rfl_adaptive_avg_pool(b, x, "avgpool", 1, 1);
	x = rfl_flatten(b, x);
	x = rfl_dropout(b, x, "dropout", 0.2);
	return rfl_linear(b, x, "fc", sizes->classes, true);
}

#define GOOGLENET(name_, title_, summary_, heads_)                  \
	RFL_ZOO_IMAGENET("googlenet", name_, title_, summary_, 224, \
			 &(const struct googlenet){ .heads = (heads_) })

static const struct rfl_zoo_entry entries[] = {
	GOOGLENET("googlenet", "GoogLeNet",
		  "inception modules with batch norm (Szegedy et al. 2015), no auxiliary heads",
		  false),
	GOOGLENET("googlenet_aux", "GoogLeNet with auxiliary heads",
		  "the same with the two heads that training adds", true),
};

RFL_ZOO_FAMILY(googlenet, entries, build);
