# Libraries that the program cannot be built without.

function(rfl_require prefix module package)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET "${module}")
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} was not found: install ${package}")
  endif()
endfunction()

rfl_require(JANSSON "jansson>=2.13" libjansson-dev)
rfl_require(EXPAT expat libexpat1-dev)
rfl_require(ZLIB zlib zlib1g-dev)
rfl_require(HWLOC "hwloc>=2.1" libhwloc-dev)
