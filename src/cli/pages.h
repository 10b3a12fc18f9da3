// pages: the forms of a run that are files: the HTML page, and those for TensorBoard, Perfetto and spreadsheets.
#pragma once
#include <string>
#include <vector>

#include "report/contents.h"

namespace CLI {
class App;
}

namespace millpond::cli {

struct PageTargets {
  std::string page, csv, tensorboard, perfetto;
  bool any() const { return !page.empty() || !csv.empty() || !tensorboard.empty() || !perfetto.empty(); }
  int on_stdout() const { return (page == "-") + (csv == "-") + (perfetto == "-"); }
};
void add_page_options(CLI::App& sub, PageTargets& targets);

/// A run file, read and judged.
report::RunContents open_run(const std::string& path);

/// Writes what is wanted of one run, or the page that compares two, and says where each went on standard output unless
/// that carries one of them.
void write_pages(const PageTargets& targets, const std::vector<report::RunContents>& runs);

}  // namespace millpond::cli
