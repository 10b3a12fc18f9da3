// What fmt's headers leave to its library, for a program that carries its own (MILLPOND_STATIC).
#include <fmt/format-inl.h>

#include <locale>

// Templates of which the headers say, or take for granted, that the library has them made.
FMT_BEGIN_NAMESPACE
namespace detail {
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;
template void buffer<char>::append<char>(const char*, const char*);
template void vformat_to<char>(buffer<char>&, basic_string_view<char>, basic_format_args<buffer_context<char>>,
                               locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
