// The assembler reads the file: no compiler has to look at 100 kB of it as numbers.
#include "report/page_template.h"

asm(R"(
  .section .rodata
  .global millpond_page_begin
  .global millpond_page_end
millpond_page_begin:
  .incbin ")" MILLPOND_PAGE_FILE R"("
millpond_page_end:
  .byte 0
  .text
)");

extern "C" const char millpond_page_begin[], millpond_page_end[];

namespace millpond::report {

std::string_view page_template() { return {millpond_page_begin, size_t(millpond_page_end - millpond_page_begin)}; }

bool page_is_built() { return page_template().find("millpond:text-only") == std::string_view::npos; }

}  // namespace millpond::report
