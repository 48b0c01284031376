# Formula for Homebrew, of the sources in HOMEBREW_ROOFLINE, a clone of the repository. The options are
# those of tests/ci/macos.sh. It was not run on a Mac.
class Roofline < Formula
  desc "Roofline toolkit with an embedded training runner"
  license "Apache-2.0"
  head "file://#{ENV.fetch("HOMEBREW_ROOFLINE", nil)}", using: :git

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "expat"
  depends_on "hwloc"
  depends_on "jansson"
  uses_from_macos "zlib"

  def install
    off = %w[CAIRO PANGO JPEG TORCH ONEDNN CUDA].map { |name| "-DRFL_#{name}=OFF" }
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *off, *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match "resnet50", shell_output("#{bin}/roofline complexity --models resnet50")
  end
end
