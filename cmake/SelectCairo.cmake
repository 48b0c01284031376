rfl_declare(CAIRO "PNG and PDF figures by cairo")
if(NOT RFL_CAIRO STREQUAL "OFF")
  pkg_check_modules(CAIRO QUIET IMPORTED_TARGET "cairo>=1.16" cairo-ft freetype2)
  set(CAIRO_VERSION ${CAIRO_cairo_VERSION})
endif()
rfl_conclude(CAIRO CAIRO_FOUND "PNG and PDF figures" "install libcairo2-dev")
if(RFL_HAVE_CAIRO)
  pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng) # cairo-png needs it as well
endif()
