#include "verdict/causes/cause.h"

namespace millpond::verdict {

const Cause c45_no_donation = {
    .id = "C45",
    .title = "Two copies of the training state are alive in each step, because it is not donated",
    .explanation =
        "A jitted update returns a new state while the old one still lives: twice the state, always, not more each "
        "time.",
    .fix = "jax.jit(update, donate_argnums=0).",
    .threads = {},
    .detect = nullptr,
    .not_detected =
        "not growth: the level is twice the state in every step, which the marks between steps do not show"};

}  // namespace millpond::verdict
