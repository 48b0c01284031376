rfl_declare(PANGO "PDF reports by pango")
if(NOT RFL_PANGO STREQUAL "OFF" AND RFL_HAVE_CAIRO) # reports contain figures
  pkg_check_modules(PANGO QUIET IMPORTED_TARGET "pangocairo>=1.44" pangoft2 fontconfig)
  set(PANGO_VERSION ${PANGO_pangocairo_VERSION})
endif()
rfl_conclude(PANGO PANGO_FOUND "PDF reports" "install libpango1.0-dev and libcairo2-dev")
