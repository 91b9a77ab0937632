// Includes Catch2 2.13 (Debian 12) or 3 (Debian 13), and defines checks for Status and Result.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // the name in 2.13
#else
#include <catch2/catch.hpp>
#endif

#include "store/base/result.h"
#include "store/base/status.h"

// Requires that the Status or Result is OK; otherwise shows its text.
#define REQUIRE_OK(expression)                            \
  do {                                                    \
    const auto& siltfs_outcome_ = (expression);           \
    INFO(::siltfs::StatusOf(siltfs_outcome_).ToString()); \
    REQUIRE(siltfs_outcome_.ok());                        \
  } while (false)

// Requires that the Status or Result failed with this code (a name without StatusCode::).
#define REQUIRE_CODE(expression, expected_code)                                     \
  do {                                                                              \
    const auto& siltfs_outcome_ = (expression);                                     \
    INFO(::siltfs::StatusOf(siltfs_outcome_).ToString());                           \
    REQUIRE(::siltfs::StatusCodeName(::siltfs::StatusOf(siltfs_outcome_).code()) == \
            ::siltfs::StatusCodeName(::siltfs::StatusCode::expected_code));         \
  } while (false)
