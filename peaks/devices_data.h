/* devices_data.h - internal: peaks/devices.csv as bytes, written by CMake. */
#ifndef RFL_PEAKS_DEVICES_DATA_H
#define RFL_PEAKS_DEVICES_DATA_H

#include <stddef.h>

extern const char rfl_devices__csv[];
extern const size_t rfl_devices__csv_size;

#endif
