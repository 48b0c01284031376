# Sets RFL_HAVE_ONEDNN and, when found, the target rfl_onednn and RFL_ONEDNN_VERSION ("2.6").
rfl_declare(ONEDNN "the planned engine on a CPU by oneDNN")
if(NOT RFL_ONEDNN STREQUAL "OFF")
  # not below CMAKE_PREFIX_PATH: a PyTorch there brings the headers of its own oneDNN 3
  find_path(RFL_ONEDNN_INCLUDE oneapi/dnnl/dnnl.h NO_CMAKE_PATH)
  find_library(RFL_ONEDNN_LIBRARY dnnl NO_CMAKE_PATH)
  find_package(OpenMP COMPONENTS C QUIET)
  if(RFL_ONEDNN_INCLUDE AND RFL_ONEDNN_LIBRARY AND OpenMP_C_FOUND)
    file(STRINGS ${RFL_ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_version.h rfl_lines
      REGEX "DNNL_VERSION_(MAJOR|MINOR) +[0-9]+")
    string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" ONEDNN_VERSION "${rfl_lines}")
    if(ONEDNN_VERSION VERSION_GREATER_EQUAL 2.6 AND ONEDNN_VERSION VERSION_LESS 3)
      set(ONEDNN_FOUND TRUE)
    endif()
  endif()
endif()
rfl_conclude(ONEDNN ONEDNN_FOUND "the planned engine on a CPU"
  "install libdnnl-dev (oneDNN 2.6 or later; version 3 has another interface)")
if(RFL_HAVE_ONEDNN)
  set(RFL_ONEDNN_VERSION ${ONEDNN_VERSION})
  add_library(rfl_onednn INTERFACE)
  target_include_directories(rfl_onednn SYSTEM INTERFACE ${RFL_ONEDNN_INCLUDE})
  target_link_libraries(rfl_onednn INTERFACE ${RFL_ONEDNN_LIBRARY})
endif()
