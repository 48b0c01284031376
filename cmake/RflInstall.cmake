# Installation and packages.
#
# cmake --install puts the program, its plugins and its data into a prefix and leaves libraries to
# the system. cpack -G TGZ makes a directory that carries its libraries (all but the C library's own
# and libtorch) and runs wherever it is unpacked.
include(GNUInstallDirs)

if(NOT TARGET roofline) # a tree in which the command line is not built has nothing to install
  return()
endif()

install(TARGETS roofline RUNTIME_DEPENDENCY_SET rfl_libraries
  RUNTIME DESTINATION bin COMPONENT core)
install(DIRECTORY ${PROJECT_BINARY_DIR}/${RFL_DATADIR}/ DESTINATION ${RFL_DATADIR} COMPONENT core)
install(DIRECTORY ${PROJECT_BINARY_DIR}/share/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT core
  OPTIONAL)
foreach(shell bash-completion zsh fish)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/${shell} DESTINATION share COMPONENT core OPTIONAL)
endforeach()
# what a program includes to mark its regions for 'roofline profile'
install(DIRECTORY tools/region/ DESTINATION ${RFL_DATADIR}/region COMPONENT core)
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION share/doc/roofline
  COMPONENT core)
install(DIRECTORY docs examples DESTINATION share/doc/roofline COMPONENT core)

get_property(plugins GLOBAL PROPERTY RFL_PLUGINS)
if(plugins)
  install(TARGETS ${plugins} LIBRARY DESTINATION ${RFL_PLUGINDIR} COMPONENT core)
endif()


install(RUNTIME_DEPENDENCY_SET rfl_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\.so" "^libpthread\\.so"
    "^librt\\.so"
  POST_EXCLUDE_REGEXES "/ld-linux" "/libc\\.so" "/libm\\.so" "/libdl\\.so" "/libpthread\\.so"
    "/librt\\.so"
  DESTINATION ${RFL_LIBDIR} COMPONENT bundle EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME roofline)
set(CPACK_PACKAGE_VENDOR "the roofline developers")
set(CPACK_PACKAGE_FILE_NAME "roofline-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENTS_ALL core bundle)
include(CPack)
