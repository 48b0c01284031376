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
  # Half of the time of sanitized tests is in the loops of these.
  if(RFL_SANITIZE AND room MATCHES "^(base|data|complexity|peaks|plot)$")
    target_compile_options(rfl_${room} PRIVATE -O1)
  endif()
endfunction()

# A plugin is a shared object that the program opens when a command needs it, so that the program
# itself never links what the plugin links.
#
#   rfl_add_plugin(torch NAME engine_torch-2.11-cpu SOURCES ... ROOMS complexity
#     LIBRARIES ... LIBRARY_DIRS <where the loader finds them>)
function(rfl_add_plugin plugin)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;ROOMS;LIBRARIES;LIBRARY_DIRS" ${ARGN})
  set(target rfl_plugin_${plugin})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE rfl_flags)
  foreach(room ${ARG_ROOMS})
    target_link_libraries(${target} PRIVATE rfl_${room})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LIBRARIES})
  target_link_options(${target} PRIVATE ${RFL_RPATH})
  if(NOT APPLE) # Use the rooms linked here, not the functions of a librfl in the process.
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  endif()
  if(NOT RFL_SANITIZE AND NOT APPLE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${ARG_NAME} INSTALL_RPATH "${ARG_LIBRARY_DIRS}"
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${RFL_PLUGINDIR})
  set_property(GLOBAL APPEND PROPERTY RFL_PLUGINS ${target})
endfunction()
