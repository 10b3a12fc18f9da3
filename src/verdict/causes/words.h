// Words that several causes share: places and holders.
#pragma once
#include <string>

#include "verdict/case.h"

namespace millpond::verdict {

std::string file_name(const std::string& path);  // without folders
std::string at(const Place& place);              // "train.py:41"
std::string tell(const Place& place);            // "`SavePredictions.on_epoch_end` (train.py:41)"
std::string tell(const Container& container);    // "list self.saved of SavePredictions, 480 long"
std::string code(const std::string& text);       // in backticks, on one line; in longer ones where it has some itself
std::string named(const Container& container);   // "the list `self.saved of SavePredictions`", "a list"
std::string every(const Case& c);                // "every epoch"
std::string often(double times);                 // "12 times"

bool is_model(const std::string& type);
bool is_tensor(const std::string& type);
bool keeps_graph(const Container& container);  // tensors with what made them, in the agent's words
bool is_figure(const std::string& type);
bool is_container(const std::string& type);  // one of Python's own

}  // namespace millpond::verdict
