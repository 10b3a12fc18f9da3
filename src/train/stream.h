// Stream: a dataset's batches on their way into a program's input buffers. A batch that comes finished out of the
// pipeline is copied there in the one pass that also converts and checks it; rows of numbered sources (arrays, .npy)
// that need no conversion and no queue are gathered there directly.
#pragma once
#include "millpond/dataset.h"
#include "train/model.h"

namespace millpond::train {

class Stream {
 public:
  /// Begins to run the dataset and takes its first batch, which says what all of them look like. Throws Error(kValue)
  /// when there is none.
  Stream(ModelImpl& model, const Dataset& dataset, bool labels, const char* what, int64_t epoch);

  /// Samples in the batch that is staged next; 0: the data has ended.
  int64_t advance();
  /// Fills the program's inputs, or throws Error(kValue) naming array, row, value and limit.
  void stage(Team& team, Ready& ready, bool check_inputs);
  void rewind(int64_t epoch);

  /// Of the batch that is staged next. They differ from batch to batch only where the model leaves that to its data.
  const SampleShapes& shapes() const { return first_.shapes; }
  int64_t batch() const { return first_.samples; }  // of the first batch
  int64_t cardinality() const { return cardinality_; }
  DatasetIterator& iterator() { return iterator_; }

 private:
  void check_like_first(const Element& e);
  bool may_change(size_t i, const Shape& rows);
  bool fits_directly(const Ready& ready) const;

  DatasetIterator iterator_;
  const char* what_;
  int64_t cardinality_;
  Data first_;                 // shapes only; its values are long gone
  std::vector<Shape> rows_;    // of each tensor, without the batch
  std::vector<Shape> inputs_;  // what the model wants
  bool open_ = false;          // some of that is left to the data
  std::vector<DType> types_;
  Element element_;
  int64_t samples_ = 0, batches_ = 0;
  bool direct_ = false;
};

}  // namespace millpond::train
