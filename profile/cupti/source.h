/*
 * source.h - the row of the cupti source, for the registry in source.c.
 */
#ifndef RFL_PROFILE_SOURCE_CUPTI_H
#define RFL_PROFILE_SOURCE_CUPTI_H

#include "profile/source.h"

extern const struct rfl_source_ops rfl_source_cupti;

#endif
