# Several processes that train together: what c10d's process groups need to be compiled. Included by
# SelectTorch, which has found the rest.
#
# rfl_select_torch_dist(include prefix): Gloo's headers (libgloo-dev; Gloo itself is in libtorch, or
# is what Debian's libtorch links), and NCCL's beside a PyTorch with CUDA. A part that is not here is
# left out, and joining says so.
#
# Sets RFL_TORCH_HAS_GLOO, RFL_TORCH_HAS_NCCL (0 or 1) and RFL_TORCH_DIST_INCLUDE_DIRS.
function(rfl_select_torch_dist include prefix)
  set(RFL_TORCH_HAS_GLOO 0 PARENT_SCOPE)
  set(RFL_TORCH_HAS_NCCL 0 PARENT_SCOPE)
  set(RFL_TORCH_DIST_INCLUDE_DIRS "" PARENT_SCOPE)
  set(c10d ${include}/torch/csrc/distributed/c10d)
  find_path(RFL_GLOO_INCLUDE_DIR gloo/rendezvous/store.h HINTS ${include}
    DOC "Folder that holds Gloo's headers, gloo/")
  mark_as_advanced(RFL_GLOO_INCLUDE_DIR)
  set(dirs)
  if(EXISTS ${c10d}/ProcessGroupGloo.hpp AND RFL_GLOO_INCLUDE_DIR)
    set(RFL_TORCH_HAS_GLOO 1 PARENT_SCOPE)
    list(APPEND dirs ${RFL_GLOO_INCLUDE_DIR})
  endif()
  get_filename_component(site ${prefix} DIRECTORY)
  file(GLOB nccl ${site}/nvidia/nccl/include)
  if(EXISTS ${c10d}/ProcessGroupNCCL.hpp AND RFL_TORCH_CUDA_FULL AND nccl)
    set(RFL_TORCH_HAS_NCCL 1 PARENT_SCOPE)
    list(APPEND dirs ${nccl})
  endif()
  list(REMOVE_ITEM dirs ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  if(RFL_TORCH_CUDA AND NOT RFL_TORCH_CUDA_FULL)
    message(STATUS "libtorch: without NCCL, since <nv/target> is not there: "
      "pip install 'cuda-toolkit[cccl,crt]' beside PyTorch, or install the CUDA toolkit")
  endif()
  set(RFL_TORCH_DIST_INCLUDE_DIRS "${dirs}" PARENT_SCOPE)
endfunction()
