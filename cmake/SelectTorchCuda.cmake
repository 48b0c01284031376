# The CUDA half of a PyTorch that was built with CUDA. Included by SelectTorch, which has found the
# rest.
#
# rfl_select_torch_cuda(prefix libdir): NVIDIA's headers and libcudart come from the wheels that were
# installed with PyTorch, else from a toolkit of the same major version. Without them the plugin is
# built for the CPU only, and RFL_TORCH_CUDA_WHY says so.
#
# Sets RFL_TORCH_CUDA and RFL_TORCH_CUDA_WHY and, when found, the target rfl_libtorch_cuda and
# RFL_TORCH_CUDA_LIBRARY_DIRS; RFL_TORCH_CUDA_FULL when cuBLAS's header can be included as well.
# RFL_TORCH_BESIDE are directories relative to the installed plugin in which
# the loader looks first: with a link lib/roofline/torch to the directory of a PyTorch, an installation
# that was carried to another machine works with the PyTorch there.

# Does a line of CUDA compile and link with these directories and this libcudart, this header included?
function(rfl_cuda_links header includes cudart result)
  include(CheckCXXSourceCompiles)
  include(CMakePushCheckState)
  string(SHA1 id "${header};${includes};${cudart}")
  cmake_push_check_state(RESET)
  set(CMAKE_REQUIRED_INCLUDES ${includes})
  set(CMAKE_REQUIRED_LIBRARIES ${cudart})
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--allow-shlib-undefined)
  set(CMAKE_REQUIRED_QUIET TRUE)
  check_cxx_source_compiles(
    "#include <cuda_runtime_api.h>\n#include <${header}>\nint main() { int n = 0; return cudaGetDeviceCount(&n); }"
    RFL_CUDA_LINKS_${id})
  cmake_pop_check_state()
  set(${result} ${RFL_CUDA_LINKS_${id}} PARENT_SCOPE)
endfunction()

function(rfl_select_torch_cuda prefix libdir)
  set(RFL_TORCH_CUDA FALSE PARENT_SCOPE)
  set(RFL_TORCH_CUDA_FULL FALSE PARENT_SCOPE)
  set(beside ${RFL_ORIGIN}/../torch)
  set(RFL_TORCH_BESIDE ${RFL_ORIGIN}/.. ${beside}/lib PARENT_SCOPE)
  if(NOT RFL_TORCH_VARIANT MATCHES "^cu(da|[0-9]+)$")
    set(RFL_TORCH_CUDA_WHY "this libtorch was built without CUDA: build against a PyTorch with CUDA (docs/internals/engines.md), or run on the CPU" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(site ${prefix} DIRECTORY)
  file(GLOB wheels ${site}/nvidia/*/include ${site}/nvidia/*/include/cccl)
  # In PyPI's CUDA 13 the directory crt/ has a wheel of its own, which PyTorch does not ask for; triton,
  # which it does, carries one.
  file(GLOB crt ${site}/triton/backends/nvidia/include)
  file(GLOB cudart ${site}/nvidia/cu*/lib/libcudart.so.* ${libdir}/libcudart*.so*)
  if(cudart)
    list(GET cudart 0 cudart)
  endif()
  if(NOT CUDAToolkit_FOUND AND NOT "${RFL_CUDA}" STREQUAL "OFF")
    find_package(CUDAToolkit QUIET)
  endif()
  set(links FALSE)
  foreach(more "" "${crt}")
    if(NOT links AND wheels AND cudart)
      set(includes ${wheels} ${more})
      rfl_cuda_links(cuda_runtime_api.h "${includes}" "${cudart}" links)
    endif()
  endforeach()
  if(NOT links AND CUDAToolkit_FOUND AND TARGET CUDA::cudart AND
      RFL_TORCH_VARIANT MATCHES "^cu(da|${CUDAToolkit_VERSION_MAJOR})")
    set(includes ${CUDAToolkit_INCLUDE_DIRS})
    get_target_property(cudart CUDA::cudart IMPORTED_LOCATION)
    list(TRANSFORM CUDAToolkit_INCLUDE_DIRS APPEND /cccl OUTPUT_VARIABLE cccl)
    list(APPEND includes ${cccl})
    rfl_cuda_links(cuda_runtime_api.h "${includes}" "${cudart}" links)
  endif()
  if(NOT links OR NOT EXISTS ${libdir}/libc10_cuda.so)
    set(RFL_TORCH_CUDA_WHY "built for the CPU only, since NVIDIA's cuda_runtime_api.h or libcudart was found neither beside this PyTorch nor in a CUDA toolkit: install PyTorch by pip with its nvidia-* packages, or the toolkit, and configure and build again, or run on the CPU" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(cudart_dir ${cudart} DIRECTORY)
  add_library(rfl_libtorch_cuda INTERFACE)
  target_include_directories(rfl_libtorch_cuda SYSTEM INTERFACE ${includes})
  # Nothing in libtorch_cuda is called by name, but its operations register themselves when it is
  # loaded: the linker must not leave it out.
  target_link_libraries(rfl_libtorch_cuda INTERFACE -Wl,--no-as-needed ${libdir}/libtorch_cuda.so
    ${libdir}/libc10_cuda.so -Wl,--as-needed ${cudart})
  set(RFL_TORCH_CUDA TRUE PARENT_SCOPE)
  set(RFL_TORCH_CUDA_WHY "" PARENT_SCOPE)
  set(RFL_TORCH_CUDA_LIBRARY_DIRS ${cudart_dir} PARENT_SCOPE)
  # What c10d's NCCL includes goes on to <nv/target>, of a wheel that PyTorch does not ask for.
  rfl_cuda_links(cublas_v2.h "${includes}" "${cudart}" full)
  set(RFL_TORCH_CUDA_FULL ${full} PARENT_SCOPE)
  # Of a wheel it is beside PyTorch's directory: the kernel follows the link before it goes up.
  file(RELATIVE_PATH cudart_beside ${prefix} ${cudart_dir})
  if(cudart_beside MATCHES "^\\.\\./nvidia/")
    set(RFL_TORCH_BESIDE ${RFL_ORIGIN}/.. ${beside}/lib ${beside}/${cudart_beside} PARENT_SCOPE)
  endif()
endfunction()
