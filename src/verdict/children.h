// The other processes of the tree: each is judged by what was seen inside it, and alike ones are told as one.
#pragma once
#include <span>

#include "verdict/verdict.h"

namespace millpond::verdict {

/// Into the verdict of the main process. Whatever was said of the tree's private pages gives way to what a process
/// itself was seen to keep.
void add_children(const Evidence& main, std::span<const Evidence> children, Verdict& verdict);

}  // namespace millpond::verdict
