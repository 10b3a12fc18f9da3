// Formula: an optimiser's rule as it stands in a book, made into a Rule. Adagrad:
//
//   const Term w = f.weight(), g = f.gradient(), sum = f.slot("accumulator", 0.1);
//   const Term more = sum + square(g);
//   f.becomes(sum, more);
//   f.becomes(w, w - f.learning_rate() * g / sqrt(more + 1e-7));
//
// Terms that depend on neither weight nor gradient nor slot are computed once a step, in double; all others for each
// element, in the type of the weights (float32 for the half types). Weight decay and clipping are no business of an
// optimiser's formula: weight() has decayed and gradient() is clipped where the options say so.
#pragma once
#include <string>
#include <vector>

#include "ops/rule.h"

namespace millpond::ops {

class Formula;

/// A number or one number for each element; belongs to its formula.
struct Term {
  Formula* formula;
  int node;
};

class Formula {
 public:
  struct Before {             // what happens before the optimiser's own formula
    double weight_decay = 0;  // the weight loses learning rate * weight_decay of itself
    double clip_value = 0;    // the gradient's elements lie within +-clip_value; 0: as they are
    bool scaled = false;      // the gradient is multiplied by a number that its norm (or that of all gradients) gives
  };
  explicit Formula(std::string name) : Formula(std::move(name), Before()) {}
  Formula(std::string name, const Before& before);
  Formula(const Formula&) = delete;  // terms point to it

  Term weight();
  Term gradient();
  /// One value for each element of a weight, kept between steps.
  Term slot(std::string name, double initial = 0);
  /// One number of the optimiser, kept between steps.
  Term number(std::string name, double initial = 0);
  Term learning_rate();
  /// 1 in the first step.
  Term step();
  /// What `kept` (the weight, a slot, a number) is after the step. What is told nothing of stays as it is.
  void becomes(Term kept, Term after);

  Rule rule() const;

  Term constant(double value);
  Term apply(Function f, Term a);
  Term apply(Function f, Term a, Term b);

 private:
  enum class Kind : uint8_t { kGradient, kWeight, kSlot, kRate, kStep, kNumber, kScale, kConstant, kFunction };
  struct Node {
    Kind kind;
    bool each;      // one value for each element
    int index = 0;  // kSlot, kNumber
    Function function{};
    int a = -1, b = -1;
    double value = 0;  // kConstant
  };
  int add(Node node);
  Term once(int& node, Kind kind, bool each);

  std::string name_;
  Before before_;
  std::vector<Node> nodes_;  // operands before those who read them
  std::vector<Rule::Kept> slots_, numbers_;
  int raw_weight_ = -1, raw_gradient_ = -1, weight_ = -1, gradient_ = -1, rate_ = -1, step_ = -1, scale_ = -1;
  int weight_after_ = -1;
  std::vector<int> slot_, slot_after_, number_, number_after_;
};

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator+(Term a, double b);
Term operator-(Term a, double b);
Term operator*(Term a, double b);
Term operator/(Term a, double b);
Term operator+(double a, Term b);
Term operator-(double a, Term b);
Term operator*(double a, Term b);
Term operator/(double a, Term b);
Term sqrt(Term x);
Term square(Term x);
Term sign(Term x);
Term abs(Term x);
Term exp(Term x);
Term log(Term x);
Term minimum(Term a, Term b);
Term maximum(Term a, Term b);
/// base^exponent; with the step's number as exponent it costs next to nothing.
Term power(double base, Term exponent);

}  // namespace millpond::ops
