# The bytes of files, one after the other, as an initialiser of a C array: "0x2f,0x2a,". CMake runs
# again when one is changed.
function(rfl_bytes ret)
  set(bytes)
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} hex HEX)
    string(APPEND bytes ${hex})
  endforeach()
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  set(${ret} "${bytes}" PARENT_SCOPE)
endfunction()
