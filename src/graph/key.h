// Key: what tells two things apart, as words that are hashed and compared without making text or taking memory (up to
// 30 words; a longer key takes some). Cheap enough to be asked for at every call of an operator that is run by itself.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace millpond::graph {

class Key {
 public:
  void add(uint64_t word) {
    hash_ = (std::rotl(hash_, 5) ^ word) * 0x9e3779b97f4a7c15ull;
    if (count_ < kWords)
      words_[count_] = word;
    else
      more_.push_back(word);
    ++count_;
  }
  /// A number of numbers, and the numbers: lists that follow each other are told apart.
  template <class T>
  void add(std::span<const T> numbers) {
    add(uint64_t(numbers.size()));
    for (const T n : numbers) add(uint64_t(n));
  }
  void add(const Shape& shape) { add(shape.dims()); }
  void add(const TensorType& type) {
    add(uint64_t(type.dtype));
    add(type.shape);
  }
  void add(double number) { add(std::bit_cast<uint64_t>(number)); }
  void add(std::string_view text) {
    add(uint64_t(text.size()));
    for (size_t at = 0; at < text.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
      add(word);
    }
  }

  bool operator==(const Key& o) const {
    const size_t here = std::min(count_, kWords);
    return hash_ == o.hash_ && count_ == o.count_ && std::memcmp(words_.data(), o.words_.data(), here * 8) == 0 &&
           more_ == o.more_;
  }
  struct Hash {
    size_t operator()(const Key& k) const { return size_t(k.hash_ ^ (k.hash_ >> 32)); }
  };
  Bytes bytes() const { return Bytes{int64_t(sizeof *this + more_.size() * 8)}; }

 private:
  static constexpr size_t kWords = 30;
  uint64_t hash_ = 0;
  size_t count_ = 0;
  std::array<uint64_t, kWords> words_{};  // the first count_
  std::vector<uint64_t> more_;
};

}  // namespace millpond::graph
