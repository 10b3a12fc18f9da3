#include "verdict/threads.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace millpond::verdict {
namespace {

struct Project {
  std::string_view name, repository, framework;  // framework: as the agent names it; empty: of none
};
constexpr std::array kProjects = {Project{"tensorflow", "tensorflow/tensorflow", "tensorflow"},
                                  Project{"tensorflow/addons", "tensorflow/addons", "tensorflow"},
                                  Project{"tensorflow/models", "tensorflow/models", "tensorflow"},
                                  Project{"horovod", "horovod/horovod", "tensorflow"},
                                  Project{"keras", "keras-team/keras", "keras"},
                                  Project{"rstudio/keras3", "rstudio/keras3", "keras"},
                                  Project{"SynaLinks/synalinks", "SynaLinks/synalinks", "keras"},
                                  Project{"pytorch", "pytorch/pytorch", "torch"},
                                  Project{"opacus", "pytorch/opacus", "torch"},
                                  Project{"transformers", "huggingface/transformers", "torch"},
                                  Project{"Megatron-LM", "NVIDIA/Megatron-LM", "torch"},
                                  Project{"sglang", "sgl-project/sglang", "torch"},
                                  Project{"vllm-omni", "vllm-project/vllm-omni", "torch"},
                                  Project{"rabbityl/lepard", "rabbityl/lepard", "torch"},
                                  Project{"Clay-foundation/model", "Clay-foundation/model", "torch"},
                                  Project{"dudarenok-maker/Castwright", "dudarenok-maker/Castwright", "torch"},
                                  Project{"jax", "jax-ml/jax", "jax"},
                                  Project{"dask", "dask/dask", ""},
                                  Project{"matplotlib", "matplotlib/matplotlib", ""}};
constexpr size_t kMost = 2;

const Project* project_of(std::string_view thread) {
  const auto found = std::ranges::find(kProjects, thread.substr(0, thread.find('#')), &Project::name);
  return found == kProjects.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> fitting_threads(const std::vector<std::string>& threads, const Notes& notes) {
  std::vector<std::string> fit, any;
  for (const std::string& thread : threads) {
    const Project* project = project_of(thread);
    if (project && project->framework.empty())
      any.push_back(thread);
    else if (project && notes.has(project->framework))
      fit.push_back(thread);
  }
  fit.insert(fit.end(), any.begin(), any.end());
  if (fit.size() > kMost) fit.resize(kMost);
  return fit;
}

std::string thread_address(const std::string& thread) {
  const Project* project = project_of(thread);
  const size_t hash = thread.find('#');
  if (!project || hash == thread.npos) return "";
  return format("https://github.com/{}/issues/{}", project->repository, thread.substr(hash + 1));
}

}  // namespace millpond::verdict
