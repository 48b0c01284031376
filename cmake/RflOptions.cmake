# Language, warnings, sanitizers, output directories and the run-time search path.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the rooms are linked into plugins as well
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)

option(RFL_WERROR "Treat warnings as errors" OFF)
set(RFL_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")
option(RFL_COVERAGE "Instrument for gcovr" OFF)

# The build tree has the shape of an installation: bin/roofline finds lib/roofline and
# share/roofline beside it, whether installed or not.
set(RFL_LIBDIR lib/roofline)
set(RFL_PLUGINDIR lib/roofline/plugins)
set(RFL_DATADIR share/roofline)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

add_library(rfl_flags INTERFACE)
target_include_directories(rfl_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
target_compile_definitions(rfl_flags INTERFACE _POSIX_C_SOURCE=200809L _FILE_OFFSET_BITS=64)
set(RFL_ORIGIN $ORIGIN)
set(RFL_RPATH -Wl,--disable-new-dtags) # DT_RPATH serves the dependencies of the libraries as well
if(APPLE) # whose headers have another name for a member of POSIX, and more only when asked
  target_compile_definitions(rfl_flags INTERFACE _DARWIN_C_SOURCE st_mtim=st_mtimespec)
  set(RFL_ORIGIN @loader_path)
  set(RFL_RPATH)
endif()
# Reference values are bit patterns: a contracted multiply-add would change them.
target_compile_options(rfl_flags INTERFACE -ffp-contract=off)
# Functions that the C library exports are still inlined within a file.
if(NOT APPLE)
  target_compile_options(rfl_flags INTERFACE -fno-semantic-interposition)
endif()
target_compile_options(rfl_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wvla -Wwrite-strings -Wundef>
  # what gcc does not count among these
  $<$<C_COMPILER_ID:Clang,AppleClang>:-Wno-unknown-warning-option -Wno-sign-conversion
    -Wno-enum-float-conversion -Wno-overlength-strings -Wno-string-concatenation
    -Wno-missing-designated-field-initializers -Wno-inconsistent-missing-override>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra>)
if(RFL_WERROR)
  target_compile_options(rfl_flags INTERFACE -Werror)
endif()
if(RFL_SANITIZE)
  target_compile_options(rfl_flags INTERFACE -fsanitize=${RFL_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(rfl_flags INTERFACE -fsanitize=${RFL_SANITIZE})
  target_compile_definitions(rfl_flags INTERFACE RFL_ARENA_DEBUG)
endif()
if(RFL_COVERAGE)
  target_compile_options(rfl_flags INTERFACE --coverage -O0)
  target_link_options(rfl_flags INTERFACE --coverage)
endif()

# What Debian's hardening=+all gives; sanitizers have their own checks, and glibc's need optimisation.
if(NOT RFL_SANITIZE AND NOT RFL_COVERAGE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  include(CheckCCompilerFlag)
  include(CheckLinkerFlag)
  include(CheckPIESupported)
  check_pie_supported()
  foreach(pair "-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3|-U_FORTIFY_SOURCE"
      "-fstack-protector-strong|-fno-stack-protector"
      "-fstack-clash-protection|-fno-stack-clash-protection"
      "-fcf-protection|-fcf-protection=return") # which marks the file, and adds no instruction
    string(REGEX MATCH "^[^|]+" flag ${pair})
    string(MAKE_C_IDENTIFIER "RFL_CC${flag}" works)
    check_c_compiler_flag("-O2 ${flag} -include stdio.h -Werror" ${works})
    if(${works})
      target_compile_options(rfl_flags INTERFACE "SHELL:${flag}")
      string(REGEX REPLACE ".*[|]" "" flag ${pair})
      list(APPEND RFL_UNHARDENED ${flag})
    endif()
  endforeach()
  check_linker_flag(C -Wl,-z,relro,-z,now RFL_LINKER_Z_NOW)
  if(RFL_LINKER_Z_NOW)
    target_link_options(rfl_flags INTERFACE -Wl,-z,relro,-z,now)
  endif()
endif()

find_package(Threads REQUIRED)
