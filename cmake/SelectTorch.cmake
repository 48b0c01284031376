# libtorch, for the torch engine plugin. Debian's libtorch-dev, or any PyTorch named with
# -DCMAKE_PREFIX_PATH=<site-packages>/torch.
rfl_declare(TORCH "The torch engine")
if(NOT RFL_TORCH STREQUAL "OFF")
  find_package(Torch QUIET)
endif()
rfl_conclude(TORCH Torch_FOUND "training by libtorch"
  "install libtorch-dev, or point CMAKE_PREFIX_PATH to a PyTorch")
