# jansson and libcsv are needed by every room, zlib by data/.
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET "jansson>=2.13")
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)

find_path(CSV_INCLUDE_DIR csv.h)
find_library(CSV_LIBRARY csv)
if(NOT CSV_INCLUDE_DIR OR NOT CSV_LIBRARY)
  message(FATAL_ERROR "libcsv was not found: install libcsv-dev")
endif()
add_library(rfl_libcsv INTERFACE)
target_include_directories(rfl_libcsv SYSTEM INTERFACE ${CSV_INCLUDE_DIR})
target_link_libraries(rfl_libcsv INTERFACE ${CSV_LIBRARY})
