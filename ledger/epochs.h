/*
 * epochs.h - the epochs of a training run: logs/epochs/<run_id>.csv has one row per epoch.
 */
#ifndef RFL_LEDGER_EPOCHS_H
#define RFL_LEDGER_EPOCHS_H

#include <stddef.h>

#include "base/err.h"
#include "base/fields.h"

/* clang-format off */
#define RFL_EPOCH_COLUMNS(X) \
	X(INT, epoch, "number of the epoch, from 1") \
	X(REAL, lr, "learning rate in this epoch") \
	X(SIGNED, train_loss, "mean loss over the training samples, as they were trained on") \
	X(REAL, train_accuracy, "share of the training samples that were classified correctly, likewise") \
	X(SIGNED, test_loss, "mean loss over the test set after the epoch") \
	X(REAL, test_accuracy, "share of the readable test samples that were classified correctly") \
	X(REAL, train_s, "time of the training steps") \
	X(REAL, test_s, "time of the evaluation") \
	X(REAL, samples_per_s, "training samples / train_s") \
	X(INT, test_samples, "number of test samples that could be read")
/* clang-format on */

#define RFL_EPOCH_MEMBER(kind, name, meaning) RFL_FIELD_C_##kind name;
#define RFL_EPOCH_INDEX(kind, name, meaning)  RFL_EPOCH_AT_##name,

struct rfl_epoch {
	RFL_EPOCH_COLUMNS(RFL_EPOCH_MEMBER)
};

enum rfl_epoch_at { RFL_EPOCH_COLUMNS(RFL_EPOCH_INDEX) RFL_EPOCH_NCOLUMNS };

/** The columns in file order. */
extern const struct rfl_field rfl_epoch_fields[RFL_EPOCH_NCOLUMNS];

/** The epochs of one training run. A zeroed struct is empty. */
struct rfl_epochs {
	size_t n, cap;
	struct rfl_epoch *rows;
};

void rfl_epochs_add(struct rfl_epochs *e, const struct rfl_epoch *row);
void rfl_epochs_fini(struct rfl_epochs *e);

/** Replace the file atomically. Creates its directory. */
enum rfl_rc rfl_epochs_save(const char *path, const struct rfl_epochs *e,
			    struct rfl_err *err) RFL_WARN_UNUSED;
/** Add the rows of a file.
 * @return RFL_OK; RFL_EIO; RFL_EFORMAT with file, line and column */
enum rfl_rc rfl_epochs_load(const char *path, struct rfl_epochs *e,
			    struct rfl_err *err) RFL_WARN_UNUSED;

#endif
