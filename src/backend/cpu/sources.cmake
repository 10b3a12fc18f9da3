# Sources of the cpu backend. Included by the CMakeLists.txt that makes the target (file properties belong to its folder).
#   mp_cpu_sources(...)      compiled once, for any x86-64
#   mp_cpu_isa_sources(...)  compiled once for each instruction set, in namespace backend::cpu::avx2 and ::avx512 (simd.h). They must
#                            not instantiate templates of the standard library: the linker keeps one copy, perhaps AVX-512's.
# Result: MP_CPU_SOURCES, absolute paths.
set(MP_CPU_DIR "${CMAKE_CURRENT_LIST_DIR}")
set(MP_CPU_SOURCES)
set(MP_CPU_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2 -O3 -fno-math-errno -fno-trapping-math)
set(MP_CPU_FLAGS_avx512
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd ${MP_CPU_FLAGS_avx2} -mprefer-vector-width=512
    -Wno-uninitialized -Wno-maybe-uninitialized)  # GCC bug 105593: its own avx512fintrin.h

macro(mp_cpu_sources)
  foreach(file ${ARGN})
    list(APPEND MP_CPU_SOURCES "${MP_CPU_DIR}/${file}")
  endforeach()
endmacro()

macro(mp_cpu_isa_sources)
  foreach(file ${ARGN})
    foreach(isa avx2 avx512)
      set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${isa}/${file}")
      file(CONFIGURE OUTPUT "${wrapper}" CONTENT "#define MP_ISA ${isa}\n#include \"${MP_CPU_DIR}/${file}\"\n")
      set_source_files_properties("${wrapper}" PROPERTIES COMPILE_OPTIONS "${MP_CPU_FLAGS_${isa}}" OBJECT_DEPENDS "${MP_CPU_DIR}/${file}")
      list(APPEND MP_CPU_SOURCES "${wrapper}")
    endforeach()
  endforeach()
endmacro()

mp_cpu_sources(table.cc slow.cc isa.cc copies.cc elementwise.cc expression.cc fused.cc stage.cc step_size.cc)
mp_cpu_isa_sources(expression_steps.cc stage_kernels.cc)
# Products and optimisers.
mp_cpu_sources(dense.cc matmul.cc optimizer_step.cc)
mp_cpu_isa_sources(dense_kernels.cc gemm_kernels.cc rule_kernels.cc)
# Rows, channels, copies, attention.
mp_cpu_sources(
  argmax.cc attention.cc attention_backward.cc batch_norm.cc batch_norm_backward.cc concatenate.cc gather.cc layer_norm.cc
  layer_norm_backward.cc one_hot.cc pad.cc reduce.cc scatter_add.cc slice.cc softmax.cc softmax_cross_entropy.cc
  softmax_cross_entropy_backward.cc transpose.cc gemm.cc)
mp_cpu_isa_sources(attention_kernels.cc channel_kernels.cc copy_kernels.cc reduce_kernels.cc row_kernels.cc)
# Convolutions and pools.
mp_cpu_sources(
  average_pool2d.cc average_pool2d_backward.cc conv2d.cc conv2d_backward_filter.cc conv2d_backward_input.cc conv_grid.cc
  conv_pool.cc conv_pool_backward.cc conv_pool_backward_input.cc pool_rows.cc max_pool2d.cc max_pool2d_backward.cc winograd_conv.cc)
mp_cpu_isa_sources(conv_pool_gradient.cc conv_pool_tile.cc conv_tile.cc max_pool_rows.cc winograd_pool.cc winograd_tile.cc)
