/*
 * font_widths.h - the tables behind plot/font.h, in a file of their own because a program writes
 * them (tools/font_widths.c). Only font.c reads them.
 */
#ifndef RFL_PLOT_FONT_WIDTHS_H
#define RFL_PLOT_FONT_WIDTHS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rfl_font__range {
	uint16_t first, last;
};

extern const struct rfl_font__range rfl_font__ranges[];      /**< ended by { 0, 0 } */
extern const uint16_t rfl_font__regular[], rfl_font__bold[]; /**< 1/2048 em */
extern const uint16_t rfl_font__regular_missing, rfl_font__bold_missing;

#ifdef __cplusplus
}
#endif
#endif
