#include <zlib.h>

#include "base/assert.h"
#include "base/format.h"
#include "millpond/error.h"
#include "report/page_growth.h"

namespace millpond::report {
namespace {

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t k) { return k < bytes.size() ? uint32_t(static_cast<unsigned char>(bytes[k])) : 0; };
    const uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += kDigits[word >> 18];
    out += kDigits[word >> 12 & 63];
    out += i + 1 < bytes.size() ? kDigits[word >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kDigits[word & 63] : '=';
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

void put(std::string& page, std::string_view mark, const std::string& text) {
  const size_t at = page.find(mark);
  MP_ASSERT(at != page.npos);  // tests/report holds the built page to it
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string packed(const PageJson& document) {
  const std::string text = document.dump(-1, ' ', false, PageJson::error_handler_t::replace);
  uLongf size = compressBound(uLong(text.size()));
  std::string out(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
                             uLong(text.size()), 6);
  if (code != Z_OK)
    throw Error(Code::kMemory, format("page: {} could not be compressed", Bytes{int64_t(text.size())}))
        .hint("free some memory");
  out.resize(size);
  return out;
}

std::string page_html(const PageJson& document, const std::string& plain_text) {
  std::string page(page_template());
  const PageJson& runs = document.at("runs");
  std::string title = "Millpond";
  if (!runs.empty())
    title = format("{}: {}", cut(runs.back().at("title").get<std::string>(), 120),
                   runs.back().at("verdict").get<std::string>());
  // Once through JSON and back: what is no UTF-8 is replaced, as in the document.
  const auto clean = [](const std::string& text) {
    return PageJson::parse(PageJson(text).dump(-1, ' ', false, PageJson::error_handler_t::replace)).get<std::string>();
  };
  put(page, "<!--millpond:text-->", escaped(clean(plain_text)));
  put(page, "<!--millpond:data-->", base64(packed(document)));
  put(page, "millpond:title", escaped(clean(title)));
  return page;
}

}  // namespace millpond::report
