# Cross-compile for macOS with zig, which has the headers of macOS and the names in its libraries.
# tests/ci/macos.sh makes the compilers, and puts what it needs of Homebrew's libraries, below
# build/macos/sdk.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
get_filename_component(sdk ${CMAKE_CURRENT_LIST_DIR}/../build/macos/sdk ABSOLUTE)
foreach(tool C_COMPILER CXX_COMPILER AR RANLIB INSTALL_NAME_TOOL)
  string(TOLOWER ${tool} name)
  set(CMAKE_${tool} ${sdk}/bin/${name})
endforeach()
set(CMAKE_FIND_ROOT_PATH ${sdk})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${sdk}/lib/pkgconfig)
