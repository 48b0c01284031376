/* training.c - trainings to accuracy as tables. */
#include "report/training.h"

#include <math.h>

#include "base/num.h"

/* Totals of a training; texts are borrowed. */
struct device_row {
	const char *device, *name, *status, *run_id, *engine, *reason;
	int64_t epochs;
	double train_s, epoch_s, test_s, samples_per_s, best, last, speedup;
};

struct epoch_row {
	const char *device;
	struct rfl_epoch e;
};

#define COMPLETE           1U
#define CELL(type, member) RFL_CELL(struct type, member)
#define TEXT(member_, title_, ...)                                                       \
	{                                                                                \
		CELL(device_row, member_), .key = #member_, .title = title_, __VA_ARGS__ \
	}
#define REAL(type, member_, key_, title_, ...)                                              \
	{                                                                                   \
		CELL(type, member_), .key = key_, .title = title_, .kind = RFL_COLUMN_REAL, \
				     __VA_ARGS__                                            \
	}
#define PERCENT .scale = 0.01, .decimals = 2

static const struct rfl_column epoch_columns[] = {
	{ CELL(epoch_row, device), .key = "device", .title = "Device" },
	{ CELL(epoch_row, e.epoch), .key = "epoch", .title = "Epoch", .kind = RFL_COLUMN_INT },
	REAL(epoch_row, e.lr, "lr", "Learning rate", .digits = 3),
	REAL(epoch_row, e.train_loss, "train_loss", "Training loss", .digits = 4),
	REAL(epoch_row, e.train_accuracy, "train_accuracy", "Training accuracy %", PERCENT),
	REAL(epoch_row, e.test_loss, "test_loss", "Test loss", .digits = 4),
	REAL(epoch_row, e.test_accuracy, "test_accuracy", "Test accuracy %", PERCENT),
	REAL(epoch_row, e.train_s, "train_s", "Training s", .digits = 4),
	REAL(epoch_row, e.test_s, "test_s", "Test s", .digits = 3),
	REAL(epoch_row, e.samples_per_s, "samples_per_s", "Samples/s", .digits = 4),
};

static const struct rfl_column device_columns[] = {
	TEXT(device, "Device", .when = 0),
	{ CELL(device_row, name), .key = "device_name", .title = "Name" },
	TEXT(status, "Status", .when = 0),
	TEXT(reason, "Reason", .when = COMPLETE),
	TEXT(run_id, "Run", .when = COMPLETE),
	TEXT(engine, "Engine", .when = COMPLETE),
	{ CELL(device_row, epochs), .key = "epochs", .title = "Epochs", .kind = RFL_COLUMN_INT },
	REAL(device_row, train_s, "train_s", "Training s", .digits = 4),
	REAL(device_row, epoch_s, "train_s_per_epoch", "s per epoch", .digits = 4),
	REAL(device_row, test_s, "test_s", "Test s", .digits = 3),
	REAL(device_row, samples_per_s, "samples_per_s", "Samples/s", .digits = 4),
	REAL(device_row, best, "best_test_accuracy", "Best test accuracy %", PERCENT),
	REAL(device_row, last, "test_accuracy", "Last test accuracy %", PERCENT),
	REAL(device_row, speedup, "speedup", "Speed-up", .digits = 3),
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
