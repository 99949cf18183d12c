# SPDX-License-Identifier: GPL-2.0-or-later
# asym_add_skeleton(NAME SOURCE [DEPENDS HEADER...]): compiles a BPF program, and makes NAME.skel.h, which holds the object and the
# functions NAME_bpf__open and so on, in the binary directory. The target NAME_skeleton is for those that need only the header.
# -mcpu=v3 has the atomic operations; Linux 5.12 and later run it.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(asym_bpf_arch arm64)
else()
  set(asym_bpf_arch x86)
endif()

function(asym_add_skeleton name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" DEPENDS)
  list(TRANSFORM arg_DEPENDS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf)
  set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${name}.skel.h)
  # The BPF target has no directory of its own for <asm/types.h>. bpftool gen object leaves out what is for debuggers only.
  add_custom_command(
    OUTPUT ${skeleton}
    COMMAND ${ASYM_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -D__TARGET_ARCH_${asym_bpf_arch}
            -I ${PROJECT_SOURCE_DIR}/lib -idirafter ${CMAKE_SYSROOT}/usr/include
            -idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}
            -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}.tmp.o
    COMMAND ${ASYM_BPFTOOL} gen object ${object}.o ${object}.tmp.o
    COMMAND ${ASYM_BPFTOOL} gen skeleton ${object}.o name ${name}_bpf > ${skeleton}.tmp
    COMMAND ${CMAKE_COMMAND} -E rename ${skeleton}.tmp ${skeleton}
    DEPENDS ${source} ${arg_DEPENDS}
    COMMENT "Compiling BPF programs: ${name}"
    VERBATIM)
  add_custom_target(${name}_skeleton DEPENDS ${skeleton})
endfunction()
