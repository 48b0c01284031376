# Optional libraries: RFL_<DEP> = AUTO (take what is there), ON (fail when absent), OFF.
# One Select<Dep>.cmake per library sets RFL_HAVE_<DEP> and says what to install.

find_package(PkgConfig REQUIRED)

# rfl_select(NAME purpose install-hint): declares RFL_<NAME>.
function(rfl_declare name purpose)
  set(RFL_${name} AUTO CACHE STRING "${purpose}: AUTO, ON or OFF")
  set_property(CACHE RFL_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT RFL_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "RFL_${name} is '${RFL_${name}}': it must be AUTO, ON or OFF")
  endif()
endfunction()

# rfl_conclude(NAME found purpose install-hint)
macro(rfl_conclude name found purpose hint)
  include(FeatureSummary)
  set(RFL_HAVE_${name} FALSE)
  if(RFL_${name} STREQUAL "OFF")
    set(RFL_WHY_${name} "switched off with RFL_${name}=OFF")
  elseif(${found})
    set(RFL_HAVE_${name} TRUE)
    set(RFL_WHY_${name} "found")
  else()
    set(RFL_WHY_${name} "not found; ${hint}")
    if(RFL_${name} STREQUAL "ON")
      message(FATAL_ERROR "RFL_${name}=ON, but it was not found: ${hint}")
    endif()
  endif()
  add_feature_info(${name} RFL_HAVE_${name} "${purpose} (${RFL_WHY_${name}})")
endmacro()

include(SelectBase)   # jansson, libcsv: the program cannot be built without them
include(SelectHwloc)
include(SelectJpeg)
include(SelectCairo)
include(SelectTorch)
include(SelectCuda)
