# SPDX-License-Identifier: GPL-2.0-or-later
# Builds for arm64, with Debian's gcc-aarch64-linux-gnu and the libraries of ASYM_SYSROOT, a root file system of arm64.
if(NOT ASYM_SYSROOT)
  message(FATAL_ERROR "ASYM_SYSROOT is empty: ./dev vm arm64 makes one")
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# The build runs programs that it has built, which write manual pages and the like.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${ASYM_SYSROOT})
set(CMAKE_SYSROOT ${ASYM_SYSROOT})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ASYM_SYSROOT)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${ASYM_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${ASYM_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${ASYM_SYSROOT}/usr/share/pkgconfig)
