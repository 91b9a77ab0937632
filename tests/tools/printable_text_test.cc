#include "tools/siltfs/printable_text.h"

#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

TEST_CASE("Printable does not change readable text") {
  for (const std::string text : {"", "/a path/with spaces", R"(C:\n "quoted" 'too')", "Grüße",
                                 "日本語", "\U0001F600", "~", " "}) {
    CHECK(Printable(text) == text);
  }
}

TEST_CASE("Printable escapes control characters and line separators") {
  CHECK(Printable("a\nb\r\tc") == R"(a\nb\r\tc)");
  CHECK(Printable("\x1b[31mred") == R"(\x1b[31mred)");
  CHECK(Printable(std::string(1, '\0') + "\x7f") == R"(\x00\x7f)");
  CHECK(Printable("\xc2\x9b") == R"(\xc2\x9b)");            // CSI of C1
  CHECK(Printable("\xe2\x80\xae") == R"(\xe2\x80\xae)");    // right-to-left override
  CHECK(Printable("\xe2\x80\xa8x") == R"(\xe2\x80\xa8x)");  // line separator
  CHECK(Printable("\xc2\xa0") == "\xc2\xa0");               // the first character after C1
}

TEST_CASE("Printable escapes bytes that are not UTF-8, one by one") {
  CHECK(Printable("a\xff"
                  "b") == R"(a\xffb)");
  CHECK(Printable("\xc3") == R"(\xc3)");  // cut off
  CHECK(Printable("\xc3(") == R"(\xc3()");
  CHECK(Printable("\xc0\x8a") == R"(\xc0\x8a)");                  // overlong newline
  CHECK(Printable("\xed\xa0\x80") == R"(\xed\xa0\x80)");          // surrogate
  CHECK(Printable("\xf4\x90\x80\x80") == R"(\xf4\x90\x80\x80)");  // beyond U+10FFFF
  CHECK(Printable("\x80ü") == R"(\x80)"
                              "ü");
}

}  // namespace
}  // namespace siltfs::testing
