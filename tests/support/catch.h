// Catch2's two spellings: 2.13 (Debian 12) and 3 (Debian 13); and the checks for Status and Result.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as 2.13 has it
#else
#include <catch2/catch.hpp>
#endif

#include "store/base/result.h"
#include "store/base/status.h"

namespace siltfs::testing {

inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}

}  // namespace siltfs::testing

// The Status or Result is OK; shows what it says if not.
#define REQUIRE_OK(expression)                                                  \
  do {                                                                          \
    const auto& siltfs_outcome_ = (expression);                                 \
    INFO(::siltfs::testing::StatusOf(siltfs_outcome_).ToString());              \
    REQUIRE(siltfs_outcome_.ok());                                              \
  } while (false)

// The Status or Result failed with this code (a name without its StatusCode::).
#define REQUIRE_CODE(expression, expected_code)                                                    \
  do {                                                                                             \
    const auto& siltfs_outcome_ = (expression);                                                    \
    INFO(::siltfs::testing::StatusOf(siltfs_outcome_).ToString());                                 \
    REQUIRE(::siltfs::StatusCodeName(::siltfs::testing::StatusOf(siltfs_outcome_).code()) ==       \
            ::siltfs::StatusCodeName(::siltfs::StatusCode::expected_code));                        \
  } while (false)
