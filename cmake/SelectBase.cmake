# Libraries that the program cannot be built without.

function(rfl_require prefix module package)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET "${module}")
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} was not found: install ${package}")
  endif()
endfunction()

rfl_require(JANSSON "jansson>=2.13" libjansson-dev)
rfl_require(ZLIB zlib zlib1g-dev)
rfl_require(HWLOC "hwloc>=2.1" libhwloc-dev)

find_path(CSV_INCLUDE_DIR csv.h)
find_library(CSV_LIBRARY csv)
if(NOT CSV_INCLUDE_DIR OR NOT CSV_LIBRARY)
  message(FATAL_ERROR "libcsv was not found: install libcsv-dev")
endif()
add_library(rfl_libcsv INTERFACE)
target_include_directories(rfl_libcsv SYSTEM INTERFACE ${CSV_INCLUDE_DIR})
target_link_libraries(rfl_libcsv INTERFACE ${CSV_LIBRARY})
