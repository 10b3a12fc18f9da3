// MP_ASSERT: an invariant of our own code, checked in every build; no user input may reach one.
// MP_CHECK: the same where checking costs time; only in debug builds (MILLPOND_CHECKS).
#pragma once

namespace millpond {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;
}

#define MP_ASSERT(condition) ((condition) ? void(0) : ::millpond::assertion_failed(#condition, __FILE__, __LINE__))
#ifdef MILLPOND_CHECKS
#define MP_CHECK(condition) MP_ASSERT(condition)
#else
#define MP_CHECK(condition) void(0)
#endif
