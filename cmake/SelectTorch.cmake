# libtorch, for the torch engine plugin: Debian's libtorch-dev, or any PyTorch that is named with
# -DCMAKE_PREFIX_PATH=<site-packages>/torch (or -DTorch_DIR=<site-packages>/torch/share/cmake/Torch).
#
# find_package(Torch) is not used. Where two versions are installed it can take the headers of one
# and the library of the other, which links and dies when loaded; and for a PyTorch built with CUDA
# it stops when there is no CUDA toolkit, which a plugin for the CPU does not need. Here the headers
# decide, and the libraries come from the same prefix or not at all.
#
# Sets RFL_HAVE_TORCH and, when found, the target rfl_libtorch, RFL_TORCH_VERSION ("2.11"),
# RFL_TORCH_VARIANT ("cpu", "cu130") and RFL_TORCH_LIBRARY_DIR; for NVIDIA GPUs see SelectTorchCuda.
include(SelectTorchCuda)
include(SelectTorchDist)
rfl_declare(TORCH "The torch engine")

# Build variant of the PyTorch in a prefix: its version.py (wheel) or build-version (zip) knows.
function(rfl_torch_variant prefix libdir result)
  set(variant cpu)
  if(RFL_CUDA STREQUAL "OFF") # the CPU half of any PyTorch
  elseif(EXISTS ${libdir}/libtorch_cuda.so)
    set(variant cuda)
    if(EXISTS ${prefix}/version.py)
      file(STRINGS ${prefix}/version.py lines REGEX "^cuda")
    elseif(EXISTS ${prefix}/build-version)
      file(STRINGS ${prefix}/build-version lines)
    endif()
    if("${lines}" MATCHES "'([0-9]+)\\.([0-9]+)'")
      set(variant cu${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    elseif("${lines}" MATCHES "cu([0-9]+)")
      set(variant cu${CMAKE_MATCH_1})
    endif()
  elseif(EXISTS ${libdir}/libtorch_hip.so)
    set(variant rocm)
  endif()
  set(${result} ${variant} PARENT_SCOPE)
endfunction()

# MAJOR.MINOR from the headers, which moved the macros to another file in 2.10.
function(rfl_torch_version include result)
  foreach(file torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS ${include}/${file})
      file(STRINGS ${include}/${file} lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR) +[0-9]+")
      if("${lines}" MATCHES "MAJOR +([0-9]+).*MINOR +([0-9]+)")
        set(${result} ${CMAKE_MATCH_1}.${CMAKE_MATCH_2} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

set(RFL_TORCH_ENGINES "" CACHE STRING "Versions of PyTorch for which packaging/build.sh adds plugins to a program, such as '2.4 to 2.11'")
mark_as_advanced(RFL_TORCH_ENGINES)
set(RFL_TORCH_FOUND FALSE)
if(RFL_TORCH_ENGINES)
  set(RFL_TORCH_FOUND TRUE)
  set(RFL_TORCH_VERSION ${RFL_TORCH_ENGINES})
elseif(NOT RFL_TORCH STREQUAL "OFF")
  set(hints)
  if(Torch_DIR)
    get_filename_component(hints ${Torch_DIR}/../../../include ABSOLUTE)
  endif()
  find_path(RFL_TORCH_INCLUDE_DIR torch/csrc/autograd/autograd.h HINTS ${hints}
    DOC "Directory of libtorch's headers (ATen/, c10/, torch/)")
  unset(RFL_TORCH_CPU_LIBRARY CACHE)
  unset(RFL_TORCH_C10_LIBRARY CACHE)
  if(RFL_TORCH_INCLUDE_DIR)
    get_filename_component(prefix ${RFL_TORCH_INCLUDE_DIR} DIRECTORY)
    foreach(lib torch_cpu c10)
      string(REPLACE torch_ "" name ${lib})
      string(TOUPPER ${name} name)
      find_library(RFL_TORCH_${name}_LIBRARY ${lib} NO_DEFAULT_PATH
        PATHS ${prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${prefix}/lib64 ${prefix}/lib)
      mark_as_advanced(RFL_TORCH_${name}_LIBRARY)
    endforeach()
    rfl_torch_version(${RFL_TORCH_INCLUDE_DIR} RFL_TORCH_VERSION)
  endif()
  if(RFL_TORCH_CPU_LIBRARY AND RFL_TORCH_C10_LIBRARY AND RFL_TORCH_VERSION)
    get_filename_component(RFL_TORCH_LIBRARY_DIR ${RFL_TORCH_CPU_LIBRARY} DIRECTORY)
    rfl_torch_variant(${prefix} ${RFL_TORCH_LIBRARY_DIR} RFL_TORCH_VARIANT)
    add_library(rfl_libtorch INTERFACE)
    target_link_libraries(rfl_libtorch INTERFACE ${RFL_TORCH_CPU_LIBRARY} ${RFL_TORCH_C10_LIBRARY})
    if(NOT RFL_TORCH_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      target_include_directories(rfl_libtorch SYSTEM INTERFACE ${RFL_TORCH_INCLUDE_DIR}
        ${RFL_TORCH_INCLUDE_DIR}/torch/csrc/api/include)
    endif()
    set(RFL_TORCH_FOUND TRUE)
  elseif(RFL_TORCH_INCLUDE_DIR)
    message(STATUS "libtorch: headers in ${RFL_TORCH_INCLUDE_DIR}, but no libtorch_cpu and libc10 "
      "under ${prefix}: that installation is not complete")
  endif()
endif()

# From 2.14 on the headers are C++20.
if(TARGET rfl_libtorch AND RFL_TORCH_VERSION VERSION_GREATER_EQUAL 2.14)
  set(CMAKE_CXX_STANDARD 20)
endif()

# Wheels before 2.7 were built with the C++ library's old strings. What links is what is right.
if(TARGET rfl_libtorch)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_LIBRARIES ${RFL_TORCH_CPU_LIBRARY} ${RFL_TORCH_C10_LIBRARY})
  get_target_property(CMAKE_REQUIRED_INCLUDES rfl_libtorch INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT CMAKE_REQUIRED_INCLUDES)
    set(CMAKE_REQUIRED_INCLUDES)
  endif()
  if(NOT APPLE)
    set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--allow-shlib-undefined)
  endif()
  set(source "#include <ATen/Version.h>
    int main() { return at::show_config().empty(); }")
  string(MAKE_C_IDENTIFIER "RFL_TORCH_LINKS_${RFL_TORCH_LIBRARY_DIR}" links)
  check_cxx_source_compiles("${source}" ${links})
  if(NOT ${links})
    set(CMAKE_REQUIRED_DEFINITIONS -D_GLIBCXX_USE_CXX11_ABI=0)
    check_cxx_source_compiles("${source}" ${links}_OLD_STRINGS)
    if(${links}_OLD_STRINGS)
      target_compile_definitions(rfl_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
    else()
      set(RFL_TORCH_FOUND FALSE)
      message(STATUS "libtorch in ${RFL_TORCH_LIBRARY_DIR} cannot be linked against its headers")
    endif()
  endif()
  cmake_pop_check_state()
endif()

if(RFL_TORCH_FOUND AND TARGET rfl_libtorch)
  rfl_select_torch_cuda(${prefix} ${RFL_TORCH_LIBRARY_DIR})
  rfl_select_torch_dist(${RFL_TORCH_INCLUDE_DIR} ${prefix})
  message(STATUS
    "libtorch ${RFL_TORCH_VERSION} (${RFL_TORCH_VARIANT}) in ${RFL_TORCH_LIBRARY_DIR}")
  if(RFL_TORCH_CUDA)
    message(STATUS "libtorch: with CUDA, libcudart in ${RFL_TORCH_CUDA_LIBRARY_DIRS}")
  elseif(NOT RFL_TORCH_VARIANT STREQUAL "cpu")
    message(STATUS "libtorch: ${RFL_TORCH_CUDA_WHY}")
  endif()
endif()
rfl_conclude(TORCH RFL_TORCH_FOUND "training by libtorch"
  "install libtorch-dev, or point CMAKE_PREFIX_PATH to a PyTorch")
