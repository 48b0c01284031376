/*
 * words.c - names and numbers for people.
 */
#include "plot/words.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* A family: what the zoo's names begin with, and how its papers write it. */
static const struct {
	const char *prefix, *title;
} families[] = {
	{ "wide_resnet", "Wide ResNet-" },
	{ "resnext", "ResNeXt-" },
	{ "resnet", "ResNet-" },
	{ "vgg", "VGG-" },
	{ "mobilenet_v", "MobileNetV" },
	{ "densenet", "DenseNet-" },
	{ "efficientnet_", "EfficientNet-" },
	{ "squeezenet", "SqueezeNet " },
	{ "shufflenet_v", "ShuffleNetV" },
	{ "googlenet", "GoogLeNet" },
	{ "alexnet", "AlexNet" },
};

const char *rfl_words_model(struct rfl_scene *s, const char *model)
{
	if (!model || !*model)
		return "(no model)";
	for (size_t i = 0; i < RFL_ARRAY_LEN(families); i++) {
		size_t len = strlen(families[i].prefix);
		size_t base = strlen(model);
		int bn = base >= len + 3 && strcmp(model + base - 3, "_bn") == 0;

		if (strncmp(model, families[i].prefix, len) == 0)
			return rfl_scene_printf(s, "%s%.*s%s", families[i].title,
						(int)(base - len - (bn ? 3 : 0)), model + len,
						bn ? " BN" : "");
	}
	return rfl_scene_printf(s, "%s", model);
}

const char *rfl_words_compute(struct rfl_scene *s, const char *key)
{
	static const struct {
		const char *word, *text;
	} parts[] = {
		{ "1core", ", one core" },
		{ "vector", " vector" },
		{ "scalar", " scalar" },
		{ "matrix", " matrix units" },
		{ "fp16acc", ", FP16 accumulator" },
		{ "nofma", ", no FMA" },
	};
	char type[16];
	size_t len = strcspn(key, ".");
	const char *text;

	if (len >= sizeof(type))
		return rfl_scene_printf(s, "%s", key);
	for (size_t i = 0; i < len; i++)
		type[i] = (char)toupper((unsigned char)key[i]);
	type[len] = '\0';
	text = rfl_scene_printf(s, "%s", type);
	while (key[len] == '.') {
		const char *word = key + len + 1;
		size_t n = strcspn(word, ".");
		const char *found = NULL;

		for (size_t i = 0; i < RFL_ARRAY_LEN(parts); i++)
			if (strlen(parts[i].word) == n && strncmp(parts[i].word, word, n) == 0)
				found = parts[i].text;
		text = found ? rfl_scene_printf(s, "%s%s", text, found)
			     : rfl_scene_printf(s, "%s %.*s", text, (int)n, word);
		len += n + 1;
	}
	return text;
}

const char *rfl_words_number(struct rfl_scene *s, double value)
{
	double size = fabs(value);
	int digits = 0;

	if (isnan(value))
		return "n/a";
	if (size >= 1e6 || (size < 1e-4 && size > 0))
		return rfl_scene_printf(s, "%.2e", value);
	if (size > 0)
		digits = 2 - (int)floor(log10(size) + 1e-9);
	if (digits > 0 && size + 0.5 * pow(10, -digits) >= pow(10, 3 - digits))
		digits--; /* 9.996 is 10.0 */
	return rfl_scene_printf(s, "%.*f", digits > 0 ? digits : 0, value);
}

const char *rfl_words_fit(struct rfl_scene *s, const char *text, enum rfl_face face, double size,
			  double width)
{
	size_t keep = strlen(text);
	const char *cut = text;

	while (keep > 0 && rfl_text_width(cut, face, size) > width) {
		do
			keep--;
		while (keep > 0 && ((unsigned char)text[keep] & 0xc0) == 0x80);
		while (keep > 0 && text[keep - 1] == ' ')
			keep--;
		cut = rfl_scene_printf(s, "%.*s\xe2\x80\xa6", (int)keep, text);
	}
	return cut;
}
