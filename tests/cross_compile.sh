#!/usr/bin/env bash
# Compiles and links the kernel for 64-bit ARM, with this machine's Python headers. Nothing is run.
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=aarch64-linux-gnu-g++
python=$PWD/.venv/bin/python
export PATH=$PWD/.venv/bin:$PATH

if ! command -v "$compiler" > /dev/null; then
    echo "$compiler is not installed: nothing was cross-compiled. On Debian: apt-get install g++-aarch64-linux-gnu" >&2
    exit 1
fi

rm -rf build/aarch64
# The interpreter is this machine's: nothing has to emulate it, but newer CMake wants to hear that.
cmake -S . -B build/aarch64 --log-level=WARNING \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER="$compiler" \
    -DPython_EXECUTABLE="$python" -DCMAKE_CROSSCOMPILING_EMULATOR=env \
    -DPython_INCLUDE_DIR="$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')" \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)"
cmake --build build/aarch64
"${compiler/g++/readelf}" --file-header build/aarch64/_native*.so | grep -E 'Class|Type|Machine'
