# SPDX-License-Identifier: MIT
# Set url and sha256 of a release, and copy this file into a tap.
class Tnk < Formula
  desc "Tinker training API as a C library, with a command and a local server"
  homepage "https://example.org/tnk"
  url "https://example.org/tnk/tnk-0.1.0.tar.xz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => [:build, :test]
  depends_on "hiredis"
  depends_on "jansson"
  depends_on "libnghttp2"
  depends_on "libuv"
  depends_on "llhttp"
  depends_on "mbedtls@3"
  depends_on "protobuf-c"
  depends_on "sentencepiece"
  depends_on "sqlite"
  depends_on "zstd"
  uses_from_macos "zlib"

  def install
    features = %w[http2 tokenizers trackio valkey].map { |name| "-D#{name}=enabled" } +
               %w[lua node python].map { |name| "-D#{name}=disabled" }
    system "meson", "setup", "build", "-Dexamples=false", *features, *std_meson_args
    system "meson", "compile", "-C", "build", "--verbose"
    system "meson", "install", "-C", "build"
    pkgshare.install "examples/hello.c"
  end

  test do
    flags = shell_output("pkg-config --cflags --libs tnk libuv").chomp.split
    system ENV.cc, "-std=gnu11", pkgshare/"hello.c", *flags, "-o", "hello"
    assert_match version.to_s, shell_output("#{bin}/tnk version")
  end
end
