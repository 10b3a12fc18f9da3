// Reading does without the HDF5 library: of random changes to a good file, about one in a hundred crashed version
// 1.10.8, the one of Debian 12. h5_*.{h,cc} read what weight files are made of, with every offset and length checked.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "io/h5_dataset.h"
#include "io/weights_h5.h"
#include "millpond/error.h"

namespace millpond::io {

namespace {
constexpr int kMaxDepth = 64;

// Keras 2.13's name for layers/, in today's words.
std::string in_todays_words(std::string path) {
  static const std::string kOld = "_layer_checkpoint_dependencies";
  for (size_t at; (at = path.find(kOld)) != std::string::npos;) path.replace(at, kOld.size(), "layers");
  return path;
}

// Insertions, deletions and changes of letters between two names.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j)
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}
}  // namespace

struct WeightsReader::Impl {
  explicit Impl(const std::string& file) : source(file) {}

  h5::Source source;
  std::map<std::string, h5::Dataset> datasets;
  std::map<std::string, Info> entries;
  std::map<std::string, std::string> names;
  std::set<uint64_t> groups;  // addresses of those seen
  uint64_t stored = 0;

  void object(uint64_t address, const std::string& path, int depth) {
    source.object = path;
    const std::vector<h5::Message> messages = h5::messages_at(source, address);
    if (const auto links = h5::links_of(source, messages)) return group(address, path, depth, messages, *links);
    if (!h5::find(messages, h5::kLayout))
      throw source.wrong("a group or a dataset", "something else, such as a named type");
    h5::Dataset d = h5::describe(source, messages);
    // Bytes that two datasets share would let a small file ask for any amount of memory.
    stored += d.stored;
    if (stored > source.size())
      throw source.wrong(format("at most the file's {} bytes", source.size()),
                         format("{} for its datasets up to here", stored));
    const std::string today = in_todays_words(path);
    if (today == path)
      datasets.insert_or_assign(today, std::move(d));
    else
      datasets.emplace(today, std::move(d));
  }

  void group(uint64_t address, const std::string& path, int depth, const std::vector<h5::Message>& messages,
             const std::vector<h5::Link>& links) {
    if (depth > kMaxDepth) throw source.wrong(format("groups at most {} deep", kMaxDepth), "a deeper one");
    if (!groups.insert(address).second) throw source.wrong("each group once", "a group that is linked twice");
    if (path == "vars" || path.ends_with("/vars")) {
      std::string name = h5::text_attribute(source, messages, "name");
      if (!name.empty())
        names.emplace(in_todays_words(path.substr(0, path.size() - std::min<size_t>(path.size(), 5))), std::move(name));
    }
    for (const h5::Link& link : links) {
      source.object = path.empty() ? link.name : path + "/" + link.name;
      if (link.name.empty() || link.name.find('/') != std::string::npos)
        throw source.wrong("the name of a link", format("\"{}\"", link.name));
      if (link.kind != h5::Link::kHard)
        throw source.wrong("a hard link", link.kind == h5::Link::kSoft ? "a soft link" : "an external link");
      object(link.address, std::string(source.object), depth + 1);
    }
  }

  const h5::Dataset& at(const std::string& path) {
    source.object = path;
    source.refill();
    if (const auto it = datasets.find(path); it != datasets.end()) return it->second;
    Error e(Code::kValue, format("{} has no weight \"{}\"", source.file(), path));
    const auto nearest = std::min_element(datasets.begin(), datasets.end(), [&](const auto& a, const auto& b) {
      return distance(a.first, path) < distance(b.first, path);
    });
    throw e.hint(nearest == datasets.end()
                     ? "it has none at all"
                     : format("the nearest of its {} is \"{}\"", datasets.size(), nearest->first));
  }
};

WeightsReader::WeightsReader(const std::string& file) : impl_(std::make_unique<Impl>(file)) {
  impl_->object(h5::root_of(impl_->source), "", 0);
  for (const auto& [path, d] : impl_->datasets) impl_->entries.emplace(path, Info{d.dtype, d.shape});
}
WeightsReader::~WeightsReader() = default;
WeightsReader::WeightsReader(WeightsReader&&) noexcept = default;
WeightsReader& WeightsReader::operator=(WeightsReader&&) noexcept = default;

const std::map<std::string, WeightsReader::Info>& WeightsReader::entries() const { return impl_->entries; }
const std::map<std::string, std::string>& WeightsReader::names() const { return impl_->names; }

Tensor WeightsReader::read(const std::string& path, std::string account) const {
  const h5::Dataset& d = impl_->at(path);
  Tensor t(d.dtype, d.shape, std::move(account));
  h5::read_values(impl_->source, d, t.data());
  return t;
}

void WeightsReader::read_into(const std::string& path, Tensor& to) const {
  const h5::Dataset& d = impl_->at(path);
  const std::string& file = impl_->source.file();
  if (!(d.shape == to.shape()) || !to.data())
    throw Error(Code::kShape,
                format("the weight \"{}\" of {} is {}, but {} is asked for", path, file, d.shape, to.shape()))
        .hint("is this the file of another model?");
  if (d.dtype != to.dtype())
    throw Error(Code::kDType,
                format("the weight \"{}\" of {} is {}, but {} is asked for", path, file, d.dtype, to.dtype()))
        .hint("use read and astype");
  h5::read_values(impl_->source, d, to.data());
}

std::map<std::string, Tensor> read_weights(const std::string& file, const std::string& account) {
  const WeightsReader reader(file);
  std::map<std::string, Tensor> all;
  for (const auto& [path, info] : reader.entries()) all.emplace(path, reader.read(path, account));
  return all;
}

}  // namespace millpond::io
