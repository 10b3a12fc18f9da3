# Sources of the cpu backend. Included by the CMakeLists.txt that makes the target (file properties belong to its folder).
#   mp_cpu_isa_sources(...)  compiled once for each instruction set, in namespace backend::cpu::avx2 and ::avx512 (simd.h). They must
#                            not instantiate templates of the standard library: the linker keeps one copy, perhaps AVX-512's.
#   every other file         compiled once, for any x86-64
# Result: MP_CPU_SOURCES, absolute paths.
set(MP_CPU_DIR "${CMAKE_CURRENT_LIST_DIR}")
file(GLOB MP_CPU_SOURCES CONFIGURE_DEPENDS "${MP_CPU_DIR}/*.cc")
set(MP_CPU_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2 -O3 -fno-math-errno -fno-trapping-math)
set(MP_CPU_FLAGS_avx512
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd ${MP_CPU_FLAGS_avx2} -mprefer-vector-width=512
    -Wno-uninitialized $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # GCC bug 105593: its own avx512fintrin.h

macro(mp_cpu_isa_sources)
  foreach(file ${ARGN})
    list(REMOVE_ITEM MP_CPU_SOURCES "${MP_CPU_DIR}/${file}")
    foreach(isa avx2 avx512)
      set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${isa}/${file}")
      file(CONFIGURE OUTPUT "${wrapper}" CONTENT "#define MP_ISA ${isa}\n#include \"${MP_CPU_DIR}/${file}\"\n")
      set_source_files_properties("${wrapper}" PROPERTIES COMPILE_OPTIONS "${MP_CPU_FLAGS_${isa}}" OBJECT_DEPENDS "${MP_CPU_DIR}/${file}")
      list(APPEND MP_CPU_SOURCES "${wrapper}")
    endforeach()
  endforeach()
endmacro()

mp_cpu_isa_sources(
  attention_kernels.cc channel_kernels.cc conv_pool_gradient.cc conv_pool_tile.cc conv_tile.cc copy_kernels.cc dense_kernels.cc
  expression_steps.cc gemm_kernels.cc typed_rows.cc typed_steps.cc max_pool_rows.cc reduce_kernels.cc row_kernels.cc rule_kernels.cc stage_kernels.cc
  winograd_pool.cc winograd_tile.cc)
