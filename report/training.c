/* training.c - training runs to accuracy as tables. */
#include "report/training.h"

#include <math.h>

#include "base/num.h"

/* Totals of a training run; texts are borrowed. */
struct device_row {
	const char *device, *name, *status, *run_id, *engine, *reason;
	int64_t epochs;
	double train_s, epoch_s, test_s, samples_per_s, best, last, speedup;
};

struct epoch_row {
	const char *device;
	struct rfl_epoch e;
};

#define COMPLETE                  1U
#define PERCENT                   .scale = 0.01, .decimals = 2
#define EPOCH(kind, member, ...)  RFL_COLUMN(kind, struct epoch_row, e.member, #member, __VA_ARGS__)
#define DEVICE(kind, member, ...) RFL_COLUMN(kind, struct device_row, member, __VA_ARGS__)

static const struct rfl_column epoch_columns[] = {
	RFL_COLUMN(TEXT, struct epoch_row, device, "device", "Device"),
	EPOCH(INT, epoch, "Epoch"),
	EPOCH(REAL, lr, "Learning rate", .digits = 3),
	EPOCH(REAL, train_loss, "Training loss"),
	EPOCH(REAL, train_accuracy, "Training accuracy %", PERCENT),
	EPOCH(REAL, test_loss, "Test loss"),
	EPOCH(REAL, test_accuracy, "Test accuracy %", PERCENT),
	EPOCH(REAL, train_s, "Training s"),
	EPOCH(REAL, test_s, "Test s", .digits = 3),
	EPOCH(REAL, samples_per_s, "Samples/s"),
};

static const struct rfl_column device_columns[] = {
	DEVICE(TEXT, device, "device", "Device"),
	DEVICE(TEXT, name, "device_name", "Name"),
	DEVICE(TEXT, status, "status", "Status"),
	DEVICE(TEXT, reason, "reason", "Reason", .when = COMPLETE),
	DEVICE(TEXT, run_id, "run_id", "Run", .when = COMPLETE),
	DEVICE(TEXT, engine, "engine", "Engine", .when = COMPLETE),
	DEVICE(INT, epochs, "epochs", "Epochs"),
	DEVICE(REAL, train_s, "train_s", "Training s"),
	DEVICE(REAL, epoch_s, "train_s_per_epoch", "s per epoch"),
	DEVICE(REAL, test_s, "test_s", "Test s", .digits = 3),
	DEVICE(REAL, samples_per_s, "samples_per_s", "Samples/s"),
	DEVICE(REAL, best, "best_test_accuracy", "Best test accuracy %", PERCENT),
	DEVICE(REAL, last, "test_accuracy", "Last test accuracy %", PERCENT),
	DEVICE(REAL, speedup, "speedup", "Speed-up", .digits = 3),
};

struct rfl_table *rfl_training_epochs(const struct rfl_training *all, size_t n)
{
	struct rfl_table *t = rfl_table_new(epoch_columns, RFL_ARRAY_LEN(epoch_columns));

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < all[i].epochs->n; k++) {
			const struct epoch_row row = { all[i].device, all[i].epochs->rows[k] };

			rfl_table_add(t, &row, 1, sizeof(row));
		}
	return t;
}

/* The training against which the others are compared. */
static const struct rfl_training *first_of(const struct rfl_training *all, size_t n)
{
	size_t i = 0;

	while (i + 1 < n && all[i].epochs->n == 0)
		i++;
	return &all[i];
}

static struct device_row row_of(const struct rfl_training *t, const struct rfl_training *first)
{
	const struct rfl_epochs *e = t->epochs;
	struct device_row row = {
		.device = t->device,
		.name = t->row->device_name,
		.status = t->row->status,
		.run_id = t->row->run_id,
		.engine = t->row->engine_id,
		.reason = t->row->error_text,
		.epochs = (int64_t)e->n,
		.best = (double)NAN,
		.last = (double)NAN,
	};
	double samples = 0, theirs = 0, own = 0;

	for (size_t i = 0; i < e->n; i++) {
		row.train_s += e->rows[i].train_s;
		row.test_s += e->rows[i].test_s;
		samples += e->rows[i].samples_per_s * e->rows[i].train_s;
		row.best = fmax(row.best, e->rows[i].test_accuracy); /* fmax() ignores NaN */
		row.last = e->rows[i].test_accuracy;
		if (i < first->epochs->n) { /* compare the epochs that both have */
			theirs += first->epochs->rows[i].train_s;
			own += e->rows[i].train_s;
		}
	}
	if (e->n == 0)
		row.train_s = row.test_s = (double)NAN;
	row.epoch_s = row.train_s / (double)e->n;
	row.samples_per_s = samples / row.train_s;
	row.speedup = own > 0 ? theirs / own : (double)NAN;
	return row;
}

struct rfl_table *rfl_training_devices(const struct rfl_training *all, size_t n, bool complete)
{
	struct rfl_table *t = rfl_table_of(device_columns, RFL_ARRAY_LEN(device_columns),
					   complete ? COMPLETE : 0);
	const struct rfl_training *first = first_of(all, n);
	const struct rfl_ledger_row *r = first->row;

	for (size_t i = 0; i < n; i++) {
		const struct device_row row = row_of(&all[i], first);

		rfl_table_add(t, &row, 1, sizeof(row));
	}
	if (r->model && r->data_mode && r->optimizer && r->precision)
		rfl_table_note(t,
			       "%s on %s: %s, learning rate %g, weight decay %g, batch size %lld, "
			       "%s, seed %lld.",
			       r->model, r->data_mode, r->optimizer, r->lr, r->weight_decay,
			       (long long)r->batch, r->precision, (long long)r->seed);
	if (n > 1)
		rfl_table_note(t, "Speed-up: training time of %s / training time, without tests.",
			       first->device);
	for (size_t i = 0; i < n; i++)
		if (all[i].row->error_text)
			rfl_table_note(t, "%s: %s", all[i].device, all[i].row->error_text);
	return t;
}

void rfl_training_say(const struct rfl_training *all, size_t n, size_t i, struct rfl_buf *out)
{
	const struct rfl_training *first = first_of(all, n);
	const struct device_row row = row_of(&all[i], first);
	char train[RFL_NUM_MAX], rate[RFL_NUM_MAX];

	rfl_buf_printf(out, "%s: ", row.device ? row.device : "unknown device");
	if (row.epochs == 0) {
		rfl_buf_printf(out, "%s%s%s.", row.status ? row.status : "not trained",
			       row.reason ? ": " : "", row.reason ? row.reason : "");
		return;
	}
	rfl_num_people(row.train_s, 4, train);
	rfl_num_people(row.samples_per_s, 4, rate);
	if (isnan(row.last))
		rfl_buf_puts(out, "no test");
	else
		rfl_buf_printf(out, "%.2f %% of the test set", 100 * row.last);
	rfl_buf_printf(out, " after %lld epoch%s", (long long)row.epochs,
		       row.epochs == 1 ? "" : "s");
	if (row.best > row.last)
		rfl_buf_printf(out, ", at best %.2f %%", 100 * row.best);
	rfl_buf_printf(out, "; %s s of training, %s samples/s", train, rate);
	if (&all[i] != first && !isnan(row.speedup))
		rfl_buf_printf(out, ", %.3g times as fast as %s", row.speedup, first->device);
	rfl_buf_putc(out, '.');
}
