# Recipe for Spack 0.23, of the repository that it is in: spack repo add packaging/spack; spack install roofline
import os

from spack.package import *


class Roofline(CMakePackage):
    """Roofline toolkit with an embedded training runner."""

    git = "file://" + os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))

    license("Apache-2.0")
    version("main", branch="main")

    variant("figures", default=True, description="PNG, PDF and reports, by cairo and pango")
    variant("planned", default=True, description="The engine 'planned', by oneDNN")
    variant("torch", default=False, description="The engine 'torch', by PyTorch")
    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("expat")
    depends_on("hwloc@2:")
    depends_on("jansson")
    depends_on("libjpeg-turbo")
    depends_on("zlib-api")
    depends_on("cairo+ft+pdf+png", when="+figures")
    depends_on("libpng", when="+figures")
    depends_on("pango@1.44:", when="+figures")
    depends_on("onednn@2.6:2", when="+planned")
    depends_on("py-torch@1.13:", when="+torch")
    depends_on("gnuplot", type="run")

    def cmake_args(self):
        args = [
            self.define_from_variant("RFL_CAIRO", "figures"),
            self.define_from_variant("RFL_PANGO", "figures"),
            self.define_from_variant("RFL_ONEDNN", "planned"),
            self.define_from_variant("RFL_TORCH", "torch"),
            self.define("RFL_CUDA", False),
        ]
        if "+torch" in self.spec:
            cmake = self.spec["py-torch"].package.cmake_prefix_paths[0]
            args.append(self.define("Torch_DIR", os.path.join(cmake, "Torch")))
        return args

    @run_after("install")
    def check(self):
        roofline = Executable(self.prefix.bin.roofline)
        if "resnet50" not in roofline("complexity", "--models", "resnet50", output=str):
            raise InstallError("roofline complexity does not count resnet50")
