// Callback: hooks into training with Keras's names. Override what you need; a hook that nobody overrides costs nothing,
// not even a call for each batch.
//
//   struct Stop : Callback {
//     void on_epoch_end(int epoch, const Logs& logs) override { if (logs["loss"] < 0.1) model().stop_training(); }
//   };
//   model.fit(x, y, {.callbacks = {Stop()}});
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "millpond/error.h"
#include "millpond/history.h"

namespace millpond {

class Model;

class Callback {
 public:
  /// What the training that calls it will do.
  struct Params {
    int epochs = 1;
    int64_t steps = 0;  // in an epoch
    int64_t batch_size = 0;
    int verbose = 0;
  };
  virtual ~Callback() = default;

  virtual void on_train_begin(const Logs&) {}
  virtual void on_train_end(const Logs&) {}
  virtual void on_epoch_begin(int /*epoch*/, const Logs&) {}
  virtual void on_epoch_end(int /*epoch*/, const Logs&) {}
  virtual void on_train_batch_begin(int64_t /*batch*/, const Logs&) { unused_ |= kTrainBegin; }
  virtual void on_train_batch_end(int64_t /*batch*/, const Logs&) { unused_ |= kTrainEnd; }
  virtual void on_test_begin(const Logs&) {}
  virtual void on_test_end(const Logs&) {}
  virtual void on_test_batch_begin(int64_t /*batch*/, const Logs&) { unused_ |= kTestBegin; }
  virtual void on_test_batch_end(int64_t /*batch*/, const Logs&) { unused_ |= kTestEnd; }
  virtual void on_predict_begin(const Logs&) {}
  virtual void on_predict_end(const Logs&) {}
  virtual void on_predict_batch_begin(int64_t /*batch*/, const Logs&) { unused_ |= kPredictBegin; }
  virtual void on_predict_batch_end(int64_t /*batch*/, const Logs&) { unused_ |= kPredictEnd; }

  /// The model in training. Throws Error(kUsage) outside of a hook, where there is none.
  Model& model() const {
    if (!model_)
      throw Error(Code::kUsage, "Callback::model(): there is a model only while fit, evaluate or predict calls a hook");
    return *model_;
  }
  const Params& params() const { return params_; }

  // For the trainer: a batch hook that reached its default above says so, and is not called again.
  enum Hook : uint8_t {
    kTrainBegin = 1,
    kTrainEnd = 2,
    kTestBegin = 4,
    kTestEnd = 8,
    kPredictBegin = 16,
    kPredictEnd = 32
  };
  uint8_t unused_hooks() const { return unused_; }
  Model* attach(Model* model, const Params& params) {
    return params_ = params, unused_ = 0, std::exchange(model_, model);
  }

 private:
  Model* model_ = nullptr;  // borrowed for the duration of a fit, evaluate or predict
  Params params_;
  uint8_t unused_ = 0;
};

/// Takes a callback as it comes: a temporary is kept, a variable is borrowed, a shared pointer is shared.
class CallbackRef {
 public:
  template <class T>
    requires std::is_base_of_v<Callback, std::remove_cvref_t<T>>
  CallbackRef(T&& callback) {
    if constexpr (std::is_lvalue_reference_v<T>)
      callback_ = std::shared_ptr<Callback>(std::shared_ptr<void>(), &callback);
    else
      callback_ = std::make_shared<std::remove_cvref_t<T>>(std::move(callback));
  }
  template <class T>
    requires std::is_base_of_v<Callback, T>
  CallbackRef(std::shared_ptr<T> callback) : callback_(std::move(callback)) {
    if (!callback_) throw Error(Code::kUsage, "a callback is a null pointer");
  }
  CallbackRef(std::nullptr_t) = delete;
  Callback& operator*() const { return *callback_; }
  Callback* operator->() const { return callback_.get(); }

 private:
  std::shared_ptr<Callback> callback_;
};

}  // namespace millpond
