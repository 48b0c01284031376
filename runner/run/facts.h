/* facts.h - the words of the column of identities in facts.inc. For the files that include it. */
#ifndef RFL_RUNNER_RUN_FACTS_H
#define RFL_RUNNER_RUN_FACTS_H

#include "ledger/facts.h"

enum {
	NEITHER = RFL_IDENTITY_NEITHER,
	SPEED = RFL_IDENTITY_SPEED,
	TRAINING = RFL_IDENTITY_TRAINING,
	BOTH = RFL_IDENTITY_BOTH,
	REPEAT = RFL_IDENTITY_REPEAT,
	LATER = 8,
	LOCAL = 16,
};

#endif
