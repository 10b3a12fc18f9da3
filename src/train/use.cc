#include "train/use.h"

#include <algorithm>

#include "base/format.h"
#include "base/team.h"
#include "train/memory.h"
#include "train/model.h"

namespace millpond::train {

Uses::Uses() { workspaces_.push_back(std::make_unique<Workspace>()); }

std::vector<const Programs*> Uses::workspaces() const {
  const std::lock_guard lock(mutex_);
  std::vector<const Programs*> all;
  for (const auto& w : workspaces_) all.push_back(&w->programs);
  return all;
}

Bytes Uses::arena_bytes() const {
  const std::lock_guard lock(mutex_);
  Bytes sum;
  for (const auto& w : workspaces_) sum += w->programs.arena_bytes();
  return sum;
}

void Uses::clear() {
  const std::lock_guard lock(mutex_);
  workspaces_.resize(1);
  workspaces_[0]->programs.clear();
}

void Use::refuse_against(const Use& other) const {
  const bool own = other.thread_ == thread_;
  if (own && how_ != How::kRemake) return;
  if (how_ == How::kRemake) {
    throw Error(Code::kUsage, format("{}: the model \"{}\" is in use, by {}{}", what_, model_.name, other.what_,
                                     own ? ", whose callback calls this" : " in another thread"))
        .hint(format("call {} before or after it", what_));
  }
  if (other.changes() || other.how_ == How::kRemake)
    throw Error(Code::kUsage, format("{}: the model \"{}\" is being changed by {} in another thread", what_,
                                     model_.name, other.what_))
        .hint(changes() ? "several models may train at once, but one model is trained by one thread at a time"
                        : "wait until that has returned, or call this from its callbacks");
  if (changes())
    throw Error(Code::kUsage,
                format("{}: the model \"{}\" is in use by {} in another thread", what_, model_.name, other.what_))
        .hint("wait until that has returned");
}

// The innermost use of this thread that has a workspace, or null.
const Use* Use::check() const {
  const Use* outer = nullptr;
  for (const Use* u : model_.uses.active_) {
    refuse_against(*u);
    if (u->thread_ == thread_ && u->workspace_) outer = u;
  }
  return outer;
}

void Use::take_workspace(std::unique_lock<std::mutex>& lock) {
  Uses& uses = model_.uses;
  for (;;) {
    if (const Use* outer = check()) {
      workspace_ = outer->workspace_;
      return;
    }
    if (how_ == How::kTrain) uses.workspaces_.resize(1);  // no other use is active, so none is taken
    const auto free = std::ranges::find(uses.workspaces_, false, [](const auto& w) { return w->taken; });
    if (free != uses.workspaces_.end())
      workspace_ = free->get();
    else if (int(uses.workspaces_.size()) < std::max(2, usable_threads()))
      workspace_ = uses.workspaces_.emplace_back(std::make_unique<Uses::Workspace>()).get();
    if (workspace_) {
      took_ = workspace_->taken = true;
      return;
    }
    uses.given_back_.wait(lock);
  }
}

Use::Use(ModelImpl& model, const char* what, How how) : model_(model), what_(what), how_(how) {
  std::unique_lock lock(model_.uses.mutex_);
  if (runs())
    take_workspace(lock);
  else
    check();
  model_.uses.active_.push_back(this);
  lock.unlock();
  // Whoever has read a weight keeps what it was; programs change weights without a word.
  if (how_ == How::kTrain && model_.called)
    for (const nn::Weight& w : model_.weights()) w->variable.changing();
}

Use::~Use() {
  if (workspace_) workspace_->programs.wait();  // whoever comes next may be another thread
  Uses& uses = model_.uses;
  const std::lock_guard lock(uses.mutex_);
  std::erase(uses.active_, this);
  if (!took_) return;
  workspace_->taken = false;
  uses.given_back_.notify_all();
}

Ready& Use::program(Kind kind, int64_t batch, int threads, const SampleShapes& samples) const {
  if (Ready* known = programs().find(kind, batch, threads, samples)) return *known;
  ModelImpl& m = model_;
  std::unique_lock making(m.making, std::defer_lock);
  return programs().get(
      kind, batch, threads, samples,
      [&](const passes::Options& passes) {
        making.lock();
        return trace(m.built(), m.compiled ? &*m.compiled : nullptr, kind, batch, samples, &m.counter,
                     programs().counts(), passes);
      },
      [&](const Ready& made, Bytes more) {
        refuse_if_too_large(m, made, more);
        m.place_state(kind);
        programs().counts().place();
        runtime::place(made.program.variables(),
                       "slots");  // a layer called as if training counts without an optimizer too
      });
}

}  // namespace millpond::train
