# Optional libraries: RFL_<DEP> = AUTO (use it if found), ON (fail if not found), OFF.
# One Select<Dep>.cmake per library sets RFL_HAVE_<DEP> and names the package to install.

find_package(PkgConfig REQUIRED)

# rfl_declare(NAME purpose): declares the option RFL_<NAME>.
function(rfl_declare name purpose)
  set(RFL_${name} AUTO CACHE STRING "${purpose}: AUTO, ON or OFF")
  set_property(CACHE RFL_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT RFL_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "RFL_${name} is '${RFL_${name}}': it must be AUTO, ON or OFF")
  endif()
endfunction()

# rfl_conclude(NAME found purpose install-hint)
#
# The program prints what to do without the library: RFL_<NAME>_ADVICE, which a package sets for its
# users, or else the hint.
macro(rfl_conclude name found purpose hint)
  include(FeatureSummary)
  set(RFL_HAVE_${name} FALSE)
  if(RFL_${name} STREQUAL "OFF")
    set(RFL_WHY_${name} "switched off with RFL_${name}=OFF")
  elseif(${found})
    set(RFL_HAVE_${name} TRUE)
    string(REPLACE "_FOUND" "_VERSION" rfl_version ${found})
    set(RFL_WHY_${name} "found ${${rfl_version}}")
    string(STRIP "${RFL_WHY_${name}}" RFL_WHY_${name})
  else()
    set(RFL_WHY_${name} "not found; ${hint}")
    if(RFL_${name} STREQUAL "ON")
      message(FATAL_ERROR "RFL_${name}=ON, but it was not found: ${hint}")
    endif()
  endif()
  add_feature_info(${name} RFL_HAVE_${name} "${purpose} (${RFL_WHY_${name}})")
  string(TOLOWER ${name} rfl_lower)
  if(RFL_HAVE_${name})
    string(APPEND RFL_FEATURE_ROWS " \\\n\tX(\"${rfl_lower}\", 1, \"${purpose}\", \"${RFL_WHY_${name}}\")")
  else()
    set(rfl_advice "${RFL_${name}_ADVICE}")
    if(NOT rfl_advice)
      set(rfl_advice "${hint}, and build again")
    endif()
    string(APPEND RFL_FEATURE_ROWS " \\\n\tX(\"${rfl_lower}\", 0, \"${purpose}\", \"not in this build; ${rfl_advice}\")")
  endif()
endmacro()

include(SelectBase)
include(SelectJpeg)
include(SelectCairo)
include(SelectPango)
include(SelectTorch)
include(SelectOnednn)
include(SelectCuda)

# `roofline version` prints this.
configure_file(${PROJECT_SOURCE_DIR}/cmake/config.h.in ${PROJECT_BINARY_DIR}/include/rfl_config.h)
