// Includes Catch2 2.13 (Debian 12) or 3 (Debian 13), and defines checks for Status and Result.
#pragma once

#include <cstring>
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // the name in 2.13
#else
#include <catch2/catch.hpp>
#endif

#include "store/base/result.h"
#include "store/base/status.h"

// REQUIRE_OK and REQUIRE_CODE are in most lines of many tests. So they call Catch2 only if the
// check fails: this makes the tests compile in less time, and makes loops over many checks faster.
namespace siltfs::testing {

[[gnu::noinline, gnu::cold]] inline void FailOutcome(const char* file, size_t line,
                                                     const char* macro, const char* expression,
                                                     const Status& status) {
  Catch::AssertionHandler handler(
      Catch::StringRef(macro, std::strlen(macro)), Catch::SourceLineInfo(file, line),
      Catch::StringRef(expression, std::strlen(expression)), Catch::ResultDisposition::Normal);
  handler.handleMessage(Catch::ResultWas::ExplicitFailure,
                        std::string(StatusCodeName(status.code())) + ": " + status.ToString());
  handler.complete();
}

}  // namespace siltfs::testing

// Requires that the Status or Result is OK; otherwise shows its text.
#define REQUIRE_OK(expression)                                                      \
  do {                                                                              \
    const auto& siltfs_outcome_ = (expression);                                     \
    if (!siltfs_outcome_.ok()) {                                                    \
      ::siltfs::testing::FailOutcome(__FILE__, __LINE__, "REQUIRE_OK", #expression, \
                                     ::siltfs::StatusOf(siltfs_outcome_));          \
    }                                                                               \
  } while (false)

// Requires that the Status or Result failed with this code (a name without StatusCode::).
#define REQUIRE_CODE(expression, expected_code)                                              \
  do {                                                                                       \
    const auto& siltfs_outcome_ = (expression);                                              \
    if (::siltfs::StatusOf(siltfs_outcome_).code() != ::siltfs::StatusCode::expected_code) { \
      ::siltfs::testing::FailOutcome(__FILE__, __LINE__, "REQUIRE_CODE",                     \
                                     #expression ", " #expected_code,                        \
                                     ::siltfs::StatusOf(siltfs_outcome_));                   \
    }                                                                                        \
  } while (false)
