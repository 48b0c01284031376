/* kernel_update.h - the loss, and updates of parameters. */
#ifndef RFL_RUNNER_PLANNED_CUDA_KERNEL_UPDATE_H
#define RFL_RUNNER_PLANNED_CUDA_KERNEL_UPDATE_H

#ifndef __CUDACC_RTC__
#include "runner/planned/cuda/kernel_values.h"
#endif

/* ---- loss ---- */

/* The largest logit of the row from `at`, the first of equals. */
INLINE float largest_of(const struct rfl_k_loss *k, int64_t at, int64_t *best, int width)
{
	float largest = load_one(TYPE(k), k->logits, at);

	*best = 0;
	UNROLLED
	for (int64_t c = 0; c < k->classes; c += width) {
		const struct pack v = load(TYPE(k), k->logits, at + c, width);

		for (int j = 0; j < width; j++)
			if (v.at[j] > largest) {
				largest = v.at[j];
				*best = c + j;
			}
	}
	return largest;
}

INLINE double sum_of_exponentials(const struct rfl_k_loss *k, int64_t at, float largest, int width)
{
	double sum = 0;

	UNROLLED
	for (int64_t c = 0; c < k->classes; c += width) {
		const struct pack v = load(TYPE(k), k->logits, at + c, width);
		float part = 0;

		for (int j = 0; j < width; j++)
			part += expf(v.at[j] - largest);
		sum += (double)part;
	}
	return sum;
}

INLINE void row_loss(const struct rfl_k_loss *k, int64_t row, int width)
{
	const int64_t at = row * k->classes, label = k->labels[row];
	const float factor = (float)(k->weight * (double)k->state->scale / (double)k->n);
	int64_t best;
	const float largest = largest_of(k, at, &best, width);
	const double sum = sum_of_exponentials(k, at, largest, width);
	const float inverse = (float)(1 / sum);

	k->correct[row] = best == label;
	k->losses[row] =
		(float)(log(sum) + (double)(largest - load_one(TYPE(k), k->logits, at + label)));
	for (int64_t c = 0; k->gradient && c < k->classes; c += width) {
		struct pack v = load(TYPE(k), k->logits, at + c, width);

		for (int j = 0; j < width; j++)
			v.at[j] = factor * (expf(v.at[j] - largest) * inverse -
					    (c + j == label ? 1.0f : 0.0f));
		store(TYPE(k), k->gradient, at + c, v, width);
	}
}

INLINE void loss_at(const struct rfl_k_loss *k, int64_t row)
{
	if (k->classes % WIDE(TYPE(k)) == 0)
		row_loss(k, row, WIDE(TYPE(k)));
	else
		row_loss(k, row, 1);
}
UNITS(loss)

INLINE void totals_at(const struct rfl_k_totals *k, int64_t i)
{
	struct rfl_kernel_state *const s = k->state;
	double total = 0;
	int64_t correct = 0;

	(void)i;
	UNROLLED
	for (int64_t row = 0; row < k->rows; row++) {
		total += (double)k->losses[row];
		correct += k->correct[row];
	}
	s->loss = (k->first ? 0 : s->loss) + k->weight * (total / (double)k->rows);
	if (!k->last)
		return;
	s->score_loss += s->loss * (double)k->rows;
	s->score_rows += k->rows;
	s->score_correct += correct;
}
UNITS(totals)

/* ---- updates ---- */

INLINE void squares_at(const struct rfl_k_squares *k, int64_t chunk)
{
	double sum = 0;

	UNROLLED
	for (int64_t i = chunk; i < k->size; i += k->n)
		sum += (double)k->x[i] * (double)k->x[i];
	k->partials[chunk] = sum;
}
UNITS(squares)

INLINE void fold_squares_at(const struct rfl_k_fold_squares *k, int64_t chunk)
{
	double sum = 0;

	UNROLLED
	for (int64_t i = chunk; i < k->size; i += k->n)
		sum += k->from[i];
	k->to[chunk] = sum;
}
UNITS(fold_squares)

/* Change the scale of the loss after an update, or after one that is skipped. */
INLINE void rescale(struct rfl_kernel_state *s)
{
	if (s->skip) {
		s->skipped++;
		s->scale *= 0.5f;
		s->good = 0;
	} else if (++s->good == 2000) {
		s->scale = 2 * s->scale < INFINITE ? 2 * s->scale : s->scale;
		s->good = 0;
	}
}

INLINE void begin_at(const struct rfl_k_begin *k, int64_t i)
{
	(void)i;
	k->state->counter = k->counter;
	k->state->attempts = k->attempts;
	if (k->scale > 0) {
		k->state->scale = k->scale;
		k->state->good = 0;
		k->state->skipped = 0;
	}
}
UNITS(begin)

INLINE void decide_at(const struct rfl_k_decide *k, int64_t i)
{
	struct rfl_kernel_state *const s = k->state;
	double squares = 0, norm, steps;

	(void)i;
	UNROLLED
	for (int64_t c = 0; c < k->chunks; c++)
		squares += k->partials[c];
	norm = sqrt(squares) / (double)s->scale + 1e-6;
	s->factor = 1 / s->scale;
	if (k->grad_clip > 0 && !(norm <= k->grad_clip)) /* also NaN, as in PyTorch */
		s->factor = (float)(k->grad_clip / norm / (double)s->scale);
	s->attempts++;
	s->skip = k->scaling && !(squares - squares == 0);
	if (k->scaling)
		rescale(s);
	steps = (double)(s->attempts - s->skipped);
	s->correction1 = (float)(1 - pow(k->beta1, steps));
	s->correction2 = (float)(1 - pow(k->beta2, steps));
}
UNITS(decide)

INLINE void sgd_at(const struct rfl_k_sgd *k, int64_t i, int width)
{
	const struct pack g = load_floats(k->g, i, width);
	struct pack p = load_floats(k->p, i, width), v = { { 0 } };

	if (k->state->skip)
		return;
	if (k->mean)
		v = load_floats(k->mean, i, width);
	for (int j = 0; j < width; j++) {
		const float d = g.at[j] * k->state->factor + k->weight_decay * p.at[j];

		v.at[j] = k->mean ? k->momentum * v.at[j] + d : d;
		p.at[j] -= k->lr * v.at[j];
	}
	store_floats(k->p, i, p, width);
	if (k->mean)
		store_floats(k->mean, i, v, width);
	if (k->copy)
		store(TYPE(k), k->copy, i, p, width);
}
PACKS(sgd, FLOATS, 1)

INLINE void adam_at(const struct rfl_k_adam *k, int64_t i, int width)
{
	const float decay = k->decoupled ? 0 : k->weight_decay;
	const float shrink = k->decoupled ? 1 - k->lr * k->weight_decay : 1;
	const float step = k->lr / k->state->correction1, root = sqrtf(k->state->correction2);
	const struct pack g = load_floats(k->g, i, width);
	struct pack p = load_floats(k->p, i, width), mean = load_floats(k->mean, i, width);
	struct pack square = load_floats(k->square, i, width);

	if (k->state->skip)
		return;
	for (int j = 0; j < width; j++) {
		const float d = g.at[j] * k->state->factor + decay * p.at[j];
		const float m = k->beta1 * mean.at[j] + k->rest1 * d;
		const float v = k->beta2 * square.at[j] + k->rest2 * (d * d);

		mean.at[j] = m;
		square.at[j] = v;
		p.at[j] = p.at[j] * shrink - step * (m / (sqrtf(v) / root + k->eps));
	}
	store_floats(k->p, i, p, width);
	store_floats(k->mean, i, mean, width);
	store_floats(k->square, i, square, width);
	if (k->copy)
		store(TYPE(k), k->copy, i, p, width);
}
PACKS(adam, FLOATS, 1)

#endif
