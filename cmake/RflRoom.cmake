# A room is a static library rfl_<room>, built from the files listed in its CMakeLists.txt and
# linked to the rooms below it.
#
#   rfl_add_room(peaks SOURCES peaks_load.c ... ROOMS machine LIBRARIES PkgConfig::JANSSON)
function(rfl_add_room room)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  if(ARG_SOURCES)
    add_library(rfl_${room} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(rfl_${room} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(rfl_${room} ${scope} rfl_flags)
  foreach(below ${ARG_ROOMS})
    target_link_libraries(rfl_${room} ${scope} rfl_${below})
  endforeach()
  target_link_libraries(rfl_${room} ${scope} ${ARG_LIBRARIES})
endfunction()
