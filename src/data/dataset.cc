// The public handle: each method makes a node.
#include "millpond/dataset.h"

#include "base/process.h"
#include "data/running.h"

namespace millpond {

using namespace data;

ElementSpec Dataset::unknown_spec() {
  ElementSpec s;
  s.known = false;
  return s;
}

Dataset Dataset::from_arrays(std::vector<Tensor> arrays) { return Dataset(arrays_node(std::move(arrays))); }
Dataset Dataset::from_npy(const std::vector<std::string>& files) { return Dataset(npy_node(files)); }
Dataset Dataset::from_npz(const std::string& file, const std::vector<std::string>& members) {
  return Dataset(npz_node(file, members));
}
Dataset Dataset::from_csv(const std::string& file, const CsvDatasetOptions& options) {
  return Dataset(csv_node(file, options));
}
Dataset Dataset::from_tfrecord(const std::vector<std::string>& files, const RecordDatasetOptions& options) {
  return Dataset(tfrecord_node(files, options));
}
Dataset Dataset::from_image_folder(const std::string& folder, const ImageDatasetOptions& options) {
  return Dataset(images_node(folder, options));
}
Dataset Dataset::from_text(const std::vector<std::string>& files, const TextDatasetOptions& options) {
  return Dataset(text_node(files, options));
}
Dataset Dataset::augment(const AugmentOptions& options) const { return Dataset(augment_node(node_, options)); }
Dataset Dataset::range(int64_t first, int64_t end, int64_t step) { return Dataset(range_node(first, end, step)); }
Dataset Dataset::from_generator(std::function<Generator()> make, ElementSpec spec, int64_t cardinality) {
  return Dataset(generator_node(std::move(make), std::move(spec), cardinality));
}

Dataset Dataset::map(MapFunction function, MapOptions options) const {
  return Dataset(map_node(node_, std::move(function), std::move(options)));
}
Dataset Dataset::filter(FilterFunction keep) const { return Dataset(filter_node(node_, std::move(keep))); }
Dataset Dataset::flat_map(FlatMapFunction function) const {
  return Dataset(interleave_node(node_, std::move(function), {}));
}
Dataset Dataset::interleave(FlatMapFunction function, InterleaveOptions options) const {
  return Dataset(interleave_node(node_, std::move(function), options));
}
Dataset Dataset::batch(int64_t size, BatchOptions options) const {
  return Dataset(batch_node(node_, size, std::move(options)));
}
Dataset Dataset::unbatch() const { return Dataset(unbatch_node(node_)); }
Dataset Dataset::shuffle(ShuffleOptions options) const { return Dataset(shuffle_node(node_, std::move(options))); }
Dataset Dataset::cache(CacheOptions options) const { return Dataset(cache_node(node_, std::move(options))); }
Dataset Dataset::repeat(int64_t count) const { return Dataset(repeat_node(node_, count)); }
Dataset Dataset::take(int64_t count) const { return Dataset(take_node(node_, count)); }
Dataset Dataset::skip(int64_t count) const { return Dataset(skip_node(node_, count)); }
Dataset Dataset::shard(int64_t of, int64_t index) const { return Dataset(shard_node(node_, of, index)); }
Dataset Dataset::zip(const std::vector<Dataset>& datasets) {
  std::vector<NodePtr> nodes;
  for (const Dataset& d : datasets) nodes.push_back(d.node_);
  return Dataset(zip_node(std::move(nodes)));
}
Dataset Dataset::concatenate(const Dataset& next) const { return Dataset(concatenate_node(node_, next.node_)); }
Dataset Dataset::enumerate(int64_t start) const { return Dataset(enumerate_node(node_, start)); }
Dataset Dataset::window(int64_t size, WindowOptions options) const {
  return Dataset(window_node(node_, size, options));
}
Dataset Dataset::prefetch(int64_t elements, PrefetchOptions options) const {
  return Dataset(prefetch_node(node_, elements, options));
}
Dataset Dataset::with_options(const DatasetOptions& options) const { return Dataset(options_node(node_, options)); }

ElementSpec Dataset::element_spec() const { return node_->spec(); }
int64_t Dataset::cardinality() const { return node_->cardinality(); }
const std::vector<std::string>& Dataset::class_names() const { return node_->class_names(); }
std::string Dataset::explain() const {
  {
    Node::Log& log = node_->log();
    const std::lock_guard lock(log.lock);
    if (log.running) return log.running->explain();
    if (!log.last.empty()) return log.last;
  }
  return iterator().explain();  // nothing has been asked of it: how the budget would be divided
}
DatasetIterator Dataset::iterator() const { return DatasetIterator(*this); }
DatasetIterator Dataset::begin() const {
  DatasetIterator it(*this);
  ++it;
  return it;
}

DatasetIterator::DatasetIterator(const Dataset& dataset) : running_(std::make_unique<Running>(dataset.node())) {}
DatasetIterator::DatasetIterator(DatasetIterator&&) noexcept = default;
DatasetIterator& DatasetIterator::operator=(DatasetIterator&&) noexcept = default;
DatasetIterator::~DatasetIterator() = default;

bool DatasetIterator::next(Element& element) { return running_->next(element); }
void DatasetIterator::rewind(int64_t epoch) { running_->rewind(epoch); }
void DatasetIterator::warm() { running_->warm(); }
int64_t DatasetIterator::epoch() const { return running_->epoch(); }
int64_t DatasetIterator::elements() const { return running_->elements(); }
std::string DatasetIterator::save() const { return running_->save(); }
void DatasetIterator::restore(std::string_view position) { running_->restore(position); }
double DatasetIterator::seconds_waited() const { return running_->seconds_waited(); }
std::string DatasetIterator::waited_on() const { return running_->waited_on(); }
Bytes DatasetIterator::budget() const { return running_->pool().limit(); }
Bytes DatasetIterator::held() const { return running_->pool().held(); }
Bytes DatasetIterator::peak() const { return running_->pool().peak(); }
std::string DatasetIterator::explain() const { return running_->explain(); }
const Element& DatasetIterator::operator*() const { return running_->current; }
DatasetIterator& DatasetIterator::operator++() {
  running_->begun = true;
  running_->ended = !running_->next(running_->current);
  return *this;
}
bool DatasetIterator::operator==(std::default_sentinel_t) const { return running_->ended; }

}  // namespace millpond
