/*
 * words.h - how the files' names and numbers are written in a figure.
 */
#ifndef RFL_PLOT_WORDS_H
#define RFL_PLOT_WORDS_H

#include "plot/scene.h"

/** "resnet50" is "ResNet-50", "vgg16_bn" is "VGG-16 BN"; an unknown name stays as it is. */
const char *rfl_words_model(struct rfl_scene *s, const char *model);

/** "fp32.vector.1core" is "FP32 vector, one core". */
const char *rfl_words_compute(struct rfl_scene *s, const char *key);

/** Three significant digits without a prefix: 205, 47.6, 3.72, 0.0123. "n/a" for NaN. */
const char *rfl_words_number(struct rfl_scene *s, double value);

/** The text, cut with an ellipsis so that it is at most `width` wide. */
const char *rfl_words_fit(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
			  double width);

#endif
