// Causes that live on the GPU. They have their place in the catalogue; nothing that is measured so far can show them.
#include "verdict/causes/cause.h"

namespace millpond::verdict {
namespace {
const char* const kNotYet = "not detected here: needs GPU counters";
}

const Cause c27_gpu_preallocation = {.id = "C27",
                                     .title = "The framework took (nearly) all GPU memory in advance",
                                     .explanation = "TensorFlow takes about all, JAX 75 %: a pool, not use.",
                                     .fix = "Nothing, or set_memory_growth(True), XLA_PYTHON_CLIENT_PREALLOCATE=false.",
                                     .threads = {"tensorflow#36465", "rstudio/keras3#1538"},
                                     .detect = nullptr,
                                     .not_detected = kNotYet};
const Cause c28_gpu_pool = {.id = "C28",
                            .title = "TensorFlow's GPU pool never shrinks and is fragmented",
                            .explanation = "Regions go back only when the process ends.",
                            .fix = "TF_GPU_ALLOCATOR=cuda_malloc_async.",
                            .threads = {"tensorflow#48545"},
                            .detect = nullptr,
                            .not_detected = kNotYet};
const Cause c29_torch_reserved = {.id = "C29",
                                  .title = "PyTorch's caching allocator holds more than is allocated",
                                  .explanation = "A segment stays while one block of it lives.",
                                  .fix = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer shapes.",
                                  .threads = {"pytorch#35901", "pytorch#173049"},
                                  .detect = nullptr,
                                  .not_detected = kNotYet};
const Cause c30_cudnn_workspace = {.id = "C30",
                                   .title = "cuDNN takes a workspace for each new shape",
                                   .explanation = "Autotuning tries algorithms with large workspaces.",
                                   .fix = "drop_remainder or padding; TF_CUDNN_USE_AUTOTUNE=0, cudnn.benchmark=False.",
                                   .threads = {"tensorflow#14171", "tensorflow#5048", "pytorch#49207"},
                                   .detect = nullptr,
                                   .not_detected = kNotYet};
const Cause c32_pinned_cache = {.id = "C32",
                                .title = "PyTorch's pinned host memory is rounded up and never returned",
                                .explanation = "Sizes become powers of two.",
                                .fix = "No pinning for odd sizes.",
                                .threads = {"pytorch#95823", "pytorch#134332", "sglang#37285"},
                                .detect = nullptr,
                                .not_detected = kNotYet};
const Cause c33_cuda_context = {.id = "C33",
                                .title = "CUDA's context, kernels and NCCL take memory outside every framework counter",
                                .explanation = "200 MB to 1 GB, once.",
                                .fix = "CUDA_MODULE_LOADING=LAZY.",
                                .threads = {"pytorch#28113", "pytorch#107667", "pytorch#37250"},
                                .detect = nullptr,
                                .not_detected = kNotYet};
const Cause c34_cuda_graphs = {.id = "C34",
                               .title = "CUDA graphs have a private pool for each captured shape",
                               .explanation = "Pools are not shared by default.",
                               .fix = "Fewer shapes, one shared pool.",
                               .threads = {"pytorch#128424", "pytorch#104095"},
                               .detect = nullptr,
                               .not_detected = kNotYet};

}  // namespace millpond::verdict
